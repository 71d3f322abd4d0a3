//! `turnwire replay`: plays a transcript to a client or to a server.

use std::time::Duration;

use super::{json, schema};
use crate::{
    cli::{
        args::{Format, ReplayArgs},
        console::{self, Console, Signals},
        exit::{CONFORMANT, CliError, FAILED},
    },
    drivers::{
        http::BaseUrl,
        lines::stdio::StdioTarget,
        target::{DEFAULT_VARIANT, Launch, Running, Start, command::CommandTarget},
    },
    offline::file::template,
    replay::{
        client::{self, Options},
        server::{ReplayOptions, ReplayReport, ReplayServer},
    },
    report::difference,
    transcript::{End, Fact, Transcript, diff::Diff, text},
};

pub(in crate::cli) fn run(args: ReplayArgs, console: &Console) -> Result<u8, CliError> {
    if args.print.schema {
        return if args.to_client {
            schema::<ReplayReport>(console)
        } else {
            schema::<Diff>(console)
        };
    }
    if args.to_client {
        to_client(&args, console)
    } else {
        to_server(&args, console)
    }
}

/// The file that is played.
fn file(args: &ReplayArgs) -> Result<text::Template, CliError> {
    let path = args
        .file
        .as_deref()
        .ok_or_else(|| CliError::Usage("no file is named".to_owned()))?;
    template(path).map_err(|error| CliError::Usage(error.to_string()))
}

/// A file with nothing to play shows nothing, neither that a client asks for it nor that a server answers it.
fn played(transcript: &Transcript, args: &ReplayArgs) -> Result<(), CliError> {
    let asks = |fact: &Fact| matches!(fact, Fact::Request { .. } | Fact::Line { .. });
    if transcript.entries.iter().any(|entry| asks(&entry.fact)) {
        return Ok(());
    }
    let name = args.file.as_deref().map(|path| path.display().to_string());
    Err(CliError::Usage(format!(
        "{}: there is no exchange to play",
        name.unwrap_or_default()
    )))
}

/// Whether no exchange came about, though there were some.
fn is_out_of_reach(transcript: &Transcript) -> bool {
    let mut ends = transcript
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::End { how, .. } => Some(how),
            _ => None,
        });
    let heard = transcript
        .entries
        .iter()
        .any(|entry| matches!(entry.fact, Fact::Response { .. } | Fact::Line { .. }));
    !heard && ends.any(|how| matches!(how, End::NotConnected(_)))
}

fn to_client(args: &ReplayArgs, console: &Console) -> Result<u8, CliError> {
    let transcript = file(args)?
        .lower()
        .map_err(|error| CliError::Usage(error.to_string()))?;
    played(&transcript, args)?;
    let options = ReplayOptions {
        listen: args.listen,
        timing: args.timing,
        strict: !args.lenient,
    };
    let report = if args.stdio {
        on_stdio(&transcript, options, console)?
    } else {
        console::runtime()?.block_on(listen(args, &transcript, options, console))?
    };
    match args.print.format {
        // Standard output is the channel.
        Format::Json if args.stdio => console.note(&json(&report)?),
        Format::Json => console.print(&json(&report)?)?,
        Format::Human => {
            console.note(&format!(
                "{} of {} exchanges were asked for",
                report.served, report.exchanges
            ));
            if report.messages > 0 {
                console.note(&format!(
                    "{} of {} messages were said",
                    report.heard, report.messages
                ));
            }
            for line in &report.missing {
                console.note(&format!("missing: {line}"));
            }
            for line in &report.unexpected {
                console.note(&format!("unexpected: {line}"));
            }
        }
    }
    let complete = report.complete() || (args.lenient && report.unexpected.is_empty());
    Ok(if complete { CONFORMANT } else { FAILED })
}

/// Serves it until it is told to stop, or with `--once` until everything was asked for.
async fn listen(
    args: &ReplayArgs,
    transcript: &Transcript,
    options: ReplayOptions,
    console: &Console,
) -> Result<ReplayReport, CliError> {
    let mut signals = Signals::listen()?;
    let server = ReplayServer::start(transcript, options)
        .await
        .map_err(|error| CliError::Usage(format!("cannot listen on {}: {error}", args.listen)))?;
    for url in server.urls() {
        console.print(url)?;
    }
    console.note(&format!(
        "{} exchanges; Ctrl-C ends it",
        server.report().exchanges
    ));
    if args.once {
        tokio::select! {
            () = server.finished() => {}
            heard = signals.next() => heard?,
        }
    } else {
        signals.next().await?;
    }
    Ok(server.report())
}

