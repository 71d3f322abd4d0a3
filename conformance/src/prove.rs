//! Proves that the checks can fail: each requirement is green on a conformant peer, and red under its saboteur.
//!
//! ```text
//! conformant run ---> what is green, and which scenario shows what
//!        |
//!        v
//! for each requirement with a saboteur:  scenario + saboteur ---> all checks of the suite ---> [`Proof`]
//! ```
//!
//! A requirement is proven when its saboteur turns it red, and nothing else that its entry does not name under
//! `also`. What was red before the sabotage is nobody's proof and nobody's hindrance. Sabotages run side by
//! side, each with fresh instances of the target, so that none sees what another has broken.
//!
//! - [`plan`]: what is proven, against what; [`event`]: what is told meanwhile; [`report`]: what comes out;
//! - [`sabotaged`]: one requirement under its saboteur.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use turnwire_spec::catalogue::Entry;

use crate::{
    run::{self, RunError, RunPlan, RunReport},
    saboteurs,
    scenarios::Scenario,
    verdict::Verdict,
};

pub mod event;
pub(crate) mod intercept;
pub mod plan;
pub mod report;
mod sabotaged;
#[cfg(test)]
mod tests;

pub use event::ProveEvent;
pub use plan::ProvePlan;
pub use report::{Doubt, Proof, ProveReport, Verified};

/// Proves the selected requirements.
///
/// # Errors
///
/// [`RunError`] when the conformant run finds nothing out. A sabotaged run that cannot be made is no error but a
/// requirement that is not proven.
pub async fn prove(plan: ProvePlan) -> Result<ProveReport, RunError> {
    let begun = Instant::now();
    let conformant = conformant_run(&plan).await?;
    let tasks = Arc::new(Context::new(&plan, conformant.as_ref()));
    let mut verified = BTreeMap::new();
    let mut queue = Vec::new();
    for entry in &plan.run.requirements {
        match tasks.without_sabotage(entry) {
            Some(proof) => {
                verified.insert(entry.id.clone(), Verified::new(entry, proof));
            }
            None => queue.push(*entry),
        }
    }
    plan.tell(ProveEvent::Sabotaging {
        sabotages: queue.len(),
    });
    // The longest first, so that none is left over when all others are done.
    queue.sort_by_key(|entry| std::cmp::Reverse(tasks.cost(entry)));
    for done in side_by_side(&plan, tasks, queue).await {
        verified.insert(done.id.clone(), done);
    }
    let in_order = plan
        .run
        .requirements
        .iter()
        .filter_map(|entry| verified.remove(&entry.id));
    let report = ProveReport {
        suite: plan.run.suite.name().to_owned(),
        requirements: in_order.collect(),
        conformant,
        took: begun.elapsed(),
    };
    plan.tell(ProveEvent::Finished {
        proven: report.proven().len(),
        took: report.took,
    });
    Ok(report)
}

/// Plays what can show the selected requirements, and judges it by all checks of the suite, because a sabotage
/// is judged by all of them too. `None` when nothing that is selected has a check.
async fn conformant_run(plan: &ProvePlan) -> Result<Option<RunReport>, RunError> {
    let suite = plan.run.suite;
    let checked: Vec<_> = plan
        .run
        .requirements
        .iter()
        .filter(|entry| suite.judges(entry))
        .collect();
    if checked.is_empty() {
        return Ok(None);
    }
    let needed = |name: &str| {
        checked.iter().any(|entry| {
            entry.scenario.is_empty() || entry.scenario.iter().any(|named| named == name)
        })
    };
    let scenarios = plan.run.scenarios.clone().unwrap_or_else(|| {
        suite
            .scenarios()
            .filter(|scenario| needed(scenario.name))
            .collect()
    });
    let conformant = RunPlan {
        requirements: all_checked(plan),
        scenarios: Some(scenarios),
        intercept: None,
        require_all: false,
        ..plan.run.clone()
    };
    run::run(conformant).await.map(Some)
}

/// The selected requirements that have a check, and all others of the suite that have one.
fn all_checked(plan: &ProvePlan) -> Vec<&'static Entry> {
    let selected = &plan.run.requirements;
    let others = plan
        .run
        .suite
        .entries(None)
        .filter(|entry| !selected.iter().any(|mine| mine.id == entry.id));
    selected
        .iter()
        .copied()
        .chain(others)
        .filter(|entry| plan.run.suite.judges(entry))
        .collect()
}

