//! Verdicts over files, as the report of a run.

use std::{collections::BTreeMap, time::Duration};

use turnwire_spec::catalogue::Entry;

use super::{Source, detect::keep_only};
use crate::{
    profile::Profile,
    report::{About, FileReport, Report},
    run::{Red, RedReason, RunReport, judge_played},
    suites::Suite,
    transcript::{Transcript, text::Hider},
    verdict::Verdict,
};

/// What is asked of the files.
#[derive(Debug)]
pub struct Checked<'a> {
    /// The suite whose checks judge.
    pub suite: &'static Suite,
    /// The requirements that get a verdict, in catalogue order.
    pub requirements: Vec<&'static Entry>,
    /// Ids that are red when nothing shows them.
    pub required: Vec<&'a str>,
    /// What is known about whoever was recorded.
    pub profile: &'a Profile,
    /// The command line that judges one requirement again; `{id}` stands for it.
    pub rerun: String,
    /// The frozen set that the requirements were taken from, by name.
    pub revision: Option<String>,
    /// Whether what the tables do not name is a warning.
    pub strict: bool,
}

/// Applies all checks to all files. The report's scenarios are the files, and evidence names its file.
pub fn check(asked: &Checked<'_>, sources: Vec<Source>) -> Report {
    let mut files = Vec::new();
    let mut transcripts = Vec::new();
    for source in sources {
        let (file, transcript) = prepare(asked.suite, source);
        files.push(file);
        transcripts.push(transcript);
    }
    // What a file can show depends on who was under test when it was made, which its scenario tells.
    let played: Vec<_> = files.iter().map(|file| file.scenario.as_str()).collect();
    let verdicts = judge_played(
        &transcripts,
        &played,
        asked.suite,
        &asked.requirements,
        asked.profile,
    );
    let scale = transcripts
        .first()
        .map_or(1.0, |first| first.header.time_scale);
    let started = transcripts
        .iter()
        .map(|transcript| transcript.header.started_ms)
        .find(|started| *started != 0)
        .and_then(|started| jiff::Timestamp::from_millisecond(started).ok());
    let hider = Hider::of(&transcripts);
    let run = run_report(asked, verdicts, transcripts);
    let about = About {
        started: started.map(|time| time.to_string()).unwrap_or_default(),
        time_scale: scale,
        rerun: asked.rerun.clone(),
        revision: asked.revision.clone(),
        strict: asked.strict,
    };
    let mut report = Report::of(&run, &asked.requirements, about);
    report.files = files;
    let evidence = report
        .requirements
        .iter_mut()
        .flat_map(|found| &mut found.evidence);
    for shown in evidence {
        let texts = [&mut shown.expected, &mut shown.got].into_iter();
        for text in texts.chain(&mut shown.request).chain(&mut shown.wire) {
            *text = hider.hide(text);
        }
    }
    report
}

/// A file's transcript as it is judged, under the name of the file, and what the report says about it.
fn prepare(suite: &Suite, source: Source) -> (FileReport, Transcript) {
    let mut transcript = source.transcript;
    let left_out = if source.is_har {
        keep_only(suite.id, &mut transcript)
    } else {
        0
    };
    let exchanges = crate::transcript::views::http::exchanges(&transcript).len();
    let scenario = std::mem::replace(&mut transcript.header.scenario, source.name.clone());
    let file = FileReport {
        name: source.name,
        form: if source.is_har { "har" } else { "twire" }.to_owned(),
        scenario,
        exchanges,
        left_out,
        lost: transcript
            .header
            .lost
            .iter()
            .map(|lost| lost.word().to_owned())
            .collect(),
        notes: transcript.header.notes.clone(),
    };
    (file, transcript)
}

fn run_report(
    asked: &Checked<'_>,
    verdicts: Vec<(String, Verdict)>,
    transcripts: Vec<Transcript>,
) -> RunReport {
    let mut red = Vec::new();
    let mut expected = BTreeMap::new();
    for (id, verdict) in &verdicts {
        let reason = asked.profile.expected_failures.get(id);
        let why = match (verdict, reason) {
            (Verdict::Fail { .. }, Some(reason)) => {
                expected.insert(id.clone(), reason.clone());
                None
            }
            (Verdict::Fail { .. }, None) => Some(RedReason::Failed),
            (Verdict::NotExercised { why }, _) if asked.required.contains(&id.as_str()) => {
                Some(RedReason::NotExercised(why.clone()))
            }
            _ => None,
        };
        red.extend(why.map(|why| Red {
            id: id.clone(),
            why,
        }));
    }
    let unchecked = asked
        .requirements
        .iter()
        .filter(|entry| !asked.suite.judges(entry))
        .map(|entry| (entry.id.clone(), entry.waiver.clone()))
        .collect();
    let timing = transcripts
        .iter()
        .map(|transcript| {
            let took = transcript
                .entries
                .last()
                .map_or(Duration::ZERO, |last| last.at);
            (transcript.header.scenario.clone(), took)
        })
        .collect();
    RunReport {
        suite: asked.suite.name().to_owned(),
        target: asked.profile.name.clone(),
        verdicts,
        unchecked,
        red,
        expected,
        exercised: BTreeMap::new(),
        transcripts,
        harness_errors: Vec::new(),
        problems: Vec::new(),
        skipped: Vec::new(),
        timing,
        took: Duration::ZERO,
        interrupted: false,
    }
}
