//! A server that speaks on its standard input and output, reached like one with a socket.
//!
//! A loopback socket listens for it; each connection starts a process and is joined to its pipes. The end of
//! either ends both. What the processes write to their standard error is kept.

use std::{
    net::SocketAddr,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinSet,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::drivers::{
    DriveError,
    http::BaseUrl,
    process::{Group, Ring},
    target::{DEFAULT_VARIANT, Launch, Pending, Running, Start, command::CommandTarget},
};

/// Time that a process has to end after its input has, before it is killed.
const END_WITHIN: Duration = Duration::from_secs(10);

/// How such a server is started: the command, its environment and its variants. Its URL is not used.
#[derive(Clone, Debug)]
pub struct StdioTarget(pub CommandTarget);

impl Launch for StdioTarget {
    fn start<'a>(&'a self, start: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>> {
        Box::pin(async move {
            let harness = |error: std::io::Error| DriveError::Harness(format!("no port: {error}"));
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(harness)?;
            let address = listener.local_addr().map_err(harness)?;
            let stopping = CancellationToken::new();
            let host = Host {
                target: self.0.clone(),
                start: start.clone(),
                output: Ring::default(),
                groups: Arc::default(),
                stopping: stopping.clone(),
            };
            let (output, groups) = (host.output.clone(), Arc::clone(&host.groups));
            let accepting = tokio::spawn(host.accept(listener));
            let url = url_of(address)?;
            Ok(Box::new(Processes {
                url,
                output,
                groups,
                stopping,
                accepting: Some(AbortOnDropHandle::new(accepting)),
            }) as Box<dyn Running>)
        })
    }

    fn offers(&self, variant: &str) -> Result<(), String> {
        // Its home outlives every process anyway.
        if matches!(variant, DEFAULT_VARIANT | "persistent") {
            return Ok(());
        }
        self.0.offers(variant)
    }

    fn restarts(&self) -> Result<(), String> {
        Ok(())
    }
}

fn url_of(address: SocketAddr) -> Result<BaseUrl, DriveError> {
    BaseUrl::parse(&format!("tcp://{address}"))
        .map_err(|error| DriveError::Harness(error.to_string()))
}

/// Starts a process for each connection.
struct Host {
    target: CommandTarget,
    start: Start,
    output: Ring,
    groups: Arc<Mutex<Vec<Group>>>,
    stopping: CancellationToken,
}

impl Host {
    async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        let host = Arc::new(self);
        let stopping = host.stopping.clone();
        while let Some(Ok((socket, _))) = stopping.run_until_cancelled(listener.accept()).await {
            while connections.try_join_next().is_some() {}
            let host = Arc::clone(&host);
            connections.spawn(async move { host.serve(socket).await });
        }
        connections.join_all().await;
    }

    async fn serve(&self, socket: TcpStream) {
        let Ok(mut command) = self.command() else {
            return;
        };
        let Ok(mut child) = command.spawn() else {
            return;
        };
        {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.push(Group(child.id()));
        }
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(mut stdout), Some(stderr)) = pipes else {
            return;
        };
        let errors = tokio::spawn(self.output.clone().follow(stderr));
        let (mut from, mut to) = socket.into_split();
        let saying = async move {
            let _ = copy(&mut from, &mut stdin).await;
            // Dropping the pipe ends the process's input.
        };
        let hearing = async {
            let _ = copy(&mut stdout, &mut to).await;
            let _ = to.shutdown().await;
        };
        let mut hearing = std::pin::pin!(hearing);
        let heard = tokio::select! {
            () = &mut hearing => true,
            () = saying => false,
            () = self.stopping.cancelled() => false,
        };
        if !heard {
            let _ = timeout(END_WITHIN, hearing).await;
        }
        if timeout(END_WITHIN, child.wait()).await.is_err() {
            let _ = child.start_kill();
        }
        errors.abort();
    }

    fn command(&self) -> Result<Command, DriveError> {
        let (program, words, env) = self.target.words(&self.start)?;
        let mut command = Command::new(program);
        command
            .args(words)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = &self.target.cwd {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }
}

/// The processes of one instance. Dropping it kills them.
#[derive(Debug)]
struct Processes {
    url: BaseUrl,
    output: Ring,
    groups: Arc<Mutex<Vec<Group>>>,
    stopping: CancellationToken,
    accepting: Option<AbortOnDropHandle<()>>,
}

impl Running for Processes {
    fn base_url(&self) -> BaseUrl {
        self.url.clone()
    }

    fn output(&self) -> Vec<String> {
        self.output.lines()
    }

    fn stop(mut self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            self.stopping.cancel();
            if let Some(accepting) = self.accepting.take() {
                let _ = timeout(END_WITHIN * 2, accepting).await;
            }
            Ok(())
        })
    }

    fn kill(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            drop(self);
            Ok(())
        })
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.iter().for_each(Group::kill);
    }
}
