//! `GET /api/events/stream`: the subscription of a session.
//!
//! ```text
//!   request -> listen -> read the session -> owner? -> place? -> attach (pin) -> 200
//!
//!   connected -> replay, or reset, or nothing -> live <-+-> heartbeat
//!                                                 |     +-> recheck, after a frame of another life
//!                                                 +-> reset and close, after events were lost
//!                                                 +-> close, when the session was deleted
//! ```
//!
//! The listener stands before the session is read, so that nothing that happens meanwhile is lost;
//! the pin stands after the owner check, so that strangers move no replay state. After that no frame
//! reads the store.
//!
//! Source: seed 000, lines 640-693 and 715-719.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use turnwire_spec::covel::envelope::TopicSelection;
use turnwire_spec::covel::{ResetReason, SUBSCRIPTION_TOPICS, Topic, limits};

use super::Covel;
use super::errors::ApiError;
use super::frames;
use super::rates::Place;
use super::request::Query;
use crate::bus::replay::{Position, Resume};
use crate::bus::{Emitted, Ending, Next, Subscription};
use crate::engine::ids::{SessionId, SessionKey};
use crate::engine::ports::Clock;
use crate::faces::connection::Connection;
use crate::faces::http_stream;
use crate::faces::writer::{FrameQueue, Refused, WriteLimits};
use crate::store::Store;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    session: SessionId,
    topics: TopicSelection,
    cursor: Option<String>,
}

impl Wanted {
    /// Reads the query; the header stands in for an absent cursor.
    fn read(query: &Query, headers: &HeaderMap) -> Result<Self, ApiError> {
        let session = query
            .get("sessionId")
            .filter(|id| !id.is_empty())
            .ok_or_else(|| ApiError::bad("session_id_required", "sessionId is missing"))?;
        let header = || {
            headers
                .get("last-event-id")
                .and_then(|value| value.to_str().ok())
        };
        let cursor = query
            .get("lastEventId")
            .or_else(header)
            .filter(|text| !text.is_empty());
        Ok(Self {
            session: SessionId::from(session),
            topics: topics(query.get("topics"))?,
            cursor: cursor.map(ToOwned::to_owned),
        })
    }
}

