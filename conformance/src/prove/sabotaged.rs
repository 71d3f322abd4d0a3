//! One requirement under its saboteur.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use turnwire_spec::catalogue::{Entry, Rewrite};

use super::{Context, Doubt, Proof, intercept::Sabotaging};
use crate::{
    run::{self, Problem, RunError, RunPlan, RunReport, report::ScenarioError},
    saboteurs,
    scenarios::Scenario,
    stage::Cases,
    verdict::{Evidence, Verdict},
};

/// Tries the scenarios one after the other, each with a fresh saboteur, until one turns the requirement red.
///
/// Under sabotage much of what a scenario waits for never comes, so the first round waits [`HASTY`]. What is not
/// proven then gets a second round with more patience than the profile has: many sabotages share the machine, and what is
/// late because the machine was busy says nothing about the saboteur.
pub(super) async fn prove(context: &Context, entry: &'static Entry) -> Proof {
    let patience = context.run.profile.limits.patience;
    let first = try_scenarios(context, entry, patience.min(HASTY)).await;
    if !matches!(first, Proof::NotProven(_)) || patience <= HASTY {
        return first;
    }
    match try_scenarios(context, entry, patience * PATIENT).await {
        Proof::NotProven(Doubt::NoRun(_)) => first,
        second => second,
    }
}

/// How many times longer than the profile says the second round waits.
const PATIENT: u32 = 3;

/// How long the first round waits for what may never come, at most.
const HASTY: Duration = Duration::from_millis(250);

async fn try_scenarios(context: &Context, entry: &'static Entry, patience: Duration) -> Proof {
    let scenarios = context.scenarios(entry);
    let mut doubt = Doubt::NotExercised("no scenario shows it".to_owned());
    for scenario in &scenarios {
        let report = match attempt(context, entry, scenario, patience).await {
            Ok(report) => report,
            Err(error) => {
                doubt = Doubt::NoRun(format!("scenario {}: {error}", scenario.name));
                continue;
            }
        };
        // What a scenario has not come to cannot turn red, so one that was cut short shows no neighbours.
        if let Some(problem) = cut_short(&report) {
            doubt = Doubt::NoRun(format!("scenario {problem}"));
            continue;
        }
        match report.verdict(&entry.id) {
            Some(Verdict::Fail { evidence, .. }) => {
                return weigh(context, entry, scenario, evidence, &report);
            }
            Some(Verdict::Pass { .. }) => doubt = Doubt::StillGreen(names(&scenarios)),
            _ if matches!(doubt, Doubt::StillGreen(_)) => {}
            _ => doubt = Doubt::NotExercised(not_shown(scenario, &report)),
        }
    }
    Proof::NotProven(doubt)
}

/// The problem of a scenario that ran out of time, or whose own code failed.
fn cut_short(report: &RunReport) -> Option<&Problem> {
    report.problems.iter().find(|problem| {
        matches!(
            problem.error,
            ScenarioError::TookTooLong(_) | ScenarioError::Panicked(_)
        )
    })
}

async fn attempt(
    context: &Context,
    entry: &'static Entry,
    scenario: &'static Scenario,
    patience: Duration,
) -> Result<RunReport, RunError> {
    let saboteur = saboteurs::for_requirement(entry)
        .ok_or_else(|| RunError::Nothing(format!("{} has no saboteur", entry.id)))?;
    let mut profile = (*context.run.profile).clone();
    profile.limits.patience = patience;
    let time_scale = profile.time_scale;
    run::run(RunPlan {
        scenarios: Some(vec![scenario]),
        cases: cases(entry),
        profile: Arc::new(profile),
        intercept: Some(Arc::new(Sabotaging {
            saboteur,
            time_scale,
        })),
        ..context.run.clone()
    })
    .await
}

/// The cases that a sabotage can touch: a change of what belongs to one hazard, or to one session of a scripted
/// server, leaves all others as they are, so playing them again would show nothing.
fn cases(entry: &Entry) -> Cases {
    let touched = entry.rewrite.as_ref().and_then(touched);
    Cases {
        only: touched.into_iter().collect(),
        ..Cases::default()
    }
}

