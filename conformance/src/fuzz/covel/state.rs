//! The model's rule about what it all adds up to: at the end every client holds exactly the authoritative state.
//!
//! A client is folded from what is under its label: a fetched list replaces what it held, an event changes it. Events
//! that arrive while a fetch is under way are applied again after it, as the protocol asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::{
    AUTHORITY,
    model::{History, answered},
    streams::at,
};
use crate::{
    checks::{Check, check},
    transcript::{
        Transcript,
        views::{covel::Subscription, http::Exchange, stream::StreamFrame},
    },
    verdict::Findings,
};

/// The rules of this file.
pub const CHECKS: &[Check] = &[check!(
    "COV-SUB-042",
    every_client_ends_with_the_authoritative_state
)];

const MESSAGES: &str = "/api/sessions/:id/messages";
const TABLE: &str = "/api/sessions/:id/plugin-data/:plugin/:ns";

/// What a client holds of one session, or the server does.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Held {
    /// Stored values by plugin and namespace, then by key.
    tables: BTreeMap<(String, String), BTreeMap<String, Value>>,
    /// Texts of the story by message id.
    story: BTreeMap<String, String>,
}

impl Held {
    /// Takes the answer to a query over, in place of what it was about.
    fn replace(&mut self, exchange: &Exchange<'_>) {
        let Some(body) = exchange.json().filter(|_| exchange.status() == Some(200)) else {
            return;
        };
        if exchange.is("GET", MESSAGES) {
            let messages = body.as_array().into_iter().flatten();
            self.story = messages.filter_map(story).collect();
        } else if let (Some(plugin), Some(namespace)) = (
            exchange.segment(TABLE, "plugin"),
            exchange.segment(TABLE, "ns"),
        ) {
            let items = body
                .get("items")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let row = |item: &Value| {
                let key = item.get("key")?.as_str()?.to_owned();
                Some((key, item.get("value").cloned().unwrap_or_default()))
            };
            self.tables
                .insert((plugin, namespace), items.filter_map(row).collect());
        }
    }

