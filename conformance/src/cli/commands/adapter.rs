//! `turnwire adapter`: checks code that calls LLM providers, by a command that starts it.

use std::{sync::Arc, time::Duration};

use turnwire_spec::catalogue::{Binds, Entry, rule::Rule};

use tokio::sync::mpsc::unbounded_channel;

use super::run::{ReportFiles, explain, own_adapter, quoted, report};
use crate::{
    cases::{self, content},
    cli::{
        args::{AdapterArgs, Format, SelectArgs},
        commands::{json, schema},
        console::{self, Console},
        exit::{CONFORMANT, CliError, FAILED},
        select::{self, Selected},
    },
    drivers::testee::command::TesteeCommand,
    matrix::{self, MatrixEvent, MatrixPlan, MatrixReport},
    profile::Profile,
    report::Report,
    run::{RunError, RunPlan},
    stage::Cases,
    suites,
};

/// The suite when none is named.
const DEFAULT_SUITE: &str = "openai-chat";

pub(in crate::cli) fn run(args: AdapterArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema && args.matrix {
        return schema::<MatrixReport>(console);
    }
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    if args.matrix {
        return matrix(&args, console);
    }
    let plan = plan(&args)?;
    let longest = plan.cases.longest.clone();
    let code = report(plan, rerun(&args), &args.report, console)?;
    splits_something(&args.splits, longest.get())?;
    Ok(code)
}

/// Every split was within an answer; how long they are is known when they were sent.
fn splits_something(splits: &[usize], longest: u64) -> Result<(), CliError> {
    let beyond = |split: &&usize| u64::try_from(**split).unwrap_or(u64::MAX) >= longest;
    match splits.iter().find(beyond) {
        None => Ok(()),
        Some(split) if longest == 0 => Err(CliError::Usage(format!(
            "--split {split} splits nothing: no answer was asked for in what was played"
        ))),
        Some(split) => Err(CliError::Usage(format!(
            "--split {split} splits nothing: the longest answer that was played has {longest} bytes"
        ))),
    }
}

fn plan(args: &AdapterArgs) -> Result<RunPlan, CliError> {
    let Selected {
        suite,
        mut entries,
        scenarios,
    } = selected(args)?;
    let mut plan = if args.start.is_empty() {
        own_adapter(suite)
    } else {
        let profile = Profile::for_testee(&args.start.join(" "));
        let launch = profile.launcher();
        let mut plan = RunPlan::new(suite, profile, launch);
        plan.testee = Some(Arc::new(TesteeCommand::new(args.start.clone())));
        // Every adapter is a process with libraries of its own to load.
        plan.jobs = std::thread::available_parallelism().map_or(2, usize::from);
        plan
    };
    if args.select.requirements.is_empty() {
        entries.retain(|entry| entry.binds == Binds::Adapter && suite.judges(entry));
    }
    entries.retain(|entry| args.cases.is_empty() || is_about(entry, &args.cases));
    plan.requirements = entries;
    plan.revision.clone_from(&args.select.revision);
    plan.scenarios = scenarios;
    plan.jobs = args.jobs.unwrap_or(plan.jobs);
    plan.seed = u64::from(std::process::id());
    plan.cases = Cases {
        only: args.cases.clone(),
        splits: args.splits.clone(),
        ..Cases::default()
    };
    let mut profile = (*plan.profile).clone();
    if let Some(seconds) = args.timeout {
        profile.limits.http.total = Duration::from_secs_f64(seconds);
    }
    select::named(&args.require)?;
    profile.requires.extend(args.require.iter().cloned());
    plan.profile = Arc::new(profile);
    Ok(plan)
}

fn selected(args: &AdapterArgs) -> Result<Selected, CliError> {
    let named = args.select.suite.is_some() || !args.select.requirements.is_empty();
    let select = SelectArgs {
        suite: args
            .select
            .suite
            .clone()
            .or_else(|| (!named).then(|| DEFAULT_SUITE.to_owned())),
        ..args.select.clone()
    };
    let selected = select::for_run(&select, &args.scenarios)?;
    let suite = selected.suite.name();
    let wire = cases::wire(suite)
        .ok_or_else(|| CliError::Usage(format!("suite {suite} is not about adapters")))?;
    for id in &args.cases {
        let is_case = cases::of(wire)
            .iter()
            .any(|case| cases::is_of(&case.id, id));
        // The matrix splits answers; the pieces of `content` are about requests.
        let is_piece = !args.matrix && content::all(wire).any(|piece| cases::is_of(&piece.id, id));
        if !is_case && !is_piece {
            let cases = cases::of(wire).iter().map(|case| case.id.as_str());
            let hazards = cases.clone().filter_map(|id| id.split('/').next());
            let hint = suites::hint(suites::nearest(id, hazards.chain(cases)).as_deref());
            return Err(CliError::Usage(format!(
                "no case of {suite} is named {id:?}{hint}"
            )));
        }
    }
    Ok(selected)
}

