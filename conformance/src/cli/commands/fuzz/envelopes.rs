//! `turnwire fuzz server --envelopes`: requests that are wrong in form.

use tokio::sync::mpsc::unbounded_channel;

use super::{Ended, STEP, counted, end, explain, fault_file, fuzzed, read, unknown};
use crate::{
    cli::{
        args::FuzzServerArgs,
        console::{self, Console},
        exit::CliError,
    },
    fuzz::envelopes::{
        EnvelopePlan, Face,
        report::{EnvelopeProof, EnvelopeReport},
        run, saved,
    },
};

pub(super) fn run(args: &FuzzServerArgs, console: &Console) -> Result<u8, CliError> {
    let (folder, print) = (args.save.as_ref(), args.print);
    if args.prove {
        end(|| prove(args), folder, print, console)
    } else {
        end(|| play(args, console), folder, print, console)
    }
}

fn plan(args: &FuzzServerArgs) -> Result<EnvelopePlan, CliError> {
    let face = Face::of(&args.suite).ok_or_else(|| {
        let known: Vec<_> = Face::ALL.iter().map(|face| face.suite()).collect();
        unknown(&args.suite, "has no envelopes to fuzz", &known)
    })?;
    let mut plan = EnvelopePlan::new(face, fuzzed(&args.target)?, args.seed, args.cases);
    plan.cases.first = args.first;
    plan.cases.jobs = args.jobs.unwrap_or(plan.cases.jobs);
    Ok(plan)
}

fn prove(args: &FuzzServerArgs) -> Result<Ended<EnvelopeProof>, CliError> {
    let plan = plan(args)?;
    let proving = async {
        let proof = run::prove(&plan, args.fault.as_deref()).await;
        proof.map_err(explain)
    };
    let proof = console::block_on(proving)?;
    let found = proof.details.iter();
    let saved = found.map(|(fault, failure)| {
        let transcript = saved::transcript(plan.face, plan.cases.seed, failure);
        (fault_file(fault), transcript)
    });
    Ok(Ended {
        saved: saved.collect(),
        outcome: proof,
    })
}

fn play(args: &FuzzServerArgs, console: &Console) -> Result<Ended<EnvelopeReport>, CliError> {
    let plan = plan(args)?;
    let report = console::block_on(report(plan.clone(), args, console))?;
    let saved = report.details.iter().map(|failure| {
        let name = saved::file_name(plan.face, plan.cases.seed, failure);
        (name, saved::transcript(plan.face, plan.cases.seed, failure))
    });
    Ok(Ended {
        saved: saved.collect(),
        outcome: report,
    })
}

async fn report(
    mut plan: EnvelopePlan,
    args: &FuzzServerArgs,
    console: &Console,
) -> Result<EnvelopeReport, CliError> {
    if let Some(path) = &args.replay {
        let case = saved::case_of(&read(path)?).ok_or_else(|| {
            CliError::Usage(format!("{}: its notes hold no envelope", path.display()))
        })?;
        return run::again(&plan, case).await.map_err(explain);
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
    let ended = counted(playing, counts, STEP, "envelopes", &progress).await;
    ended.map_err(explain)
}
