//! What the commands share that run scenarios: playing a plan, progress, and the files that a run leaves.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use quick_junit::SerializeError;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    cli::{
        args::{Format, ReportArgs},
        commands::{json, target::scaled},
        console::{Console, Progress},
        exit::{CONFORMANT, CliError, FAILED, HARNESS, NOTHING},
        state,
    },
    clients,
    drivers::{
        DriveError,
        testee::{
            client::{LaunchClient, own},
            gateway::{self, GatewayTestee},
        },
    },
    profile::Profile,
    report::{About, Outcome, Report, human, junit},
    run::{self, RunError, RunEvent, RunPlan, RunReport},
    suites::Suite,
    transcript::{Transcript, text},
};

/// Plays a plan, reports, and says how the process ends.
pub(super) fn report(
    plan: RunPlan,
    rerun: String,
    args: &ReportArgs,
    console: &Console,
) -> Result<u8, CliError> {
    let files = ReportFiles::prepare(args)?;
    let entries = plan.requirements.clone();
    let about = About {
        started: now(),
        time_scale: plan.profile.time_scale,
        rerun,
        revision: plan.revision.clone(),
        strict: args.strict,
    };
    let interrupt = plan.interrupt.clone();
    let played = play(plan, args.quiet, console);
    let run = console.block_on_until_asked(&interrupt, played)?;
    let report = Report::of(&run, &entries, about);
    if !run.interrupted {
        state::keep_report(&report, console);
    }
    files.deliver(&report, &run.transcripts, console)
}

/// Tells what the target said beyond the tables of its protocol.
fn note_observations(report: &Report, console: &Console) {
    for observation in &report.observations {
        let name = if observation.warning {
            "warning"
        } else {
            "observation"
        };
        let (what, times) = (&observation.what, observation.times);
        console.note(&format!("{name}: {what} ({times} times)"));
    }
}

/// Plays a plan and shows how far it is.
async fn play(mut plan: RunPlan, quiet: bool, console: &Console) -> Result<RunReport, CliError> {
    let (sender, receiver) = unbounded_channel();
    plan.events = Some(sender);
    let progress = console.progress(0, quiet);
    // The plan owns the sender, so the events end with the run.
    let (ended, ()) = tokio::join!(run::run(plan), show(receiver, &progress));
    progress.finish();
    ended.map_err(|error| explain(&error, console))
}

pub(super) async fn show(mut events: UnboundedReceiver<RunEvent>, progress: &Progress) {
    // Long reasons are said once.
    let mut reasons: BTreeMap<String, String> = BTreeMap::new();
    while let Some(event) = events.recv().await {
        match event {
            RunEvent::Started {
                suite,
                scenarios,
                requirements,
            } => {
                progress.grow(scenarios.len());
                progress.note(&format!(
                    "{suite}: {requirements} requirements, {} scenarios",
                    scenarios.len()
                ));
            }
            RunEvent::More { scenarios } => progress.grow(scenarios.len()),
            RunEvent::TargetUp { variant, url, took } => {
                progress.note(&format!(
                    "target up at {url} ({variant}), {:.1} s",
                    took.as_secs_f64()
                ));
            }
            RunEvent::ScenarioStarted { name } => progress.begin(&name),
            RunEvent::ScenarioWaits { name, what } => progress.note(&format!("{name}: {what}")),
            RunEvent::ScenarioFinished {
                name,
                took,
                problem,
            } => {
                let problem = problem
                    .map(|problem| format!(", stopped: {problem}"))
                    .unwrap_or_default();
                progress.done(&format!("{name}: {:.1} s{problem}", took.as_secs_f64()));
            }
            RunEvent::ScenarioJudged { faults: 0, .. } => {}
            RunEvent::ScenarioJudged { name, faults } => {
                progress.note(&format!("{name}: {faults} faults"));
            }
            RunEvent::ScenarioSkipped { name, why } => {
                match reasons.get(&why) {
                    Some(first) => progress.note(&format!("{name}: left out, as {first}")),
                    None => progress.note(&format!("{name}: left out: {why}")),
                }
                reasons.entry(why).or_insert(name);
            }
            RunEvent::Finished { .. } => {}
        }
    }
}

/// Why there is no report, with what to do about it.
pub(super) fn explain(error: &RunError, console: &Console) -> CliError {
    let target = |remedy: &str| CliError::Target {
        what: error.to_string(),
        remedy: remedy.to_owned(),
    };
    match error {
        RunError::Unreachable(_) => target("is the server running, and is its base URL right?"),
        RunError::NotTheApi { .. } => target("give the base URL under which the API's paths begin"),
        RunError::NotTheProtocol { .. } => target(
            "a response carries the request_id of its request; see the page on session-update",
        ),
        RunError::NotStarted(cause) => {
            if let DriveError::NotStarted { output, .. } = cause {
                output
                    .iter()
                    .for_each(|line| console.note(&format!("target | {line}")));
            }
            target("run the command by hand to see why")
        }
        RunError::Model(_) => CliError::Harness(error.to_string()),
        RunError::Nothing(_) => CliError::Usage(error.to_string()),
    }
}

