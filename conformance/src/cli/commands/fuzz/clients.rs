//! `turnwire fuzz client`: what a server may do to a client, by mistake or on purpose.

use std::{fs, sync::Arc, time::Duration};

use tokio::sync::mpsc::unbounded_channel;

use super::{explain, json, read, schema, write};
use crate::{
    cli::{
        args::{Format, FuzzClientArgs},
        console::{self, Console},
        exit::{CONFORMANT, CliError, FAILED},
    },
    drivers::testee::client::{ClientCommand, LaunchClient},
    fuzz::clients::{
        ClientFuzz, Kind,
        report::{ClientFuzzReport, ClientProof, Failure},
        run, saved,
    },
    profile::Profile,
    transcript::text,
};

/// Factor of the protocol's periods for the reference client, and for a program.
const TIME_SCALES: (f64, f64) = (0.01, 0.05);
/// Longest wait for a program; clients wait seconds until they connect again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Cases between two lines of progress.
const STEP: u64 = 100;

pub(in crate::cli) fn run(args: &FuzzClientArgs, console: &Console) -> Result<u8, CliError> {
    if args.print.schema {
        return if args.prove {
            schema::<ClientProof>(console)
        } else {
            schema::<ClientFuzzReport>(console)
        };
    }
    let plan = plan(args)?;
    if let Some(folder) = &args.save {
        fs::create_dir_all(folder)
            .map_err(|error| CliError::file("make the folder", folder, &error))?;
    }
    let (text, holds) = if args.prove {
        let proving = async {
            let proof = run::prove(&plan, args.fault.as_deref()).await;
            proof.map_err(explain)
        };
        let proof = console::block_on(proving)?;
        for (name, failure) in &proof.details {
            save(args, &format!("{name}.{}", text::EXTENSION), failure)?;
        }
        let text = match args.print.format {
            Format::Human => proof.render(),
            Format::Json => json(&proof)?,
        };
        (text, proof.holds())
    } else {
        let report = console::block_on(play(plan.clone(), args, console))?;
        for failure in &report.details {
            save(
                args,
                &saved::file_name(plan.kind, plan.seed, failure),
                failure,
            )?;
        }
        let text = match args.print.format {
            Format::Human => report.render(),
            Format::Json => json(&report)?,
        };
        (text, report.holds())
    };
    console.print(&text)?;
    Ok(if holds { CONFORMANT } else { FAILED })
}

fn plan(args: &FuzzClientArgs) -> Result<ClientFuzz, CliError> {
    let kind = Kind::of(&args.suite).ok_or_else(|| {
        let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.suite()).collect();
        CliError::Usage(format!(
            "suite {:?} has no clients to fuzz; there are {}",
            args.suite,
            known.join(", ")
        ))
    })?;
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let jobs = args.jobs.unwrap_or(processors * 2);
    let (own_scale, scale) = TIME_SCALES;
    let (launch, mut profile, scale): (Arc<dyn LaunchClient>, _, _) = if args.start.is_empty() {
        let own = run::reference(kind).map_err(explain)?;
        (Arc::new(own), Profile::for_own_testee(own.name), own_scale)
    } else {
        let command = ClientCommand::new(args.start.clone(), jobs);
        let mut profile = Profile::for_testee(&args.start.join(" "));
        profile.limits.patience = PATIENCE;
        (Arc::new(command), profile, scale)
    };
    if let Some(seconds) = args.timeout {
        profile.limits.patience = Duration::from_secs_f64(seconds);
    }
    Ok(ClientFuzz {
        kind,
        launch,
        profile: Arc::new(profile.with_time_scale(args.time_scale.unwrap_or(scale))),
        seed: args.seed,
        cases: args.cases,
        first: args.first,
        jobs,
        progress: None,
    })
}

async fn play(
    mut plan: ClientFuzz,
    args: &FuzzClientArgs,
    console: &Console,
) -> Result<ClientFuzzReport, CliError> {
    if let Some(path) = &args.replay {
        let (number, case) = saved::case_of(&read(path)?).ok_or_else(|| {
            CliError::Usage(format!("{}: its notes hold no case", path.display()))
        })?;
        return run::again(&plan, number, &case).await.map_err(explain);
    }
    let (sender, mut events) = unbounded_channel();
    plan.progress = Some(sender);
    let steps = usize::try_from(plan.cases.div_ceil(STEP)).unwrap_or(usize::MAX);
    let progress = console.progress(steps, args.quiet);
    let played = async {
        let report = run::fuzz(&plan).await;
        plan.progress = None;
        report
    };
    let showing = async {
        while let Some(done) = events.recv().await {
            if done.is_multiple_of(STEP) {
                progress.done(&format!("{done} cases"));
            }
        }
    };
    let (ended, ()) = tokio::join!(played, showing);
    progress.finish();
    ended.map_err(explain)
}

fn save(args: &FuzzClientArgs, name: &str, failure: &Failure) -> Result<(), CliError> {
    match &args.save {
        None => Ok(()),
        Some(folder) => write(&folder.join(name), &failure.transcript),
    }
}
