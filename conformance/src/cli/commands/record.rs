//! `turnwire record`: records what goes between a client and a server, until it is told to stop.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use tempfile::NamedTempFile;
use turnwire_spec::{
    catalogue::Suite,
    secrets::{is_header, is_parameter},
};

use crate::{
    cli::{
        args::{RecordArgs, SelectArgs},
        commands::beside,
        console::{self, Console, Signals},
        exit::{CONFORMANT, CliError, FAILED},
        select,
    },
    drivers::http::BaseUrl,
    recording::{RecordOptions, RecordingProxy, Tape, stdio, written},
    transcript::{Header, Transcript},
};

pub(in crate::cli) fn run(args: RecordArgs, console: &Console) -> Result<u8, CliError> {
    let header = header(&args)?;
    let out = Out::prepare(&args.out, args.overwrite)?;
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
    if upstream.lines {
        let words = "a server of lines is not recorded on its socket; wrap a program that speaks them, with --stdio";
        return Err(CliError::Usage(format!("{upstream}: {words}")));
    }
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
        None => shown(&args.command),
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

/// A command as the recording names it: without the values of flags and variables that are called like secrets.
fn shown(command: &[String]) -> String {
    let secret = |name: &str| {
        let name = name.trim_start_matches('-');
        is_parameter(name) || is_header(name)
    };
    let mut words: Vec<String> = Vec::with_capacity(command.len());
    let mut follows = false;
    for word in command {
        let hidden = std::mem::take(&mut follows) && !word.starts_with('-');
        words.push(match word.split_once('=') {
            _ if hidden => "...".to_owned(),
            Some((name, _)) if secret(name) => format!("{name}=..."),
            None if word.starts_with('-') && secret(word) => {
                follows = true;
                word.clone()
            }
            _ => word.clone(),
        });
    }
    words.join(" ")
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
    // Without a status the recording was ended by Ctrl-C, which is how recordings end.
    Ok(ended?.map_or(CONFORMANT, code))
}

/// The exit code of a program as shells tell it: that of one that a signal ended is 128 and the signal's number.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal);
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(FAILED)
}

/// The file that is written at the end, all at once.
#[derive(Debug)]
struct Out {
    path: PathBuf,
    overwrite: bool,
    file: Kept,
}

/// Where the text goes before it is a file.
#[derive(Debug)]
enum Kept {
    /// A file beside the one that it becomes.
    Beside(NamedTempFile),
    /// A pipe or a device, which no file may take the place of.
    Open(File),
}

impl Out {
    /// Finds out before the recording whether it can be written.
    fn prepare(path: &Path, overwrite: bool) -> Result<Self, CliError> {
        // What a link points to is written, and not the link.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let kind = std::fs::metadata(path).ok().map(|found| found.file_type());
        let file = match kind {
            Some(kind) if kind.is_dir() => {
                return Err(CliError::Usage(format!(
                    "{} is a folder; name a file",
                    path.display()
                )));
            }
            Some(kind) if !kind.is_file() => {
                let open = File::options().write(true).open(path);
                Kept::Open(open.map_err(|error| CliError::file("write", path, &error))?)
            }
            Some(_) if !overwrite => {
                return Err(CliError::Usage(format!(
                    "{} is there already; say --overwrite to replace it",
                    path.display()
                )));
            }
            _ => Kept::Beside(beside(path)?),
        };
        Ok(Self {
            path: path.clone(),
            overwrite,
            file,
        })
    }

    /// Writes the text, or says where it is instead.
    fn keep(self, text: &str) -> Result<(), CliError> {
        let written = match self.file {
            Kept::Open(mut open) => open.write_all(text.as_bytes()),
            Kept::Beside(mut file) => file.write_all(text.as_bytes()).and_then(|()| {
                // Somebody may have written it since we began.
                let kept = if self.overwrite {
                    file.persist(&self.path)
                } else {
                    file.persist_noclobber(&self.path)
                };
                kept.map(drop).map_err(|error| error.error)
            }),
        };
        written.map_err(|error| {
            let failed = CliError::file("write", &self.path, &error);
            match rescued(text) {
                Some(path) => {
                    CliError::Usage(format!("{failed}; the recording is in {}", path.display()))
                }
                None => failed,
            }
        })
    }

    fn write(
        self,
        transcript: Transcript,
        dropped: u64,
        known: &[(String, String)],
        console: &Console,
    ) -> Result<(), CliError> {
        let facts = transcript.entries.len();
        let written = written(transcript, known);
        let path = self.path.display().to_string();
        self.keep(&written.text)?;
        console.note(&format!("{path}: {facts} facts"));
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

/// Keeps a text for which there is no room where it should be among the temporary files.
fn rescued(text: &str) -> Option<PathBuf> {
    let mut file = tempfile::Builder::new().suffix(".twire").tempfile().ok()?;
    file.write_all(text.as_bytes()).ok()?;
    file.keep().ok().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_without_its_secrets() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (command, named) in [
            ("agent --api-key abc --flag", "agent --api-key ... --flag"),
            (
                "env API_KEY=abc agent --token=abc -v",
                "env API_KEY=... agent --token=... -v",
            ),
            (
                "agent --token --max-tokens 5",
                "agent --token --max-tokens 5",
            ),
            ("sh -c cat", "sh -c cat"),
        ] {
            assert_eq!(shown(&words(command)), named);
        }
    }
}
