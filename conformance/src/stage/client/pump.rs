//! The lines between the harness and one client, carried and recorded.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::hope::Hope;
use crate::{
    drivers::{
        target::Intercept,
        testee::{MOST_BYTES, MOST_LINES, Said, Testee, last_words, report},
    },
    transcript::{End, ExchangeId, Fact, Side, record::Recorder},
};

/// What a client has reported.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) reports: Vec<Value>,
    pub(super) ended: bool,
    /// Why it ended, and its last words.
    pub(super) why: String,
    /// What it says that a person can do with it; `None` when it does not say.
    pub(super) can: Option<Vec<Value>>,
}

/// Carries lines between the harness and one client, and records them.
pub(super) struct Pump {
    pub(super) id: ExchangeId,
    pub(super) recorder: Recorder,
    pub(super) intercept: Option<Arc<dyn Intercept>>,
    pub(super) hope: Arc<Hope>,
    pub(super) tell: watch::Sender<Heard>,
}

/// Longest wait for a client to take a line.
const TAKES_WITHIN: Duration = Duration::from_secs(5);

impl Pump {
    pub(super) async fn run(self, mut testee: Testee, mut lines: mpsc::Receiver<Value>) {
        loop {
            tokio::select! {
                line = lines.recv() => {
                    let Some(line) = line else { return };
                    self.line(Side::Server, line.to_string().into());
                    testee.send(&line, TAKES_WITHIN).await;
                }
                said = testee.hear(Duration::MAX) => match said {
                    Some(Said::Line(bytes)) => self.hear(bytes),
                    Some(Said::TooLong) => return self.over(End::TooLarge, &testee.output()),
                    Some(Said::TooMuch) => {
                        self.hope.lose(format!("it said {MOST_LINES} lines, or {MOST_BYTES} bytes, unasked"));
                        return self.over(End::TooLarge, &testee.output());
                    }
                    Some(Said::Ended(why)) => return self.over(End::Broken(why), &testee.output()),
                    None => {}
                },
            }
        }
    }

    fn hear(&self, bytes: bytes::Bytes) {
        let Some(mut report) = report::read(&bytes) else {
            return self.line(Side::Client, bytes);
        };
        if let Some(intercept) = &self.intercept {
            intercept.report(&mut report);
        }
        if report.is_null() {
            return;
        }
        if report.get("state").is_none() && report.get("event").is_none() {
            // What it says about itself, which shows nothing.
            if let Some(can) = report["can"].as_array() {
                self.tell.send_modify(|heard| heard.can = Some(can.clone()));
            }
            return self.line(Side::Client, bytes);
        }
        self.recorder.tell(Fact::State(report.clone()));
        self.tell.send_modify(|heard| heard.reports.push(report));
    }

    fn line(&self, from: Side, bytes: bytes::Bytes) {
        self.recorder.tell(Fact::Line {
            exchange: self.id,
            from,
            bytes,
        });
    }

    fn over(&self, how: End, words: &[String]) {
        let why = match &how {
            End::Broken(why) => why.clone(),
            _ => "it wrote a line that is too long, or too many lines".to_owned(),
        };
        let why = last_words(why, words);
        self.recorder.tell(Fact::End {
            exchange: self.id,
            how,
        });
        self.tell.send_modify(|heard| {
            heard.ended = true;
            heard.why = why;
        });
    }
}
