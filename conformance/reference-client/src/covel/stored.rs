//! Reading what the server has stored: the view, the lists beside it, and the history between two windows of messages.

use std::mem::take;

use serde_json::{Value, json};
use turnwire_spec::cursor::Cursor;

use super::{
    core::{Core, encoded},
    inputs::{Ask, Command},
};

/// A newer window of messages that does not join what is shown.
#[derive(Debug)]
pub(super) struct Filling {
    /// The view that brought it.
    view: Value,
    /// What was read before its messages so far.
    between: Vec<Value>,
    pages: usize,
}

/// Pages that are read to join two windows; a hole that is longer stays one.
const PAGES: usize = 1_000;

impl Core {
    /// Reads the view; during an action, after it (COV-DIM-053).
    pub(super) fn read_view(&mut self) {
        if self.behind {
            return;
        }
        if self.action.as_ref().is_some_and(|action| !action.lost) {
            self.view_wanted = true;
            return;
        }
        self.view_wanted = false;
        self.filling = None;
        self.asked.remove(&Ask::Fill);
        self.ask(Ask::View, "/view");
    }

    /// Reads everything that is stored, as on opening, after a reset, and after a lost connection.
    /// COV-LIM-048 to 052.
    pub(super) fn refetch(&mut self) {
        self.read_view();
        self.ask(Ask::Jobs, "/runtime-jobs");
        self.ask(Ask::Slots, "/ui-slots");
        self.ask(Ask::Suspensions, "/suspensions");
        self.ask(Ask::Plugins, "/plugins");
        self.ask_at(Ask::World, "/api/worlds".to_owned());
    }

    /// Whether something that was asked for may be older than events that come now.
    pub(super) fn is_refetching(&self) -> bool {
        self.asked.keys().any(|ask| {
            matches!(
                ask,
                Ask::View
                    | Ask::Fill
                    | Ask::Jobs
                    | Ask::Slots
                    | Ask::Suspensions
                    | Ask::Plugins
                    | Ask::Data(_)
                    | Ask::World
            )
        })
    }

    pub(super) fn answer(&mut self, ask: Ask, answer: Option<(u16, Value)>) {
        if let Ask::Media(id) = &ask {
            return self.media_found(id, answer);
        }
        let body = answer.and_then(|(status, body)| (status == 200).then_some(body));
        match (ask, body) {
            (Ask::View, body) => self.viewed(body),
            (Ask::Fill, body) => self.filled(body),
            (Ask::Execution, body) => self.execution(body),
            (Ask::Approvals, body) => self.approvals(body),
            (Ask::Session, Some(body)) => self.apply_session(&body),
            (Ask::Jobs, body) => {
                if let Some(body) = body {
                    self.apply_jobs(&body);
                }
                self.jobs_known();
            }
            (Ask::Slots, Some(body)) => self.apply_slots(&body),
            (Ask::Suspensions, Some(body)) => self.apply_suspensions(&body),
            (Ask::Plugins, body) => self.plugins(body.unwrap_or_default()),
            (Ask::Data(plugin), Some(body)) => self.apply_data(&plugin, &body),
            (Ask::World, Some(body)) => {
                self.worlds = body["items"].as_array().cloned().unwrap_or_default();
                self.show_world();
            }
            (Ask::Traces, Some(body)) => self.traced(&body),
            (Ask::TracePage, Some(body)) => self.trace_page(&body),
            (Ask::Kept, Some(body)) => self.recalled(&body),
            (Ask::Older, Some(body)) => self.older(&body),
            (_, _) => {}
        }
        if !self.is_refetching() {
            let held = take(&mut self.held);
            held.iter().for_each(|event| self.apply(event));
        }
    }

    fn viewed(&mut self, body: Option<Value>) {
        let Some(view) = body else {
            return;
        };
        if self.action.as_ref().is_some_and(|action| !action.lost) {
            // COV-LIM-059, 062: what streams now belongs to another action than the view was asked for.
            self.view_wanted = true;
            return;
        }
        if self.leaves_a_hole(&view) {
            let cursor = view["messagesCursor"].clone();
            self.filling = Some(Filling {
                view,
                between: Vec::new(),
                pages: 0,
            });
            return self.fill(&cursor);
        }
        self.adopt_view(&view);
    }

    fn adopt_view(&mut self, view: &Value) {
        self.apply_view(view);
        if take(&mut self.opening) {
            self.adopt(view);
        }
        self.settle_recovered(view);
        let event_cursor = view["eventCursor"].as_str().map(str::to_owned);
        match self.joined_at.take() {
            // COV-SUB-045 to 047: something happened between the view and the subscription.
            Some(joined)
                if event_cursor
                    .as_ref()
                    .is_some_and(|cursor| is_news(&joined, cursor)) =>
            {
                self.read_view()
            }
            Some(_) => {}
            None if self.shown.cursor.is_none() => self.shown.cursor = event_cursor,
            None => {}
        }
        if self.subscription == 0 && !self.connected_before {
            self.subscribe();
        }
    }