    /// Applies an event.
    fn apply(&mut self, frame: &StreamFrame) {
        match frame.event_type() {
            "plugin-data.changed" => self.change(frame),
            "narrative.completed" => {
                let text = |name: &str| frame.pointer(&format!("/payload/{name}"))?.as_str();
                if let (Some(id), Some(content)) = (text("messageId"), text("content")) {
                    self.story.insert(id.to_owned(), content.to_owned());
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, frame: &StreamFrame) {
        let plugin = frame.pointer("/payload/pluginId").and_then(Value::as_str);
        let changes = frame.pointer("/payload/changes").and_then(Value::as_array);
        let (Some(plugin), Some(changes)) = (plugin, changes) else {
            return;
        };
        for change in changes {
            let text = |name: &str| change.get(name).and_then(Value::as_str);
            let (Some(namespace), Some(key)) = (text("namespace"), text("key")) else {
                continue;
            };
            let table = (plugin.to_owned(), namespace.to_owned());
            let rows = self.tables.entry(table).or_default();
            if text("operation") == Some("delete") {
                rows.remove(key);
            } else {
                let value = change.get("value").cloned().unwrap_or_default();
                rows.insert(key.to_owned(), value);
            }
        }
    }
}

/// A message of the story, with its id.
fn story(message: &Value) -> Option<(String, String)> {
    let text = |name: &str| message.get(name)?.as_str().map(str::to_owned);
    let told = text("role").is_some_and(|role| role != "user" && role != "system");
    told.then_some((text("id")?, text("content")?))
}

/// COV-SUB-042: what a client fetched, followed by the events after it, is the state that the queries give at the end.
///
/// Judges the last connection of each client: it has the newest stored value, and the client's tables and story (of all
/// topics) are those of the authority.
fn every_client_ends_with_the_authoritative_state(transcript: &Transcript) -> Findings {
    History::judge(transcript, |history, findings| {
        let labels: BTreeSet<&str> = history
            .subscriptions
            .iter()
            .map(|subscription| subscription.stream.exchange.label)
            .filter(|label| label.starts_with("client-"))
            .collect();
        for label in labels {
            let mine =
                |subscription: &&Subscription<'_>| subscription.stream.exchange.label == label;
            let Some(last) = history.subscriptions.iter().rfind(mine) else {
                continue;
            };
            let Some(authority) = authority(history, &last.session) else {
                continue;
            };
            let held = fold(history, label, last, authority.asked);
            findings.judge(
                disagreement(&held, &authority.held, last.all_topics())
                    .map(|(expected, got)| at(last, format!("{label}: {expected}"), got)),
            );
        }
    })
}

/// What the server says at the end.
struct Authority {
    held: Held,
    /// When it was asked first.
    asked: Duration,
}

fn authority(history: &History<'_>, session: &str) -> Option<Authority> {
    let mut held = Held::default();
    let queries = history.exchanges.iter().filter(|exchange| {
        let whose = exchange
            .segment(MESSAGES, "id")
            .or_else(|| exchange.segment(TABLE, "id"));
        let about = exchange.is("GET", MESSAGES) || exchange.is("GET", TABLE);
        exchange.label == AUTHORITY && about && whose.as_deref() == Some(session)
    });
    let queries: Vec<_> = queries
        .filter(|exchange| answered(exchange).is_some())
        .collect();
    queries.iter().for_each(|exchange| held.replace(exchange));
    let asked = queries.iter().map(|exchange| exchange.opened).min()?;
    Some(Authority { held, asked })
}

/// What a client holds in the session of its last connection, once everything up to this time has come.
fn fold(history: &History<'_>, label: &str, last: &Subscription<'_>, until: Duration) -> Held {
    let session = &last.session;
    let queries = history.exchanges.iter().filter(|exchange| {
        let whose = exchange
            .segment(MESSAGES, "id")
            .or_else(|| exchange.segment(TABLE, "id"));
        let about = exchange.is("GET", MESSAGES) || exchange.is("GET", TABLE);
        exchange.label == label && about && whose.as_ref() == Some(session)
    });
    let fetched =
        queries.filter_map(|exchange| Some((answered(exchange)?, Change::Fetch(exchange))));
    let connections = history.subscriptions.iter().filter(|subscription| {
        subscription.stream.exchange.label == label && subscription.session == *session
    });
    let events = connections.flat_map(|subscription| {
        let events = subscription.events();
        events
            .into_iter()
            .map(|(_, frame)| (frame.at, Change::Event(frame)))
    });
    let mut changes: Vec<(Duration, Change<'_>)> = fetched.chain(events).collect();
    changes.retain(|(at, _)| *at <= until);
    changes.sort_by_key(|(at, _)| *at);
    let mut held = Held::default();
    for (place, (_, change)) in changes.iter().enumerate() {
        match change {
            Change::Event(frame) => held.apply(frame),
            Change::Fetch(exchange) => {
                held.replace(exchange);
                let meanwhile = changes[..place]
                    .iter()
                    .filter(|(at, _)| *at >= exchange.opened);
                meanwhile.for_each(|(_, change)| {
                    if let Change::Event(frame) = change {
                        held.apply(frame);
                    }
                });
            }
        }
    }
    held
}

/// What changes a client.
enum Change<'h> {
    /// It fetched a list.
    Fetch(&'h Exchange<'h>),
    /// An event came.
    Event(&'h StreamFrame),
}

/// In what a client and the server disagree, over the tables that the server was asked for.
fn disagreement(held: &Held, authority: &Held, all_topics: bool) -> Option<(String, String)> {
    let nothing = BTreeMap::new();
    for (name, rows) in &authority.tables {
        let mine = held.tables.get(name).unwrap_or(&nothing);
        if mine != rows {
            let shown = |rows: &BTreeMap<String, Value>| format!("{}/{}: {rows:?}", name.0, name.1);
            return Some((shown(rows), shown(mine)));
        }
    }
    (all_topics && held.story != authority.story).then(|| {
        (
            format!("story {:?}", authority.story),
            format!("{:?}", held.story),
        )
    })
}
