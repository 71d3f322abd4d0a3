//! A testee that is a program: lines of JSON on its standard input and output, its standard error kept for
//! reports. It runs in a process group of its own and is killed with all its children.

use std::{collections::BTreeMap, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::mpsc,
    time::Instant,
};

use super::{
    About, LaunchTestee, Life, MAX_LINE, MOST_LINES, Rests, Said, Taken, Testee, WAITING,
    rest::Program,
};
use crate::drivers::{
    DriveError,
    process::{Group, Ring},
    target::Pending,
};

/// How to start the program.
#[derive(Clone, Debug)]
pub struct TesteeCommand {
    /// Program and arguments; never empty.
    pub command: Vec<String>,
    /// Folder to start it in; the present one when `None`.
    pub cwd: Option<PathBuf>,
    /// Environment, on top of the harness's own.
    pub env: BTreeMap<String, String>,
    /// Time that it has to say that it is ready.
    pub ready_within: Duration,
}

/// Time that a program has to get ready, when nothing else is said: interpreters load large libraries.
pub const READY_WITHIN: Duration = Duration::from_secs(60);

impl TesteeCommand {
    /// This program, in the present folder.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            cwd: None,
            env: BTreeMap::new(),
            ready_within: READY_WITHIN,
        }
    }

    /// Starts the program, without waiting until it is ready.
    pub(super) fn spawn(&self) -> Result<Testee, DriveError> {
        let not_started = |why: String| DriveError::NotStarted {
            why,
            output: Vec::new(),
        };
        let [program, words @ ..] = self.command.as_slice() else {
            return Err(not_started("the command is empty".to_owned()));
        };
        let mut command = Command::new(program);
        command
            .args(words)
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| not_started(format!("cannot run {program:?}: {error}")))?;
        let output = Ring::default();
        if let Some(pipe) = child.stderr.take() {
            tokio::spawn(output.clone().follow(pipe));
        }
        let (to, lines) = mpsc::channel(WAITING);
        let (say, from) = mpsc::channel(WAITING);
        if let Some(pipe) = child.stdin.take() {
            tokio::spawn(write_lines(pipe, lines));
        }
        if let Some(pipe) = child.stdout.take() {
            tokio::spawn(read_lines(pipe, say, child.id()));
        }
        let rests = child
            .id()
            .map(|id| Arc::new(Program::new(id)) as Arc<dyn Rests>);
        let process = Process {
            group: Group(child.id()),
            _child: child,
        };
        Ok(Testee {
            about: About::default(),
            to,
            from,
            output,
            rests,
            taken: Taken::default(),
            _life: Life::Process(process),
        })
    }
}

impl LaunchTestee for TesteeCommand {
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>> {
        Box::pin(async move {
            let mut testee = self.spawn()?;
            testee.about = wait_ready(&mut testee, self.ready_within).await?;
            Ok(testee)
        })
    }
}

/// Reads lines until one says that the testee is ready.
async fn wait_ready(testee: &mut Testee, within: Duration) -> Result<About, DriveError> {
    let until = Instant::now() + within;
    let why = loop {
        let left = until.saturating_duration_since(Instant::now());
        match testee.hear(left).await {
            Some(Said::Line(line)) => {
                let said = serde_json::from_slice(&line).unwrap_or_default();
                if let Some(about) = About::read(&said) {
                    return Ok(about);
                }
            }
            Some(Said::TooLong) => break format!("it wrote a line of more than {MAX_LINE} bytes"),
            Some(Said::TooMuch) => {
                break format!("it wrote {MOST_LINES} lines, and none said that it is ready");
            }
            Some(Said::Ended(why)) => break format!("{why} before it said that it is ready"),
            None => {
                break format!(
                    "it did not say {{\"ready\":true,…}} on its standard output within {within:?}"
                );
            }
        }
    };
    // Its last words may still be on their way.
    tokio::time::sleep(Duration::from_millis(50)).await;
    Err(DriveError::NotStarted {
        why,
        output: testee.output(),
    })
}

/// A running program. Dropping it kills it and its children.
#[derive(Debug)]
pub(super) struct Process {
    group: Group,
    _child: Child,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

async fn write_lines(mut pipe: ChildStdin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            pipe.write_all(&line).await?;
            pipe.write_all(b"\n").await?;
            pipe.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}

/// Longest wait for a program to end that has closed its output.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Why a program says no more: how it ended, when it has.
async fn ended(id: Option<u32>) -> String {
    let until = Instant::now() + ENDS_WITHIN;
    loop {
        if let Some(how) = id.and_then(status) {
            return format!("it ended with {how}");
        }
        if Instant::now() >= until {
            return "it closed its standard output".to_owned();
        }
        tokio::time::sleep(ENDS_WITHIN / 200).await;
    }
}

/// How a program ended, which stays to be waited for: nobody else gets its id before its process group was killed.
#[cfg(unix)]
fn status(id: u32) -> Option<String> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let id = Pid::from_raw(i32::try_from(id).ok()?)?;
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), ended).ok()??;
    let code = status
        .exit_status()
        .map(|code| format!("exit status {code}"));
    code.or_else(|| Some(format!("signal {}", status.terminating_signal()?)))
}

#[cfg(not(unix))]
fn status(_: u32) -> Option<String> {
    None
}

async fn read_lines(pipe: impl AsyncRead + Unpin, say: mpsc::Sender<Said>, id: Option<u32>) {
    let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader)
            .take(limit + 1)
            .read_until(b'\n', &mut line)
            .await;
        let said = match read {
            Ok(0) => Said::Ended(ended(id).await),
            Ok(_) if line.len() > MAX_LINE => Said::TooLong,
            Ok(_) => {
                while matches!(line.last(), Some(b'\n' | b'\r')) {
                    line.pop();
                }
                Said::Line(line.into())
            }
            Err(error) => Said::Ended(format!("its output cannot be read: {error}")),
        };
        let over = !matches!(said, Said::Line(_));
        if say.send(said).await.is_err() || over {
            return;
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// The last thing that a shell with this script says.
    async fn last_said(script: &str) -> Option<Said> {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let mut testee = TesteeCommand::new(command).spawn().unwrap();
        loop {
            match testee.hear(READY_WITHIN).await {
                Some(Said::Line(_)) => {}
                last => return last,
            }
        }
    }

    #[tokio::test]
    async fn a_program_that_ends_says_with_what() {
        let with = |how: &str| Some(Said::Ended(format!("it ended with {how}")));
        assert_eq!(last_said("echo {}; exit 7").await, with("exit status 7"));
        assert_eq!(last_said("kill -9 $$").await, with("signal 9"));
    }

    #[tokio::test]
    async fn a_program_that_only_closes_its_output_has_not_ended() {
        let closed = Said::Ended("it closed its standard output".to_owned());
        assert_eq!(last_said("exec >&-; exec sleep 600").await, Some(closed));
    }
}
