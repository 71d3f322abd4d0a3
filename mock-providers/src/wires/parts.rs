//! What writing the parts of an answer has in common on every wire.

use super::out::{Frames, MarkKind, What};
use super::tokens_in;
use crate::script::{Answer, Call, Calls, Chunking, ErrorReply, Keepalive, Part, Reasoning, Text};

/// Writes the parts of an answer as a wire's events.
pub(super) trait PartWriter {
    /// Where the events go.
    fn frames(&mut self) -> &mut Frames;
    /// Text for the user.
    fn text(&mut self, text: &Text);
    /// A refusal.
    fn refusal(&mut self, text: &Text);
    /// Thinking.
    fn reasoning(&mut self, reasoning: &Reasoning);
    /// Calls, side by side.
    fn calls(&mut self, calls: &Calls);
    /// An error that ends the stream.
    fn error(&mut self, error: &ErrorReply);
    /// The wire's own sign of life; by default a comment.
    fn ping(&mut self) {
        self.frames()
            .other(What::Comment("keep-alive".to_owned()), MarkKind::Event);
    }
}

/// Writes all parts in order; true when an error ended the stream.
pub(super) fn write_parts(writer: &mut impl PartWriter, answer: &Answer) -> bool {
    for part in &answer.parts {
        match part {
            Part::Text(text) => writer.text(text),
            Part::Refusal(text) => writer.refusal(text),
            Part::Reasoning(reasoning) => writer.reasoning(reasoning),
            Part::Calls(calls) => writer.calls(calls),
            Part::Error(error) => {
                writer.error(error);
                return true;
            }
            Part::Keepalive(Keepalive::Ping) => writer.ping(),
            Part::Keepalive(Keepalive::Comment(text)) => {
                writer
                    .frames()
                    .other(What::Comment(text.clone()), MarkKind::Event);
            }
            Part::Pause(time) => writer.frames().other(What::Silence, MarkKind::Pause(*time)),
            Part::Gate(name) => {
                writer
                    .frames()
                    .other(What::Silence, MarkKind::Gate(name.as_str().into()));
            }
            Part::Event(event) => writer.frames().raw(event),
            Part::Bytes(bytes) => writer
                .frames()
                .other(What::Bytes(bytes.clone()), MarkKind::Event),
        }
    }
    false
}

/// The pieces in which a call's arguments are streamed.
pub(super) fn argument_pieces(call: &Call, chunk: Chunking) -> Text {
    if call.pieces.is_empty() {
        Text::Pieces(
            chunk
                .cut(&call.text())
                .into_iter()
                .map(str::to_owned)
                .collect(),
        )
    } else {
        Text::Pieces(call.pieces.clone())
    }
}

/// Hands out pieces of several calls in turns: `(call, piece)` in the order of the wire.
pub(super) fn in_turns<T: Clone>(calls: &[Vec<T>]) -> Vec<(usize, T)> {
    let rounds = calls.iter().map(Vec::len).max().unwrap_or(0);
    let mut order = Vec::new();
    for round in 0..rounds {
        for (at, pieces) in calls.iter().enumerate() {
            if let Some(piece) = pieces.get(round) {
                order.push((at, piece.clone()));
            }
        }
    }
    order
}

impl Part {
    /// Tokens of the part, as the mock counts them.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Refusal(text) => text.tokens(),
            Self::Reasoning(reasoning) => reasoning.text.iter().map(Text::tokens).sum(),
            Self::Calls(calls) => calls
                .list
                .iter()
                .map(|call| tokens_in(&call.name) + tokens_in(&call.text()))
                .sum(),
            _ => 0,
        }
    }
}

impl Text {
    fn tokens(&self) -> u64 {
        match self {
            Self::Whole(text) => tokens_in(text),
            Self::Pieces(pieces) => tokens_in(&pieces.concat()),
        }
    }
}

impl Answer {
    /// Whether the model calls something.
    pub(crate) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Calls(_)))
    }

    /// Whether the model refuses.
    pub(crate) fn has_refusal(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Refusal(_)))
    }

    /// Whether a call comes before any text.
    pub(crate) fn begins_with_calls(&self) -> bool {
        let first = self
            .parts
            .iter()
            .find(|part| matches!(part, Part::Text(_) | Part::Refusal(_) | Part::Calls(_)));
        matches!(first, Some(Part::Calls(_)))
    }

    /// The error in the middle of it.
    pub(crate) fn error(&self) -> Option<&ErrorReply> {
        self.parts.iter().find_map(|part| match part {
            Part::Error(error) => Some(error),
            _ => None,
        })
    }
}
