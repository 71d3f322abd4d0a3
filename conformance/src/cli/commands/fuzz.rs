//! `turnwire fuzz server`: random conversations of clients that lose their connections and come back.

use std::{fs, path::Path};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{json, run::reference, schema, server};
use crate::{
    cli::{
        args::{Format, FuzzServerArgs},
        console::{self, Console, Progress},
        exit::{CONFORMANT, CliError, FAILED},
    },
    fuzz::{
        self, FuzzError, FuzzEvent, FuzzPlan,
        field::case_of,
        report::{Failure, FuzzReport, PlantedReport},
    },
    profile::Profile,
    transcript::{Transcript, text},
};

pub(in crate::cli) mod clients;
mod envelopes;

/// Cases between two lines of progress.
const STEP: u64 = 1000;

pub(in crate::cli) fn run(args: FuzzServerArgs, console: &Console) -> Result<u8, CliError> {
    if args.envelopes {
        return envelopes::run(&args, console);
    }
    if args.print.schema {
        return if args.prove {
            schema::<PlantedReport>(console)
        } else {
            schema::<FuzzReport>(console)
        };
    }
    if let Some(folder) = &args.save {
        fs::create_dir_all(folder)
            .map_err(|error| CliError::file("make the folder", folder, &error))?;
    }
    let plan = plan(&args)?;
    if args.prove {
        return prove(plan, &args, console);
    }
    let report = console::block_on(play(plan, &args, console))?;
    save(&args, report.details().iter())?;
    let text = match args.print.format {
        Format::Human => report.render(),
        Format::Json => json(&report)?,
    };
    console.print(&text)?;
    Ok(if report.holds() { CONFORMANT } else { FAILED })
}

fn plan(args: &FuzzServerArgs) -> Result<FuzzPlan, CliError> {
    let protocol = fuzz::protocol(&args.suite).ok_or_else(|| {
        let known: Vec<&str> = fuzz::PROTOCOLS
            .iter()
            .map(|protocol| protocol.suite())
            .collect();
        CliError::Usage(format!(
            "suite {:?} cannot be fuzzed; there are {}",
            args.suite,
            known.join(", ")
        ))
    })?;
    let profile = target(args)?;
    let mut plan = FuzzPlan::new(protocol, profile, args.seed, args.cases);
    plan.first = args.first;
    plan.jobs = args.jobs.unwrap_or(plan.jobs);
    Ok(plan)
}

/// What is fuzzed: what the arguments name, or else the reference server.
fn target(args: &FuzzServerArgs) -> Result<Profile, CliError> {
    let named = args.url.is_some() || args.profile.is_some() || !args.start.is_empty();
    let profile: Profile = if named {
        server::target(args.url.as_deref(), args.profile.as_deref(), &args.start)?
    } else {
        reference(None)
    };
    Ok(match args.time_scale {
        Some(scale) => profile.with_time_scale(scale),
        None => profile,
    })
}

fn prove(plan: FuzzPlan, args: &FuzzServerArgs, console: &Console) -> Result<u8, CliError> {
    let report = console::block_on(async {
        let (sender, events) = unbounded_channel();
        let plan = FuzzPlan {
            events: Some(sender),
            ..plan
        };
        let faults = plan.protocol.faults().len();
        let progress = console.progress(faults, args.quiet);
        let (ended, ()) = tokio::join!(
            fuzz::prove::prove(plan, args.fault.as_deref()),
            show(events, &progress)
        );
        progress.finish();
        ended.map_err(explain)
    })?;
    let failures = report.details().iter().filter_map(|found| {
        let mut failure = found.failure.clone()?;
        failure.transcript.header.notes.insert(
            0,
            format!("planted: {}: {}", found.fault.name, found.fault.about),
        );
        Some((format!("{}.{}", found.fault.name, text::EXTENSION), failure))
    });
    if let Some(folder) = &args.save {
        for (name, failure) in failures {
            write(&folder.join(name), &failure.transcript)?;
        }
    }
    let text = match args.print.format {
        Format::Human => report.render(),
        Format::Json => json(&report)?,
    };
    console.print(&text)?;
    Ok(if report.holds() { CONFORMANT } else { FAILED })
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
        other => CliError::Harness(other.to_string()),
    }
}

fn save<'f>(
    args: &FuzzServerArgs,
    failures: impl Iterator<Item = &'f Failure>,
) -> Result<(), CliError> {
    let Some(folder) = &args.save else {
        return Ok(());
    };
    for failure in failures {
        write(&folder.join(failure.file_name()), &failure.transcript)?;
    }
    Ok(())
}

/// Reads a saved counterexample.
fn read(path: &Path) -> Result<Transcript, CliError> {
    let written = fs::read_to_string(path).map_err(|error| CliError::file("read", path, &error))?;
    text::parse(&written)
        .map_err(|error| CliError::Usage(error.in_file(path.display().to_string()).to_string()))
}

fn write(path: &Path, transcript: &Transcript) -> Result<(), CliError> {
    fs::write(path, text::write(transcript)).map_err(|error| CliError::file("write", path, &error))
}