/// Reads a comma list of topics; absent or empty means all.
fn topics(list: Option<&str>) -> Result<TopicSelection, ApiError> {
    let names = || {
        list.into_iter()
            .flat_map(|list| list.split(','))
            .map(str::trim)
    };
    let mut known: Vec<Topic> = Vec::new();
    let mut unknown = Vec::new();
    for name in names().filter(|name| !name.is_empty()) {
        match name.parse() {
            Ok(topic) if known.contains(&topic) => {}
            Ok(topic) => known.push(topic),
            Err(_) => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        let all: Vec<_> = SUBSCRIPTION_TOPICS
            .iter()
            .map(|topic| topic.name())
            .collect();
        let error = format!(
            "unknown topics: {}; there are {}",
            unknown.join(", "),
            all.join(", ")
        );
        return Err(ApiError::bad("unknown_topic", error));
    }
    Ok(if known.is_empty() {
        TopicSelection::ALL
    } else {
        TopicSelection::Some(known)
    })
}

/// Opens a subscription.
pub(super) async fn subscribe(
    State(face): State<Arc<Covel>>,
    Extension(connection): Extension<Connection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let client = connection.peer().ip();
    face.rates.count(
        client,
        "/api/events/stream",
        limits::SUBSCRIPTIONS_PER_WINDOW,
    )?;
    let wanted = Wanted::read(&query, &headers)?;

    let listener = face.bus.listen(&wanted.session);
    let session = face
        .store
        .session(&wanted.session)
        .await?
        .ok_or_else(|| ApiError::session_not_found(wanted.session.as_str()))?;
    face.guard.owner(&session, &headers, &query)?;
    let place = face.places.take(&session.id)?;
    let subscription = listener
        .attach(session.key(), &wanted.topics, wanted.cursor.as_deref())
        .map_err(|ending| refuse(ending, &connection, &session.id))?;

    let limits = WriteLimits::at(face.scale);
    let (queue, response) = http_stream::open(&connection, limits);
    let stream = Stream {
        subscription,
        queue,
        limits,
        topics: wanted.topics,
        reread: reread(Arc::clone(&face.store)),
        clock: Arc::clone(&face.clock),
        heartbeat: face.scale.scale(limits::HEARTBEAT_EVERY),
        _place: Some(place),
    };
    tokio::spawn(stream.run());
    Ok(response)
}

/// The answer when the session ended, or lost events, during the handshake. In the latter case the
/// connection closes directly, so that the client connects and validates again.
fn refuse(ending: Ending, connection: &Connection, session: &SessionId) -> ApiError {
    match ending {
        Ending::Deleted => ApiError::session_not_found(session.as_str()),
        Ending::Closed => ApiError::shutting_down(),
        Ending::Invalidated | Ending::Overflow => {
            connection.abort();
            ApiError::internal(&ending)
        }
    }
}

/// Tells whether a life of a session still is what the store holds under its id.
type Reread = Box<dyn Fn(SessionKey) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Reads the session once more. A read that fails counts as a change.
fn reread(store: Arc<dyn Store>) -> Reread {
    Box::new(move |key| {
        let store = Arc::clone(&store);
        Box::pin(async move {
            let session = store.session(&key.id).await;
            session.is_ok_and(|session| session.is_some_and(|session| session.key() == key))
        })
    })
}

/// One open subscription: everything that it holds is released when it is dropped.
struct Stream {
    subscription: Subscription,
    queue: FrameQueue,
    limits: WriteLimits,
    topics: TopicSelection,
    reread: Reread,
    clock: Arc<dyn Clock>,
    heartbeat: Duration,
    _place: Option<Place>,
}

/// How a subscription is to be closed.
enum Close {
    /// What is queued is still written.
    Drain,
    /// Broken off.
    Abort,
}

impl From<Refused> for Close {
    fn from(_: Refused) -> Self {
        // The queue has ended by itself; there is nothing left to drain.
        Self::Abort
    }
}

impl Stream {
    async fn run(mut self) {
        match self.serve().await {
            Close::Drain => {
                self.queue.finish().await;
            }
            Close::Abort => self.queue.abort(),
        }
    }

    async fn serve(&mut self) -> Close {
        let mut heartbeat = interval_at(Instant::now() + self.heartbeat, self.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        match self.begin(&mut heartbeat).await {
            Ok(is_catching_up) => self.live(&mut heartbeat, is_catching_up).await,
            Err(close) => close,
        }
    }

    /// Sends `system.connected` and what the cursor asks for. Tells whether there was a replay.
    async fn begin(&mut self, heartbeat: &mut Interval) -> Result<bool, Close> {
        let position = self.subscription.position().clone();
        let session = self.subscription.key().id.clone();
        let now = self.clock.now();
        self.queue
            .push(frames::connected(&session, &self.topics, &position, now))?;
        match self.subscription.take_resume() {
            None => Ok(false),
            Some(Resume::Reset(reason)) => {
                self.queue
                    .push(frames::reset(&session, reason, &position, now))?;
                Ok(false)
            }
            Some(Resume::Replay(events)) => {
                self.replay(events.into(), heartbeat).await?;
                Ok(true)
            }
        }
    }

    /// Sends a replay as fast as the client takes it.
    ///
    /// When events are lost meanwhile, it closes without finishing: the client validates again.
    async fn replay(
        &mut self,
        mut events: VecDeque<Arc<Emitted>>,
        heartbeat: &mut Interval,
    ) -> Result<(), Close> {
        while let Some(emitted) = events.pop_front() {
            let pushed = self.queue.push_when_room(frames::event(&emitted));
            tokio::select! {
                biased;
                ending = self.subscription.interrupted() => return Err(close_for(ending)),
                pushed = pushed => pushed?,
            }
            if elapsed(heartbeat).await {
                self.queue
                    .push_when_room(frames::heartbeat(self.clock.now()))
                    .await?;
            }
        }
        Ok(())
    }

    /// Sends what happens, and heartbeats, until something ends that.
    ///
    /// After a replay the queue may be full though the client keeps up, so the first live events
    /// wait for room; the mailbox bounds them.
    async fn live(&mut self, heartbeat: &mut Interval, mut is_catching_up: bool) -> Close {
        loop {
            let frame = tokio::select! {
                biased;
                _ = self.queue.ended() => return Close::Abort,
                _ = heartbeat.tick() => frames::heartbeat(self.clock.now()),
                next = self.subscription.next() => match next {
                    Next::Event(emitted) => frames::event(&emitted),
                    Next::Recheck => match self.recheck().await {
                        Ok(()) => continue,
                        Err(close) => return close,
                    },
                    Next::Reset(reason, position) => return self.reset(reason, &position).await,
                    Next::End(ending) => return close_for(ending),
                },
            };
            is_catching_up = is_catching_up && self.queue.held() > self.limits.frames / 2;
            let pushed = if is_catching_up {
                self.queue.push_when_room(frame).await
            } else {
                self.queue.push(frame)
            };
            if pushed.is_err() {
                return Close::Abort;
            }
        }
    }

    /// Tells the client to start over, when its session is still there, and closes in any case.
    async fn reset(&mut self, reason: ResetReason, position: &Position) -> Close {
        if let Err(close) = self.recheck().await {
            return close;
        }
        let session = &self.subscription.key().id;
        let frame = frames::reset(session, reason, position, self.clock.now());
        self.queue
            .push(frame)
            .map_or_else(Close::from, |()| Close::Drain)
    }

    /// Reads the session once more, and says to close when it is another one, or none. Its deletion,
    /// or the end of the connection, interrupts that.
    async fn recheck(&self) -> Result<(), Close> {
        tokio::select! {
            biased;
            ending = self.subscription.ended() => Err(close_for(ending)),
            _ = self.queue.ended() => Err(Close::Abort),
            is_same = (self.reread)(self.subscription.key().clone()) => {
                if is_same { Ok(()) } else { Err(Close::Drain) }
            }
        }
    }
}

fn close_for(ending: Ending) -> Close {
    match ending {
        Ending::Deleted | Ending::Closed | Ending::Invalidated => Close::Drain,
        Ending::Overflow => Close::Abort,
    }
}

/// Whether the next tick is due; takes it then.
async fn elapsed(interval: &mut Interval) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(interval.poll_tick(cx).is_ready())).await
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
