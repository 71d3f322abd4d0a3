//! What a client with a planted fault does: lines go through between the reference client and the harness, until the fault
//! shows.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::run::Launcher;
use crate::drivers::{
    DriveError,
    target::Pending,
    testee::{
        LaunchTestee, Said, Testee,
        client::{ClientStart, LaunchClient, Waits},
    },
};

/// What a faulty client does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Deed {
    /// It ends.
    Dies,
    /// It does nothing any more.
    Hangs,
    /// It goes on showing what it showed first.
    Freezes,
    /// It shows every message, event, bubble or notice twice.
    Doubles,
    /// It shows no data of plugins, not the last event or bubble, or no tools.
    Loses,
    /// It shows another text.
    Garbles,
    /// It shows that something is still running.
    Runs,
}

/// Reports after which the fault shows.
const REPORTS_BEFORE: usize = 2;
/// How long the client may take to take a line.
const TAKES_WITHIN: Duration = Duration::from_secs(1);

/// A client with a fault.
#[derive(Debug)]
struct Faulty<L: ?Sized> {
    deed: Deed,
    own: Arc<L>,
}

/// The client of a launcher, with a fault.
pub(super) fn launcher(own: &Launcher, deed: Deed) -> Launcher {
    match own {
        Launcher::Connects(own) => Launcher::Connects(Arc::new(Faulty {
            deed,
            own: Arc::clone(own),
        })),
        Launcher::Steps(own) => Launcher::Steps(Arc::new(Faulty {
            deed,
            own: Arc::clone(own),
        })),
    }
}

impl LaunchClient for Faulty<dyn LaunchClient> {
    fn start<'a>(&'a self, start: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>> {
        Box::pin(async move {
            let inner = self.own.start(start).await?;
            Ok(faulty(inner, self.deed, false))
        })
    }

    fn waits(&self) -> Option<Waits> {
        self.own.waits()
    }
}

impl LaunchTestee for Faulty<dyn LaunchTestee> {
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>> {
        Box::pin(async move {
            let inner = self.own.start().await?;
            Ok(faulty(inner, self.deed, true))
        })
    }

    fn in_process(&self) -> bool {
        self.own.in_process()
    }
}

fn faulty(inner: Testee, deed: Deed, answers: bool) -> Testee {
    let about = inner.about().clone();
    Testee::in_process(about, move |lines, say| {
        between(inner, deed, answers, lines, say)
    })
}

/// Carries lines between a client and the harness, with the fault in between. A client that `answers` has one report for
/// each line, so a frozen one repeats itself; any other falls silent.
async fn between(
    mut inner: Testee,
    deed: Deed,
    answers: bool,
    mut lines: mpsc::Receiver<Bytes>,
    say: mpsc::Sender<Said>,
) {
    let mut heard = 0;
    let mut first = None;
    loop {
        tokio::select! {
            line = lines.recv() => {
                let Some(line) = line else { return };
                let line: Value = serde_json::from_slice(&line).unwrap_or_default();
                inner.send(&line, TAKES_WITHIN).await;
            }
            said = inner.hear(Duration::MAX) => {
                let Some(Said::Line(line)) = said else { return };
                heard += 1;
                let shown = match deed {
                    _ if heard <= REPORTS_BEFORE => {
                        first.get_or_insert_with(|| line.clone());
                        vec![line]
                    }
                    Deed::Dies => return,
                    Deed::Hangs => break,
                    Deed::Freezes => first.clone().filter(|_| answers).into_iter().collect(),
                    _ => changed(deed, line),
                };
                for line in shown {
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
fn changed(deed: Deed, line: Bytes) -> Vec<Bytes> {
    let mut report: Value = serde_json::from_slice(&line).unwrap_or_default();
    if let Some(event) = report.get_mut("event") {
        match deed {
            Deed::Doubles => return vec![line.clone(), line],
            Deed::Loses if event["data"] == "last" => return Vec::new(),
            Deed::Garbles => event["data"] = json!("garbled"),
            _ => {}
        }
    } else if report["state"].is_object() {
        in_state(deed, &mut report["state"]);
    }
    vec![report.to_string().into()]
}

/// The fault in what a client shows: a session with messages, chats, or turns and notices.
fn in_state(deed: Deed, state: &mut Value) {
    if let Some(messages) = state["messages"].as_array_mut() {
        in_texts(deed, messages);
    }
    match deed {
        Deed::Loses if state["pluginData"].is_object() => state["pluginData"] = json!({}),
        Deed::Runs if state["executing"].is_boolean() => state["executing"] = json!(true),
        _ => {}
    }
    let chats = state["chats"].as_object_mut();
    for chat in chats.into_iter().flat_map(|chats| chats.values_mut()) {
        match chat["bubbles"].as_array_mut() {
            Some(bubbles) if deed == Deed::Loses => drop(bubbles.pop()),
            Some(bubbles) => in_texts(deed, bubbles),
            None => {}
        }
        if deed == Deed::Runs {
            chat["running"] = json!(true);
        }
    }
    for turn in state["turns"].as_array_mut().into_iter().flatten() {
        match deed {
            Deed::Garbles => turn["text"] = json!("garbled"),
            Deed::Loses => turn["tools"] = json!([]),
            Deed::Runs => turn["status"] = json!("running"),
            _ => {}
        }
    }
    if let Some(notices) = state["notices"].as_array_mut() {
        in_texts(deed, notices);
    }
}

fn in_texts(deed: Deed, items: &mut Vec<Value>) {
    match deed {
        Deed::Doubles => {
            *items = items
                .iter()
                .flat_map(|one| [one.clone(), one.clone()])
                .collect();
        }
        Deed::Garbles => {
            for item in items {
                item["text"] = json!("garbled");
            }
        }
        _ => {}
    }
}
