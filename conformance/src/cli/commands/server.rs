//! `turnwire server`: checks a server, by URL, by a profile, or by a command that starts it.

use std::time::Duration;

use turnwire_spec::catalogue::{Binds, Entry};

use super::{
    run::{quoted, report},
    target,
};
use crate::{
    cli::{
        args::{SelectArgs, ServerArgs},
        commands::schema,
        console::Console,
        exit::CliError,
        select,
    },
    profile::Profile,
    report::Report,
    run::RunPlan,
    suites::Suite,
};

pub(in crate::cli) fn run(args: ServerArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    let selected = select::for_run(&args.select, &args.scenarios)?;
    let profile = profile(&args)?;
    target::fits(&profile, selected.suite)?;
    let profile = profile.for_suite(selected.suite.id);
    let launch = profile.launcher_for(selected.suite.id);
    let one_by_one = profile.is_stdio(selected.suite.id);
    let mut plan = RunPlan::new(selected.suite, profile, launch);
    plan.requirements = selected.entries;
    plan.revision.clone_from(&args.select.revision);
    of_servers(&mut plan, &args.select);
    if args.select.requirements.is_empty() && selected.suite.tests_clients() {
        // A client is another target; see `turnwire client`.
        plan.requirements
            .retain(|entry| entry.binds != Binds::Client);
    }
    plan.scenarios = selected.scenarios;
    plan.jobs = args.jobs.unwrap_or(if one_by_one { 1 } else { plan.jobs });
    plan.seed = u64::from(std::process::id());
    report(plan, rerun(&args), &args.report, console)
}

/// Leaves out what binds somebody else and cannot be seen at a server, unless it was asked for.
pub(super) fn of_servers(plan: &mut RunPlan, select: &SelectArgs) {
    bind_servers(&mut plan.requirements, plan.suite, select);
    // What binds clients needs a client, which `turnwire client` starts.
    if select.binds.is_none() && select.requirements.is_empty() {
        plan.requirements
            .retain(|entry| entry.binds != Binds::Client);
    }
}

/// As [`of_servers`], without a plan.
pub(super) fn bind_servers(
    requirements: &mut Vec<&'static Entry>,
    suite: &Suite,
    select: &SelectArgs,
) {
    if select.binds.is_none() && select.requirements.is_empty() {
        requirements.retain(|entry| entry.binds == Binds::Server || suite.judges(entry));
    }
}

fn profile(args: &ServerArgs) -> Result<Profile, CliError> {
    let mut profile = target::profile(&args.target)?;
    if let Some(seconds) = args.timeout {
        let wait = Duration::from_secs_f64(seconds);
        let http = &mut profile.limits.http;
        (http.connect, http.head, http.idle) = (http.connect.min(wait), wait, wait);
        http.total = http.total.max(wait);
    }
    // The names are resolved here, so that a misspelt one is no surprise after the run.
    select::named(&args.require)?;
    profile.requires.extend(args.require.iter().cloned());
    Ok(profile)
}

/// The command line that runs one requirement again.
fn rerun(args: &ServerArgs) -> String {
    let mut words = vec!["turnwire server --requirement {id}".to_owned()];
    words.extend(
        args.select
            .suite
            .iter()
            .map(|suite| format!("--suite {}", quoted(suite))),
    );
    let target = &args.target;
    words.extend(
        target
            .profile
            .iter()
            .map(|path| format!("--profile {}", quoted(&path.display().to_string()))),
    );
    words.extend(
        target
            .url
            .iter()
            .map(|url| format!("--url {}", quoted(url))),
    );
    words.extend(
        target
            .time_scale
            .iter()
            .map(|scale| format!("--time-scale {scale}")),
    );
    let model = target.model.iter();
    words.extend(model.map(|address| format!("--model {address}")));
    let plugins = target.plugins.iter();
    words.extend(plugins.map(|plugin| format!("--plugin {}", quoted(plugin))));
    words.extend(
        args.timeout
            .iter()
            .map(|seconds| format!("--timeout {seconds}")),
    );
    if !target.start.is_empty() {
        words.push("--".to_owned());
        words.extend(target.start.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}