/// The files that a run leaves besides what it prints.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportFiles<'a> {
    args: &'a ReportArgs,
}

impl<'a> ReportFiles<'a> {
    /// Finds out before the run whether they can be written.
    ///
    /// # Errors
    ///
    /// [`CliError::Usage`] names the one that cannot.
    pub(super) fn prepare(args: &'a ReportArgs) -> Result<Self, CliError> {
        if let Some(folder) = &args.transcripts {
            fs::create_dir_all(folder)
                .map_err(|error| CliError::file("make the folder", folder, &error))?;
        }
        if args.json.iter().any(|path| path.as_os_str() == "-") {
            let why = "to print the result as JSON, say --format json; --json takes a file";
            return Err(CliError::Usage(why.to_owned()));
        }
        for path in args.json.iter().chain(&args.junit) {
            let opened = fs::OpenOptions::new().append(true).create(true).open(path);
            opened.map_err(|error| CliError::file("write", path, &error))?;
        }
        Ok(Self { args })
    }

    /// Prints the report of a suite, writes what was asked for, and says how the process ends.
    ///
    /// # Errors
    ///
    /// When a file or the output cannot be written.
    pub(super) fn deliver(
        &self,
        report: &Report,
        transcripts: &[Transcript],
        console: &Console,
    ) -> Result<u8, CliError> {
        note_observations(report, console);
        self.json(|| json(report))?;
        self.junit(|| junit::render(report))?;
        self.transcripts(transcripts)?;
        let text = match self.args.print.format {
            Format::Human => human::render(report, console.colour),
            Format::Json => json(report)?,
        };
        console.print(&text)?;
        Ok(match report.outcome {
            Outcome::Conformant => CONFORMANT,
            Outcome::NotConformant => FAILED,
            Outcome::Unknown | Outcome::Interrupted => HARNESS,
            Outcome::NothingExercised => NOTHING,
        })
    }

    /// Writes the JSON file, if it was asked for; a folder of transcripts gets one too.
    pub(super) fn json(&self, text: impl Fn() -> Result<String, CliError>) -> Result<(), CliError> {
        let beside = self
            .args
            .transcripts
            .as_ref()
            .map(|folder| folder.join("report.json"));
        self.args
            .json
            .iter()
            .chain(&beside)
            .try_for_each(|path| write(path, &text()?))
    }

    /// Writes the JUnit file, if it was asked for.
    pub(super) fn junit(
        &self,
        text: impl Fn() -> Result<String, SerializeError>,
    ) -> Result<(), CliError> {
        let unwritable = |error| CliError::Harness(format!("cannot write JUnit XML: {error}"));
        self.args
            .junit
            .iter()
            .try_for_each(|path| write(path, &text().map_err(unwritable)?))
    }

    /// Writes the transcripts, if they were asked for.
    pub(super) fn transcripts(&self, transcripts: &[Transcript]) -> Result<(), CliError> {
        let Some(folder) = &self.args.transcripts else {
            return Ok(());
        };
        transcripts.iter().try_for_each(|transcript| {
            let name = format!("{}.{}", transcript.header.scenario, text::EXTENSION);
            write(&folder.join(name), &text::write(transcript))
        })
    }
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    fs::write(path, text).map_err(|error| CliError::file("write", path, &error))
}

/// The reference server as a target, by default a hundred times faster than real time.
pub(super) fn reference(time_scale: Option<f64>) -> Profile {
    scaled(Profile::reference(), time_scale)
}

/// Our own gateway as the adapter under test.
pub(super) fn own_adapter(suite: &'static Suite) -> RunPlan {
    let profile = Profile::for_own_testee(gateway::NAME);
    let launch = profile.launcher();
    let mut plan = RunPlan::new(suite, profile, launch);
    plan.testee = Some(Arc::new(GatewayTestee));
    plan
}

/// The conformant peers of a suite, and what they are put through: the reference server and the reference client, or
/// for an LLM wire our own gateway as its adapter and the mock as its server.
pub(super) fn conformant_peer(suite: &'static Suite, time_scale: Option<f64>) -> RunPlan {
    if let Some(wire) = suite.wire() {
        let mut plan = own_adapter(suite);
        let profile = Profile::mock(wire);
        plan.launch = profile.launcher();
        plan.profile = Arc::new(Profile {
            limits: plan.profile.limits,
            ..profile
        });
        return plan;
    }
    let profile = reference(time_scale);
    let launch = profile.launcher_for(suite.id);
    let mut plan = RunPlan::new(suite, profile, launch);
    plan.testee = clients::of(suite.id);
    plan.client = own::client(suite.id).map(|client| Arc::new(client) as Arc<dyn LaunchClient>);
    plan
}

/// The present time, RFC 3339.
pub(super) fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

/// A word of a command line as a shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+{}?&".contains(c);
    if !word.is_empty() && word.chars().all(|c| plain(c) && !"?&{}".contains(c)) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
