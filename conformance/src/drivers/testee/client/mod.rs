//! Clients under test: programs that connect to the harness as soon as they are started.
//!
//! A client is told where to connect by its environment, may take lines of JSON about what the person in front of
//! it does, and may report what it shows. It has nothing to say before it connects, so nobody waits for a first
//! line. `docs/src/testee.md` has the contract.
//!
//! [`ClientCommand`] is a program; [`ByHand`] a person with a client; [`page::PageClient`] a web page; [`OwnClient`] is
//! in process; [`own`] lists the reference clients.

use std::{
    collections::BTreeMap, fmt::Debug, future::Future, net::SocketAddr, pin::Pin, sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    sync::{Semaphore, mpsc},
    time::Instant,
};

pub mod by_hand;
pub mod own;
pub mod page;

pub use by_hand::ByHand;

use super::{About, Said, Testee, command::TesteeCommand, report};
use crate::drivers::{DriveError, target::Pending};

/// Version of the contract, in `TURNWIRE_CONTRACT`.
pub const CONTRACT: &str = "1";

/// What a client is started with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientStart {
    /// Where it connects.
    pub url: String,
    /// The scenario, for people who look into a failure.
    pub scenario: String,
    /// More of the environment, such as `TURNWIRE_TOKEN`.
    pub env: BTreeMap<String, String>,
    /// Number of the conversation within its scenario, from 1; a client that is loaded again goes on with the same one.
    pub conversation: usize,
}

impl ClientStart {
    /// The whole environment.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        env.insert("TURNWIRE_URL".to_owned(), self.url.clone());
        env.insert("TURNWIRE_SCENARIO".to_owned(), self.scenario.clone());
        env.insert("TURNWIRE_CONTRACT".to_owned(), CONTRACT.to_owned());
        env
    }
}

/// A way to start clients. Several may run side by side.
pub trait LaunchClient: Debug + Send + Sync {
    /// Starts one.
    fn start<'a>(&'a self, start: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>>;

    /// How long its requests may take; `None` for the harness's own, which connects at once.
    fn waits(&self) -> Option<Waits> {
        Some(Waits::PROGRAM)
    }

    /// Whether a client that runs is loaded again by the line `{"do":"reload"}`; any other one is started anew.
    fn reloads(&self) -> bool {
        false
    }

    /// How many may run at a time, over all scenarios of a run; `None` when one scenario takes one after the other.
    fn at_a_time(&self) -> Option<Arc<Semaphore>> {
        None
    }

    /// Where the scripted server listens; on a free port when `None`.
    fn listens(&self) -> Option<SocketAddr> {
        None
    }
}

/// How long a client's requests may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Waits {
    /// From the start to the first request.
    pub first: Duration,
    /// To a later request; clients wait seconds until they connect again.
    pub later: Duration,
}

impl Waits {
    /// Interpreters load their libraries first.
    pub const PROGRAM: Self = Self {
        first: Duration::from_secs(15),
        later: Duration::from_secs(6),
    };

    /// Pages are many processes, which share a machine.
    pub const PAGE: Self = Self {
        first: Duration::from_secs(30),
        later: Duration::from_secs(8),
    };
}

/// The scenario of a start that only finds out whether the client starts.
pub const PROBE: &str = "probe";

/// The URL of such a start, where nobody listens.
pub const PROBE_URL: &str = "http://127.0.0.1:9";

/// A program.
#[derive(Clone, Debug)]
pub struct ClientCommand {
    command: Vec<String>,
    at_a_time: Arc<Semaphore>,
}

/// Longest wait for the first line of a client that is asked whether it scales its periods.
const SAYS_WITHIN: Duration = Duration::from_secs(5);

/// Whether a client says in its first line that its periods follow this factor, as `{"timeScale":0.05}`.
///
/// # Errors
///
/// When it does not start.
pub async fn scales(launch: &dyn LaunchClient, factor: f64) -> Result<bool, DriveError> {
    let factor_text = factor.to_string();
    let start = ClientStart {
        url: PROBE_URL.to_owned(),
        scenario: PROBE.to_owned(),
        env: BTreeMap::from([("TURNWIRE_TIME_SCALE".to_owned(), factor_text)]),
        ..ClientStart::default()
    };
    let mut client = launch.start(&start).await?;
    let until = Instant::now() + SAYS_WITHIN;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Some(Said::Line(line)) = client.hear(left).await else {
            return Ok(false);
        };
        if let Some(said) = report::read(&line) {
            return Ok(said["timeScale"].as_f64() == Some(factor));
        }
    }
}

impl ClientCommand {
    /// This program with its arguments, of which so many may run at a time.
    pub fn new(command: Vec<String>, at_a_time: usize) -> Self {
        Self {
            command,
            at_a_time: Arc::new(Semaphore::new(at_a_time)),
        }
    }
}

impl LaunchClient for ClientCommand {
    fn start<'a>(&'a self, start: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>> {
        Box::pin(async move {
            let mut command = TesteeCommand::new(self.command.clone());
            command.env = start.environment();
            command.spawn()
        })
    }

    fn at_a_time(&self) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&self.at_a_time))
    }
}

/// What a client in this process has of the harness.
#[derive(Debug)]
pub struct Wires {
    /// What it was started with.
    pub start: ClientStart,
    /// What the person does.
    pub lines: mpsc::Receiver<Bytes>,
    say: mpsc::Sender<Said>,
}

impl Wires {
    /// A handle that reports.
    pub fn reporter(&self) -> Reporter {
        Reporter(self.say.clone())
    }
}

/// Reports what a client in this process shows.
#[derive(Clone, Debug)]
pub struct Reporter(mpsc::Sender<Said>);

impl Reporter {
    /// Reports this; waits while the harness is behind.
    pub async fn report(&self, report: &Value) {
        let line = Said::Line(report.to_string().into());
        // A harness that has gone needs no reports.
        let _ = self.0.send(line).await;
    }
}

/// Lives as long as a client does.
pub type Living = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A client in this process.
#[derive(Clone, Copy, Debug)]
pub struct OwnClient {
    /// Its name.
    pub name: &'static str,
    /// Runs it.
    pub live: fn(Wires) -> Living,
}

impl LaunchClient for OwnClient {
    fn start<'a>(&'a self, start: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>> {
        let about = About {
            name: self.name.to_owned(),
            ..About::default()
        };
        let (live, start) = (self.live, start.clone());
        let client = Testee::in_process(about, move |lines, say| live(Wires { start, lines, say }));
        Box::pin(async move { Ok(client) })
    }

    fn waits(&self) -> Option<Waits> {
        None
    }
}
