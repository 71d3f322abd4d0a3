//! What passed through a saboteur before: the events of each session, as its subscribers got them.
//!
//! Faults such as "replays with fresh ids" or "reuses an old epoch" are told apart from the truth only by
//! what an earlier connection showed. An [`EventLog`] is shared by all streams of one saboteur; each of its
//! rewriters notes what passes and looks up what came before. Its memory is bounded.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use turnwire_spec::{
    cursor::{Cursor, CursorBuf},
    sse::Frame,
};

/// The events of all sessions, shared by clones.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    sessions: Arc<Mutex<BTreeMap<String, Vec<Event>>>>,
}

/// An event that a subscriber got.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its id line.
    pub id: CursorBuf,
    /// The whole frame.
    pub frame: Frame,
}

/// Events that are kept of one session; the oldest ones go first.
const KEPT: usize = 4096;

impl EventLog {
    /// Keeps a frame that has an id, unless it is known. Returns whether it was new.
    pub fn note(&self, session: &str, frame: &Frame) -> bool {
        let Some(id) = frame
            .id()
            .and_then(|id| Cursor::parse(id).ok())
            .map(Cursor::to_owned)
        else {
            return false;
        };
        self.with(session, |events| {
            if events.iter().any(|event| event.id == id) {
                return false;
            }
            if events.len() >= KEPT {
                events.remove(0);
            }
            events.push(Event {
                id,
                frame: frame.clone(),
            });
            true
        })
    }

    /// Whether the session has an event with this id.
    pub fn has(&self, session: &str, id: &str) -> bool {
        self.with(session, |events| {
            events.iter().any(|event| event.frame.id() == Some(id))
        })
    }

    /// The events of a session, in the order in which they were first seen.
    pub fn events(&self, session: &str) -> Vec<Event> {
        self.with(session, |events| events.clone())
    }

    /// The events of a cursor's epoch with a greater `seq`, in the order of `seq`.
    pub fn after(&self, session: &str, cursor: Cursor<'_>) -> Vec<Event> {
        let mut found = self.events(session);
        found.retain(|event| event.id.epoch == cursor.epoch && event.id.seq > cursor.seq);
        found.sort_by_key(|event| event.id.seq);
        found
    }

    fn with<T>(&self, session: &str, act: impl FnOnce(&mut Vec<Event>) -> T) -> T {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        act(sessions.entry(session.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use turnwire_spec::sse;

    use super::*;

    #[test]
    fn events_are_kept_once_and_found_by_cursor() {
        let log = EventLog::default();
        let frames = sse::frames(
            b"id: e:2\ndata: b\n\nid: e:1\ndata: a\n\nid: f:9\ndata: c\n\ndata: none\n\nid: x\n\n",
        );
        let noted: Vec<_> = frames.iter().map(|frame| log.note("s", frame)).collect();
        assert_eq!(noted, [true, true, true, false, false]);
        assert!(!log.note("s", &frames[0]));
        assert!(log.has("s", "e:2") && !log.has("other", "e:2"));
        let after = log.after("s", Cursor { epoch: "e", seq: 0 });
        assert_eq!(
            after.iter().map(|event| event.id.seq).collect::<Vec<_>>(),
            [1, 2]
        );
        assert!(log.after("s", Cursor { epoch: "e", seq: 2 }).is_empty());
    }
}