/// Speaks its first channel of lines on our own standard input and output.
fn on_stdio(
    transcript: &Transcript,
    options: ReplayOptions,
    console: &Console,
) -> Result<ReplayReport, CliError> {
    let runtime = console::runtime()?;
    let spoken = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let server = ReplayServer::unheard(transcript, options);
        let speaking = server.speak_lines(tokio::io::stdin(), tokio::io::stdout());
        let spoke = tokio::select! {
            spoke = speaking => spoke,
            heard = signals.next() => heard.map(|()| true)?,
        };
        if !spoke {
            let words = "the file has no channel of lines; without --stdio a URL is served";
            return Err(CliError::Usage(words.to_owned()));
        }
        let report = server.report();
        if report.exchanges > 1 {
            console.note(&format!(
                "{} more channels and exchanges are not played",
                report.exchanges - 1
            ));
        }
        Ok(report)
    });
    // Standard input is read on a thread that nothing wakes.
    runtime.shutdown_background();
    spoken
}

fn to_server(args: &ReplayArgs, console: &Console) -> Result<u8, CliError> {
    let template = file(args)?;
    let recorded = template
        .lower()
        .map_err(|error| CliError::Usage(error.to_string()))?;
    played(&recorded, args)?;
    let given = given(&args.set)?;
    let (answered, server) = console::block_on(async {
        let program = Program::start(&args.command).await?;
        let upstream = match (&program, &args.to_server) {
            (Some(program), _) => program.running.base_url(),
            (None, url) => BaseUrl::parse(url.as_deref().unwrap_or_default())
                .map_err(|error| CliError::Usage(error.to_string()))?,
        };
        let options = Options {
            upstream,
            timing: args.timing,
            patience: Duration::from_secs_f64(args.patience),
            given,
        };
        let played = client::play(&template, &options).await;
        if let Some(program) = program {
            program.stop(console).await;
        }
        let server = match &args.to_server {
            Some(url) => url.clone(),
            None => args.command.join(" "),
        };
        match played {
            Ok(answered) => Ok((answered, server)),
            Err(error) => Err(CliError::Usage(error.to_string())),
        }
    })?;
    for remark in &answered.remarks {
        console.note(remark);
    }
    if is_out_of_reach(&answered.transcript) {
        return Err(CliError::Target {
            what: format!("{server} cannot be reached"),
            remedy: "start it, or see what follows --to-server".to_owned(),
        });
    }
    if let Some(out) = &args.out {
        let written = text::write(&answered.transcript);
        std::fs::write(out, written).map_err(|error| CliError::file("write", out, &error))?;
    }
    let name = args.file.as_deref().map(|path| path.display().to_string());
    let text = match args.print.format {
        Format::Human => difference::render(
            &answered.diff,
            &name.unwrap_or_default(),
            &server,
            console.colour,
        ),
        Format::Json => json(&answered.diff)?,
    };
    console.print(&text)?;
    Ok(if answered.diff.same {
        CONFORMANT
    } else {
        FAILED
    })
}

/// A program that speaks lines on its standard input and output.
struct Program {
    running: Box<dyn Running>,
    /// Its home, which goes when it has ended.
    _home: tempfile::TempDir,
}

impl Program {
    /// Starts it; `None` when no command is given.
    async fn start(command: &[String]) -> Result<Option<Self>, CliError> {
        if command.is_empty() {
            return Ok(None);
        }
        let home = tempfile::tempdir()
            .map_err(|error| CliError::Usage(format!("no temporary folder: {error}")))?;
        let target = StdioTarget(CommandTarget {
            command: command.to_vec(),
            ..CommandTarget::default()
        });
        let start = Start {
            variant: DEFAULT_VARIANT.to_owned(),
            home: home.path().to_owned(),
            model_url: None,
        };
        let running = target.start(&start).await;
        let running = running.map_err(|error| CliError::Usage(error.to_string()))?;
        Ok(Some(Self {
            running,
            _home: home,
        }))
    }

    /// Ends it, and shows what it said on standard error.
    async fn stop(self, console: &Console) {
        let said = self.running.output();
        // Whether it ends well is its own affair.
        let _ = self.running.stop().await;
        for line in said {
            console.note(&line);
        }
    }
}

/// `NAME=VALUE` pairs.
fn given(texts: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            CliError::Usage(format!(
                "--set {text:?}: expected NAME=VALUE, such as secret-1=abc"
            ))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}
