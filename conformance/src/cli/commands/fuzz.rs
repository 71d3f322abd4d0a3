//! `turnwire fuzz`: random conversations with servers and clients.
//!
//! Here is `turnwire fuzz server --reconnect`: clients that lose their connections and come back; [`envelopes`] is
//! about requests that are wrong in form, and [`clients`] about clients. An [`Outcome`] is what each of them ends with.

use std::{
    fs,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{json, run::reference, schema, target};
use crate::{
    cli::{
        args::{Format, FuzzServerArgs, PrintArgs, TargetArgs},
        console::{self, Console, Progress},
        exit::{CONFORMANT, CliError, FAILED},
    },
    fuzz::{
        self, FuzzError, FuzzEvent, FuzzPlan,
        clients::report::{ClientFuzzReport, ClientProof},
        envelopes::report::{EnvelopeProof, EnvelopeReport},
        field::case_of,
        planted::chosen,
        report::{FuzzReport, PlantedReport},
    },
    profile::Profile,
    transcript::{Transcript, text},
};

pub(in crate::cli) mod clients;
mod envelopes;

/// Cases between two lines of progress.
const STEP: u64 = 1000;

/// What a run ends with.
trait Outcome: JsonSchema + Serialize {
    /// Whether all is as it must be.
    fn holds(&self) -> bool;
    /// For people.
    fn render(&self) -> String;
}

macro_rules! outcomes {
    ($($report:ty),*) => {$(
        impl Outcome for $report {
            fn holds(&self) -> bool {
                self.holds()
            }

            fn render(&self) -> String {
                self.render()
            }
        }
    )*};
}

outcomes!(
    FuzzReport,
    PlantedReport,
    EnvelopeReport,
    EnvelopeProof,
    ClientFuzzReport,
    ClientProof
);

/// What a run ends with, and the counterexamples that are kept of it, by the names of their files.
struct Ended<O> {
    outcome: O,
    saved: Vec<(String, Transcript)>,
}

/// Runs something to its end, keeps its counterexamples in `folder`, prints what came out, and says how the command
/// ends; or prints the schema of what would come out, and does nothing else.
fn end<O: Outcome>(
    run: impl FnOnce() -> Result<Ended<O>, CliError>,
    folder: Option<&PathBuf>,
    print: PrintArgs,
    console: &Console,
) -> Result<u8, CliError> {
    if print.schema {
        return schema::<O>(console);
    }
    if let Some(folder) = folder {
        fs::create_dir_all(folder)
            .map_err(|error| CliError::file("make the folder", folder, &error))?;
    }
    let Ended { outcome, saved } = run()?;
    if let Some(folder) = folder {
        for (name, transcript) in saved {
            let path = folder.join(name);
            fs::write(&path, text::write(&transcript))
                .map_err(|error| CliError::file("write", &path, &error))?;
        }
    }
    let text = match print.format {
        Format::Human => outcome.render(),
        Format::Json => json(&outcome)?,
    };
    console.print(&text)?;
    Ok(if outcome.holds() { CONFORMANT } else { FAILED })
}

/// Name of the file of a planted fault.
fn fault_file(fault: &str) -> String {
    format!("{fault}.{}", text::EXTENSION)
}

/// The error for a suite that cannot be fuzzed so.
fn unknown(suite: &str, lacks: &str, known: &[&str]) -> CliError {
    CliError::Usage(format!(
        "suite {suite:?} {lacks}; there are {}",
        known.join(", ")
    ))
}

pub(in crate::cli) fn run(args: FuzzServerArgs, console: &Console) -> Result<u8, CliError> {
    if args.envelopes {
        return envelopes::run(&args, console);
    }
    let (folder, print) = (args.save.as_ref(), args.print);
    if args.prove {
        end(
            || prove(plan(&args)?, &args, console),
            folder,
            print,
            console,
        )
    } else {
        let playing = || {
            let report = console::block_on(play(plan(&args)?, &args, console))?;
            let saved = report.details().iter();
            let saved = saved.map(|failure| (failure.file_name(), failure.transcript.clone()));
            Ok(Ended {
                saved: saved.collect(),
                outcome: report,
            })
        };
        end(playing, folder, print, console)
    }
}

fn plan(args: &FuzzServerArgs) -> Result<FuzzPlan, CliError> {
    let protocol = fuzz::protocol(&args.suite).ok_or_else(|| {
        let known: Vec<&str> = fuzz::PROTOCOLS
            .iter()
            .map(|protocol| protocol.suite())
            .collect();
        unknown(&args.suite, "cannot be fuzzed", &known)
    })?;
    let profile = fuzzed(&args.target)?;
    let mut plan = FuzzPlan::new(protocol, profile, args.seed, args.cases);
    plan.first = args.first;
    plan.jobs = args.jobs.unwrap_or(plan.jobs);
    Ok(plan)
}

/// What is fuzzed: what the options name, or else the reference server.
fn fuzzed(args: &TargetArgs) -> Result<Profile, CliError> {
    if target::is_named(args) {
        target::profile(args)
    } else {
        Ok(reference(args.time_scale))
    }
}

fn prove(
    plan: FuzzPlan,
    args: &FuzzServerArgs,
    console: &Console,
) -> Result<Ended<PlantedReport>, CliError> {
    let report = console::block_on(async {
        let (sender, events) = unbounded_channel();
        let plan = FuzzPlan {
            events: Some(sender),
            ..plan
        };
        let faults = plan.protocol.faults();
        let sought = chosen(faults, |fault| fault.name, args.fault.as_deref()).map_err(explain)?;
        let progress = console.progress(sought.len(), args.quiet);
        let (ended, ()) = tokio::join!(
            fuzz::prove::prove(plan, args.fault.as_deref()),
            show(events, &progress)
        );
        progress.finish();
        ended.map_err(explain)
    })?;
    let saved = report.details().iter().filter_map(|found| {
        let mut transcript = found.failure.clone()?.transcript;
        transcript.header.notes.insert(
            0,
            format!("planted: {}: {}", found.fault.name, found.fault.about),
        );
        Some((fault_file(found.fault.name), transcript))
    });
    Ok(Ended {
        saved: saved.collect(),
        outcome: report,
    })
}

async fn play(
    mut plan: FuzzPlan,
    args: &FuzzServerArgs,
    console: &Console,
) -> Result<FuzzReport, CliError> {
    let (sender, events) = unbounded_channel();
    plan.events = Some(sender);
    let steps = usize::try_from(plan.cases.div_ceil(STEP)).unwrap_or(usize::MAX);
    let progress = console.progress(steps, args.quiet);
    let played = async {
        match &args.replay {
            None => fuzz::fuzz(plan).await.map_err(explain),
            Some(path) => again(plan, path).await,
        }
    };
    let (ended, ()) = tokio::join!(played, show(events, &progress));
    progress.finish();
    ended
}

/// Plays the case of a saved counterexample once more.
async fn again(plan: FuzzPlan, path: &Path) -> Result<FuzzReport, CliError> {
    let case = case_of(&read(path)?).ok_or_else(|| {
        CliError::Usage(format!(
            "{}: its notes hold no steps of a case",
            path.display()
        ))
    })?;
    fuzz::run::again(plan, case).await.map_err(explain)
}

async fn show(mut events: UnboundedReceiver<FuzzEvent>, progress: &Progress) {
    while let Some(event) = events.recv().await {
        match event {
            FuzzEvent::Played { done, failures } => {
                let line = format!("{done} cases, {failures} fail");
                if done.is_multiple_of(STEP) {
                    progress.done(&line);
                }
                progress.begin(&line);
            }
            FuzzEvent::Failed { case, what } => progress.note(&format!("case {case}: {what}")),
            FuzzEvent::Shrunk { case, steps } => {
                progress.note(&format!("case {case}: {steps} steps are left"));
            }
            FuzzEvent::Fault(found) => progress.done(&found.report().line()),
        }
    }
}

fn explain(error: FuzzError) -> CliError {
    match error {
        FuzzError::Target(error) => CliError::Target {
            what: error.to_string(),
            remedy: "is the server running, and is its base URL right?".to_owned(),
        },
        FuzzError::NoFault { .. } => CliError::Usage(error.to_string()),
        other => CliError::Harness(other.to_string()),
    }
}

/// Reads a saved counterexample.
fn read(path: &Path) -> Result<Transcript, CliError> {
    let written = fs::read_to_string(path).map_err(|error| CliError::file("read", path, &error))?;
    text::parse(&written)
        .map_err(|error| CliError::Usage(error.in_file(path.display().to_string()).to_string()))
}

/// Shows how many cases have been played, every `step` of them, while `playing` goes on.
async fn counted<T>(
    playing: impl Future<Output = T>,
    mut counts: UnboundedReceiver<u64>,
    step: u64,
    what: &str,
    progress: &Progress,
) -> T {
    let showing = async {
        while let Some(done) = counts.recv().await {
            if done.is_multiple_of(step) {
                progress.done(&format!("{done} {what}"));
            }
        }
    };
    let (ended, ()) = tokio::join!(playing, showing);
    progress.finish();
    ended
}
