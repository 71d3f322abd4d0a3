//! `turnwire fuzz server --envelopes`: requests that are wrong in form.

use std::{fs, path::Path};

use tokio::sync::mpsc::unbounded_channel;

use super::{STEP, explain, json, read, schema, target, write};
use crate::{
    cli::{
        args::{Format, FuzzServerArgs},
        console::{self, Console},
        exit::{CONFORMANT, CliError, FAILED},
    },
    fuzz::envelopes::{
        EnvelopePlan, Face,
        report::{EnvelopeProof, EnvelopeReport, Failure},
        run, saved,
    },
    transcript::text,
};

pub(super) fn run(args: &FuzzServerArgs, console: &Console) -> Result<u8, CliError> {
    if args.print.schema {
        return if args.prove {
            schema::<EnvelopeProof>(console)
        } else {
            schema::<EnvelopeReport>(console)
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
            save(
                args,
                plan.face,
                &format!("{name}.{}", text::EXTENSION),
                failure,
            )?;
        }
        let text = match args.print.format {
            Format::Human => proof.render(),
            Format::Json => json(&proof)?,
        };
        (text, proof.holds())
    } else {
        let report = console::block_on(play(plan.clone(), args, console))?;
        for failure in &report.details {
            let name = saved::file_name(plan.face, plan.seed, failure);
            save(args, plan.face, &name, failure)?;
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

fn plan(args: &FuzzServerArgs) -> Result<EnvelopePlan, CliError> {
    let face = Face::of(&args.suite).ok_or_else(|| {
        let known: Vec<_> = Face::ALL.iter().map(|face| face.suite()).collect();
        CliError::Usage(format!(
            "suite {:?} has no envelopes to fuzz; there are {}",
            args.suite,
            known.join(", ")
        ))
    })?;
    let mut plan = EnvelopePlan::new(face, target(args)?, args.seed, args.cases);
    plan.first = args.first;
    plan.jobs = args.jobs.unwrap_or(plan.jobs);
    Ok(plan)
}

async fn play(
    mut plan: EnvelopePlan,
    args: &FuzzServerArgs,
    console: &Console,
) -> Result<EnvelopeReport, CliError> {
    if let Some(path) = &args.replay {
        return run::again(&plan, saved_case(path)?).await.map_err(explain);
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
            progress.done(&format!("{done} envelopes"));
        }
    };
    let (ended, ()) = tokio::join!(played, showing);
    progress.finish();
    ended.map_err(explain)
}

fn saved_case(path: &Path) -> Result<crate::fuzz::envelopes::Case, CliError> {
    saved::case_of(&read(path)?)
        .ok_or_else(|| CliError::Usage(format!("{}: its notes hold no envelope", path.display())))
}

fn save(args: &FuzzServerArgs, face: Face, name: &str, failure: &Failure) -> Result<(), CliError> {
    let Some(folder) = &args.save else {
        return Ok(());
    };
    write(
        &folder.join(name),
        &saved::transcript(face, args.seed, failure),
    )
}
