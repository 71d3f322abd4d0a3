//! `turnwire client`: checks a client, by the command that starts it, or by hand.
//!
//! A client that speaks lines of JSON itself is one process for all scenarios; any other is started anew for each
//! conversation, with the URL of a scripted server in its environment. A web page is opened anew in Chromium.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use turnwire_spec::catalogue::{Binds, Entry, Suite as SuiteId};

use super::run::{explain, quoted, report};
use crate::{
    cli::{
        args::{ClientArgs, SelectArgs},
        commands::schema,
        console::{self, Console},
        exit::CliError,
        select::{self, Selected},
    },
    clients,
    drivers::{
        browser::{BrowserError, Page, find, har},
        testee::{
            client::{ByHand, ClientCommand, LaunchClient, own, page::PageClient, scales},
            command::TesteeCommand,
        },
    },
    profile::Profile,
    report::Report,
    run::{RunError, RunPlan},
    scenarios::{Act, Scenario, conversations},
    suites::Suite,
};

/// The suite when none is named.
const DEFAULT_SUITE: &str = "covel-sse";
/// Factor of the protocol's periods for our own client.
const OWN_TIME_SCALE: f64 = 0.01;
/// Factor for a program that says that it follows it: 3 s of the protocol are 300 ms.
const PROGRAM_TIME_SCALE: f64 = 0.1;

pub(in crate::cli) fn run(args: ClientArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    let har = args.har.as_ref().map(HarFile::prepare).transpose()?;
    let plan = plan(&args, har.as_ref(), console)?;
    let code = report(plan, rerun(&args), &args.report, console)?;
    har.map_or(Ok(()), HarFile::write)?;
    Ok(code)
}

/// The file of `--har`, and what goes into it.
struct HarFile {
    path: PathBuf,
    log: Arc<Mutex<har::HarLog>>,
}

impl HarFile {
    /// Makes sure that the file can be written before anything is run.
    fn prepare(path: &PathBuf) -> Result<Self, CliError> {
        std::fs::write(path, "").map_err(|error| CliError::file("write", path, &error))?;
        Ok(Self {
            path: path.clone(),
            log: Arc::default(),
        })
    }

    fn write(self) -> Result<(), CliError> {
        let file = har::lock(&self.log).to_har("turnwire");
        std::fs::write(&self.path, format!("{file:#}\n"))
            .map_err(|error| CliError::file("write", &self.path, &error))
    }
}

fn plan(args: &ClientArgs, har: Option<&HarFile>, console: &Console) -> Result<RunPlan, CliError> {
    let named = args.select.suite.is_some() || !args.select.requirements.is_empty();
    let default = (!named).then(|| DEFAULT_SUITE.to_owned());
    let select = SelectArgs {
        suite: args.select.suite.clone().or(default),
        ..args.select.clone()
    };
    let selected = select::for_run(&select, &args.scenarios)?;
    let suite = selected.suite;
    if suite.tests_clients() {
        return speaking(args, selected);
    }
    let programme = programme(&selected);
    let (launch, profile) = target(suite, args, har, programme, console)?;
    let mut profile = timed(args, profile);
    select::named(&args.require)?;
    profile.requires.extend(args.require.iter().cloned());
    let no_server = profile.launcher();
    let mut plan = RunPlan::new(suite, profile, no_server);
    plan.requirements = selected.entries;
    plan.revision.clone_from(&args.select.revision);
    if args.select.requirements.is_empty() {
        let chosen = selected.scenarios.as_deref();
        plan.requirements
            .retain(|entry| is_meant(suite, entry, chosen));
    }
    // Without names, every scenario that has a client.
    let all = || {
        suite
            .scenarios()
            .filter(|scenario| matches!(scenario.run, Act::Client(_)))
            .collect()
    };
    plan.scenarios = Some(selected.scenarios.unwrap_or_else(all));
    // A person does one thing at a time.
    plan.jobs = match &args.listen {
        Some(_) => 1,
        None if args.start.is_empty() && args.browser.is_none() => plan.jobs,
        None => jobs(args),
    };
    plan.client = Some(launch);
    plan.seed = u64::from(std::process::id());
    Ok(plan)
}

