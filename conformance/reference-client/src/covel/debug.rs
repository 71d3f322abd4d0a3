//! The debug page: what the stored trace tells of the calls of models, and the requests behind them.
//!
//! A page of the trace has an order of its own; over pages, the time of an event decides (COV-TRACE-115). Nothing is
//! made up: what a row does not say is null, and a body that cannot be had is unavailable.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use turnwire_spec::time;

use super::{
    core::{Core, encoded},
    inputs::{Ask, Command},
};

/// The rows that were read, and what the page waits for.
#[derive(Debug, Default)]
pub(super) struct Trace {
    rows: Vec<Value>,
    rebuilding: Option<Rebuilding>,
    /// Fragments of narrative that arrived, by turn and runtime.
    pub(super) fragments: BTreeMap<(String, String), u64>,
}

/// A rebuild that waits for the resources that its body names.
#[derive(Debug)]
struct Rebuilding {
    urls: BTreeSet<u64>,
    rebuilt: Rebuilt,
}

/// The debug page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DebugPage {
    /// The ids of the events, in their order.
    pub events: Vec<Value>,
    /// The calls of models.
    pub calls: Vec<ModelCall>,
    /// The runs of runtimes.
    pub runs: Vec<Run>,
    /// The saved texts.
    pub messages: Vec<SavedText>,
    /// Mean of the waits in the queue that are known, in milliseconds.
    pub mean_queue_wait_ms: Option<f64>,
}

/// One call of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// The turn.
    pub turn_id: String,
    /// The runtime.
    pub runtime_id: String,
    /// Which attempt.
    pub attempt: u64,
    /// `running`, `succeeded` or `failed`.
    pub outcome: &'static str,
    /// When the request began, as the provider's side tells it.
    pub started_at: Option<String>,
    /// That and the duration of the call.
    pub ended_at: Option<String>,
    /// How long it waited in the queue; null when nobody knows.
    pub queue_wait_ms: Option<f64>,
    /// Tokens of its input; null when nobody counted.
    pub input_tokens: Option<u64>,
    /// The requests to the provider; null when they were not recorded.
    pub requests: Option<Vec<ProviderRequest>>,
}

/// One request to a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRequest {
    /// Its status.
    pub status_code: Option<u64>,
    /// Its body, its own or the one that it refers to.
    pub body: Option<Value>,
    /// Whether there is no body to be had.
    pub unavailable: bool,
    /// The recorded item.
    #[serde(skip)]
    item: Value,
}

/// One run of a runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The turn.
    pub turn_id: String,
    /// The runtime.
    pub runtime_id: String,
    /// How the runtime stands.
    pub status: String,
    /// Attempts that failed before one went well; not part of the status.
    pub recovered_attempts: usize,
}

/// A text that was saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedText {
    /// The turn.
    pub turn_id: String,
    /// The runtime.
    pub runtime_id: String,
    /// Fragments that the runtime sent, as the server saved it.
    pub delta_count: Option<u64>,
    /// Fragments that this client put together.
    pub aggregated: u64,
}

/// A request that was rebuilt from its record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rebuilt {
    /// Whether all of its JSON could be rebuilt.
    pub whole: bool,
    /// What is said about it.
    pub message: String,
    /// The headers that were rebuilt: none are recorded.
    pub headers: Option<Value>,
    /// Whether it would give the same result again: nobody knows.
    pub exact: bool,
}

/// Rows of a trace that are read.
const ROWS: usize = 500_000;

impl Core {
    /// Reads the newest page of the trace, or the one behind a cursor.
    fn read_trace(&mut self, cursor: Option<&str>) {
        let query = cursor.map_or(String::new(), |cursor| {
            format!("?cursor={}", encoded(cursor))
        });
        let path = format!("/api/traces/{}{query}", encoded(&self.shown.session));
        self.ask_at(Ask::TracePage, path);
    }

    /// A page of the trace came.
    pub(super) fn trace_page(&mut self, page: &Value) {
        let rows = page["events"].as_array().cloned().unwrap_or_default();
        let known: BTreeSet<String> = self
            .trace
            .rows
            .iter()
            .map(|row| row["id"].to_string())
            .collect();
        let fresh = rows
            .into_iter()
            .filter(|row| !known.contains(&row["id"].to_string()));
        self.trace.rows.extend(fresh);
        match page["nextCursor"].as_str() {
            Some(cursor) if self.trace.rows.len() < ROWS => {
                self.read_trace(Some(cursor));
            }
            _ => self.show_debug_page(),
        }
    }

    pub(super) fn open_debug_page(&mut self) {
        self.read_trace(None);
    }

