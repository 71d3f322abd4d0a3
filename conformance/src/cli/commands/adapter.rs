//! `turnwire adapter`: checks code that calls LLM providers, by a command that starts it.

use std::{sync::Arc, time::Duration};

use turnwire_spec::catalogue::{Binds, Entry, rule::Rule};

use super::run::{own_adapter, quoted, report};
use crate::{
    cases,
    cli::{
        args::{AdapterArgs, SelectArgs},
        commands::schema,
        console::Console,
        exit::CliError,
        select::{self, Selected},
    },
    drivers::testee::command::TesteeCommand,
    profile::Profile,
    report::Report,
    run::RunPlan,
    stage::Cases,
};

/// The suite when none is named.
const DEFAULT_SUITE: &str = "openai-chat";

pub(in crate::cli) fn run(args: AdapterArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    let plan = plan(&args)?;
    report(plan, rerun(&args), &args.report, console)
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
    plan.scenarios = scenarios;
    plan.jobs = args.jobs.unwrap_or(plan.jobs);
    plan.seed = u64::from(std::process::id());
    plan.cases = Cases {
        only: args.cases.clone(),
        splits: args.splits.clone(),
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
        if !cases::of(wire)
            .iter()
            .any(|case| cases::is_of(&case.id, id))
        {
            return Err(CliError::Usage(format!(
                "no case of {suite} is named {id:?}"
            )));
        }
    }
    Ok(selected)
}

/// Whether a requirement is about one of these cases or hazards.
fn is_about(entry: &Entry, wanted: &[String]) -> bool {
    let Some(Rule::Outcome(rule)) = &entry.rule else {
        return false;
    };
    wanted
        .iter()
        .any(|case| cases::is_of(case, &rule.hazard) || cases::is_of(&rule.hazard, case))
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
    words.extend(args.splits.iter().map(|split| format!("--split {split}")));
    if !args.start.is_empty() {
        words.push("--".to_owned());
        words.extend(args.start.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}
