//! What a reply says, in terms that fit every wire.
//!
//! An [`Answer`] is a list of [`Part`]s in the order in which the model produced them, a finish and a
//! usage. Each wire writes it in its own form; what a wire cannot say is left out there. Where the
//! exact bytes are the point, a reply is a [`RawReply`] instead.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Answer, Call, Calls, Finish, Part, Reasoning, Usage, UsagePlan};
use super::edit::Edit;
use super::errors::{ErrorReply, RawReply, SocketReply};
use super::file::ReplyFile;
use super::framing::Framing;
use super::text::{Chunking, Text};
use super::timing::Timing;
use super::transport::{Cut, CutHow, Faults, Position, Stall, Until};
use super::variation::{Service, Variation};

/// What to send for one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ReplyFile", into = "ReplyFile")]
pub struct Reply {
    /// What is said.
    pub body: Body,
    /// When it is sent.
    pub timing: Timing,
    /// What goes wrong on the way.
    pub faults: Faults,
    /// Response headers, added to the wire's own or replacing them.
    pub headers: BTreeMap<String, String>,
    /// State variables of the script that are set when the reply is chosen.
    pub set: BTreeMap<String, String>,
}

/// The kinds of replies.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The model answers.
    Answer(Answer),
    /// The service answers with an error status.
    Error(ErrorReply),
    /// This response, whatever it means.
    Raw(RawReply),
    /// These bytes in place of an HTTP response.
    Socket(SocketReply),
}

impl Default for Body {
    fn default() -> Self {
        Self::Answer(Answer::default())
    }
}

impl Reply {
    /// An answer with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    /// An answer with this one call.
    pub fn call(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self::new().calls([Call::new(name, arguments)])
    }

    /// An answer with this JSON as its text: structured output.
    pub fn json(value: &Value) -> Self {
        Self::text(value.to_string())
    }

    /// An error status with the wire's own body.
    pub fn error(status: u16) -> Self {
        ErrorReply::new(status).into()
    }

    /// Changes the answer; a reply of another kind becomes an empty answer first.
    fn with(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        let mut answer = match self.body {
            Body::Answer(answer) => answer,
            Body::Error(_) | Body::Raw(_) | Body::Socket(_) => Answer::default(),
        };
        change(&mut answer);
        self.body = Body::Answer(answer);
        self
    }

    /// Adds a part behind the others.
    #[must_use]
    pub fn part(self, part: Part) -> Self {
        self.with(|answer| answer.parts.push(part))
    }

    /// Adds text.
    #[must_use]
    pub fn say(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(Text::Whole(text.into())))
    }

    /// Adds text, streamed in these pieces.
    #[must_use]
    pub fn pieces<T: Into<String>>(self, pieces: impl IntoIterator<Item = T>) -> Self {
        self.part(Part::Text(Text::Pieces(
            pieces.into_iter().map(Into::into).collect(),
        )))
    }

    /// Adds thinking.
    #[must_use]
    pub fn reasoning(self, reasoning: impl Into<Reasoning>) -> Self {
        self.part(Part::Reasoning(reasoning.into()))
    }

    /// Adds calls, one streamed after the other.
    #[must_use]
    pub fn calls(self, calls: impl IntoIterator<Item = Call>) -> Self {
        let list = calls.into_iter().collect();
        self.part(Part::Calls(Calls {
            list,
            interleave: false,
        }))
    }

    /// Adds calls whose arguments are streamed in turns.
    #[must_use]
    pub fn interleaved_calls(self, calls: impl IntoIterator<Item = Call>) -> Self {
        let list = calls.into_iter().collect();
        self.part(Part::Calls(Calls {
            list,
            interleave: true,
        }))
    }

    /// Adds a refusal.
    #[must_use]
    pub fn refusal(self, text: impl Into<String>) -> Self {
        self.part(Part::Refusal(Text::Whole(text.into())))
    }

    /// Adds silence.
    #[must_use]
    pub fn pause(self, time: Duration) -> Self {
        self.part(Part::Pause(time))
    }

    /// Adds silence until [`Mock::open`](crate::Mock::open) opens the gate.
    #[must_use]
    pub fn gate(self, name: impl Into<String>) -> Self {
        self.part(Part::Gate(name.into()))
    }

    /// Adds an error that ends the stream.
    #[must_use]
    pub fn then_error(self, error: ErrorReply) -> Self {
        self.part(Part::Error(error))
    }

    /// Says why the answer ends.
    #[must_use]
    pub fn finish(self, finish: Finish) -> Self {
        self.with(|answer| answer.finish = Some(finish))
    }

    /// Says what it cost.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        self.with(|answer| answer.usage = UsagePlan::Exact(usage))
    }

    /// Says nothing about its cost.
    #[must_use]
    pub fn without_usage(self) -> Self {
        self.with(|answer| answer.usage = UsagePlan::Absent)
    }

    /// Cuts texts this way.
    #[must_use]
    pub fn chunk(self, chunk: Chunking) -> Self {
        self.with(|answer| answer.chunk = chunk)
    }

    /// Writes the event stream in this form.
    #[must_use]
    pub fn framing(self, framing: Framing) -> Self {
        self.with(|answer| answer.framing = framing)
    }

    /// Deviates from the wire in these ways.
    #[must_use]
    pub fn variation(self, variation: Variation) -> Self {
        self.with(|answer| answer.variation = variation)
    }

    /// Answers as a compatible service does.
    #[must_use]
    pub fn service(self, service: Service) -> Self {
        let (variation, framing) = service.profile();
        self.variation(variation).framing(framing)
    }

    /// Changes single events, after the edits that are there.
    #[must_use]
    pub fn edit(self, edit: Edit) -> Self {
        self.with(|answer| answer.edits.push(edit))
    }

    /// Waits so long before the first token.
    #[must_use]
    pub fn first_token(mut self, delay: Duration) -> Self {
        self.timing.first_token = delay;
        self
    }

    /// Waits so long before each later token.
    #[must_use]
    pub fn per_token(mut self, delay: Duration) -> Self {
        self.timing.per_token = delay;
        self
    }

    /// Waits so long before the status line.
    #[must_use]
    pub fn headers_after(mut self, delay: Duration) -> Self {
        self.timing.headers = delay;
        self
    }

    /// Replaces all delays.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Replaces all faults.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Ends early.
    #[must_use]
    pub fn cut(mut self, after: Position, how: CutHow) -> Self {
        self.faults.cut = Some(Cut { after, how });
        self
    }

    /// Pauses.
    #[must_use]
    pub fn stall(mut self, after: Position, until: Until) -> Self {
        self.faults.stalls.push(Stall { after, until });
        self
    }

    /// Adds or replaces a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets a state variable of the script when the reply is chosen.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.insert(name.into(), value.into());
        self
    }
}

impl From<ErrorReply> for Reply {
    fn from(error: ErrorReply) -> Self {
        Self {
            body: Body::Error(error),
            ..Self::default()
        }
    }
}

impl From<RawReply> for Reply {
    fn from(raw: RawReply) -> Self {
        Self {
            body: Body::Raw(raw),
            ..Self::default()
        }
    }
}

impl From<SocketReply> for Reply {
    fn from(socket: SocketReply) -> Self {
        Self {
            body: Body::Socket(socket),
            ..Self::default()
        }
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}
