//! Brings the events of one turn, or of one change outside any turn, to where they belong.
//!
//! The event table decides: a direct event is written to the action stream, a diagnostic or
//! lifecycle event is saved to the trace, and what has a topic is published. Forwarded events are
//! not written here: the action stream gets its copy over the bus (see [`super::ports::Publisher`]).
//!
//! Two ways lead out. [`Emitter::emit`] is for what happens now; whether it arrives changes nothing.
//! [`Emitter::fan_out`] is for what a commit announces: one by one, after the commit, and the caller
//! learns of failures.

use std::sync::Arc;

use jiff::Timestamp;
use turnwire_spec::covel::{ActionStream, EventMeta, EventPayload, Topic, event};

use super::events::{Emission, changes};
use super::happening::{Happened, Happening};
use super::ids::{SessionKey, TraceId, TurnId};
use super::model::{DomainEvent, Object, ToolRecord, TraceEvent};
use super::ports::{Clock, Delivery, Ids, Invalidation, Publisher, TurnEvent, TurnSink};
use crate::store::{Batch, Purpose, Store, Write};

/// What an emitter needs from the server.
#[derive(Clone)]
pub(super) struct Outlets {
    /// Saves traces.
    pub(super) store: Arc<dyn Store>,
    /// Reaches subscribers.
    pub(super) publisher: Arc<dyn Publisher>,
    /// Makes ids of traces.
    pub(super) ids: Arc<dyn Ids>,
    /// Tells the time.
    pub(super) clock: Arc<dyn Clock>,
}

/// Emits the events of one turn.
#[derive(Clone)]
pub struct Emitter {
    outlets: Outlets,
    session: SessionKey,
    trace_id: TraceId,
    turn: Place,
    sink: Option<Arc<dyn TurnSink>>,
}

/// Where the events belong.
#[derive(Clone, Debug)]
enum Place {
    /// Into this turn.
    Turn(TurnId),
    /// Into no turn; the trace, which needs one, files them under this id.
    Outside(TurnId),
}

/// What became of the publishes of one commit.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FanOut {
    /// What went wrong, one text for each publish that failed.
    pub errors: Vec<String>,
    /// How many publishes there were.
    pub total: usize,
}

impl FanOut {
    /// Whether subscribers have to read everything again.
    #[must_use]
    pub fn needs_resync(&self) -> bool {
        !self.errors.is_empty()
    }
}

impl Emitter {
    /// For the events of a turn; `sink` is the action stream, when there is one.
    pub(super) fn of_turn(
        outlets: Outlets,
        session: SessionKey,
        trace_id: TraceId,
        turn_id: TurnId,
        sink: Option<Arc<dyn TurnSink>>,
    ) -> Self {
        Self {
            outlets,
            session,
            trace_id,
            turn: Place::Turn(turn_id),
            sink,
        }
    }

    /// For the events of a change outside any turn.
    pub(super) fn outside(outlets: Outlets, session: SessionKey) -> Self {
        let id = outlets.ids.id("op");
        let turn = Place::Outside(TurnId::from(id.as_str()));
        Self {
            outlets,
            session,
            trace_id: TraceId::from(id),
            turn,
            sink: None,
        }
    }

    /// The session that the events belong to.
    pub(super) fn session(&self) -> &SessionKey {
        &self.session
    }

