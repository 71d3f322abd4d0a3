//! `turnwire demo`: the reference server, checked over real sockets, without any set-up.

use turnwire_spec::catalogue::Catalogue;

use super::{
    run::{conformant_peer, quoted, report},
    server::of_servers,
};
use crate::{
    cli::{args::DemoArgs, commands::schema, console::Console, exit::CliError, select},
    report::Report,
};

pub(in crate::cli) fn run(args: DemoArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    let selected = select::for_run(&args.select, &args.scenarios)?;
    let mut plan = conformant_peer(selected.suite, args.time_scale);
    plan.requirements = selected.entries;
    plan.revision.clone_from(&args.select.revision);
    if args.select.requirements.is_empty() {
        // Areas without a scenario are what is still to come.
        let area_of = |entry| {
            Catalogue::embedded()
                .area_of(entry)
                .map(|area| area.name.as_str())
        };
        let areas = selected.suite.areas;
        plan.requirements
            .retain(|entry| areas.iter().any(|area| area_of(entry) == Some(area.name)));
    }
    of_servers(&mut plan, &args.select);
    plan.scenarios = selected.scenarios;
    plan.require_all = plan.scenarios.is_none();
    plan.jobs = args.jobs.unwrap_or(plan.jobs);
    let suite = args
        .select
        .suite
        .iter()
        .map(|suite| format!(" --suite {}", quoted(suite)));
    let rerun = format!(
        "turnwire demo{} --requirement {{id}}",
        suite.collect::<String>()
    );
    report(plan, rerun, &args.report, console)
}
