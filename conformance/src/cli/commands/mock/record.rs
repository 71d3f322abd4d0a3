//! `turnwire mock record`: records a real service into a script, until it is told to stop.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::NamedTempFile;
use turnwire_mock::record::{Patience, RecordOptions, Recorder, Recording};

use crate::cli::{
    args::MockRecordArgs,
    commands::beside,
    console::{self, Console, Signals},
    exit::{CONFORMANT, CliError},
};

pub(super) fn run(args: MockRecordArgs, console: &Console) -> Result<u8, CliError> {
    let out = Out::prepare(&args.out, args.overwrite)?;
    let options = options(&args)?;
    console::log();
    let recording = console::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let mut recorder = Recorder::start(options)
            .await
            .map_err(|error| CliError::Usage(error.to_string()))?;
        console.print(&format!("http://{}", recorder.addr()))?;
        console.note(&format!(
            "recording {}; Ctrl-C ends it and writes {}",
            args.upstream,
            args.out.display()
        ));
        loop {
            tokio::select! {
                heard = recorder.heard() => console.note(&heard.to_string()),
                stop = signals.next() => {
                    stop?;
                    return Ok(recorder.stop());
                }
            }
        }
    })?;
    out.write(&recording)?;
    report(&recording, &args.out, console);
    Ok(CONFORMANT)
}

fn options(args: &MockRecordArgs) -> Result<RecordOptions, CliError> {
    let roots = match &args.tls {
        None => None,
        Some(path) => {
            Some(std::fs::read(path).map_err(|error| CliError::file("read", path, &error))?)
        }
    };
    Ok(RecordOptions {
        listen: args.listen,
        keep_timing: args.timing,
        max_total: args.limit.saturating_mul(1 << 20),
        patience: Patience {
            idle: Duration::from_secs_f64(args.timeout),
            ..Patience::default()
        },
        roots,
        ..RecordOptions::new(args.upstream.clone())
    })
}

/// Says what was written, and which secrets were not.
fn report(recording: &Recording, out: &Path, console: &Console) {
    let rules = &recording.script.rules;
    let replies: usize = rules.iter().map(|rule| rule.replies.len()).sum();
    console.note(&format!(
        "{}: {} rules, {replies} replies",
        out.display(),
        rules.len()
    ));
    if recording.running > 0 {
        console.note(&format!(
            "{} answers had not ended, and are not in it",
            recording.running
        ));
    }
    if recording.dropped > 0 {
        console.note(&format!(
            "{} exchanges did not find room; see --limit",
            recording.dropped
        ));
    }
    for opaque in &recording.opaque {
        console.note(&format!(
            "kept as it came, look for secrets yourself: {opaque}"
        ));
    }
    for replaced in &recording.replaced {
        console.note(&format!(
            "left out or replaced, {} times: {}",
            replaced.times, replaced.place
        ));
    }
    if recording.replaced.is_empty() {
        console.note("no secret was found");
    }
}

/// The file that is written at the end, all at once.
#[derive(Debug)]
struct Out {
    path: PathBuf,
    overwrite: bool,
    file: NamedTempFile,
}

impl Out {
    /// Finds out before the recording whether it can be written.
    fn prepare(path: &Path, overwrite: bool) -> Result<Self, CliError> {
        if path.exists() && !overwrite {
            return Err(there(path));
        }
        let file = beside(path)?;
        Ok(Self {
            path: path.to_owned(),
            overwrite,
            file,
        })
    }

    fn write(mut self, recording: &Recording) -> Result<(), CliError> {
        let json = self.path.extension().is_some_and(|name| name == "json");
        let text = if json {
            recording.script.to_json()
        } else {
            recording.script.to_yaml()
        };
        let text = text.map_err(|error| CliError::Harness(error.to_string()))?;
        self.file
            .write_all(text.as_bytes())
            .map_err(|error| CliError::file("write", &self.path, &error))?;
        // Somebody may have written it since we began.
        let kept = if self.overwrite {
            self.file.persist(&self.path)
        } else {
            self.file.persist_noclobber(&self.path)
        };
        match kept {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                let (_, saved) = error
                    .file
                    .keep()
                    .map_err(|error| CliError::file("write", &self.path, &error.error))?;
                Err(CliError::Usage(format!(
                    "{} has appeared meanwhile; the recording is in {}",
                    self.path.display(),
                    saved.display()
                )))
            }
            Err(error) => Err(CliError::file("write", &self.path, &error.error)),
        }
    }
}

fn there(path: &Path) -> CliError {
    CliError::Usage(format!(
        "{} is there already; say --overwrite to replace it",
        path.display()
    ))
}
