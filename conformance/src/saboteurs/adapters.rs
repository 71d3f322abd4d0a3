//! Saboteurs made of one function: the short way to write most of them.
//!
//! [`OnRequest`] changes requests, [`OnFrames`] the frames of one kind of stream, [`OnJson`] the JSON answers
//! of one path. [`Epochs`] is what the cursor faults remember.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use turnwire_spec::{
    catalogue::rule::StreamKind,
    cursor::{Cursor, CursorBuf},
    sse::Frame,
};

use super::{Draft, Out, RequestInfo, Saboteur, Treatment};
use crate::transcript::{Request, ResponseHead};

/// Changes requests before the target sees them.
pub struct OnRequest<F>(pub F);

impl<F: Fn(&RequestInfo, &mut Request) + Send + Sync> Saboteur for OnRequest<F> {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        (self.0)(info, request);
    }
}

/// Changes the frames of one kind of stream. The function makes the rewriter of each stream.
pub struct OnFrames<F> {
    kind: StreamKind,
    make: F,
}

impl<F> OnFrames<F> {
    /// Rewrites the frames of this kind of stream.
    pub fn new<C>(kind: StreamKind, make: F) -> Self
    where
        F: Fn(&RequestInfo) -> C + Send + Sync,
        C: FnMut(&Frame, &mut Out) + Send + 'static,
    {
        Self { kind, make }
    }
}

impl<F, C> Saboteur for OnFrames<F>
where
    F: Fn(&RequestInfo) -> C + Send + Sync,
    C: FnMut(&Frame, &mut Out) + Send + 'static,
{
    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        if info.stream() == Some(self.kind) && head.status == 200 {
            Treatment::each_frame((self.make)(info))
        } else {
            Treatment::pass()
        }
    }
}

/// Changes the JSON of successful answers to `GET` of a path.
pub struct OnJson<F> {
    /// Path template.
    pub path: &'static str,
    /// The change, with the session that the path names.
    pub change: Arc<F>,
}

impl<F: Fn(&str, &mut Value) + Send + Sync + 'static> OnJson<F> {
    /// Changes what is answered at this path.
    pub fn new(path: &'static str, change: F) -> Self {
        Self {
            path,
            change: Arc::new(change),
        }
    }
}

impl<F: Fn(&str, &mut Value) + Send + Sync + 'static> Saboteur for OnJson<F> {
    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        if !info.is("GET", self.path) || head.status != 200 {
            return Treatment::pass();
        }
        let (change, session) = (Arc::clone(&self.change), info.session().unwrap_or_default());
        Treatment::json(move |document| change(&session, document))
    }
}

/// The newest epoch of each session, as `system.connected` told it.
#[derive(Clone, Debug, Default)]
pub struct Epochs(Arc<Mutex<BTreeMap<String, String>>>);

impl Epochs {
    /// Learns from a frame.
    pub fn learn(&self, session: &str, frame: &Frame) {
        if let Some(cursor) = connected_cursor(frame) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(session.to_owned(), cursor.epoch);
        }
    }

    /// The epoch of a session, when one was told.
    pub fn of(&self, session: &str) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(session)
            .cloned()
    }
}

/// The cursor of a `system.connected` frame.
pub fn connected_cursor(frame: &Frame) -> Option<CursorBuf> {
    (frame.event() == Some("system.connected")).then_some(())?;
    cursor_of(&Draft::of(frame).json()?, "cursor")
}

/// A cursor in a member of a document.
pub fn cursor_of(document: &Value, member: &str) -> Option<CursorBuf> {
    read(document.get(member)?.as_str()?)
}

/// The id of a frame, when it is a cursor.
pub fn id_of(frame: &Frame) -> Option<CursorBuf> {
    read(frame.id()?)
}

/// Reads a cursor.
pub fn read(text: &str) -> Option<CursorBuf> {
    Cursor::parse(text).ok().map(Cursor::to_owned)
}

/// Gives a frame another id, in its line and in its data.
pub fn with_id(frame: &Frame, id: &str) -> Vec<u8> {
    let mut draft = Draft::of(frame);
    draft.set_line("id", id);
    draft.edit_json(|document| document["id"] = Value::from(id));
    draft.to_bytes()
}

/// Replaces the cursor of a request, in the query and in the header, by what the function makes of it. `None`
/// leaves it.
pub fn change_cursor(request: &mut Request, change: impl Fn(&str) -> Option<String>) {
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, ""));
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some(("lastEventId", value)) => {
            let decoded = crate::transcript::views::http::percent_decode(value);
            format!(
                "lastEventId={}",
                change(&decoded).unwrap_or_else(|| value.to_owned())
            )
        }
        _ => pair.to_owned(),
    });
    request.target = format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"));
    for (name, value) in &mut request.headers {
        if name.eq_ignore_ascii_case("last-event-id")
            && let Some(changed) = change(value)
        {
            *value = changed;
        }
    }
}
