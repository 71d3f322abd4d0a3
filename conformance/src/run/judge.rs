//! Checks over transcripts, live or from files, and what their findings add up to.
//!
//! A requirement is judged by its catalogue rule, by coded checks, or both. Findings of all transcripts add up;
//! none over a whole run is "not exercised", which never passes.

use turnwire_spec::catalogue::{Binds, Entry, rule::Rule};

use super::{RunPlan, execute::Scene};
use crate::{
    cases::content::Feature,
    checks::{Check, generic},
    drivers::http::throttle::without_refused,
    profile::Profile,
    scenarios::Act,
    suites::Suite,
    transcript::{
        Lost, Transcript,
        views::{cases::ready, reading::Reading},
    },
    verdict::{Evidence, Findings, MAX_EVIDENCE, Verdict},
};

/// What all checks found in one transcript: findings for each requirement, in the order of the selection.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged(Vec<Findings>);

impl Judged {
    /// The findings for the requirement at this place of the selection.
    pub(super) fn of(&self, index: usize) -> Option<&Findings> {
        self.0.get(index)
    }

    /// How many faults there are in all.
    pub(super) fn faults(&self) -> usize {
        self.0.iter().map(|findings| findings.faults.len()).sum()
    }
}

/// Applies all checks of the selection to transcripts, and gives a verdict for each requirement that has a
/// check, in the order of the selection. The profile says which capabilities are absent.
pub fn judge(
    transcripts: &[Transcript],
    suite: &Suite,
    selection: &[&'static Entry],
    profile: &Profile,
) -> Vec<(String, Verdict)> {
    let played: Vec<_> = transcripts
        .iter()
        .map(|transcript| transcript.header.scenario.as_str())
        .collect();
    judge_played(transcripts, &played, suite, selection, profile)
}

/// As [`judge`], where the transcripts have names of their own; `played` has the scenario of each, empty for none.
pub fn judge_played(
    transcripts: &[Transcript],
    played: &[&str],
    suite: &Suite,
    selection: &[&'static Entry],
    profile: &Profile,
) -> Vec<(String, Verdict)> {
    let scenarios = played.iter().copied().chain(std::iter::repeat(""));
    let judged: Vec<_> = transcripts
        .iter()
        .zip(scenarios)
        .map(|(transcript, played)| judged(suite, selection, transcript, played))
        .collect();
    let verdict = |(index, entry): (usize, &&'static Entry)| {
        let findings = judged.iter().filter_map(|judged| judged.of(index));
        let why = why_nothing(transcripts, suite, entry);
        let absent = is_absent(entry, profile, transcripts);
        (entry.id.clone(), merge(entry, findings, absent, &why))
    };
    let checked = selection
        .iter()
        .enumerate()
        .filter(|(_, entry)| suite.judges(entry));
    checked.map(verdict).collect()
}

/// The requirements of a selection that one transcript breaks, each with its first evidence.
pub fn faults(
    suite: &Suite,
    selection: &[&'static Entry],
    transcript: &Transcript,
) -> Vec<(&'static Entry, Evidence)> {
    let judged = self::transcript(suite, selection, transcript).0;
    let first = |(entry, findings): (&&'static Entry, Findings)| {
        Some((*entry, findings.faults.into_iter().next()?))
    };
    selection.iter().zip(judged).filter_map(first).collect()
}

/// Whether a requirement is about periods, or about how soon something comes.
pub fn is_timed(suite: &Suite, entry: &Entry) -> bool {
    let mut without_times = Transcript::default();
    without_times.header.lost = vec![Lost::Times];
    let rule = entry.rule.as_ref();
    rule.is_some_and(|rule| lacking(rule, &without_times).is_some())
        || suite.checks(&entry.id).any(|check| check.timed)
}

/// Why transcripts show nothing about a requirement, when they do not.
fn why_nothing(transcripts: &[Transcript], suite: &Suite, entry: &Entry) -> String {
    let lacks = |transcript: &Transcript| {
        let rule = entry
            .rule
            .as_ref()
            .and_then(|rule| lacking(rule, transcript));
        let check = || {
            suite
                .checks(&entry.id)
                .find_map(|check| untimed(check, transcript))
        };
        rule.or_else(check)
    };
    match transcripts.iter().find_map(lacks) {
        Some(Lost::Times) => {
            "a file does not keep when the pieces of its streams arrived".to_owned()
        }
        Some(Lost::Bytes) => "a file does not keep the bytes of its streams".to_owned(),
        None => NOTHING.to_owned(),
    }
}

/// What a rule cannot do without, and the transcript does not have.
fn lacking(rule: &Rule, transcript: &Transcript) -> Option<Lost> {
    let needs: Vec<Lost> = match rule {
        Rule::Frames(rule) => {
            let bytes = !rule.lines.is_empty()
                || !rule.line_pattern.is_empty()
                || !rule.only_lines.is_empty();
            let times = rule.clock.is_some();
            [(bytes, Lost::Bytes), (times, Lost::Times)]
                .into_iter()
                .filter_map(|(needed, what)| needed.then_some(what))
                .collect()
        }
        Rule::Streams(rule) if !rule.period.is_empty() => vec![Lost::Times, Lost::Bytes],
        Rule::Streams(rule) if rule.count.contains_key(":") => vec![Lost::Bytes],
        Rule::Waits(_) => vec![Lost::Times],
        Rule::All(rules) => return rules.iter().find_map(|rule| lacking(rule, transcript)),
        _ => Vec::new(),
    };
    needs
        .into_iter()
        .find(|lost| transcript.header.lost.contains(lost))
}

fn untimed(check: &Check, transcript: &Transcript) -> Option<Lost> {
    (check.timed && transcript.header.lost.contains(&Lost::Times)).then_some(Lost::Times)
}

/// Why a requirement was not exercised, when nothing better is known.
pub(super) const NOTHING: &str = "nothing in the run could show it";

/// Applies all checks of the selection to one transcript.
pub(super) fn transcript(
    suite: &Suite,
    selection: &[&'static Entry],
    transcript: &Transcript,
) -> Judged {
    judged(suite, selection, transcript, &transcript.header.scenario)
}

fn judged(
    suite: &Suite,
    selection: &[&'static Entry],
    transcript: &Transcript,
    played: &str,
) -> Judged {
    let transcript = without_refused(transcript);
    let reading = Reading::new(&transcript);
    Judged(
        selection
            .iter()
            .map(|entry| findings(suite, entry, &reading, played))
            .collect(),
    )
}

fn findings(suite: &Suite, entry: &Entry, reading: &Reading<'_>, played: &str) -> Findings {
    if !concerns(suite, entry, played) {
        return Findings::none();
    }
    let mut findings = match &entry.rule {
        Some(rule) if lacking(rule, reading.transcript()).is_none() => {
            generic::judge_reading(rule, reading)
        }
        _ => Findings::none(),
    };
    let able = |check: &&Check| untimed(check, reading.transcript()).is_none();
    for check in suite.checks(&entry.id).filter(able) {
        findings.merge(reading.share(check.judge));
    }
    let scenario = &reading.transcript().header.scenario;
    for evidence in &mut findings.faults {
        evidence.scenario.clone_from(scenario);
    }
    findings
}

/// Whether a scenario's transcript can show what a requirement asks for. With a client or testee under test, the
/// server is the harness's own, and its faults are on purpose; with a server under test, the client is. A recording
/// may show both.
fn concerns(suite: &Suite, entry: &Entry, scenario: &str) -> bool {
    let played = suite.scenarios().find(|found| found.name == scenario);
    match (played.map(|found| found.run), entry.binds) {
        (Some(Act::Client(_)), binds) => binds == Binds::Client,
        (Some(Act::Testee(_)), binds) => binds != Binds::Server,
        (Some(Act::Server(_)), binds) => binds != Binds::Client,
        (None, _) => true,
    }
}

/// Whether the target lacks what a requirement needs: a capability that its profile declares absent, or a feature
/// that the adapter did not name when it was ready.
pub(super) fn is_absent<'t>(
    entry: &Entry,
    profile: &Profile,
    transcripts: impl IntoIterator<Item = &'t Transcript>,
) -> bool {
    let Some(needs) = &entry.needs else {
        return false;
    };
    profile.capabilities.get(needs) == Some(&false)
        || Feature::named(needs).is_some_and(|feature| {
            let said = transcripts.into_iter().find_map(ready);
            said.is_some_and(|said| !feature.is_in(&said))
        })
}

/// The verdict that findings add up to. `absent`: the target lacks what the requirement needs; `otherwise`: why
/// there are no findings, if there are none.
pub(super) fn merge<'f>(
    entry: &Entry,
    all: impl Iterator<Item = &'f Findings>,
    absent: bool,
    otherwise: &str,
) -> Verdict {
    if absent {
        return Verdict::NotApplicable {
            needs: entry.needs.clone().unwrap_or_default(),
        };
    }
    let (mut judged, mut evidence) = (0, Vec::new());
    for findings in all {
        judged += findings.judged;
        let room = MAX_EVIDENCE - evidence.len();
        evidence.extend(findings.faults.iter().take(room).cloned());
    }
    if !evidence.is_empty() {
        Verdict::Fail { judged, evidence }
    } else if judged > 0 {
        Verdict::Pass { judged }
    } else {
        Verdict::NotExercised {
            why: otherwise.to_owned(),
        }
    }
}

/// Whether a requirement that has a check, and whose capability is not absent, got no findings so far.
pub(super) fn unexercised(plan: &RunPlan, scenes: &[Scene]) -> bool {
    plan.requirements.iter().enumerate().any(|(index, entry)| {
        let findings = scenes.iter().filter_map(|scene| scene.judged.of(index));
        let transcripts = scenes.iter().map(|scene| scene.transcript.as_ref());
        plan.suite.judges(entry)
            && matches!(
                merge(
                    entry,
                    findings,
                    is_absent(entry, &plan.profile, transcripts),
                    ""
                ),
                Verdict::NotExercised { .. }
            )
    })
}
