//! Faults of clients, which the fuzzer has to find: between the reference client and the harness.
//!
//! A fault shows only in a case that holds what triggers it, so that finding it also shows that such cases are made,
//! and that they stay when a case is made smaller.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::case::{Case, Kind};
use crate::drivers::{
    DriveError,
    target::Pending,
    testee::{
        Said, Testee,
        client::{ClientStart, LaunchClient, OwnClient},
    },
};

/// A fault.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// Its name.
    pub name: &'static str,
    /// What is wrong.
    pub about: &'static str,
    /// The name of what triggers it, see [`Case::names`].
    pub trigger: &'static str,
    /// The protocol whose client has it.
    pub kind: Kind,
    deed: Deed,
}

/// What a faulty client does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Deed {
    /// It ends.
    Dies,
    /// It does nothing any more.
    Hangs,
    /// It goes on showing what it showed first.
    Freezes,
    /// It shows every message, or event, twice.
    Doubles,
    /// It shows no data of plugins, or not the last event.
    Loses,
    /// It shows another text.
    Garbles,
}

/// Reports after which a client dies, hangs or freezes.
const REPORTS_BEFORE: usize = 2;

const fn covel(
    name: &'static str,
    trigger: &'static str,
    deed: Deed,
    about: &'static str,
) -> Plant {
    Plant {
        name,
        about,
        trigger,
        kind: Kind::Covel,
        deed,
    }
}

const fn stream(
    name: &'static str,
    trigger: &'static str,
    deed: Deed,
    about: &'static str,
) -> Plant {
    Plant {
        name,
        about,
        trigger,
        kind: Kind::Stream,
        deed,
    }
}

/// The faults.
pub const PLANTS: &[Plant] = &[
    covel(
        "dies-of-nesting",
        "deep",
        Deed::Dies,
        "deep nesting ends the client",
    ),
    covel(
        "dies-of-types",
        "retype",
        Deed::Dies,
        "a member of another type ends the client",
    ),
    covel(
        "dies-of-encodings",
        "encode",
        Deed::Dies,
        "another encoding ends the client",
    ),
    covel(
        "hangs-at-half-a-frame",
        "half",
        Deed::Hangs,
        "after half a frame the client never connects again",
    ),
    covel(
        "hangs-at-a-refusal",
        "refused",
        Deed::Hangs,
        "after one refusal the client never connects again",
    ),
    covel(
        "freezes-at-unknown-members",
        "unknown",
        Deed::Freezes,
        "a member that nobody knows stops the display",
    ),
    covel(
        "freezes-at-dropped-members",
        "drop",
        Deed::Freezes,
        "a member that is missing stops the display",
    ),
    covel(
        "doubles-what-came-twice",
        "again",
        Deed::Doubles,
        "a frame that came twice leaves its message there twice",
    ),
    covel(
        "loses-after-pieces",
        "pieces",
        Deed::Loses,
        "after frames in pieces events are lost",
    ),
    covel(
        "garbles-carriage-returns",
        "cr-lf",
        Deed::Garbles,
        "after lines that end with CR LF texts are not what was sent",
    ),
    stream(
        "reader-dies",
        "line",
        Deed::Dies,
        "the reader ends in the middle of a stream",
    ),
    stream(
        "reader-doubles-pieces",
        "pieces",
        Deed::Doubles,
        "events that came in pieces are read twice",
    ),
    stream(
        "reader-loses-the-last",
        "line",
        Deed::Loses,
        "the last event before the end is lost",
    ),
    stream(
        "reader-garbles-pieces",
        "pieces",
        Deed::Garbles,
        "data that came in pieces is not what was sent",
    ),
];

impl Plant {
    /// The client with this fault, in a case that triggers it, else without.
    pub fn client(&self, own: OwnClient, case: &Case) -> Arc<dyn LaunchClient> {
        if case.names().contains(&self.trigger) {
            Arc::new(Faulty {
                own,
                deed: self.deed,
            })
        } else {
            Arc::new(own)
        }
    }
}

#[derive(Debug)]
struct Faulty {
    own: OwnClient,
    deed: Deed,
}

impl LaunchClient for Faulty {
    fn start<'a>(&'a self, start: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>> {
        Box::pin(async move {
            let inner = self.own.start(start).await?;
            let deed = self.deed;
            let about = inner.about().clone();
            Ok(Testee::in_process(about, move |lines, say| {
                between(inner, deed, lines, say)
            }))
        })
    }

    fn waits(&self) -> Option<crate::drivers::testee::client::Waits> {
        None
    }
}

/// Carries lines between a client and the harness, with the fault in between.
async fn between(
    mut inner: Testee,
    deed: Deed,
    mut lines: mpsc::Receiver<Bytes>,
    say: mpsc::Sender<Said>,
) {
    let mut heard = 0;
    loop {
        tokio::select! {
            line = lines.recv() => {
                let Some(line) = line else { return };
                let line: Value = serde_json::from_slice(&line).unwrap_or_default();
                inner.send(&line, Duration::from_secs(1)).await;
            }
            said = inner.hear(Duration::MAX) => {
                let Some(Said::Line(line)) = said else { return };
                heard += 1;
                if heard > REPORTS_BEFORE {
                    match deed {
                        Deed::Dies => return,
                        Deed::Freezes => continue,
                        Deed::Hangs => break,
                        _ => {}
                    }
                }
                for line in changed(deed, &line) {
                    if say.send(Said::Line(line)).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
    drop(inner);
    std::future::pending::<()>().await;
}

/// A report with the fault in it.
fn changed(deed: Deed, line: &Bytes) -> Vec<Bytes> {
    let mut report: Value = serde_json::from_slice(line).unwrap_or_default();
    let is_event = report.get("event").is_some();
    if !is_event && !report["state"].is_object() {
        // The state of a reader's connection.
        return vec![line.clone()];
    }
    match deed {
        Deed::Doubles if is_event => return vec![line.clone(), line.clone()],
        Deed::Doubles => {
            if let Some(messages) = report["state"]["messages"].as_array_mut() {
                *messages = messages
                    .iter()
                    .flat_map(|one| [one.clone(), one.clone()])
                    .collect();
            }
        }
        Deed::Loses if is_event && report["event"]["type"] == "turnwire-last" => return Vec::new(),
        Deed::Loses if !is_event && report["state"].is_object() => {
            report["state"]["pluginData"] = json!({});
        }
        Deed::Garbles if is_event => report["event"]["data"] = json!("garbled"),
        Deed::Garbles => {
            for message in report["state"]["messages"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                message["text"] = json!("garbled");
            }
        }
        _ => {}
    }
    vec![report.to_string().into()]
}
