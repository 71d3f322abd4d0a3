//! Testees: programs under test that connect to a server of the harness, such as adapters and clients.
//!
//! A [`Testee`] takes lines of JSON and says lines of JSON. What they mean is for the stage and the scenarios;
//! `docs/src/adapter-protocol.md` has the protocol of adapters.
//!
//! - [`client`]: clients, which connect as soon as they are started;
//! - [`command`]: a program that speaks on its standard input and output;
//! - [`gateway`]: the adapters of our own gateway, in process;
//! - [`report`]: reading what a testee reports;
//! - `rest`: whether a program has worked off what has reached it.
//!
//! Lines are bounded by [`MAX_LINE`], [`MOST_LINES`] and [`MOST_BYTES`], waits by whoever waits, and a testee ends when it is dropped.

use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{DriveError, process::Ring, target::Pending};
use crate::cases::content::Feature;

pub mod client;
pub mod command;
pub mod gateway;
pub mod report;
mod rest;

/// Bytes of one line that are taken from a testee.
pub const MAX_LINE: usize = 32 << 20;

/// Bytes that are taken from a testee between two lines that it is sent.
pub const MOST_BYTES: usize = 32 << 20;

/// Lines that are taken from a testee between two lines that it is sent.
pub const MOST_LINES: usize = 10_000;

/// Lines in either direction that wait to be taken.
const WAITING: usize = 16;

/// A way to start testees. Several may run side by side.
pub trait LaunchTestee: Debug + Send + Sync {
    /// Starts one and waits until it says that it is ready.
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>>;

    /// Whether it is the harness's own, which is known to work and needs no long waits.
    fn in_process(&self) -> bool {
        false
    }
}

/// What a testee says about itself before the first case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Its name, such as `openai-python`.
    pub name: String,
    /// Its version, as it says it; empty when it does not.
    pub version: String,
    /// The whole line.
    pub said: Value,
}

impl About {
    /// Reads the line in which a testee says that it is ready; `None` for any other line.
    pub fn read(line: &Value) -> Option<Self> {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        (line["ready"] == true).then(|| Self {
            name: text("name"),
            version: text("version"),
            said: line.clone(),
        })
    }

    /// Sees to it that it can be asked in this wire: it names it, or it names none. What it says besides is right too:
    /// cases about a feature whose name is misspelt would be left out without a word.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotStarted`] with the wires that it does name, or with what is wrong.
    pub fn speaks(&self, wire: &str) -> Result<(), DriveError> {
        let wires = &self.said["wires"];
        if let Some(why) = self.no_list("wires").or_else(|| self.odd_feature()) {
            return Err(not_ready(why));
        }
        if wires.is_null() || self.lists("wires", wire) {
            return Ok(());
        }
        Err(not_ready(format!(
            "it says that it speaks {wires}, and not {wire}"
        )))
    }

    /// What is wrong with one of its lists as a whole.
    fn no_list(&self, list: &str) -> Option<String> {
        let said = &self.said[list];
        let right = said.is_null() || said.is_array();
        (!right).then(|| {
            format!("`{list}` in its first line is a list, such as [{said}], and not {said}")
        })
    }

    /// What is wrong with its features.
    fn odd_feature(&self) -> Option<String> {
        let features = self.said["features"].as_array().into_iter().flatten();
        let known = Feature::ALL.map(Feature::name);
        let odd = |feature: &&Value| !known.iter().any(|name| *feature == name);
        self.no_list("features").or_else(|| {
            let odd = features.clone().find(odd)?;
            Some(format!(
                "there is no feature {odd}; features are {}",
                known.join(", ")
            ))
        })
    }

    /// Whether one of its lists, `wires` or `features`, has this name.
    pub fn lists(&self, list: &str, name: &str) -> bool {
        let names = self.said[list].as_array();
        names.is_some_and(|names| names.iter().any(|one| one == name))
    }
}

fn not_ready(why: String) -> DriveError {
    DriveError::NotStarted {
        why,
        output: Vec::new(),
    }
}

/// A testee that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Testee {
    about: About,
    to: mpsc::Sender<Bytes>,
    from: mpsc::Receiver<Said>,
    output: Ring,
    rests: Option<Arc<dyn Rests>>,
    taken: Taken,
    _life: Life,
}

/// What was taken from a testee since it was sent a line.
#[derive(Debug, Default)]
struct Taken {
    bytes: usize,
    lines: usize,
}

impl Taken {
    /// Takes one more line, as long as that is not too much.
    fn take(&mut self, line: &Bytes) -> bool {
        self.bytes += line.len();
        self.lines += 1;
        self.bytes <= MOST_BYTES && self.lines <= MOST_LINES
    }
}

/// A testee that can be asked whether it has worked off what has reached it.
pub trait Rests: Debug + Send + Sync {
    /// Waits until it has, as far as that can be found out.
    fn rest(&self) -> Pending<'_, ()>;

    /// How long the machine has kept it waiting for a processor since it was started, as far as that is known.
    fn kept_waiting(&self) -> Duration {
        Duration::ZERO
    }
}

/// What comes from a testee.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A line, without its end.
    Line(Bytes),
    /// A line that is longer than [`MAX_LINE`]; nothing after it is read.
    TooLong,
    /// More than [`MOST_LINES`] or [`MOST_BYTES`] without being asked; nothing after it is read.
    TooMuch,
    /// It ended, or closed its output; with what is known about it.
    Ended(String),
}

