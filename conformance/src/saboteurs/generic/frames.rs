//! Changes of single frames of an event stream.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use turnwire_spec::{
    catalogue::rewrite::{FrameEdit, FrameRewrite},
    sse::{self, Frame},
};

use super::{
    body_matches,
    counter::{Counter, Share},
    request_matches,
};
use crate::{
    saboteurs::{
        draft::Draft,
        json,
        saboteur::{FrameRewriter, Out, RequestInfo},
        template::Context,
    },
    schema,
    transcript::views::stream::{event_type, text_of, type_matches},
};

/// Whether a rewrite is about the stream that a request opens.
pub(super) fn selects(rewrite: &FrameRewrite, info: &RequestInfo) -> bool {
    let kind = rewrite.stream.is_empty()
        || info
            .stream()
            .is_some_and(|kind| rewrite.stream.contains(&kind));
    kind && request_matches(&[], &[], &rewrite.when_query, info)
        && body_matches(rewrite.where_request.as_ref(), info)
}

/// The rewrites of one stream, and what they remember of it.
#[derive(Debug)]
pub(super) struct Frames {
    info: RequestInfo,
    rewrites: Vec<(Arc<FrameRewrite>, Counter)>,
    /// Frames that wait for the next one to pass.
    held: Vec<Vec<u8>>,
}

impl Frames {
    pub(super) fn new(rewrites: Vec<Arc<FrameRewrite>>, info: RequestInfo) -> Self {
        let rewrites = rewrites
            .into_iter()
            .map(|rewrite| (rewrite, Counter::default()))
            .collect();
        Self {
            info,
            rewrites,
            held: Vec::new(),
        }
    }
}

impl FrameRewriter for Frames {
    fn frame(&mut self, frame: &Frame, out: &mut Out) {
        let mut fate = Fate::new(frame);
        for (rewrite, counter) in &mut self.rewrites {
            fate.meet(rewrite, counter, &self.info);
        }
        let comment = frame.is_comment_only();
        fate.settle(&mut self.held, comment, out);
    }

    fn end(&mut self, out: &mut Out) {
        self.held.drain(..).for_each(|bytes| out.send(bytes));
    }
}

/// What becomes of one frame.
#[derive(Debug)]
struct Fate {
    draft: Draft,
    /// The frame's own bytes, as long as no rewrite has touched it.
    untouched: Option<Vec<u8>>,
    before: Vec<u8>,
    after: Vec<u8>,
    delay: Duration,
    copies: u64,
    dropped: bool,
    swapped: bool,
    end: bool,
    cut: bool,
}

/// Copies that one `repeat` makes at most.
const COPIES: u64 = 10_000;

impl Fate {
    fn new(frame: &Frame) -> Self {
        Self {
            draft: Draft::of(frame),
            untouched: Some(frame.to_bytes()),
            before: Vec::new(),
            after: Vec::new(),
            delay: Duration::ZERO,
            copies: 1,
            dropped: false,
            swapped: false,
            end: false,
            cut: false,
        }
    }

    /// Applies a rewrite, when it is about this frame as it now stands.
    fn meet(&mut self, rewrite: &FrameRewrite, counter: &mut Counter, info: &RequestInfo) {
        let json = self.draft.json();
        if !is_about(rewrite, &self.draft, json.as_ref()) {
            return;
        }
        let Some(index) = counter.next(Share {
            skip: rewrite.skip,
            every: rewrite.every,
            limit: rewrite.limit,
        }) else {
            return;
        };
        self.untouched = None;
        let was = self.draft.clone();
        let context = Context {
            info,
            frame: Some(&was),
            json: json.as_ref(),
            index,
        };
        for edit in &rewrite.edits {
            self.apply(edit, context);
        }
    }

    fn apply(&mut self, edit: &FrameEdit, context: Context<'_>) {
        let draft = &mut self.draft;
        match edit {
            FrameEdit::PrependLine(line) => draft.prepend(&context.fill(line)),
            FrameEdit::AppendLine(line) => draft.append(&context.fill(line)),
            FrameEdit::DropLine(name) => draft.drop_line(name),
            FrameEdit::SetLine(name, value) => draft.set_line(name, &context.fill(value)),
            FrameEdit::Json(edits) => {
                draft.edit_json(|document| json::apply(edits, document, context))
            }
            FrameEdit::Data(text) => draft.set_data(&context.fill(text)),
            FrameEdit::Unwrap(pointer) => {
                if let Some(value) = draft
                    .json()
                    .as_ref()
                    .and_then(|document| document.pointer(pointer))
                {
                    draft.set_data(&text_of(value));
                }
            }
            FrameEdit::Drop => self.dropped = true,
            FrameEdit::Repeat(times) => {
                self.copies = self.copies.saturating_add(*times).min(COPIES)
            }
            FrameEdit::SwapWithNext => self.swapped = true,
            FrameEdit::DelayMs(ms) => self.delay += Duration::from_millis(*ms),
            FrameEdit::Before(text) => self.before.extend_from_slice(context.fill(text).as_bytes()),
            FrameEdit::After(text) => self.after.extend_from_slice(context.fill(text).as_bytes()),
            FrameEdit::End => self.end = true,
            FrameEdit::Cut => self.cut = true,
        }
    }

    /// Says what is sent, and what waits for the next frame.
    fn settle(self, held: &mut Vec<Vec<u8>>, comment: bool, out: &mut Out) {
        if !self.delay.is_zero() {
            out.wait(self.delay);
        }
        out.send(self.before);
        let waiting = if comment {
            Vec::new()
        } else {
            std::mem::take(held)
        };
        if !self.dropped {
            let bytes = self.untouched.unwrap_or_else(|| self.draft.to_bytes());
            for _ in 0..self.copies {
                if self.swapped {
                    held.push(bytes.clone());
                } else {
                    out.send(bytes.clone());
                }
            }
        }
        waiting.into_iter().for_each(|bytes| out.send(bytes));
        out.send(self.after);
        if self.cut {
            out.cut();
        } else if self.end {
            out.end();
        }
    }
}

fn is_about(rewrite: &FrameRewrite, draft: &Draft, json: Option<&Value>) -> bool {
    let read = sse::frames(&draft.to_bytes());
    let Some(frame) = read.first() else {
        return false;
    };
    let comment = frame.is_comment_only();
    let name = if comment {
        ":"
    } else {
        event_type(frame, json)
    };
    let listed = if rewrite.types.is_empty() {
        !comment
    } else {
        type_matches(&rewrite.types, name)
    };
    let data = rewrite
        .where_data
        .as_ref()
        .is_none_or(|wanted| json.is_some_and(|json| schema::satisfied(wanted, json)));
    listed && !type_matches(&rewrite.not_type, name) && data
}
