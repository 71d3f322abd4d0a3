//! `turnwire record`: records what goes between a client and a server, until it is told to stop.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use turnwire_spec::catalogue::Suite;

use crate::{
    cli::{
        args::{RecordArgs, SelectArgs},
        commands::beside,
        console::{self, Console, Signals},
        exit::{CONFORMANT, CliError},
        select,
    },
    drivers::http::BaseUrl,
    recording::{RecordOptions, RecordingProxy, Tape, stdio, written},
    transcript::{Header, Transcript},
};

pub(in crate::cli) fn run(args: RecordArgs, console: &Console) -> Result<u8, CliError> {
    let header = header(&args)?;
    let out = Out::prepare(&args.out)?;
    let known = known(&args.redact_env)?;
    let limit = args.limit.saturating_mul(1 << 20);
    if args.stdio {
        let tape = Tape::new(header, limit);
        let code = wrap(&args, &tape)?;
        out.write(tape.transcript(), tape.dropped(), &known, console)?;
        return Ok(code);
    }
    let upstream = args.upstream.as_deref().unwrap_or_default();
    let upstream = BaseUrl::parse(upstream).map_err(|error| CliError::Usage(error.to_string()))?;
    let options = RecordOptions {
        listen: args.listen,
        upstream,
        header,
        limit,
    };
    console::log();
    let runtime = console::runtime()?;
    let (transcript, dropped) = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let upstream = options.upstream.to_string();
        let proxy = RecordingProxy::start(options)
            .await
            .map_err(|error| CliError::Usage(error.to_string()))?;
        console.print(&proxy.url())?;
        console.note(&format!(
            "recording {upstream}; Ctrl-C ends it and writes {}",
            args.out.display()
        ));
        signals.next().await?;
        let dropped = proxy.tape().dropped();
        Ok((proxy.stop(), dropped))
    })?;
    out.write(transcript, dropped, &known, console)?;
    Ok(CONFORMANT)
}

fn header(args: &RecordArgs) -> Result<Header, CliError> {
    let suite = match &args.suite {
        None => "",
        Some(name) => {
            let known = Suite::ALL.iter().map(|suite| suite.name());
            match known.into_iter().find(|known| known == name) {
                Some(known) => known,
                None => {
                    // Says which name is nearest.
                    let select = SelectArgs {
                        suite: Some(name.clone()),
                        ..SelectArgs::default()
                    };
                    return Err(select::entries(&select).err().unwrap_or_else(|| {
                        CliError::Usage(format!("no suite is named {name:?}"))
                    }));
                }
            }
        }
    };
    let of = match &args.upstream {
        Some(upstream) => upstream.clone(),
        None => args.command.join(" "),
    };
    Ok(Header {
        suite: suite.to_owned(),
        time_scale: args.time_scale.unwrap_or(1.0),
        notes: vec![format!(
            "recorded by turnwire {}: {of}",
            env!("CARGO_PKG_VERSION")
        )],
        ..Header::default()
    })
}

/// The values of these variables, which are secrets.
fn known(variables: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let value = |name: &String| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| {
            CliError::Usage(format!("the variable {name} is not set; see --redact-env"))
        })?;
        let name = name.to_ascii_lowercase().replace('_', "-");
        Ok((value, format!("secret-{name}")))
    };
    variables.iter().map(value).collect()
}

/// Runs the program between our own standard input and output; its exit code is ours.
fn wrap(args: &RecordArgs, tape: &Tape) -> Result<u8, CliError> {
    let runtime = console::runtime()?;
    let ended = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let running = stdio::run(&args.command, tokio::io::stdin(), tokio::io::stdout(), tape);
        tokio::select! {
            status = running => status.map(Some).map_err(|error| {
                CliError::Usage(format!("cannot run {}: {error}", args.command.join(" ")))
            }),
            heard = signals.next() => heard.map(|()| None),
        }
    });
    // Standard input is read on a thread that nothing wakes.
    runtime.shutdown_background();
    let code = ended?.and_then(|status| status.code());
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(CONFORMANT))
}

/// The file that is written at the end, all at once.
#[derive(Debug)]
struct Out {
    path: PathBuf,
    file: NamedTempFile,
}

impl Out {
    /// Finds out before the recording whether it can be written.
    fn prepare(path: &Path) -> Result<Self, CliError> {
        let file = beside(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    fn write(
        mut self,
        transcript: Transcript,
        dropped: u64,
        known: &[(String, String)],
        console: &Console,
    ) -> Result<(), CliError> {
        let facts = transcript.entries.len();
        let written = written(transcript, known);
        let failed = |error: &std::io::Error| CliError::file("write", &self.path, error);
        self.file
            .write_all(written.text.as_bytes())
            .map_err(|error| failed(&error))?;
        self.file
            .persist(&self.path)
            .map_err(|error| CliError::file("write", &self.path, &error.error))?;
        console.note(&format!("{}: {facts} facts", self.path.display()));
        if dropped > 0 {
            console.note(&format!("{dropped} facts did not find room; see --limit"));
        }
        for replaced in &written.replaced {
            console.note(&format!(
                "replaced {{{{{}}}}}, {} times: {}",
                replaced.name,
                replaced.times,
                replaced.places.join(", ")
            ));
        }
        if written.replaced.is_empty() {
            console.note("no secret was found");
        }
        Ok(())
    }
}