    fn show_debug_page(&mut self) {
        let time = |row: &Value| {
            row["timestamp"]
                .as_str()
                .and_then(|text| time::parse(text).ok())
        };
        self.trace.rows.sort_by_key(time);
        let mut page = DebugPage::default();
        for row in &self.trace.rows {
            page.events.push(row["id"].clone());
            self.add(&mut page, row);
        }
        for run in page.runs.iter_mut().filter(|run| run.status == "completed") {
            let failed = page.calls.iter().filter(|call| {
                call.outcome == "failed"
                    && call.turn_id == run.turn_id
                    && call.runtime_id == run.runtime_id
            });
            run.recovered_attempts = failed.count();
        }
        let waits: Vec<f64> = page
            .calls
            .iter()
            .filter_map(|call| call.queue_wait_ms)
            .collect();
        let count = u32::try_from(waits.len()).unwrap_or(u32::MAX);
        page.mean_queue_wait_ms = (count > 0).then(|| waits.iter().sum::<f64>() / f64::from(count));
        self.shown.debug = Some(page);
    }

    fn add(&self, page: &mut DebugPage, row: &Value) {
        let payload = &row["payload"];
        let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
        let turn_id = row["turnId"].as_str().unwrap_or_default().to_owned();
        let runtime_id = text("runtimeId");
        match row["type"].as_str().unwrap_or_default() {
            "llm.calling" => page.calls.push(ModelCall {
                turn_id,
                runtime_id,
                attempt: payload["attempt"].as_u64().unwrap_or_default(),
                outcome: "running",
                started_at: payload["startedAt"].as_str().map(str::to_owned),
                queue_wait_ms: payload["queueWaitMs"].as_f64(),
                requests: payload["providerRequests"]
                    .as_array()
                    .map(|items| requests(items)),
                ..ModelCall::default()
            }),
            "llm.responded" | "gateway.responded" => {
                let attempt = payload["attempt"].as_u64().unwrap_or_default();
                let same = |call: &&mut ModelCall| {
                    call.outcome == "running"
                        && call.turn_id == turn_id
                        && call.runtime_id == runtime_id
                        && call.attempt == attempt
                };
                if let Some(call) = page.calls.iter_mut().find(same) {
                    return responded(call, payload);
                }
                let mut call = ModelCall {
                    turn_id,
                    runtime_id,
                    attempt,
                    ..ModelCall::default()
                };
                responded(&mut call, payload);
                page.calls.push(call);
            }
            "runtime.started" | "runtime.completed" | "runtime.failed" => {
                let status = match row["type"].as_str() {
                    Some("runtime.started") => "running",
                    Some("runtime.completed") if payload["status"] != "failed" => "completed",
                    _ => "failed",
                };
                let same = |run: &&mut Run| run.turn_id == turn_id && run.runtime_id == runtime_id;
                match page.runs.iter_mut().find(same) {
                    Some(run) => status.clone_into(&mut run.status),
                    None => page.runs.push(Run {
                        turn_id,
                        runtime_id,
                        status: status.to_owned(),
                        recovered_attempts: 0,
                    }),
                }
            }
            "message.completed" => {
                let place = (turn_id.clone(), runtime_id.clone());
                page.messages.push(SavedText {
                    turn_id,
                    runtime_id,
                    delta_count: payload["deltaCount"].as_u64(),
                    aggregated: self
                        .trace
                        .fragments
                        .get(&place)
                        .copied()
                        .unwrap_or_default(),
                });
            }
            _ => {}
        }
    }

    fn request(&self, call: usize, request: usize) -> Option<&ProviderRequest> {
        let page = self.shown.debug.as_ref()?;
        page.calls.get(call)?.requests.as_ref()?.get(request)
    }

    /// COV-TRACE-179: what is copied holds the body, wherever it was recorded.
    pub(super) fn copy_request(&mut self, call: usize, request: usize) {
        let Some(request) = self.request(call, request) else {
            return;
        };
        let mut item = request.item.as_object().cloned().unwrap_or_default();
        item.remove("bodyRef");
        let body = request.body.clone();
        item.insert(
            "body".to_owned(),
            body.unwrap_or_else(|| json!("unavailable")),
        );
        self.shown.clipboard = Some(Value::Object(item));
    }

    /// COV-TRACE-199 to 202: a record is rebuilt when this version knows it, its JSON is whole, and what it names is
    /// still there.
    pub(super) fn rebuild_request(&mut self, call: usize, request: usize) {
        let Some(request) = self.request(call, request).cloned() else {
            return;
        };
        let version = request.item["schemaVersion"].as_u64();
        let known = matches!(version, Some(1 | 2)) && request.item["complete"] == true;
        let Some(body) = request.body.filter(|_| known) else {
            self.shown.rebuilt = Some(cannot());
            return;
        };
        let mut urls = BTreeSet::new();
        for url in resources(&body) {
            let number = self.next_number();
            urls.insert(number);
            self.commands.push(Command::Fetch(number, url));
        }
        let rebuilt = Rebuilt {
            whole: true,
            message: "the JSON of the request".to_owned(),
            ..Rebuilt::default()
        };
        if urls.is_empty() {
            self.shown.rebuilt = Some(rebuilt);
        } else {
            self.trace.rebuilding = Some(Rebuilding { urls, rebuilt });
        }
    }

