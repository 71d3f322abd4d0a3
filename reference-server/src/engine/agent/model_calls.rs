//! The model calls of a tool loop: streamed to the player, tried again when that can help.

use std::collections::BTreeMap;

use tokio::time::{Instant, sleep};
use turnwire_spec::covel::payloads::narrative::Segment;

use super::segments::Segments;
use super::{CallEnd, Loop, millis};
use crate::engine::emitter::Emitter;
use crate::engine::events::life;
use crate::engine::events::steps::{self, LlmCall};
use crate::engine::happening::{Happened, ToolName};
use crate::gateway::{
    ErrorKind, GatewayError, ModelEvent, ModelReply, ModelRequest, ModelStream, Target, ToolPiece,
};

/// Why text is void: the model's stream broke off, and the call is tried again or has failed.
const STREAM_INTERRUPTED: &str = "stream_interrupted";

impl Loop<'_> {
    pub(super) async fn call_with_retries(
        &mut self,
        request: &ModelRequest,
        retries: &mut Vec<(u32, String)>,
    ) -> Result<ModelReply, CallEnd> {
        let mut attempt = 1;
        loop {
            let mut shown = false;
            let error = match self.call(request, attempt, &mut shown).await {
                Err(CallEnd::Model(error)) => error,
                other => return other,
            };
            if shown {
                self.take_back(attempt, STREAM_INTERRUPTED);
            }
            let Some(wait) = self.work.policy.wait_after(attempt, &error) else {
                return Err(CallEnd::Model(error));
            };
            retries.push((attempt, error.kind.name().to_owned()));
            self.unless_stopped(sleep(wait)).await?;
            attempt += 1;
        }
    }

    /// One call of the model. `shown` becomes true when text of it went to the player.
    async fn call(
        &mut self,
        request: &ModelRequest,
        attempt: u32,
        shown: &mut bool,
    ) -> Result<ModelReply, CallEnd> {
        let (run, emitter) = (self.work.run, self.work.emitter);
        let started_at = emitter.now();
        let started = Instant::now();
        // What was really sent is known once the provider has taken or refused it, and is told before
        // anything of the answer.
        let call = self.work.gateway.call(request.clone());
        let opened = self.unless_stopped(call).await;
        let sent = match &opened {
            Ok(Ok(stream)) => stream.sent(),
            _ => &[],
        };
        let calling = LlmCall {
            slot: &self.work.spec.slot,
            target: &request.target,
            messages: &request.messages,
            tools: &request.tools,
            attempt,
            started_at,
            started,
            streaming: request.streaming,
            sent,
        };
        emitter.emit(steps::llm_calling(run, calling)).await;
        let reply = match opened {
            Ok(Ok(stream)) => self.receive(request, stream, shown).await,
            Ok(Err(error)) => Err(CallEnd::Model(error)),
            Err(end) => Err(end),
        };
        let duration = millis(started.elapsed());
        let responded = match &reply {
            Ok(reply) => steps::llm_responded(run, attempt, duration, reply),
            Err(CallEnd::Model(error)) => steps::llm_failed(run, attempt, duration, &error.message),
            Err(CallEnd::Cancelled(cause)) => {
                steps::llm_failed(run, attempt, duration, cause.message())
            }
            Err(CallEnd::Deadline) => steps::llm_failed(run, attempt, duration, "deadline"),
        };
        emitter.emit(responded).await;
        if let Ok(reply) = &reply {
            emitter.tell(Happened::Usage(reply.usage.counted()));
        }
        reply
    }

    async fn receive(
        &mut self,
        request: &ModelRequest,
        mut stream: Box<dyn ModelStream>,
        shown: &mut bool,
    ) -> Result<ModelReply, CallEnd> {
        let mut inputs = ToolInputs::default();
        let mut story = self.work.spec.segmented.then(Segments::default);
        loop {
            match self.unless_stopped(stream.next()).await? {
                Some(Ok(ModelEvent::Text(delta)))
                    if self.work.spec.streams && !delta.is_empty() =>
                {
                    *shown = true;
                    match &mut story {
                        None => self.show(&delta, None),
                        Some(story) => {
                            for piece in story.feed(&delta) {
                                self.show(&piece.delta, Some(piece.segment));
                            }
                        }
                    }
                }
                Some(Ok(ModelEvent::ToolCall(piece))) => inputs.take(self.work.emitter, piece),
                Some(Ok(ModelEvent::Text(_) | ModelEvent::Reasoning(_))) => {}
                Some(Ok(ModelEvent::Done(reply))) => {
                    inputs.end(self.work.emitter);
                    return Ok(*reply);
                }
                Some(Err(error)) => return Err(CallEnd::Model(error)),
                None => return Err(CallEnd::Model(broke_off(&request.target))),
            }
        }
    }

    /// Sends a piece of the story to the player, when the runtime streams; of a segmented one with its paragraph.
    pub(super) fn show(&mut self, delta: &str, segment: Option<Segment>) {
        if !self.work.spec.streams {
            return;
        }
        self.deltas += 1;
        let event = life::narrative_delta(self.work.run, self.work.kind, delta, segment);
        self.work.emitter.emit_unsaved(event);
        let delta = delta.to_owned();
        self.work.emitter.tell(Happened::Text { delta });
    }

    /// The text that was streamed so far was a draft, but for what stays of earlier answers.
    pub(super) fn take_back(&mut self, attempt: u32, reason: &'static str) {
        self.deltas += 1;
        self.work
            .emitter
            .emit_unsaved(life::narrative_reset(self.work.run, self.work.kind));
        let voided = Happened::TextVoided { attempt, reason };
        self.work.emitter.tell(voided);
        if !self.prose.is_empty() {
            let stays = self.prose.clone();
            self.show(&stays, None);
        }
    }
}

/// The tool calls whose arguments the model is writing, by their places in the answer.
#[derive(Default)]
struct ToolInputs(BTreeMap<usize, ToolInput>);

/// What is known of a call that is being written. Nothing of it is told before it has an id and a name.
#[derive(Default)]
struct ToolInput {
    id: Option<String>,
    name: String,
    untold: String,
    told: Option<ToolName>,
}

impl ToolInputs {
    fn take(&mut self, emitter: &Emitter, piece: ToolPiece) {
        let input = self.0.entry(piece.index).or_default();
        input.id = input.id.take().or(piece.id);
        input
            .name
            .push_str(piece.name.as_deref().unwrap_or_default());
        input.untold.push_str(&piece.arguments);
        if let (None, Some(id)) = (&input.told, &input.id)
            && !input.name.is_empty()
        {
            let call = ToolName {
                call_id: id.clone(),
                name: input.name.clone(),
            };
            emitter.tell(Happened::ToolInputStarted(call.clone()));
            input.told = Some(call);
        }
        if let Some(call) = &input.told
            && !input.untold.is_empty()
        {
            emitter.tell(Happened::ToolInput {
                call: call.clone(),
                delta: std::mem::take(&mut input.untold),
            });
        }
    }

    fn end(self, emitter: &Emitter) {
        for call in self.0.into_values().filter_map(|input| input.told) {
            emitter.tell(Happened::ToolInputEnded(call));
        }
    }
}

fn broke_off(target: &Target) -> GatewayError {
    GatewayError::new(
        ErrorKind::BadAnswer,
        "The model's answer ended without an end",
        target.clone(),
    )
}
