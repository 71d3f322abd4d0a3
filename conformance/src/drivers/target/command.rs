//! A target that is a program: started in a process group of its own, polled until it answers, watched for its
//! last words, killed with all its children.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use super::{DEFAULT_VARIANT, Launch, Pending, Running, Start};
use crate::{
    drivers::{
        DriveError,
        http::{BaseUrl, Call, HttpClient, HttpLimits},
        process::{Group, Ring},
    },
    transcript::{Header, record::Recorder},
};

mod ports;
#[cfg(test)]
#[cfg(unix)]
mod tests;

/// Time between two looks whether it is ready.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time that it has to stop when asked to, before it is killed.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// How to start the program. Texts may hold `{port}` (a free port), `{home}` (a folder that outlives restarts),
/// `{model_url}` (base URL of the mock model provider), `{time_scale}` and `{variant}`.
#[derive(Clone, Debug)]
pub struct CommandTarget {
    /// Program and arguments; never empty.
    pub command: Vec<String>,
    /// Folder to start it in; the present one when `None`.
    pub cwd: Option<PathBuf>,
    /// Environment, on top of the harness's own.
    pub env: BTreeMap<String, String>,
    /// Base URL at which it then listens.
    pub url: String,
    /// Path that answers with a status below 500 once it is ready.
    pub ready_path: String,
    /// Time that it has to get ready.
    pub ready_within: Duration,
    /// Factor of its protocol periods.
    pub time_scale: f64,
    /// What differs for each variant.
    pub variants: BTreeMap<String, CommandVariant>,
}

impl Default for CommandTarget {
    /// No command yet; a server on a free port that answers `/api/health` within half a minute.
    fn default() -> Self {
        Self {
            command: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            url: "http://127.0.0.1:{port}".to_owned(),
            ready_path: "/api/health".to_owned(),
            ready_within: Duration::from_secs(30),
            time_scale: 1.0,
            variants: BTreeMap::new(),
        }
    }
}

/// What differs for a variant.
#[derive(Clone, Debug, Default)]
pub struct CommandVariant {
    /// Arguments added at the end.
    pub args: Vec<String>,
    /// Environment on top of the target's.
    pub env: BTreeMap<String, String>,
}

/// A program, its arguments, and its environment.
pub(in crate::drivers) type Words = (String, Vec<String>, Vec<(String, String)>);

/// The running program.
#[derive(Debug)]
struct Process {
    child: Child,
    group: Group,
    url: BaseUrl,
    output: Ring,
}

impl Launch for CommandTarget {
    fn start<'a>(&'a self, start: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>> {
        Box::pin(async move {
            let fill = self.placeholders(start)?;
            let url = BaseUrl::parse(&fill.apply(&self.url))
                .map_err(|error| not_started(error.to_string()))?;
            let mut process = self.spawn(start, &fill, url)?;
            self.wait_ready(&mut process).await?;
            Ok(Box::new(process) as Box<dyn Running>)
        })
    }

    fn offers(&self, variant: &str) -> Result<(), String> {
        if variant == DEFAULT_VARIANT || self.variants.contains_key(variant) {
            return Ok(());
        }
        Err(format!(
            "the profile does not say how to start it so; see [variants.{variant}]"
        ))
    }

    fn restarts(&self) -> Result<(), String> {
        Ok(())
    }
}

impl CommandTarget {
    fn placeholders(&self, start: &Start) -> Result<Placeholders, DriveError> {
        let port =
            ports::free().map_err(|error| DriveError::Harness(format!("no free port: {error}")))?;
        Ok(Placeholders(vec![
            ("{port}", port.to_string()),
            ("{home}", start.home.display().to_string()),
            ("{model_url}", start.model_url.clone().unwrap_or_default()),
            ("{time_scale}", self.time_scale.to_string()),
            ("{variant}", start.variant.clone()),
        ]))
    }

    /// The program, its arguments and its environment for this start.
    pub(in crate::drivers) fn words(&self, start: &Start) -> Result<Words, DriveError> {
        self.filled(start, &self.placeholders(start)?)
    }

