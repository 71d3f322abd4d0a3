//! Testees: programs under test that connect to a server of the harness, such as adapters and clients.
//!
//! A [`Testee`] takes lines of JSON and says lines of JSON. What they mean is for the stage and the scenarios;
//! `docs/src/adapter-protocol.md` has the protocol of adapters.
//!
//! - [`client`]: clients, which connect as soon as they are started;
//! - [`command`]: a program that speaks on its standard input and output;
//! - [`gateway`]: the adapters of our own gateway, in process;
//! - `rest`: whether a program has worked off what has reached it.
//!
//! Lines are bounded by [`MAX_LINE`], waits by whoever waits, and a testee ends when it is dropped.

use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{DriveError, process::Ring, target::Pending};

pub mod client;
pub mod command;
pub mod gateway;
mod rest;

/// Bytes of one line that are taken from a testee.
pub const MAX_LINE: usize = 32 << 20;

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

    /// Whether one of its lists, `wires` or `features`, has this name.
    pub fn lists(&self, list: &str, name: &str) -> bool {
        let names = self.said[list].as_array();
        names.is_some_and(|names| names.iter().any(|one| one == name))
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
    _life: Life,
}

/// A testee that can be asked whether it has worked off what has reached it.
pub trait Rests: Debug + Send + Sync {
    /// Waits until it has, as far as that can be found out.
    fn rest(&self) -> Pending<'_, ()>;
}

/// What comes from a testee.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A line, without its end.
    Line(Bytes),
    /// A line that is longer than [`MAX_LINE`]; nothing after it is read.
    TooLong,
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
    pub async fn send(&self, line: &Value, within: Duration) -> bool {
        let sent = self.to.send(line.to_string().into());
        matches!(timeout(within, sent).await, Ok(Ok(())))
    }

    /// The next thing that it says; `None` when it says nothing for so long.
    pub async fn hear(&mut self, within: Duration) -> Option<Said> {
        let said = timeout(within, self.from.recv()).await.ok()?;
        Some(said.unwrap_or_else(|| Said::Ended("it is gone".to_owned())))
    }
}
