//! `turnwire provider`: checks a server that claims to speak the wire of an LLM provider.

use std::time::Duration;

use turnwire_spec::{
    catalogue::{Binds, Catalogue, Suite},
    llm::Wire,
    secrets,
};

use super::run::{quoted, report};
use crate::{
    cli::{
        args::{ProviderArgs, SelectArgs},
        commands::schema,
        console::Console,
        exit::CliError,
        select,
    },
    drivers::http::BaseUrl,
    profile::{Profile, ProviderAccess},
    report::Report,
    run::RunPlan,
    suites::find,
};

/// Longest wait for the answer of a model, without `--timeout`.
const MODELS_TAKE: Duration = Duration::from_secs(60);

/// Bytes of an answer that are read. The longest that is asked for is a list of models.
const LONGEST: usize = 2 << 20;

pub(in crate::cli) fn run(args: ProviderArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    let usage = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
    let select = SelectArgs {
        suite: Some(args.wire.clone()),
        requirements: args.requirements.clone(),
        binds: Some(Binds::Server.name().to_owned()),
        ..SelectArgs::default()
    };
    of_the_wire(&args, find(&args.wire).map_err(|error| usage(&error))?.id)?;
    let wire: Wire = args.wire.parse().map_err(|error| usage(&error))?;
    let selected = select::for_run(&select, &args.scenarios)?;
    let url = args.url.as_deref().unwrap_or_default();
    let url = BaseUrl::of_service(url).map_err(|error| usage(&error))?;
    let url = if args.as_given {
        url
    } else {
        with_version(url, wire)
    };
    let profile = profile(&args, url)?;
    let launch = profile.launcher();
    let mut plan = RunPlan::new(selected.suite, profile, launch);
    // What else binds a server on these wires is about gateways, and cannot be seen from their clients.
    plan.requirements = selected.entries;
    plan.requirements
        .retain(|entry| entry.prefix() == "LLM-PROV");
    plan.scenarios = selected.scenarios;
    plan.jobs = args.jobs.unwrap_or(1);
    plan.seed = u64::from(std::process::id());
    report(plan, rerun(&args), &args.report, console)
}

/// Every requirement that is named is one of the wire.
fn of_the_wire(args: &ProviderArgs, suite: Suite) -> Result<(), CliError> {
    let catalogue = Catalogue::embedded();
    for id in select::named(&args.requirements)? {
        let other = catalogue
            .get(id)
            .filter(|entry| !catalogue.is_in(entry, suite));
        if let Some(entry) = other {
            let other = catalogue.suite_of(entry).name();
            let wire = &args.wire;
            return Err(CliError::Usage(format!(
                "{id} is about {other}, not {wire}; say --wire {other}"
            )));
        }
    }
    Ok(())
}

/// The URL with the wire's version behind its path, unless a segment of the path is a version, or the query names one
/// (`api-version`). The compatible endpoint stands behind the version.
fn with_version(mut url: BaseUrl, wire: Wire) -> BaseUrl {
    let mut parameters = url.query.split('&');
    if parameters.any(|pair| pair.starts_with("api-version=")) {
        return url;
    }
    let is_version = |segment: &str| {
        let number = segment.strip_prefix('v').unwrap_or_default();
        number.starts_with(|first: char| first.is_ascii_digit())
    };
    if url.prefix.split('/').any(is_version) {
        let last = url.prefix.rsplit('/').next().unwrap_or_default();
        if wire == Wire::GeminiOpenai && is_version(last) {
            url.prefix.push_str("/openai");
        }
        return url;
    }
    let version = match wire {
        Wire::Gemini => "/v1beta",
        Wire::GeminiOpenai => "/v1beta/openai",
        Wire::OpenaiChat | Wire::OpenaiResponses | Wire::AnthropicMessages => "/v1",
    };
    url.prefix.push_str(version);
    url
}

fn profile(args: &ProviderArgs, url: BaseUrl) -> Result<Profile, CliError> {
    let mut profile = Profile::for_url(url);
    profile.provider = ProviderAccess {
        key: args.key.clone(),
        model: args.model.clone(),
        ..ProviderAccess::default()
    };
    let wait = args.timeout.map_or(MODELS_TAKE, Duration::from_secs_f64);
    let limits = &mut profile.limits;
    limits.http.connect = limits.http.connect.min(wait);
    (limits.http.head, limits.http.idle, limits.http.total) = (wait, wait, wait);
    limits.http.max_body = LONGEST;
    // A scenario asks up to ten times.
    limits.scenario = wait * 10;
    // The names are resolved here, so that a misspelt one is no surprise after the run.
    select::named(&args.require)?;
    profile.requires.extend(args.require.iter().cloned());
    Ok(profile)
}

/// The command line that runs one requirement again; no key is in it.
fn rerun(args: &ProviderArgs) -> String {
    let url = args.url.as_deref().map(|url| match url.split_once('?') {
        Some((before, query)) => {
            let keys = secrets::of_service_query(query);
            format!("{before}?{}", secrets::replaced(query, &keys, "KEY"))
        }
        None => url.to_owned(),
    });
    let mut words = vec![format!(
        "turnwire provider --wire {} --requirement {{id}}",
        args.wire
    )];
    let given = [("--url", &url), ("--model", &args.model)];
    for (option, value) in given {
        words.extend(
            value
                .iter()
                .map(|value| format!("{option} {}", quoted(value))),
        );
    }
    if args.as_given {
        words.push("--as-given".to_owned());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_put_behind_a_url_that_has_none() {
        for (given, wire, used) in [
            ("http://h:1", Wire::OpenaiChat, "http://h:1/v1"),
            ("http://h:1/v1/", Wire::OpenaiChat, "http://h:1/v1"),
            (
                "http://h:1/?team=red",
                Wire::OpenaiChat,
                "http://h:1/v1?team=red",
            ),
            (
                "http://h:1/openai/deployments/d?api-version=2024-10-21",
                Wire::OpenaiChat,
                "http://h:1/openai/deployments/d?api-version=2024-10-21",
            ),
            ("http://h:1", Wire::Gemini, "http://h:1/v1beta"),
            ("http://h:1/v1", Wire::Gemini, "http://h:1/v1"),
            ("http://h:1", Wire::GeminiOpenai, "http://h:1/v1beta/openai"),
            (
                "http://h:1/v1beta",
                Wire::GeminiOpenai,
                "http://h:1/v1beta/openai",
            ),
            (
                "http://h:1/v1beta/openai",
                Wire::OpenaiChat,
                "http://h:1/v1beta/openai",
            ),
            (
                "http://h:1/vault",
                Wire::AnthropicMessages,
                "http://h:1/vault/v1",
            ),
        ] {
            let url = BaseUrl::of_service(given).unwrap();
            assert_eq!(with_version(url, wire).to_string(), used);
        }
    }
}