    /// The turn that the events belong to; outside any turn, the id of the change.
    pub(super) fn turn_id(&self) -> &TurnId {
        match &self.turn {
            Place::Turn(id) | Place::Outside(id) => id,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.outlets.clock.now()
    }

    /// Sends what happens now. Whatever fails on the way is logged, and nothing else.
    ///
    /// The trace is saved first, so that whoever hears of the event can read it.
    pub(super) async fn emit(&self, emission: Emission) {
        let Some(meta) = known(&emission) else { return };
        let timestamp = self.now();
        if is_traced(meta) {
            self.save(meta.name, emission.payload.clone(), timestamp)
                .await;
        }
        self.send(meta, emission, timestamp);
    }

    /// Sends an event that is never saved, without waiting for anything.
    pub(super) fn emit_unsaved(&self, emission: Emission) {
        if let Some(meta) = known(&emission) {
            self.send(meta, emission, self.now());
        }
    }

    /// Tells what happens now, and is never stored.
    pub(super) fn tell(&self, what: Happened) {
        let turn = match &self.turn {
            Place::Turn(id) => Some(id),
            Place::Outside(_) => None,
        };
        let nonce = self.outlets.ids.id("event");
        let happening = Happening::passing(&self.session, turn, &nonce, self.now(), what);
        self.tell_fact(happening);
    }

    /// Tells something that a stored fact stands behind.
    pub(super) fn tell_fact(&self, happening: Happening) {
        self.outlets.publisher.happened(&Arc::new(happening));
    }

    /// Stores the record of a tool call. Whether it could be stored; a record that could not is not told.
    pub(super) async fn record(&self, record: &ToolRecord) -> bool {
        let batch = Batch {
            session: self.session.clone(),
            purpose: Purpose::Tool,
            writes: vec![Write::ToolCall(record.clone())],
        };
        let stored = self.outlets.store.commit(batch).await;
        if let Err(error) = &stored {
            tracing::warn!(session = %self.session.id, %error, "a tool call could not be recorded");
        }
        stored.is_ok()
    }

    /// Saves a row that exists in the trace only.
    pub(super) async fn trace_row<P: EventPayload>(&self, row: &P) {
        self.save(P::EVENT, row.payload(), self.now()).await;
    }

    fn send(&self, meta: &'static EventMeta, emission: Emission, timestamp: Timestamp) {
        if let Some(topic) = topic_of(meta) {
            let event = self.domain_event(meta, topic, &emission, timestamp);
            if let Err(error) = self.outlets.publisher.publish(&event, Delivery::Live) {
                self.warn(meta, &error);
            }
        }
        self.write(meta, emission.payload, timestamp);
    }

    /// Publishes what a commit announces: one after the other, a failed one does not stop the rest.
    ///
    /// After a failure the trace says so, and only then are the subscribers sent to read everything
    /// again, so that the trace can be read when they do (COV-SUB-159).
    pub(super) async fn fan_out(&self, emissions: Vec<Emission>) -> FanOut {
        let published = |emission: &Emission| known(emission).and_then(topic_of).is_some();
        let of = emissions
            .iter()
            .filter(|emission| published(emission))
            .count();
        let mut result = FanOut {
            errors: Vec::new(),
            total: of,
        };
        let mut nth = 0;
        for emission in emissions {
            let Some(meta) = known(&emission) else {
                continue;
            };
            let timestamp = self.now();
            if let Some(topic) = topic_of(meta) {
                nth += 1;
                let event = self.domain_event(meta, topic, &emission, timestamp);
                let delivery = Delivery::AfterCommit { nth, of };
                if let Err(error) = self.outlets.publisher.publish(&event, delivery) {
                    self.warn(meta, &error);
                    result.errors.push(error.to_string());
                }
            }
            self.write(meta, emission.payload, timestamp);
        }
        if result.needs_resync() {
            self.emit(changes::commit_fanout_failed(&result.errors, result.total))
                .await;
            self.outlets
                .publisher
                .invalidate(&self.session, Invalidation::PublishFailed);
        }
        result
    }

    /// Writes a direct event to the action stream.
    fn write(&self, meta: &EventMeta, payload: Object, timestamp: Timestamp) {
        if let (ActionStream::Direct, Some(sink)) = (meta.action_stream, &self.sink) {
            sink.event(TurnEvent {
                kind: meta.name,
                turn_id: self.turn_id().clone(),
                trace_id: self.trace_id.clone(),
                payload,
                timestamp,
                forwarded: false,
            });
        }
    }

    fn domain_event(
        &self,
        meta: &'static EventMeta,
        topic: Topic,
        emission: &Emission,
        timestamp: Timestamp,
    ) -> DomainEvent {
        DomainEvent {
            kind: meta.name,
            topic,
            session: self.session.clone(),
            turn_id: match &self.turn {
                Place::Turn(id) => Some(id.clone()),
                Place::Outside(_) => None,
            },
            source: emission.source.clone(),
            payload: emission.payload.clone(),
            timestamp,
        }
    }

    async fn save(&self, kind: &'static str, payload: Object, timestamp: Timestamp) {
        let event = TraceEvent {
            id: self.outlets.ids.id("trace"),
            session_id: self.session.id.clone(),
            kind: kind.to_owned(),
            turn_id: self.turn_id().clone(),
            trace_id: self.trace_id.clone(),
            payload,
            timestamp,
        };
        if self
            .outlets
            .store
            .append_traces(&self.session, &[event])
            .await
            .is_err()
        {
            tracing::warn!(
                event = kind,
                session = %self.session.id,
                turn = %self.turn_id(),
                trace = %self.trace_id,
                "a trace event could not be saved"
            );
        }
    }

    fn warn(&self, meta: &EventMeta, error: &dyn std::fmt::Display) {
        tracing::warn!(
            event = meta.name,
            session = %self.session.id,
            turn = %self.turn_id(),
            trace = %self.trace_id,
            %error,
            "an event could not be published"
        );
    }
}

impl std::fmt::Debug for Emitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emitter")
            .field("session", &self.session)
            .field("turn", &self.turn)
            .finish_non_exhaustive()
    }
}

/// The row of the event, for an event that may be sent at all.
fn known(emission: &Emission) -> Option<&'static EventMeta> {
    let meta = event(emission.kind).filter(|meta| meta.member);
    if meta.is_none() {
        tracing::error!(
            event = emission.kind,
            "an event without a row in the table is not sent"
        );
    }
    meta
}

/// The topic under which subscribers get the event, if they do.
fn topic_of(meta: &'static EventMeta) -> Option<Topic> {
    meta.on_subscription().then(|| meta.topic.ours()).flatten()
}

/// Whether the event is saved: diagnostics, and the lifecycle that a view shows as steps.
///
/// Source: seed 000, lines 182 (stage is persisted) and 1217-1244.
fn is_traced(meta: &EventMeta) -> bool {
    meta.is_diagnostic() || is_lifecycle(meta.name)
}

/// Whether events of this kind are the execution steps of a view.
pub(super) fn is_lifecycle(kind: &str) -> bool {
    kind.starts_with("runtime.") || kind.starts_with("execution.")
}