    /// Something that a rebuilt request names was answered.
    pub(super) fn resource_answered(&mut self, number: u64, answer: Result<u16, &'static str>) {
        let Some(rebuilding) = &mut self.trace.rebuilding else {
            return;
        };
        if !rebuilding.urls.remove(&number) {
            return;
        }
        if answer != Ok(200) {
            rebuilding.rebuilt = cannot();
        }
        if rebuilding.urls.is_empty() {
            self.shown.rebuilt = self.trace.rebuilding.take().map(|done| done.rebuilt);
        }
    }

    /// COV-TRACE-205: what anybody may see. Recorded bodies hold what the player wrote, so they are left out.
    pub(super) fn export(&mut self) {
        let page = self.shown.debug.clone().unwrap_or_default();
        let calls = page.calls.iter().map(|call| {
            json!({ "runtimeId": call.runtime_id, "attempt": call.attempt, "outcome": call.outcome })
        });
        let calls: Vec<_> = calls.collect();
        let export = json!({ "events": page.events.len(), "calls": calls });
        self.shown.exported = Some(export.to_string());
    }
}

/// COV-TRACE-064, 130, 183: how a call ended is what its answer says, and nothing else.
fn responded(call: &mut ModelCall, payload: &Value) {
    call.outcome = match payload.get("error") {
        None | Some(Value::Null) => "succeeded",
        Some(_) => "failed",
    };
    call.input_tokens = payload["usage"]["inputTokens"].as_u64();
    let started = call
        .started_at
        .as_deref()
        .and_then(|text| time::parse(text).ok());
    let lasted = payload["durationMs"].as_i64();
    call.ended_at = started
        .zip(lasted)
        .map(|(started, lasted)| time::format_ms(started.saturating_add(lasted)));
}

/// COV-TRACE-177 to 180: a reference leads to an earlier item that has a body, or nowhere.
fn requests(items: &[Value]) -> Vec<ProviderRequest> {
    let body_of = |place: usize| items.get(place)?.get("body").cloned();
    let one = |(place, item): (usize, &Value)| {
        let referred = item["bodyRef"]
            .as_u64()
            .and_then(|at| usize::try_from(at).ok());
        let body = body_of(place).or_else(|| body_of(referred.filter(|at| *at < place)?));
        ProviderRequest {
            status_code: item["statusCode"].as_u64(),
            unavailable: body.is_none(),
            body,
            item: item.clone(),
        }
    };
    items.iter().enumerate().map(one).collect()
}

fn cannot() -> Rebuilt {
    Rebuilt {
        message: "cannot fully rebuild".to_owned(),
        ..Rebuilt::default()
    }
}

/// The URLs in a body: what it names and does not hold.
fn resources(body: &Value) -> Vec<String> {
    let all = |values: &mut dyn Iterator<Item = &Value>| values.flat_map(resources).collect();
    match body {
        Value::String(text) if text.starts_with("http://") || text.starts_with("https://") => {
            vec![text.clone()]
        }
        Value::Array(items) => all(&mut items.iter()),
        Value::Object(members) => all(&mut Map::values(members)),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_leads_to_an_earlier_body_or_nowhere() {
        let items = [
            json!({ "body": 0 }),
            json!({ "bodyRef": 0 }),
            json!({ "bodyRef": 2 }),
            json!({ "bodyRef": 9 }),
            json!({ "bodyRef": -1 }),
            json!({ "bodyRef": 1 }),
            json!({ "bodyRef": 7 }),
            json!({ "body": 7 }),
        ];
        let bodies: Vec<_> = requests(&items).into_iter().map(|it| it.body).collect();
        let (first, last) = (Some(json!(0)), Some(json!(7)));
        let nowhere = None;
        let expected = [
            first.clone(),
            first,
            nowhere.clone(),
            nowhere.clone(),
            nowhere.clone(),
            nowhere.clone(),
            nowhere,
            last,
        ];
        assert_eq!(bodies, expected);
    }

    #[test]
    fn urls_are_found_wherever_a_body_has_them() {
        let body = json!({ "a": ["x", { "url": "https://h/1" }], "b": "http://h/2", "c": 3 });
        assert_eq!(resources(&body), ["https://h/1", "http://h/2"]);
    }
}
