//! A running Chromium: without a window, with a profile of its own, on a port that it chooses.
//!
//! It runs in a process group of its own. Dropping it kills that group and takes the profile away.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{BrowserError, cdp::Cdp};
use crate::drivers::process::Group;

/// Longest wait for Chromium to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Between two looks whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Looks of [`LOOK_EVERY`] until a killed Chromium counts as one that cannot be waited for.
const DYING: u32 = 100;
/// Lines of its output that an error shows.
const LAST_WORDS: usize = 20;
/// The file of the profile in which it says where it listens.
const WHERE_IT_LISTENS: &str = "DevToolsActivePort";
/// The file of the profile that takes its output.
const OUTPUT: &str = "turnwire-output.log";

/// Chromium's switches: nothing that talks to anybody but the page, and nothing that asks a person.
const SWITCHES: &[&str] = &[
    "--headless",
    "--remote-debugging-port=0",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    // Several pages run side by side, each in a window of which none is in front.
    "--disable-backgrounding-occluded-windows",
    // Where nobody listens, a page may be at home too: the start that finds out whether there is one.
    "--explicitly-allowed-ports=9",
    // Containers have little shared memory.
    "--disable-dev-shm-usage",
    // A page of another loopback origin may ask the harness without a person's leave.
    "--disable-features=LocalNetworkAccessChecks,MediaRouter,OptimizationHints,Translate",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
];

/// A running Chromium.
#[derive(Debug)]
pub struct Browser {
    cdp: Cdp,
    _running: Running,
}

/// The process and its profile.
#[derive(Debug)]
struct Running {
    child: Child,
    profile: TempDir,
}

impl Browser {
    /// Starts this Chromium and waits until it listens. With `any_origin`, pages may ask every origin.
    ///
    /// # Errors
    ///
    /// [`BrowserError::NotStarted`], with its last words.
    pub async fn start(executable: &Path, any_origin: bool) -> Result<Self, BrowserError> {
        let mut running =
            Running::start(executable, any_origin).map_err(|why| BrowserError::NotStarted {
                why,
                output: Vec::new(),
            })?;
        let until = Instant::now() + STARTS_WITHIN;
        let why = loop {
            if let Some((port, path)) = running.listens() {
                match Cdp::connect(port, &path).await {
                    Ok(cdp) => {
                        return Ok(Self {
                            cdp,
                            _running: running,
                        });
                    }
                    Err(why) => break format!("it cannot be spoken to: {why}"),
                }
            }
            if let Ok(Some(status)) = running.child.try_wait() {
                break format!("it ended with {status}");
            }
            if Instant::now() > until {
                break format!("it did not listen within {STARTS_WITHIN:?}");
            }
            sleep(LOOK_EVERY).await;
        };
        let output = running.last_words();
        Err(BrowserError::NotStarted { why, output })
    }

    /// Whether it has ended, or cannot be spoken to any more.
    pub fn is_gone(&self) -> bool {
        self.cdp.is_gone()
    }

    /// Its product and version, as it says them.
    ///
    /// # Errors
    ///
    /// When it is gone.
    pub async fn version(&self) -> Result<String, BrowserError> {
        let version = self
            .cdp
            .call(None, "Browser.getVersion", serde_json::json!({}));
        let version = version.await?;
        Ok(version["product"].as_str().unwrap_or_default().to_owned())
    }

    pub(super) fn cdp(&self) -> &Cdp {
        &self.cdp
    }
}

impl Running {
    fn start(executable: &Path, any_origin: bool) -> Result<Self, String> {
        let profile = tempfile::Builder::new()
            .prefix("turnwire-chromium-")
            .tempdir()
            .map_err(|error| format!("no temporary folder: {error}"))?;
        let home = profile.path();
        let output = fs::File::create(home.join(OUTPUT)).map_err(|error| error.to_string())?;
        let mut command = Command::new(executable);
        command
            .args(SWITCHES)
            .arg(format!("--user-data-dir={}", home.display()))
            // What it would keep elsewhere goes with the profile.
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home)
            .env("XDG_CACHE_HOME", home)
            .env("TMPDIR", home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        if is_root() {
            // As root, Chromium refuses to start with its sandbox.
            command.arg("--no-sandbox");
        }
        if any_origin {
            command.arg("--disable-web-security");
        }
        command.arg("about:blank");
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", executable.display()))?;
        Ok(Self { child, profile })
    }

    /// Port and path where it listens, once it does.
    fn listens(&self) -> Option<(u16, String)> {
        let text = fs::read_to_string(self.profile.path().join(WHERE_IT_LISTENS)).ok()?;
        let (port, path) = text.split_once('\n')?;
        let path = path.trim_end();
        (!path.is_empty()).then_some((port.parse().ok()?, path.to_owned()))
    }

    fn last_words(&self) -> Vec<String> {
        let output = fs::read(self.profile.path().join(OUTPUT)).unwrap_or_default();
        let text = String::from_utf8_lossy(&output);
        let lines: Vec<_> = text.lines().collect();
        let last = lines.len().saturating_sub(LAST_WORDS);
        lines[last..]
            .iter()
            .map(|line| (*line).to_owned())
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        Group(Some(self.child.id())).kill();
        // Where there are no groups, and when it is dead already, the error says so.
        let _ = self.child.kill();
        for _ in 0..DYING {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            thread::sleep(LOOK_EVERY);
        }
        // Its children may write for a moment longer.
        for _ in 0..DYING {
            if fs::remove_dir_all(self.profile.path()).is_ok() || !self.profile.path().exists() {
                break;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