async fn side_by_side(
    plan: &ProvePlan,
    context: Arc<Context>,
    queue: Vec<&'static Entry>,
) -> Vec<Verified> {
    let places = Arc::new(Semaphore::new(plan.jobs.max(1)));
    let mut running = JoinSet::new();
    for entry in queue {
        let (context, places, events) = (context.clone(), places.clone(), plan.events.clone());
        running.spawn(async move {
            // The semaphore is never closed, so there always is a place.
            let _place = places.acquire().await;
            let begun = Instant::now();
            // On a task of its own, so that a panic leaves this requirement unproven and no other.
            let proof = tokio::spawn(async move { sabotaged::prove(&context, entry).await })
                .await
                .unwrap_or_else(|error| Proof::NotProven(Doubt::NoRun(error.to_string())));
            let verified = Verified {
                took: begun.elapsed(),
                ..Verified::new(entry, proof)
            };
            if let Some(events) = events {
                let _ = events.send(ProveEvent::Sabotaged(verified.clone()));
            }
            verified
        });
    }
    let mut done = Vec::new();
    while let Some(result) = running.join_next().await {
        done.extend(result.ok());
    }
    done
}

/// What all sabotages share.
struct Context {
    run: RunPlan,
    conformant: BTreeMap<String, Verdict>,
    /// Which scenarios show a requirement, cheapest first.
    showing: BTreeMap<String, Vec<&'static Scenario>>,
    cost: BTreeMap<&'static str, std::time::Duration>,
}

impl Context {
    fn new(plan: &ProvePlan, conformant: Option<&RunReport>) -> Self {
        let suite = plan.run.suite;
        let named = |name: &String| suite.scenarios().find(|scenario| scenario.name == name);
        let timing = conformant
            .iter()
            .flat_map(|run| &run.timing)
            .filter_map(|(name, took)| Some((named(name)?.name, *took)));
        let cost: BTreeMap<_, _> = timing.collect();
        let by_cost = |names: &Vec<String>| {
            let mut scenarios: Vec<_> = names.iter().filter_map(named).collect();
            scenarios.sort_by_key(|scenario| cost.get(scenario.name).copied());
            scenarios
        };
        let exercised = conformant.iter().flat_map(|run| &run.exercised);
        let showing = exercised
            .map(|(id, names)| (id.clone(), by_cost(names)))
            .collect();
        let verdicts = conformant.iter().flat_map(|run| &run.verdicts);
        let run = RunPlan {
            requirements: all_checked(plan),
            require_all: false,
            events: None,
            jobs: 1,
            ..plan.run.clone()
        };
        Self {
            run,
            conformant: verdicts.cloned().collect(),
            showing,
            cost,
        }
    }

    /// What is known of a requirement without any sabotage; `None` when it takes one.
    fn without_sabotage(&self, entry: &Entry) -> Option<Proof> {
        if !self.run.suite.judges(entry) {
            let waiver = entry.waiver.clone().or_else(|| {
                let test = entry.test.as_ref().filter(|_| !entry.is_observable())?;
                Some(format!("covered by the test {test}"))
            });
            return Some(waiver.map_or(Proof::NotChecked, Proof::Waived));
        }
        let doubt = match self.conformant.get(&entry.id) {
            Some(Verdict::Pass { .. })
                if entry.rewrite.is_some() || saboteurs::coded(&entry.id).is_some() =>
            {
                return None;
            }
            Some(Verdict::Pass { .. }) => Doubt::NoSaboteur,
            Some(Verdict::Fail { evidence, .. }) => Doubt::ConformantRed(evidence.clone()),
            Some(Verdict::NotApplicable { needs }) => {
                Doubt::NotExercised(format!("the target lacks {needs}"))
            }
            Some(Verdict::NotExercised { why }) => Doubt::NotExercised(why.clone()),
            None => Doubt::NotExercised("the conformant run did not judge it".to_owned()),
        };
        Some(Proof::NotProven(doubt))
    }

    /// The scenarios to try a sabotage on: those that the entry names, or else those that showed the requirement
    /// in the conformant run, cheapest first.
    fn scenarios(&self, entry: &Entry) -> Vec<&'static Scenario> {
        if entry.scenario.is_empty() {
            return self.showing.get(&entry.id).cloned().unwrap_or_default();
        }
        let suite = self.run.suite;
        entry
            .scenario
            .iter()
            .filter_map(|name| suite.scenario(name).ok())
            .collect()
    }

    /// How long the first try takes, as far as the conformant run tells.
    fn cost(&self, entry: &Entry) -> std::time::Duration {
        let first = self.scenarios(entry).first().copied();
        first
            .and_then(|scenario| self.cost.get(scenario.name).copied())
            .unwrap_or_default()
    }

    /// Whether a requirement was red before any sabotage.
    fn was_red(&self, id: &str) -> bool {
        matches!(self.conformant.get(id), Some(Verdict::Fail { .. }))
    }
}
