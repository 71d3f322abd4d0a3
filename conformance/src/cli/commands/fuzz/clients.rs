//! `turnwire fuzz client`: what a server may do to a client, by mistake or on purpose.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use tokio::sync::mpsc::unbounded_channel;

use super::{Ended, counted, end, explain, fault_file, read, unknown};
use crate::{
    cli::{
        args::FuzzClientArgs,
        commands::run::quoted,
        console::{self, Console},
        exit::CliError,
    },
    drivers::testee::{client::ClientCommand, command::TesteeCommand},
    fuzz::{
        FuzzError,
        clients::{
            Case, ClientFuzz, Kind, Launcher,
            report::{ClientFuzzReport, ClientProof},
            run, saved,
        },
        hunt,
    },
    profile::Profile,
};

/// Factor of the protocol's periods for the reference client, and for a program.
const TIME_SCALES: (f64, f64) = (0.01, 0.05);
/// Longest wait for a program; clients wait seconds until they connect again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Cases between two lines of progress.
const STEP: u64 = 100;

pub(in crate::cli) fn run(args: &FuzzClientArgs, console: &Console) -> Result<u8, CliError> {
    let (folder, print) = (args.save.as_ref(), args.print);
    if args.prove {
        end(|| prove(args), folder, print, console)
    } else {
        end(|| play(args, console), folder, print, console)
    }
}

fn plan(args: &FuzzClientArgs) -> Result<ClientFuzz, CliError> {
    let kind = Kind::of(&args.suite).ok_or_else(|| {
        let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.suite()).collect();
        unknown(&args.suite, "has no clients to fuzz", &known)
    })?;
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let jobs = args.jobs.unwrap_or(processors * 2);
    let (own_scale, scale) = TIME_SCALES;
    let (launch, mut profile, scale) = if args.start.is_empty() {
        let own = run::reference(kind).map_err(explain)?;
        (own.launch, Profile::for_own_testee(own.name), own_scale)
    } else {
        let mut profile = Profile::for_testee(&args.start.join(" "));
        profile.limits.patience = PATIENCE;
        (program(kind, args, jobs), profile, scale)
    };
    if let Some(seconds) = args.timeout {
        profile.limits.patience = Duration::from_secs_f64(seconds);
    }
    Ok(ClientFuzz {
        kind,
        launch,
        profile: Arc::new(profile.with_time_scale(args.time_scale.unwrap_or(scale))),
        cases: hunt::Cases {
            seed: args.seed,
            first: args.first,
            count: args.cases,
            jobs,
            progress: None,
        },
    })
}

/// How the program of the arguments is started.
fn program(kind: Kind, args: &FuzzClientArgs, jobs: usize) -> Launcher {
    if !kind.takes_steps() {
        let command = ClientCommand::new(args.start.clone(), jobs);
        return Launcher::Connects(Arc::new(command));
    }
    let mut command = TesteeCommand::new(args.start.clone());
    command.env = BTreeMap::from([("TURNWIRE_SUITE".to_owned(), kind.suite().to_owned())]);
    Launcher::Steps(Arc::new(command))
}

fn prove(args: &FuzzClientArgs) -> Result<Ended<ClientProof>, CliError> {
    let plan = plan(args)?;
    let proving = async {
        let proof = run::prove(&plan, args.fault.as_deref()).await;
        proof.map_err(explain)
    };
    let proof = console::block_on(proving)?;
    let found = proof.details.iter();
    let saved = found.map(|(fault, failure)| (fault_file(fault), failure.evidence.clone()));
    Ok(Ended {
        saved: saved.collect(),
        outcome: proof,
    })
}

fn play(args: &FuzzClientArgs, console: &Console) -> Result<Ended<ClientFuzzReport>, CliError> {
    let plan = plan(args)?;
    let report = console::block_on(report(plan.clone(), args, console))?;
    let saved = report.details.iter().map(|failure| {
        let name = saved::file_name(plan.kind, plan.cases.seed, failure);
        (name, failure.evidence.clone())
    });
    Ok(Ended {
        saved: saved.collect(),
        outcome: report,
    })
}

async fn report(
    mut plan: ClientFuzz,
    args: &FuzzClientArgs,
    console: &Console,
) -> Result<ClientFuzzReport, CliError> {
    if let Some(path) = &args.replay {
        let (number, case) = case_of(path, plan.kind)?;
        let played = run::again(&plan, number, &case).await;
        return played.map_err(not_played);
    }
    let (sender, counts) = unbounded_channel();
    plan.cases.progress = Some(sender);
    let steps = usize::try_from(plan.cases.count.div_ceil(STEP)).unwrap_or(usize::MAX);
    let progress = console.progress(steps, args.quiet);
    let playing = async {
        let report = run::fuzz(&plan).await;
        plan.cases.progress = None;
        report
    };
    let ended = counted(playing, counts, STEP, "cases", &progress).await;
    ended.map_err(not_played)
}

/// The case of a saved transcript, which is one of this protocol.
fn case_of(path: &Path, kind: Kind) -> Result<(u64, Case), CliError> {
    let transcript = read(path)?;
    let usage = |what: String| CliError::Usage(format!("{}: {what}", path.display()));
    let suite = &transcript.header.suite;
    if suite != kind.suite() {
        let suite = quoted(suite);
        return Err(usage(format!(
            "it is of another suite; see `--suite {suite}`"
        )));
    }
    saved::case_of(&transcript).ok_or_else(|| usage("its notes hold no case".to_owned()))
}

/// Why a client was not played, with what to do about it.
fn not_played(error: FuzzError) -> CliError {
    match error {
        FuzzError::Target(error) => CliError::Target {
            what: error.to_string(),
            remedy: "run the command by hand to see why".to_owned(),
        },
        other => explain(other),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{
        cli::args::Args,
        drivers::DriveError,
        fuzz::clients::case::Step,
        transcript::{Transcript, text},
    };

    #[test]
    fn a_case_is_played_to_clients_of_its_own_suite_only() {
        let step = Step::Line {
            line: 0,
            end: 0,
            pieces: 0,
        };
        let case = Case { steps: vec![step] };
        let mut transcript = Transcript::default();
        transcript.header.suite = "sse".to_owned();
        saved::mark(&mut transcript, 1, 7, &case, "why");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.twire");
        std::fs::write(&path, text::write(&transcript)).unwrap();
        assert_eq!(case_of(&path, Kind::Stream).unwrap(), (7, case));
        let error = case_of(&path, Kind::Covel).unwrap_err().to_string();
        assert!(error.ends_with("see `--suite sse`"), "{error}");
    }

    #[test]
    fn no_cases_at_all_and_more_than_there_are_numbers_for_are_wrong_usage() {
        for side in ["client", "server --reconnect"] {
            let line = format!("turnwire fuzz {side} --cases 0");
            assert!(Args::try_parse_from(line.split(' ')).is_err(), "{line}");
            let line = format!("turnwire fuzz {side} --cases 1");
            assert!(Args::try_parse_from(line.split(' ')).is_ok(), "{line}");
            let line = format!("{line} --first {}", u64::MAX);
            assert!(Args::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn who_does_not_start_is_no_server_with_a_wrong_url() {
        let why = DriveError::NotStarted {
            why: "no such file".to_owned(),
            output: Vec::new(),
        };
        let error = not_played(FuzzError::Target(why)).to_string();
        assert!(
            error.ends_with("run the command by hand to see why"),
            "{error}"
        );
    }
}