    // ---- the history ----

    /// Whether messages lie between those that are shown and the window of this view. COV-LIM-077.
    fn leaves_a_hole(&self, view: &Value) -> bool {
        let window = view["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let is_shown = |row: &Value| row["id"].is_string() && self.is_stored(row);
        let any_stored = self.shown.messages.iter().any(|shown| shown.id.is_some());
        any_stored
            && !window.is_empty()
            && view["messagesCursor"].is_string()
            && !window.iter().any(is_shown)
    }

    fn is_stored(&self, row: &Value) -> bool {
        let id = row["id"].as_str();
        self.shown
            .messages
            .iter()
            .any(|shown| shown.id.is_some() && shown.id.as_deref() == id)
    }

    fn fill(&mut self, cursor: &Value) {
        let cursor = encoded(cursor.as_str().unwrap_or_default());
        self.ask(Ask::Fill, &format!("/messages/page?cursor={cursor}"));
    }

    /// COV-LIM-079 to 081: pages are read back to the first message that is shown already, and only then is the
    /// window put behind them.
    fn filled(&mut self, body: Option<Value>) {
        let Some(mut filling) = self.filling.take() else {
            return;
        };
        let page = body.unwrap_or_default();
        let rows = page["items"].as_array().cloned().unwrap_or_default();
        let joined = rows.iter().any(|row| self.is_stored(row));
        let at_the_end = rows.is_empty() || !page["nextCursor"].is_string();
        filling.between.splice(0..0, rows);
        filling.pages += 1;
        if !joined && !at_the_end && filling.pages < PAGES {
            self.filling = Some(filling);
            return self.fill(&page["nextCursor"]);
        }
        let mut view = filling.view;
        if joined {
            // What lies before the window that was shown is where it was.
            view["messagesCursor"] = json!(self.messages_cursor);
        }
        if let Some(window) = view["messages"].as_array_mut() {
            window.splice(0..0, filling.between);
        }
        self.adopt_view(&view);
    }

    fn older(&mut self, page: &Value) {
        self.messages_cursor = page["nextCursor"].as_str().map(str::to_owned);
        self.put_before(page);
    }

    // ---- plugins and the world ----

    pub(super) fn apply_plugins(&mut self, body: &Value) {
        let active = body["active"].as_array().into_iter().flatten();
        // The seed leaves the items open: ids, or objects that have one.
        let ids = active.filter_map(|item| item.as_str().or(item["id"].as_str()));
        self.shown.plugins = ids.map(str::to_owned).collect();
        for plugin in self.shown.plugins.clone() {
            let rest = format!("/plugin-data/{}", encoded(&plugin));
            self.ask(Ask::Data(plugin), &rest);
        }
    }

    /// COV-LIM-053: a row that is older than the one that is known does not take its place.
    fn apply_data(&mut self, plugin: &str, body: &Value) {
        let times = self.row_times.entry(plugin.to_owned()).or_default();
        let known = self.shown.plugin_data.remove(plugin).unwrap_or_default();
        let data = self.shown.plugin_data.entry(plugin.to_owned()).or_default();
        for row in body["items"].as_array().into_iter().flatten() {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let place = (text("namespace"), text("key"));
            let before = known.get(&place.0).and_then(|rows| rows.get(&place.1));
            let time = text("updatedAt");
            let is_older = times.get(&place).is_some_and(|newest| time < *newest);
            let value = match before {
                Some(before) if is_older => before.clone(),
                _ => {
                    times.insert(place.clone(), time);
                    row["value"].clone()
                }
            };
            data.entry(place.0).or_default().insert(place.1, value);
        }
    }

    pub(super) fn show_world(&mut self) {
        let own = |world: &&Value| world["id"].as_str() == self.world_id.as_deref();
        self.shown.world = self.worlds.iter().find(own).cloned();
    }

    /// What this client has kept of executions. LLM-REASON-043.
    pub(super) fn recall_history(&mut self) {
        if self.local {
            let number = self.next_number();
            self.asked.insert(Ask::Kept, number);
            self.commands
                .push(Command::Recall(number, Ask::Kept, "/history"));
        }
    }
}

/// Whether a cursor is of another epoch than the other, or newer; by number, not by text (COV-SUB-173).
fn is_news(cursor: &str, than: &str) -> bool {
    match (Cursor::parse(cursor), Cursor::parse(than)) {
        (Ok(a), Ok(b)) => a.epoch != b.epoch || a.seq > b.seq,
        _ => cursor != than,
    }
}
