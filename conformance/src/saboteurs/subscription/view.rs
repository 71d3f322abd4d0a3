//! Faults of the join between the view and the subscription.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use turnwire_spec::{catalogue::rule::StreamKind::Subscription, cursor::CursorBuf};

use crate::{
    saboteurs::{
        RequestInfo, Sabotage, Saboteur, Treatment,
        adapters::{OnJson, change_cursor, cursor_of},
    },
    transcript::{Request, ResponseHead},
};

const VIEW: &str = "/api/sessions/:id/view";

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("COV-SUB-041", || Arc::new(OnJson::new(VIEW, older_cursor))),
    Sabotage::new("COV-SUB-042", rows_older_than_the_cursor),
    Sabotage::new("COV-SUB-044", || Arc::<ForgetsViewCursors>::default()),
    Sabotage::new("COV-SUB-172", || Arc::new(OnJson::new(VIEW, bare_seq))),
];

/// COV-SUB-041: `eventCursor` is that of the event before the newest one.
fn older_cursor(_session: &str, view: &mut Value) {
    if let Some(cursor) = cursor_of(view, "eventCursor") {
        let older = CursorBuf::new(cursor.epoch, cursor.seq.saturating_sub(1));
        view["eventCursor"] = Value::from(older.to_string());
    }
}

/// COV-SUB-042: the rows of a view are those of the view before it, while its cursor is new.
fn rows_older_than_the_cursor() -> Arc<dyn Saboteur> {
    let before: Mutex<BTreeMap<String, Value>> = Mutex::default();
    Arc::new(OnJson::new(VIEW, move |session: &str, view: &mut Value| {
        let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = view.get("messages").cloned().unwrap_or_default();
        if let Some(old) = before.insert(session.to_owned(), rows) {
            view["messages"] = old;
        }
    }))
}

/// COV-SUB-044: a cursor that was told by a view is not continued.
#[derive(Default)]
struct ForgetsViewCursors {
    told: Arc<Mutex<Vec<String>>>,
}

impl Saboteur for ForgetsViewCursors {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let known = info
            .query("lastEventId")
            .is_some_and(|cursor| told.contains(&cursor));
        if info.stream() == Some(Subscription) && known {
            change_cursor(request, |_| Some(String::new()));
            request.target = request.target.replace("&lastEventId=", "");
        }
    }

    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        if !info.is("GET", VIEW) || head.status != 200 {
            return Treatment::pass();
        }
        let told = Arc::clone(&self.told);
        Treatment::json(move |view| {
            if let Some(cursor) = cursor_of(view, "eventCursor") {
                told.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(cursor.to_string());
            }
        })
    }
}

/// COV-SUB-172: `eventCursor` is the bare seq.
fn bare_seq(_session: &str, view: &mut Value) {
    if let Some(cursor) = cursor_of(view, "eventCursor") {
        view["eventCursor"] = Value::from(cursor.seq.to_string());
    }
}