/// Whether a requirement is about one of these cases or hazards.
fn is_about(entry: &Entry, wanted: &[String]) -> bool {
    let named: Vec<&str> = entry.rule.iter().flat_map(ids).collect();
    let is_named = |case: &String| {
        named
            .iter()
            .any(|id| cases::is_of(case, id) || cases::is_of(id, case))
    };
    wanted.iter().any(is_named)
}

/// The cases and hazards that a rule is about.
fn ids(rule: &Rule) -> Vec<&str> {
    match rule {
        Rule::All(rules) => rules.iter().flat_map(ids).collect(),
        Rule::Outcome(rule) => vec![&rule.hazard],
        Rule::Said(rule) => vec![&rule.hazard],
        Rule::Waits(rule) => vec![&rule.hazard],
        Rule::Asked(rule) => {
            let labels = rule.label.iter();
            labels.map(|label| label.trim_end_matches("/*")).collect()
        }
        _ => Vec::new(),
    }
}

/// Puts the adapter through the torture matrix.
fn matrix(args: &AdapterArgs, console: &Console) -> Result<u8, CliError> {
    let Selected { suite, .. } = selected(args)?;
    let files = ReportFiles::prepare(&args.report)?;
    let run = plan(args)?;
    let launch = run.testee.clone();
    let launch = launch.ok_or_else(|| CliError::Harness("there is no adapter".to_owned()))?;
    let wire = cases::wire(suite.name());
    let wire = wire.ok_or_else(|| CliError::Harness("the suite is no wire".to_owned()))?;
    let matrix = MatrixPlan {
        wire,
        launch,
        only: args.cases.clone(),
        splits: args.most,
        jobs: run.jobs,
        within: run.profile.limits.http.total,
        events: None,
    };
    let found = console::block_on(play(matrix, args.report.quiet, console))?;
    files.json(|| json(&found))?;
    let text = match args.report.print.format {
        Format::Human => found.render(&rerun_case(args, suite.name())),
        Format::Json => json(&found)?,
    };
    console.print(&text)?;
    Ok(if found.holds() { CONFORMANT } else { FAILED })
}

async fn play(
    mut plan: MatrixPlan,
    quiet: bool,
    console: &Console,
) -> Result<MatrixReport, CliError> {
    let (sender, mut events) = unbounded_channel();
    plan.events = Some(sender);
    let progress = console.progress(0, quiet);
    let show = async {
        while let Some(event) = events.recv().await {
            match event {
                MatrixEvent::Up(name) => progress.note(&format!("adapter up: {name}")),
                MatrixEvent::More(runs) => progress.grow(runs),
                MatrixEvent::Ran(runs) => progress.pass(runs),
                MatrixEvent::Failed(case, failure) => {
                    let place = failure.split.map(|at| format!(", split at {at}"));
                    progress.note(&format!("{case}{}: wrong", place.unwrap_or_default()));
                }
            }
        }
    };
    let (ended, ()) = tokio::join!(matrix::run(plan), show);
    progress.finish();
    ended.map_err(|error| explain(&RunError::NotStarted(error), console))
}

/// The command line that plays one case again; `{case}` stands for its options.
fn rerun_case(args: &AdapterArgs, suite: &str) -> String {
    let mut words = vec![format!("turnwire adapter --suite {suite} {{case}}")];
    if !args.start.is_empty() {
        words.push("--".to_owned());
        words.extend(args.start.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}

/// The command line that runs one requirement again.
fn rerun(args: &AdapterArgs) -> String {
    let mut words = vec!["turnwire adapter --requirement {id}".to_owned()];
    words.extend(
        args.select
            .suite
            .iter()
            .map(|suite| format!("--suite {}", quoted(suite))),
    );
    words.extend(
        args.cases
            .iter()
            .map(|case| format!("--case {}", quoted(case))),
    );
    words.extend(args.splits.iter().map(|split| format!("--split {split}")));
    words.extend(args.timeout.map(|seconds| format!("--timeout {seconds}")));
    if !args.start.is_empty() {
        words.push("--".to_owned());
        words.extend(args.start.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}