/// Whether a requirement is judged where none was asked for by name: it binds clients, and a scenario that was chosen, or
/// any, may show it.
fn is_meant(suite: &Suite, entry: &Entry, chosen: Option<&[&'static Scenario]>) -> bool {
    let may_show = |chosen: &[&Scenario]| {
        let shows = suite.scenarios_of(entry);
        shows
            .iter()
            .any(|one| chosen.iter().any(|own| own.name == one.name))
    };
    entry.binds == Binds::Client && suite.judges(entry) && chosen.is_none_or(may_show)
}

/// Name of our own client that speaks lines, in reports.
const OWN: &str = "turnwire reference client";

/// The profile with the times that were asked for.
fn timed(args: &ClientArgs, mut profile: Profile) -> Profile {
    if let Some(scale) = args.time_scale {
        profile = profile.with_time_scale(scale);
    }
    if let Some(seconds) = args.timeout {
        profile.limits.patience = Duration::from_secs_f64(seconds);
        profile.limits.http.total = profile.limits.patience;
    }
    profile
}

/// The plan for a client that speaks lines of JSON itself.
fn speaking(args: &ClientArgs, selected: Selected) -> Result<RunPlan, CliError> {
    let suite = selected.suite;
    let cannot = match args {
        _ if args.browser.is_some() => Some("has no scenarios for web pages"),
        _ if args.listen.is_some() => Some(
            "asks its client after each step what it shows, so nobody can point one at a URL by hand: \
             give its command after `--`",
        ),
        _ => None,
    };
    if let Some(cannot) = cannot {
        let name = suite.name();
        return Err(CliError::Usage(format!(
            "suite {name} {cannot}; covel-sse and sse can"
        )));
    }
    let profile = if args.start.is_empty() {
        // Our own client keeps the periods of its protocol a hundred times faster.
        Profile::for_own_testee(OWN).with_time_scale(OWN_TIME_SCALE)
    } else {
        Profile::for_testee(&args.start.join(" "))
    };
    let mut profile = timed(args, profile);
    select::named(&args.require)?;
    profile.requires.extend(args.require.iter().cloned());
    let launch = profile.launcher();
    let mut plan = RunPlan::new(suite, profile, launch);
    plan.testee = if args.start.is_empty() {
        clients::of(suite.id)
    } else {
        let mut command = TesteeCommand::new(args.start.clone());
        command.env = BTreeMap::from([("TURNWIRE_SUITE".to_owned(), suite.name().to_owned())]);
        Some(Arc::new(command))
    };
    plan.requirements = selected.entries;
    plan.revision.clone_from(&args.select.revision);
    if args.select.requirements.is_empty() {
        let chosen = selected.scenarios.as_deref();
        plan.requirements
            .retain(|entry| is_meant(suite, entry, chosen));
    }
    plan.scenarios = selected.scenarios;
    plan.jobs = args.jobs.unwrap_or(1);
    plan.seed = u64::from(std::process::id());
    Ok(plan)
}

/// What will be played: scenarios in their order, each with its number of conversations.
fn programme(selected: &Selected) -> Vec<(String, usize)> {
    let chosen = selected.scenarios.as_deref();
    let is_chosen =
        |name: &str| chosen.is_none_or(|chosen| chosen.iter().any(|one| one.name == name));
    let counted = |scenario: &Scenario| {
        let count = conversations::of(scenario.name)?;
        Some((scenario.name.to_owned(), count))
    };
    let scenarios = selected.suite.scenarios();
    scenarios
        .filter(|scenario| matches!(scenario.run, Act::Client(_)) && is_chosen(scenario.name))
        .filter_map(counted)
        .collect()
}

/// How the client is started, and what is known about it.
fn target(
    suite: &'static Suite,
    args: &ClientArgs,
    har: Option<&HarFile>,
    programme: Vec<(String, usize)>,
    console: &Console,
) -> Result<(Arc<dyn LaunchClient>, Profile), CliError> {
    if let Some(page) = &args.browser {
        let usage = |error: BrowserError| CliError::Usage(error.to_string());
        let opened = Page::named(page).map_err(usage)?;
        let chromium = find::chromium(args.chromium.as_deref()).map_err(usage)?;
        let mut client = PageClient::new(opened, chromium, jobs(args));
        if let Some(har) = har {
            client = client.keeping(Arc::clone(&har.log));
        }
        let profile = scaled(suite, args, &client, Profile::for_testee(page), console)?;
        return Ok((Arc::new(client), profile));
    }
    if let Some(listen) = args.listen {
        // Each scenario listens there for itself; one look before spares as many errors.
        std::net::TcpListener::bind(listen)
            .map_err(|error| CliError::Usage(format!("cannot listen on {listen}: {error}")))?;
        let say = |words: &str| Console::from_env().note(words);
        let by_hand = ByHand {
            listen,
            programme,
            say,
        };
        say(&by_hand.overview());
        return Ok((Arc::new(by_hand), Profile::for_testee("by hand")));
    }
    if !args.start.is_empty() {
        let command = ClientCommand::new(args.start.clone(), jobs(args));
        let profile = Profile::for_testee(&args.start.join(" "));
        let profile = scaled(suite, args, &command, profile, console)?;
        return Ok((Arc::new(command), profile));
    }
    match own::client(suite.id) {
        Some(client) => {
            let profile = Profile::for_own_testee(client.name).with_time_scale(OWN_TIME_SCALE);
            Ok((Arc::new(client), profile))
        }
        None => Err(CliError::Usage(format!(
            "suite {} has no scenarios for clients",
            suite.name()
        ))),
    }
}

/// Programs or pages that run at the same time. They mostly wait for us, and we for them to be quiet.
fn jobs(args: &ClientArgs) -> usize {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    args.jobs.unwrap_or(processors * 4)
}

/// The profile with the factor of the protocol's periods: a small one for a client that says that it follows it.
fn scaled(
    suite: &Suite,
    args: &ClientArgs,
    client: &dyn LaunchClient,
    profile: Profile,
    console: &Console,
) -> Result<Profile, CliError> {
    if suite.id != SuiteId::CovelSse || args.time_scale.is_some() {
        return Ok(profile);
    }
    let follows = console::block_on(async { Ok(scales(client, PROGRAM_TIME_SCALE).await) })?;
    match follows {
        Ok(true) => Ok(profile.with_time_scale(PROGRAM_TIME_SCALE)),
        Ok(false) => {
            console.note(
                "the client does not say that its periods follow TURNWIRE_TIME_SCALE: they are played in real time",
            );
            Ok(profile)
        }
        Err(error) => Err(explain(&RunError::NotStarted(error), console)),
    }
}

/// The command line that runs one requirement again.
fn rerun(args: &ClientArgs) -> String {
    let mut words = vec!["turnwire client --requirement {id}".to_owned()];
    let suite = args.select.suite.iter();
    words.extend(suite.map(|suite| format!("--suite {}", quoted(suite))));
    let page = args.browser.iter();
    words.extend(page.map(|page| format!("--browser {}", quoted(page))));
    let listen = args.listen.iter();
    words.extend(listen.map(|listen| format!("--listen {listen}")));
    let scale = args.time_scale.iter();
    words.extend(scale.map(|scale| format!("--time-scale {scale}")));
    let timeout = args.timeout.iter();
    words.extend(timeout.map(|seconds| format!("--timeout {seconds}")));
    if !args.start.is_empty() {
        words.push("--".to_owned());
        words.extend(args.start.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Args, Command};

    fn args(line: &str) -> ClientArgs {
        let words = ["turnwire", "client"].into_iter().chain(line.split(' '));
        match Args::try_parse_from(words).unwrap().command {
            Command::Client(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn plan_of(line: &str) -> Result<RunPlan, CliError> {
        plan(&args(line), None, &Console::from_env())
    }

    #[test]
    fn what_a_suite_cannot_do_is_wrong_usage_and_no_run_of_another_client() {
        for suite in ["chat-ws", "session-update"] {
            for way in ["--listen 127.0.0.1:0", "--browser page.html"] {
                let line = format!("--suite {suite} {way}");
                let error = plan_of(&line).map(|_| ()).unwrap_err();
                assert!(matches!(&error, CliError::Usage(_)), "{line}: {error:?}");
            }
        }
    }

    #[test]
    fn an_address_that_is_taken_is_wrong_usage() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let line = format!("--suite sse --listen {}", taken.local_addr().unwrap());
        let error = plan_of(&line).map(|_| ()).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot listen on 127.0.0.1:"),
            "{error}"
        );
        assert!(matches!(error, CliError::Usage(_)), "{error:?}");
    }

    #[test]
    fn every_client_is_given_the_times_that_were_asked_for() {
        for suite in ["chat-ws", "session-update", "sse", "covel-sse"] {
            let line = format!("--suite {suite} --time-scale 0.25 --timeout 7 -- true");
            let profile = plan_of(&line).unwrap().profile;
            assert!((profile.time_scale - 0.25).abs() < 1e-9, "{suite}");
            let seven = Duration::from_secs(7);
            let limits = &profile.limits;
            assert_eq!(
                (limits.patience, limits.http.total),
                (seven, seven),
                "{suite}"
            );
        }
    }

    #[test]
    fn the_line_that_runs_one_requirement_again_is_about_the_same_client() {
        let again = rerun(&args("--suite sse --listen 127.0.0.1:8090 --timeout 7"));
        assert_eq!(
            again,
            "turnwire client --requirement {id} --suite sse --listen 127.0.0.1:8090 --timeout 7"
        );
        let again = rerun(&args("--suite sse --time-scale 0.5 -- node a.mjs"));
        assert!(
            again.ends_with("--suite sse --time-scale 0.5 -- node a.mjs"),
            "{again}"
        );
    }
}
