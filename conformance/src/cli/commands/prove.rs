//! `turnwire prove`: every check against a conformant peer, and against the peer behind its saboteur.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::run::{ReportFiles, conformant_peer, now, quoted, show};
use crate::{
    cli::{
        args::{Format, ProveArgs},
        commands::{json, schema},
        console::{self, Console, Progress},
        exit::{CONFORMANT, CliError, FAILED},
        select, state,
    },
    prove::{self, Proof, ProveEvent, ProvePlan, ProveReport},
    report::{coverage::Coverage, proof::ProofReport},
};

pub(in crate::cli) fn run(args: ProveArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Coverage>(console);
    }
    let selected = select::for_run(&args.select, &args.scenarios)?;
    let files = ReportFiles::prepare(&args.report)?;
    let mut plan = conformant_peer(selected.suite, args.time_scale);
    plan.requirements = selected.entries.clone();
    plan.scenarios = selected.scenarios;
    let mut plan = ProvePlan::new(plan);
    plan.jobs = args.jobs.unwrap_or(plan.jobs);
    let started = now();
    let found = console::block_on(play(plan, args.report.quiet, console))?;
    let report = ProofReport::of(&found, &selected.entries, started.clone(), rerun(&args));
    files.json(|| json(&report))?;
    files.junit(|| report.junit())?;
    if let Some(conformant) = &found.conformant {
        files.transcripts(&conformant.transcripts)?;
    }
    keep(&found, started, console);
    let text = match args.report.print.format {
        Format::Human => report.render(console.colour),
        Format::Json => json(&report.coverage)?,
    };
    console.print(&text)?;
    Ok(if report.holds() { CONFORMANT } else { FAILED })
}

async fn play(
    mut plan: ProvePlan,
    quiet: bool,
    console: &Console,
) -> Result<ProveReport, CliError> {
    let (run_sender, run_events) = unbounded_channel();
    let (sender, events) = unbounded_channel();
    plan.run.events = Some(run_sender);
    plan.events = Some(sender);
    let progress = console.progress(0, quiet);
    let (ended, (), ()) = tokio::join!(
        prove::prove(plan),
        show(run_events, &progress),
        show_proofs(events, &progress)
    );
    progress.finish();
    ended.map_err(|error| super::run::explain(&error, console))
}

async fn show_proofs(mut events: UnboundedReceiver<ProveEvent>, progress: &Progress) {
    while let Some(event) = events.recv().await {
        match event {
            ProveEvent::Sabotaging { sabotages } => {
                progress.grow(sabotages);
                progress.note(&format!("{sabotages} sabotages"));
            }
            ProveEvent::Sabotaged(verified) => {
                progress.begin(&verified.id);
                progress.done(&format!(
                    "{}: {}, {:.1} s",
                    verified.id,
                    verified.proof,
                    verified.took.as_secs_f64()
                ));
            }
            ProveEvent::Finished { .. } => {}
        }
    }
}

fn keep(found: &ProveReport, started: String, console: &Console) {
    let looked_at = found
        .requirements
        .iter()
        .filter(|verified| !matches!(verified.proof, Proof::NotChecked));
    let proof = state::Proof {
        started,
        judged: looked_at.map(|verified| verified.id.clone()).collect(),
        proven: found.proven(),
    };
    state::keep_proof(&found.suite, proof, console);
}

fn rerun(args: &ProveArgs) -> String {
    let suite = args
        .select
        .suite
        .iter()
        .map(|suite| format!(" --suite {}", quoted(suite)));
    format!(
        "turnwire prove{} --requirement {{id}}",
        suite.collect::<String>()
    )
}
