//! `turnwire client`: checks a client, by a command that starts it. The client connects to servers of the harness.

use std::{collections::BTreeMap, sync::Arc};

use turnwire_spec::catalogue::Binds;

use super::run::{quoted, report};
use crate::{
    cli::{
        args::{ClientArgs, SelectArgs},
        commands::schema,
        console::Console,
        exit::CliError,
        select,
    },
    clients::session_update::OwnClient,
    drivers::testee::command::TesteeCommand,
    profile::Profile,
    report::Report,
    run::RunPlan,
};

/// The suite when none is named.
const DEFAULT_SUITE: &str = "session-update";
/// Name of our own client in reports.
const OWN: &str = "turnwire reference client";

pub(in crate::cli) fn run(args: ClientArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    let plan = plan(&args)?;
    report(plan, rerun(&args), &args.report, console)
}

fn plan(args: &ClientArgs) -> Result<RunPlan, CliError> {
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
    let suite = selected.suite;
    if !suite.tests_clients() {
        let message = format!("suite {} has no scenarios for clients yet", suite.name());
        return Err(CliError::Usage(message));
    }
    let mut profile = if args.start.is_empty() {
        Profile::for_own_testee(OWN)
    } else {
        Profile::for_testee(&args.start.join(" "))
    };
    select::named(&args.require)?;
    profile.requires.extend(args.require.iter().cloned());
    let launch = profile.launcher();
    let mut plan = RunPlan::new(suite, profile, launch);
    plan.testee = Some(if args.start.is_empty() {
        Arc::new(OwnClient)
    } else {
        let mut command = TesteeCommand::new(args.start.clone());
        command.env = BTreeMap::from([("TURNWIRE_SUITE".to_owned(), suite.name().to_owned())]);
        Arc::new(command)
    });
    plan.requirements = selected.entries;
    if args.select.requirements.is_empty() {
        plan.requirements
            .retain(|entry| entry.binds == Binds::Client && suite.judges(entry));
    }
    plan.scenarios = selected.scenarios;
    plan.jobs = args.jobs.unwrap_or(1);
    plan.seed = u64::from(std::process::id());
    Ok(plan)
}

/// The command line that runs one requirement again.
fn rerun(args: &ClientArgs) -> String {
    let mut words = vec!["turnwire client --requirement {id}".to_owned()];
    words.extend(
        args.select
            .suite
            .iter()
            .map(|suite| format!("--suite {}", quoted(suite))),
    );
    if !args.start.is_empty() {
        words.push("--".to_owned());
        words.extend(args.start.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}
