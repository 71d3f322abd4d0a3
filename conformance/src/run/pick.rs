//! Which scenarios can be played, and why others cannot.

use std::collections::BTreeSet;

use turnwire_spec::catalogue::Entry;

use super::RunPlan;
use crate::{
    drivers::{http::throttle, target::DEFAULT_VARIANT},
    scenarios::{Act, Scenario},
    transcript::{
        Transcript,
        views::http::{Exchange, exchanges},
    },
};

/// Capability of a target that the harness starts itself.
pub const RESTART: &str = "restart";
/// Capability of a target that calls models where the harness says.
pub const MODEL: &str = "model";
/// Why the model cannot be scripted, and what to do about it.
pub(crate) const NO_MODEL: &str = "the target is not known to call the mock model: {model_url} in a profile, or --model for a target \
                                   that already runs";
/// Need of a scenario that is about the rates which a target allows.
pub const RATE_LIMITS: &str = "rate-limits";

/// A scenario that is left out, and why.
#[derive(Clone, Debug)]
pub(super) struct LeftOut {
    pub(super) scenario: &'static Scenario,
    pub(super) why: String,
}

/// The scenarios of the plan in the order of the suite: those to play first, and those that are played when
/// requirements are then still not exercised. With scenarios chosen by name there is nothing more.
pub(super) fn rounds(plan: &RunPlan) -> [Vec<&'static Scenario>; 2] {
    if let Some(chosen) = &plan.scenarios {
        return [
            in_order(plan, |name| {
                chosen.iter().any(|scenario| scenario.name == name)
            }),
            Vec::new(),
        ];
    }
    let first = names_for(plan, plan.requirements.iter().copied());
    [
        in_order(plan, |name| first.contains(name)),
        in_order(plan, |name| !first.contains(name))
            .into_iter()
            .filter(|scenario| is_about(plan, scenario))
            .collect(),
    ]
}

/// Whether a scenario is about a target of this kind at all.
fn is_about(plan: &RunPlan, scenario: &Scenario) -> bool {
    match scenario.run {
        Act::Server(_) => true,
        Act::Testee(_) => plan.testee.is_some(),
        Act::Client(_) => plan.client.is_some(),
    }
}

/// Names of the scenarios that may show one of the requirements.
fn names_for(
    plan: &RunPlan,
    entries: impl Iterator<Item = &'static Entry>,
) -> BTreeSet<&'static str> {
    let judged = entries.filter(|entry| plan.suite.judges(entry));
    judged
        .flat_map(|entry| plan.suite.scenarios_of(entry))
        .map(|scenario| scenario.name)
        .collect()
}

fn in_order(plan: &RunPlan, wanted: impl Fn(&str) -> bool) -> Vec<&'static Scenario> {
    plan.suite
        .scenarios()
        .filter(|scenario| wanted(scenario.name))
        .collect()
}

/// Why a scenario cannot be played against this target; `None` when it can.
pub(super) fn obstacle(plan: &RunPlan, scenario: &Scenario) -> Option<String> {
    let needs = scenario.needs.iter().find_map(|need| lacks(plan, need));
    needs.or_else(|| match scenario.run {
        _ if !is_about(plan, scenario) => {
            Some("it is about programs that connect to the harness".to_owned())
        }
        Act::Server(_) => plan
            .launch
            .offers(scenario.variant.unwrap_or(DEFAULT_VARIANT))
            .err(),
        Act::Testee(_) | Act::Client(_) => None,
    })
}

fn lacks(plan: &RunPlan, need: &str) -> Option<String> {
    match need {
        RESTART => plan.launch.restarts().err(),
        RATE_LIMITS => None,
        MODEL => (!plan.profile.reaches_model()).then(|| NO_MODEL.to_owned()),
        _ => (plan.profile.capabilities.get(need) == Some(&false))
            .then(|| format!("the profile declares the capability {need:?} absent")),
    }
}

/// Whether a scenario provokes what others wait for: that requests come too fast.
pub(super) fn is_about_rates(scenario: &Scenario) -> bool {
    scenario.needs.contains(&RATE_LIMITS)
}

/// Why a scenario was not played as it should have been: the target answered that requests come too fast, and did not say
/// until when. That is its right, and nothing else can be told from what was recorded.
pub(super) fn throttled(scenario: &Scenario, transcript: &Transcript) -> Option<String> {
    if is_about_rates(scenario) {
        return None;
    }
    let too_fast = |exchange: &Exchange<'_>| {
        exchange.status() == Some(throttle::STATUS)
            && exchange
                .json()
                .is_some_and(|body| body["code"] == throttle::CODE)
    };
    let found = exchanges(transcript).into_iter().find(too_fast)?;
    Some(format!(
        "the target limits how fast requests may come ({}: 429 rate_limit_exceeded); raise its limit for the run",
        found.request_line()
    ))
}
