//! The reference clients as clients under test.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnwire_client::{
    covel::{Person, edge},
    event_source::{self, Told},
    relay,
};
use turnwire_spec::catalogue::Suite;

use super::{Living, OwnClient, Wires};

/// The reference client of a suite, when it has one.
pub fn client(suite: Suite) -> Option<OwnClient> {
    match suite {
        Suite::Sse => Some(OwnClient {
            name: "turnwire event source",
            live: |wires| Box::pin(event_source(wires)),
        }),
        Suite::CovelSse => Some(OwnClient {
            name: "turnwire client",
            live: |wires| Box::pin(covel(wires)),
        }),
        _ => None,
    }
}

/// Reads the stream at the URL, and reports events and states.
async fn event_source(wires: Wires) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let reporter = wires.reporter();
    let url = wires.start.url.clone();
    let reading = event_source::read(&url, |what| {
        let report = match what {
            Told::State(state) => json!({ "state": state.name() }),
            Told::Event(event) => json!({ "event": {
                "type": event.event, "data": event.data, "lastEventId": event.last_event_id,
            } }),
        };
        // The other end lives as long as this.
        let _ = tell.send(report);
    });
    let reporting = async {
        while let Some(report) = told.recv().await {
            reporter.report(&report).await;
        }
    };
    tokio::join!(reading, reporting);
}

/// Shows a session, and reports what is shown whenever it has changed.
async fn covel(mut wires: Wires) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (does, person) = mpsc::channel(16);
    let reporter = wires.reporter();
    let env = &wires.start.env;
    let server = edge::Server {
        url: wires.start.url.trim_end_matches('/').to_owned(),
        token: env.get("TURNWIRE_TOKEN").cloned(),
        time_scale: env
            .get("TURNWIRE_TIME_SCALE")
            .and_then(|text| text.parse().ok())
            .unwrap_or(1.0),
        store: env.get("TURNWIRE_STORE").cloned(),
    };
    let relaying = relaying(&server, env);
    let mut before = Value::Null;
    let showing = edge::run(server, person, move |shown| {
        let shown = serde_json::to_value(shown).unwrap_or_default();
        if shown != before {
            // The other end lives as long as this.
            let _ = tell.send(json!({ "state": shown }));
            before = shown;
        }
    });
    let reporting = async {
        while let Some(report) = told.recv().await {
            reporter.report(&report).await;
        }
    };
    let reading = async {
        while let Some(line) = wires.lines.recv().await {
            let line: Value = serde_json::from_slice(&line).unwrap_or_default();
            if let Some(doing) = person_of(&line)
                && does.send(doing).await.is_err()
            {
                return;
            }
        }
        // The harness ends the client; until then it goes on showing.
        std::future::pending::<()>().await;
    };
    tokio::join!(showing, reporting, reading, relaying);
}

/// Relays to the player's own model, on a shared deployment.
fn relaying(server: &edge::Server, env: &BTreeMap<String, String>) -> Living {
    let shared = env.get("TURNWIRE_DEPLOYMENT").map(String::as_str) == Some("shared");
    let Some(local_model) = env.get("TURNWIRE_LOCAL_MODEL").filter(|_| shared) else {
        return Box::pin(std::future::ready(()));
    };
    Box::pin(relay::run(relay::Page {
        server: server.url.clone(),
        local_model: local_model.clone(),
        channel: edge::page_id(),
        time_scale: server.time_scale,
    }))
}

/// What a line of the contract says that the person does; nothing for what this client does not know.
fn person_of(line: &Value) -> Option<Person> {
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let place = |key: &str| {
        let place = line[key].as_u64().unwrap_or_default();
        usize::try_from(place).unwrap_or(usize::MAX)
    };
    Some(match line["do"].as_str()? {
        "open" => Person::Open(text("session")),
        "close" => Person::Close,
        "type" => Person::Type(text("text")),
        "say" => Person::Say(text("text")),
        "answer" => Person::Answer(text("form"), line["values"].clone()),
        "stop" => Person::Stop,
        "retry" => Person::Retry,
        "hide" => Person::Hide,
        "show" => Person::Show,
        "older" => Person::Older,
        "steer" => Person::Steer(text("text")),
        "press" => Person::Press(text("slot"), text("control")),
        "select" => Person::Select(text("form"), line["values"].clone()),
        "retry-task" => Person::RetryTask(text("turn"), text("runtime")),
        "recover" => Person::Recover(text("result")),
        "call" => Person::Call(text("plugin"), text("action"), line["payload"].clone()),
        "decide" => Person::Decide(line["allow"] == true),
        "resume" => Person::Resume(text("suspension"), line["data"].clone()),
        "handle" => Person::Handle(text("type"), text("throws")),
        "debug" => Person::Debug,
        "copy" => Person::Copy(place("call"), place("request")),
        "rebuild" => Person::Rebuild(place("call"), place("request")),
        "export" => Person::Export,
        _ => return None,
    })
}