/// What keeps a testee alive. Each ends it when it is dropped.
#[derive(Debug)]
enum Life {
    #[expect(dead_code, reason = "held for what its drop does")]
    Process(command::Process),
    #[expect(dead_code, reason = "held for what its drop does")]
    Task(AbortOnDropHandle<()>),
}

impl Testee {
    /// A testee that is a task of this process: `serve` takes lines until there are no more.
    pub fn in_process<F, S>(about: About, serve: S) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
        S: FnOnce(mpsc::Receiver<Bytes>, mpsc::Sender<Said>) -> F,
    {
        let (to, lines) = mpsc::channel(WAITING);
        let (say, from) = mpsc::channel(WAITING);
        let task = tokio::spawn(serve(lines, say));
        Self {
            about,
            to,
            from,
            output: Ring::default(),
            rests: None,
            taken: Taken::default(),
            _life: Life::Task(AbortOnDropHandle::new(task)),
        }
    }

    /// What it says about itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The same testee, which can be asked whether it is at rest.
    #[must_use]
    pub fn resting(mut self, rests: Arc<dyn Rests>) -> Self {
        self.rests = Some(rests);
        self
    }

    /// Whom to ask whether it is at rest; `None` when there is nobody.
    pub fn rests(&self) -> Option<Arc<dyn Rests>> {
        self.rests.clone()
    }

    /// The last lines that it wrote for people, oldest first.
    pub fn output(&self) -> Vec<String> {
        self.output.lines()
    }

    /// Sends a line; whether there was anybody to take it within this time.
    pub async fn send(&mut self, line: &Value, within: Duration) -> bool {
        let sent = self.to.send(line.to_string().into());
        self.taken = Taken::default();
        matches!(timeout(within, sent).await, Ok(Ok(())))
    }

    /// The next thing that it says; `None` when it says nothing for so long.
    pub async fn hear(&mut self, within: Duration) -> Option<Said> {
        let said = timeout(within, self.from.recv()).await.ok()?;
        let said = said.unwrap_or_else(|| Said::Ended("it is gone".to_owned()));
        if let Said::Line(line) = &said
            && !self.taken.take(line)
        {
            self.from.close();
            return Some(Said::TooMuch);
        }
        Some(said)
    }
}

/// Lines of its standard error that say why a testee ended.
const LAST_WORDS: usize = 3;

/// Why a testee ended, with the last of what it wrote for people.
pub fn last_words(why: String, output: &[String]) -> String {
    let last = output.iter().skip(output.len().saturating_sub(LAST_WORDS));
    let words: Vec<_> = [&why].into_iter().chain(last).cloned().collect();
    words.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_of_another_wire_is_told_by_its_first_line() {
        let about = |line: Value| About::read(&line).unwrap();
        let gemini = about(serde_json::json!({ "ready": true, "wires": ["gemini"] }));
        assert!(gemini.speaks("gemini").is_ok());
        let error = gemini.speaks("openai-chat").unwrap_err();
        assert!(error.to_string().contains("[\"gemini\"]"), "{error}");
        assert!(
            about(serde_json::json!({ "ready": true }))
                .speaks("gemini")
                .is_ok()
        );
    }

    #[test]
    fn a_first_line_that_would_leave_cases_out_is_refused() {
        let why = |line: Value| {
            let error = About::read(&line).unwrap().speaks("gemini").unwrap_err();
            error.to_string()
        };
        let told = why(serde_json::json!({ "ready": true, "wires": "gemini" }));
        assert!(
            told.ends_with(
                "`wires` in its first line is a list, such as [\"gemini\"], and not \"gemini\""
            ),
            "{told}"
        );
        let told = why(serde_json::json!({ "ready": true, "features": ["think_tags"] }));
        assert!(
            told.contains("there is no feature \"think_tags\"; features are ")
                && told.contains("think-tags"),
            "{told}"
        );
        let told = why(serde_json::json!({ "ready": true, "features": "content" }));
        assert!(
            told.contains("`features` in its first line is a list"),
            "{told}"
        );
    }

    fn chatterbox() -> Testee {
        Testee::in_process(About::default(), |_lines, say| async move {
            while say.send(Said::Line("{}".into())).await.is_ok() {}
        })
    }

    async fn lines_until_too_much(testee: &mut Testee) -> usize {
        let mut lines = 0;
        while let Some(Said::Line(_)) = testee.hear(Duration::from_secs(5)).await {
            lines += 1;
        }
        lines
    }

    #[tokio::test]
    async fn a_testee_that_never_stops_talking_is_not_heard_any_more() {
        let mut testee = chatterbox();
        assert_eq!(lines_until_too_much(&mut testee).await, MOST_LINES);
    }

    #[tokio::test]
    async fn what_a_testee_may_say_is_counted_anew_when_it_is_sent_a_line() {
        let mut testee = chatterbox();
        for _ in 0..MOST_LINES {
            testee.hear(Duration::from_secs(5)).await;
        }
        testee.send(&Value::Null, Duration::from_secs(5)).await;
        let said = testee.hear(Duration::from_secs(5)).await;
        assert!(matches!(said, Some(Said::Line(_))), "{said:?}");
    }
}
