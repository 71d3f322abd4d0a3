//! A transcript read once, for many checks.
//!
//! Cutting streams into frames and parsing their JSON costs more than judging them. A [`Reading`] does
//! it on first use and keeps it; [`Reading::share`] lends it to views that are built from the transcript itself.

use std::{cell::OnceCell, sync::Arc};

use super::{
    http::{Exchange, exchanges},
    memory,
    messages::{Channel, Documents, channels_with, documents},
    stream::{Stream, streams},
};
use crate::transcript::{End, Fact, TargetFact, Transcript};

/// The views of one transcript, each built when it is first asked for.
#[derive(Debug)]
pub struct Reading<'a> {
    transcript: &'a Transcript,
    exchanges: OnceCell<Vec<Exchange<'a>>>,
    streams: OnceCell<Vec<Stream<'a>>>,
    documents: OnceCell<Documents>,
    channels: OnceCell<Vec<Channel<'a>>>,
}

impl<'a> Reading<'a> {
    /// Reads nothing yet.
    pub fn new(transcript: &'a Transcript) -> Self {
        Self {
            transcript,
            exchanges: OnceCell::new(),
            streams: OnceCell::new(),
            documents: OnceCell::new(),
            channels: OnceCell::new(),
        }
    }

    /// Calls `act`, in which views of this transcript, on this thread, use the frames and messages that were read before.
    pub fn share<T>(&self, act: impl FnOnce(&'a Transcript) -> T) -> T {
        let frames = self
            .streams()
            .iter()
            .map(|stream| Arc::clone(&stream.frames))
            .collect();
        let documents = Arc::clone(self.documents());
        let known = memory::Known { frames, documents };
        memory::remember(self.transcript, known, || act(self.transcript))
    }

    /// The transcript itself.
    pub fn transcript(&self) -> &'a Transcript {
        self.transcript
    }

    /// Its HTTP exchanges, see [`exchanges`].
    pub fn exchanges(&self) -> &[Exchange<'a>] {
        self.exchanges.get_or_init(|| exchanges(self.transcript))
    }

    /// Its event streams, see [`streams`].
    pub fn streams(&self) -> &[Stream<'a>] {
        self.streams.get_or_init(|| streams(self.transcript))
    }

    /// Its message channels, see [`channels`].
    pub fn channels(&self) -> &[Channel<'a>] {
        self.channels
            .get_or_init(|| channels_with(self.transcript, self.documents()))
    }

    fn documents(&self) -> &Documents {
        self.documents.get_or_init(|| documents(self.transcript))
    }

    /// Whether the target is answerable for how the exchange ended: it ended it, or let it hang.
    ///
    /// It is not when the harness closed the connection, when the exchange was still open at the end of
    /// the transcript, or when the connection broke because the target was stopped or killed.
    pub fn ended_by_target(&self, exchange: &Exchange<'_>) -> bool {
        match exchange.end {
            None | Some((_, End::ClosedByHarness | End::NotConnected(_) | End::TooLarge)) => false,
            Some((_, End::Complete | End::TimedOut | End::NotHttp(_))) => true,
            Some((at, End::Broken(_))) => !self.transcript.entries.iter().any(|entry| {
                let down = TargetFact::Stopped;
                let gone = matches!(&entry.fact, Fact::Target(fact) if *fact == down || *fact == TargetFact::Killed);
                gone && entry.at >= exchange.opened && entry.at <= at + TEARDOWN
            }),
        }
    }
}

/// The break of a connection may be seen this long before the end of the target's process is noted.
const TEARDOWN: std::time::Duration = std::time::Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript::testing::Script;

    fn stream(text: &str) -> Transcript {
        let script = Script::new().get("/x").answers(200, "text/event-stream");
        script.event(text, &json!({})).ends().transcript()
    }

    #[test]
    fn shared_frames_are_those_of_the_transcript_and_of_no_other() {
        let (mine, other) = (stream("mine"), stream("other"));
        let reading = Reading::new(&mine);
        let frames = |transcript: &Transcript| streams(transcript)[0].frames.clone();
        reading.share(|transcript| {
            assert!(Arc::ptr_eq(
                &frames(transcript),
                &reading.streams()[0].frames
            ));
            assert_eq!(frames(&other)[0].event_type(), "other");
        });
        assert!(!Arc::ptr_eq(&frames(&mine), &reading.streams()[0].frames));
    }
}
