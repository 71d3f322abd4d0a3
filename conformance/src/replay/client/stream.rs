//! An answer that is read while the recording goes on: a body, or an event stream.

use std::time::Duration;

use turnwire_spec::sse;

use crate::{drivers::http::Reading, replay::words::Words, transcript::views::stream::StreamFrame};

/// An open answer.
pub(super) struct Stream {
    reading: Reading,
    /// What the recorded server had said by now.
    recorded: sse::Recorder,
    frames: Vec<StreamFrame>,
    body: Vec<u8>,
    is_events: bool,
    /// Frames of both sides from which ids were learnt.
    learnt: usize,
    /// Frames that are not waited for any more.
    forgiven: usize,
}

impl Stream {
    pub(super) fn new(reading: Reading) -> Self {
        Self {
            reading,
            recorded: sse::Recorder::new(sse::Limits::NONE),
            frames: Vec::new(),
            body: Vec::new(),
            is_events: false,
            learnt: 0,
            forgiven: 0,
        }
    }

    /// The recorded answer had this kind of body.
    pub(super) fn head(&mut self, is_events: bool) {
        self.is_events = is_events;
    }

    /// The recorded server said this.
    pub(super) fn recorded(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        if self.is_events {
            let frames = self.recorded.feed(bytes);
            self.frames.extend(frames.into_iter().filter_map(told));
        }
    }

    /// Waits until the server has said as much as the recorded one had by now, and learns its ids; how many frames
    /// have not come.
    pub(super) async fn catch_up(&mut self, patience: Duration, words: &mut Words) -> usize {
        if !self.is_events {
            return 0;
        }
        let wanted = self.frames.len().saturating_sub(self.forgiven);
        let enough = |frames: &[StreamFrame]| (telling(frames).count() >= wanted).then_some(());
        self.reading.wait_until(patience, enough).await;
        let now: Vec<StreamFrame> = telling(&self.reading.frames()).cloned().collect();
        let learnt = self.learnt;
        for (recorded, now) in self.frames.iter().zip(&now).skip(learnt) {
            words.learn_text(
                recorded.frame.id().unwrap_or_default(),
                now.frame.id().unwrap_or_default(),
            );
            if let (Some(recorded), Some(now)) = (&recorded.json, &now.json) {
                words.learn_json(recorded, now);
            }
            self.learnt += 1;
        }
        let lacks = wanted.saturating_sub(now.len());
        self.forgiven += lacks;
        lacks
    }

    /// Waits for the end, and learns the ids of a body; whether it ended in time.
    pub(super) async fn wait_end(&self, patience: Duration, words: &mut Words) -> bool {
        let ended = self.reading.wait_end(patience).await.is_some();
        if !self.is_events {
            let frames = self.reading.frames();
            // It was read as if it were a stream.
            let now: Vec<u8> = frames
                .iter()
                .flat_map(|frame| frame.frame.to_bytes())
                .collect();
            let json = |bytes: &[u8]| serde_json::from_slice(bytes).ok();
            if let (Some(recorded), Some(now)) = (json(&self.body), json(&now)) {
                words.learn_json(&recorded, &now);
            }
        }
        ended
    }

    pub(super) async fn close(self) {
        self.reading.close().await;
    }
}

fn told(frame: sse::Frame) -> Option<StreamFrame> {
    let json = frame
        .data()
        .and_then(|data| serde_json::from_str(&data).ok());
    let frame = StreamFrame {
        index: 0,
        at: Duration::ZERO,
        frame,
        json,
    };
    is_telling(&frame).then_some(frame)
}

/// Frames of which there are as many whenever it is played: no comments and no heartbeats.
fn telling(frames: &[StreamFrame]) -> impl Iterator<Item = &StreamFrame> {
    frames.iter().filter(|frame| is_telling(frame))
}

fn is_telling(frame: &StreamFrame) -> bool {
    frame.frame.terminated
        && !frame.frame.is_blank()
        && !frame.frame.is_comment_only()
        && frame.event_type() != "system.heartbeat"
}
