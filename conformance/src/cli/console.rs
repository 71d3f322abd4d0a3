//! The terminal: results on standard output, everything else on standard error.
//!
//! Colours are used on a terminal, unless `NO_COLOR` is set. A closed standard output ends the command
//! quietly; a closed standard error is ignored.

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write as _},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio_util::sync::CancellationToken;

use super::exit::CliError;

/// What the process may write to, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Console {
    /// Colours on standard output.
    pub(super) colour: bool,
    /// Standard error is a terminal, so progress may be drawn.
    pub(super) live: bool,
}

impl Console {
    /// As environment and terminal say.
    pub(super) fn from_env() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour: io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
            live: io::stderr().is_terminal() && !dumb,
        }
    }

    /// Writes a result.
    ///
    /// # Errors
    ///
    /// [`CliError::OutputClosed`] when nobody reads any more, [`CliError::Harness`] when it cannot be written.
    pub(super) fn print(&self, text: &str) -> Result<(), CliError> {
        let mut out = io::stdout().lock();
        let end = if text.ends_with('\n') || text.is_empty() {
            ""
        } else {
            "\n"
        };
        let written = write!(out, "{text}{end}").and_then(|()| out.flush());
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => CliError::OutputClosed,
            _ => CliError::Harness(format!("cannot write to standard output: {error}")),
        })
    }

    /// Writes a piece of a result, which does not end its line.
    ///
    /// # Errors
    ///
    /// As [`Console::print`].
    pub(super) fn stream(&self, text: &str) -> Result<(), CliError> {
        let mut out = io::stdout().lock();
        let written = write!(out, "{text}").and_then(|()| out.flush());
        written.map_err(|_| CliError::OutputClosed)
    }

    /// Writes a line about what is going on.
    pub(super) fn note(&self, line: &str) {
        // Nobody is left to tell when standard error is closed.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Writes the line that says why the command failed.
    pub(super) fn error(&self, line: &str) {
        self.note(&format!("turnwire: {line}"));
    }

    /// Progress through so many steps: a bar on a terminal, lines elsewhere.
    pub(super) fn progress(&self, steps: usize, quiet: bool) -> Progress {
        if quiet {
            return Progress::Quiet;
        }
        if !self.live {
            return Progress::Lines(*self);
        }
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress::Bar(bar)
    }
}

impl Console {
    /// Runs something asynchronous that ends early when it is asked to: the first Ctrl-C, or request to terminate, cancels
    /// `asked`; the second stops everything.
    ///
    /// # Errors
    ///
    /// As [`block_on`], with [`CliError::Interrupted`] after the second signal.
    pub(super) fn block_on_until_asked<T>(
        &self,
        asked: &CancellationToken,
        future: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        let first = async |signals: &mut Signals| {
            signals.next().await?;
            self.note("interrupted: what was seen so far is reported; once more stops at once");
            asked.cancel();
            signals.next().await
        };
        block_on_but(first, future)
    }
}

/// How far a run is.
#[derive(Debug)]
pub(super) enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// Elsewhere: one line a step.
    Lines(Console),
    /// Not wanted.
    Quiet,
}

impl Progress {
    /// There are so many steps more.
    pub(super) fn grow(&self, steps: usize) {
        if let Self::Bar(bar) = self {
            bar.inc_length(steps as u64);
        }
    }

    /// Something begins.
    pub(super) fn begin(&self, what: &str) {
        if let Self::Bar(bar) = self {
            bar.set_message(what.to_owned());
        }
    }

    /// A step is done.
    pub(super) fn done(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.inc(1),
            Self::Lines(console) => console.note(line),
            Self::Quiet => {}
        }
    }

    /// So many steps are done, none worth a line.
    pub(super) fn pass(&self, steps: usize) {
        if let Self::Bar(bar) = self {
            bar.inc(steps as u64);
        }
    }

    /// Something worth a line of its own.
    pub(super) fn note(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.println(line),
            Self::Lines(console) => console.note(line),
            Self::Quiet => {}
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Runs something asynchronous, and stops it on Ctrl-C or a request to terminate.
///
/// # Errors
///
/// Whatever the future gives; [`CliError::Interrupted`] after a signal, when everything is dropped.
pub(super) fn block_on<T>(
    future: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    block_on_but(async |signals: &mut Signals| signals.next().await, future)
}

/// Runs something asynchronous until `stops` has heard the signals that stop it.
fn block_on_but<T>(
    stops: impl AsyncFnOnce(&mut Signals) -> Result<(), CliError>,
    future: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            ended = future => ended,
            signal = stops(&mut signals) => Err(signal.err().unwrap_or(CliError::Interrupted)),
        }
    });
    // What still runs on a blocking thread must not hold the process.
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}

/// Sends the log to standard error, as the variable `TURNWIRE_LOG` filters it; warnings without it.
pub(super) fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("TURNWIRE_LOG");
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false);
    // A second call finds the log in place.
    let _ = log.try_init();
}

/// The runtime of a command.
///
/// # Errors
///
/// [`CliError::Harness`] when the system gives no threads.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| CliError::Harness(format!("cannot start the runtime: {error}")))
}

/// Ctrl-C and requests to terminate. From its start on, none ends the process by itself.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// [`CliError::Harness`] when the system does not let us.
    pub(super) fn listen() -> Result<Self, CliError> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = |kind| signal(kind).map_err(unheard);
            Ok(Self {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next one.
    ///
    /// # Errors
    ///
    /// [`CliError::Harness`] when the system does not let us.
    pub(super) async fn next(&mut self) -> Result<(), CliError> {
        #[cfg(unix)]
        {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
            Ok(())
        }
        #[cfg(not(unix))]
        tokio::signal::ctrl_c().await.map_err(unheard)
    }
}

fn unheard(error: io::Error) -> CliError {
    CliError::Harness(format!("cannot listen for signals: {error}"))
}