/// The one hazard or scripted session that a rewrite is about. Other sessions of an act are called `ACT-other`.
fn touched(rewrite: &Rewrite) -> Option<String> {
    let session = match rewrite {
        Rewrite::Report(rewrite) if !rewrite.hazard.is_empty() => {
            return Some(rewrite.hazard.clone());
        }
        Rewrite::Report(rewrite) => Some(rewrite.session.clone()),
        Rewrite::Frames(rewrite) => {
            session(&[], &rewrite.when_query, rewrite.where_request.as_ref())
        }
        Rewrite::Request(rewrite) => session(
            &rewrite.path,
            &rewrite.when_query,
            rewrite.where_request.as_ref(),
        ),
        Rewrite::Response(rewrite) => session(
            &rewrite.path,
            &rewrite.when_query,
            rewrite.where_request.as_ref(),
        ),
        Rewrite::Extra(rewrite) => session(
            &rewrite.path,
            &rewrite.when_query,
            rewrite.where_request.as_ref(),
        ),
        Rewrite::Messages(_) => None,
        Rewrite::All(all) => {
            let mut all = all.iter().map(touched);
            let first = all.next()??;
            return all
                .all(|other| other.as_ref() == Some(&first))
                .then_some(first);
        }
    };
    let session = session.filter(|session| !session.is_empty())?;
    Some(
        session
            .strip_suffix("-other")
            .unwrap_or(&session)
            .to_owned(),
    )
}

/// The session that requests must name to be selected: in their query, their body, or their path.
fn session(path: &[String], query: &[String], body: Option<&Value>) -> Option<String> {
    let in_query = query
        .iter()
        .find_map(|pair| pair.strip_prefix("sessionId="));
    let in_body = body.and_then(|schema| schema["properties"]["sessionId"]["const"].as_str());
    let of_path = |path: &String| {
        let rest = path.strip_prefix("/api/sessions/");
        let segment = rest
            .or(path.strip_prefix("/api/traces/"))?
            .split('/')
            .next()?;
        (!segment.starts_with(':')).then(|| segment.to_owned())
    };
    let mut in_path = path.iter().map(of_path);
    let first = in_path.next().flatten();
    let in_path = first.filter(|first| in_path.all(|other| other.as_ref() == Some(first)));
    in_query.or(in_body).map(str::to_owned).or(in_path)
}

/// The requirement is red; what else is?
fn weigh(
    context: &Context,
    entry: &Entry,
    scenario: &Scenario,
    evidence: &[Evidence],
    report: &RunReport,
) -> Proof {
    let red: Vec<(&str, &[Evidence])> = report
        .verdicts
        .iter()
        .filter_map(|(id, verdict)| match verdict {
            Verdict::Fail { evidence, .. } if *id != entry.id && !context.was_red(id) => {
                Some((id.as_str(), evidence.as_slice()))
            }
            _ => None,
        })
        .collect();
    let first = |evidence: &[Evidence]| evidence.first().cloned().unwrap_or_default();
    let strangers: Vec<_> = red
        .iter()
        .filter(|(id, _)| !entry.also.iter().any(|also| also == id))
        .map(|(id, evidence)| ((*id).to_owned(), first(evidence)))
        .collect();
    if !strangers.is_empty() {
        return Proof::NotProven(Doubt::AlsoRed {
            scenario: scenario.name.to_owned(),
            red: strangers,
        });
    }
    let is_red = |id: &&String| red.iter().any(|(found, _)| found == id);
    // An entry that several suites hold may name what only another of them has.
    let judged = entry.also.iter().filter(|id| report.verdict(id).is_some());
    let (also, unneeded) = judged.partition::<Vec<_>, _>(is_red);
    Proof::Proven {
        scenario: scenario.name.to_owned(),
        evidence: Box::new(first(evidence)),
        also: also.into_iter().cloned().collect(),
        unneeded: unneeded.into_iter().cloned().collect(),
    }
}

fn names(scenarios: &[&Scenario]) -> Vec<String> {
    scenarios
        .iter()
        .map(|scenario| scenario.name.to_owned())
        .collect()
}

fn not_shown(scenario: &Scenario, report: &RunReport) -> String {
    let trouble = report.problems.first();
    let trouble = trouble
        .map(|problem| format!(" ({problem})"))
        .unwrap_or_default();
    format!(
        "sabotaged, scenario {} does not show it{trouble}",
        scenario.name
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rewrite_that_names_one_session_touches_its_act_alone() {
        let of = |rewrite| touched(&serde_json::from_value(rewrite).unwrap());
        let some = |act: &str| Some(act.to_owned());
        assert_eq!(of(json!({"report": {"session": "a"}})), some("a"));
        assert_eq!(of(json!({"report": {}})), None);
        let paths = json!(["/api/sessions/a/view", "/api/traces/a"]);
        assert_eq!(of(json!({"response": {"path": paths}})), some("a"));
        let any = json!(["/api/sessions/a/view", "/api/sessions/:id/view"]);
        assert_eq!(of(json!({"response": {"path": any}})), None);
        assert_eq!(of(json!({"response": {"path": ["/api/worlds"]}})), None);
        let other = json!({"frames": {"when_query": ["sessionId=a-other"]}});
        assert_eq!(of(other), some("a"));
        let body = json!({"properties": {"sessionId": {"const": "a"}}});
        let two = json!([{"frames": {"where_request": body}}, {"report": {"session": "b"}}]);
        assert_eq!(of(json!({"all": two})), None);
    }
}