    fn filled(&self, start: &Start, fill: &Placeholders) -> Result<Words, DriveError> {
        let variant = self
            .variants
            .get(&start.variant)
            .cloned()
            .unwrap_or_default();
        let mut words = self
            .command
            .iter()
            .chain(&variant.args)
            .map(|word| fill.apply(word));
        let program = words
            .next()
            .ok_or_else(|| not_started("the command is empty; see [target] command".to_owned()))?;
        let env = self.env.iter().chain(&variant.env);
        let env = env.map(|(name, value)| (name.clone(), fill.apply(value)));
        Ok((program, words.collect(), env.collect()))
    }

    fn spawn(
        &self,
        start: &Start,
        fill: &Placeholders,
        url: BaseUrl,
    ) -> Result<Process, DriveError> {
        let (program, words, env) = self.filled(start, fill)?;
        let mut command = Command::new(&program);
        command
            .args(words)
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| {
            not_started(format!(
                "cannot run {program:?}: {error}; see [target] command"
            ))
        })?;
        let output = Ring::default();
        if let Some(pipe) = child.stdout.take() {
            tokio::spawn(output.clone().follow(pipe));
        }
        if let Some(pipe) = child.stderr.take() {
            tokio::spawn(output.clone().follow(pipe));
        }
        Ok(Process {
            group: Group(child.id()),
            child,
            url,
            output,
        })
    }

    /// Polls until it answers, exits, or takes too long.
    async fn wait_ready(&self, process: &mut Process) -> Result<(), DriveError> {
        let second = Duration::from_secs(1);
        let limits = HttpLimits {
            connect: second,
            head: second,
            idle: second,
            total: second,
            ..HttpLimits::default()
        };
        let until = Instant::now() + self.ready_within;
        loop {
            if let Ok(Some(status)) = process.child.try_wait() {
                let output = process.last_words().await;
                return Err(DriveError::NotStarted {
                    why: exited(status),
                    output,
                });
            }
            if process.url.lines {
                let address = (process.url.host.as_str(), process.url.port);
                match tokio::net::TcpStream::connect(address).await {
                    Ok(_) => return Ok(()),
                    Err(error) if Instant::now() >= until => {
                        let why = format!(
                            "{} was not ready within {:?} ({error}); see [target] ready in the profile",
                            process.url, self.ready_within
                        );
                        return Err(DriveError::NotStarted {
                            why,
                            output: process.output.lines(),
                        });
                    }
                    Err(_) => {
                        sleep(LOOK_EVERY).await;
                        continue;
                    }
                }
            }
            // A client a look: nothing of it belongs into a transcript, and it must not grow.
            let client = HttpClient::new(
                process.url.clone(),
                Recorder::new(Header::default()),
                limits,
            );
            let last = match client.send(Call::get(self.ready_path.clone())).await {
                Ok(reply) if reply.status < 500 => return Ok(()),
                Ok(reply) => format!("it answered {}", reply.status),
                Err(error) => error.to_string(),
            };
            if Instant::now() >= until {
                let why = format!(
                    "{}{} was not ready within {:?} ({last}); see [target] ready in the profile",
                    process.url, self.ready_path, self.ready_within
                );
                return Err(DriveError::NotStarted {
                    why,
                    output: process.output.lines(),
                });
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

fn not_started(why: String) -> DriveError {
    DriveError::NotStarted {
        why,
        output: Vec::new(),
    }
}

fn exited(status: ExitStatus) -> String {
    format!("it ended before it was ready ({status})")
}

impl Running for Process {
    fn base_url(&self) -> BaseUrl {
        self.url.clone()
    }

    fn output(&self) -> Vec<String> {
        self.output.lines()
    }

    fn stop(mut self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            self.group.ask_to_stop();
            if timeout(STOP_WITHIN, self.child.wait()).await.is_ok() {
                return Ok(());
            }
            Err(DriveError::Unexpected {
                request: "stopping the target".to_owned(),
                expected: format!("its process ends within {STOP_WITHIN:?} of SIGTERM"),
                got: "it was still running and was killed".to_owned(),
            })
        })
    }

    fn kill(mut self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            self.group.kill();
            let _ = self.child.start_kill();
            let gone = self.child.wait().await;
            gone.map(|_| ()).map_err(|error| {
                DriveError::Harness(format!("cannot wait for the killed target: {error}"))
            })
        })
    }
}

impl Process {
    /// Its output, once its pipes had time to run empty.
    async fn last_words(&self) -> Vec<String> {
        sleep(LOOK_EVERY).await;
        self.output.lines()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// Texts that stand for something else.
struct Placeholders(Vec<(&'static str, String)>);

impl Placeholders {
    fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }
}
