//! Whether the fuzzer finds what it is there for: faults that are planted between the harness and the reference server.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::{
    FuzzError, FuzzEvent, FuzzPlan, PlantedFault,
    field::Field,
    oracle::Oracle,
    planted::chosen,
    report::{Failure, PlantedReport},
    run::{Hunt, is_reference, launcher},
};
use crate::prove::intercept::Sabotaging;

/// Steps that a counterexample has at most.
pub const SMALL: usize = 6;
/// Cases that fail and are tried one after the other, when the first ones do not fail again.
const CANDIDATES: usize = 4;
/// Factor of the protocol's periods, and of what the player waits for.
const SCALE: f64 = 0.04;
/// Candidates that are played to make a case smaller: a fault swallows what the player waits for, so each takes long.
const TRIES: usize = 60;
/// Faults that are looked for at the same time: who makes a case smaller mostly waits.
const SIDE_BY_SIDE: usize = 4;
/// How long the player waits for what a fault may have swallowed.
const HASTY: Duration = Duration::from_millis(200);

/// What became of one planted fault.
#[derive(Clone, Debug)]
pub struct Found {
    /// The fault.
    pub fault: &'static PlantedFault,
    /// The smallest case that shows it; `None` when no case did.
    pub failure: Option<Failure>,
    /// Cases that were played until it was found.
    pub cases: u64,
    /// How long it took.
    pub took: Duration,
}

/// What became of one planted fault, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultReport {
    /// Name of the fault.
    pub name: String,
    /// What is wrong.
    pub about: String,
    /// Whether a case showed it.
    pub found: bool,
    /// Number of the case that did.
    pub case: Option<u64>,
    /// Cases that were played until it was found.
    pub cases: u64,
    /// Requirements that the smallest case breaks.
    pub breaks: Vec<String>,
    /// Steps of the smallest case, one JSON object each.
    pub steps: Vec<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Found {
    /// As it is printed.
    pub fn report(&self) -> FaultReport {
        let failure = self.failure.as_ref();
        let steps = failure.map(|failure| failure.case.steps.as_slice());
        let broken = failure.map(|failure| failure.broken.as_slice());
        FaultReport {
            name: self.fault.name.to_owned(),
            about: self.fault.about.to_owned(),
            found: failure.is_some(),
            case: failure.map(|failure| failure.number),
            cases: self.cases,
            breaks: broken
                .unwrap_or_default()
                .iter()
                .map(|broken| broken.id.to_owned())
                .collect(),
            steps: steps
                .unwrap_or_default()
                .iter()
                .map(|step| serde_json::to_string(step).unwrap_or_default())
                .collect(),
            seconds: (self.took.as_secs_f64() * 100.0).round() / 100.0,
        }
    }
}

impl FaultReport {
    /// Whether it was found and is small.
    pub fn holds(&self) -> bool {
        self.found && self.steps.len() <= SMALL
    }

    /// In one line.
    pub fn line(&self) -> String {
        if !self.found {
            return format!(
                "NOT FOUND  {} in {} cases: {}",
                self.name, self.cases, self.about
            );
        }
        format!(
            "found  {:<34} after {:>4} cases, {} steps, {:.1} s: {}",
            self.name,
            self.cases,
            self.steps.len(),
            self.seconds,
            self.breaks.join(", ")
        )
    }
}

/// Looks for each of the planted faults of the plan's protocol whose name holds `only`, when it is given.
///
/// # Errors
///
/// [`FuzzError::Harness`] for any target but the reference server, since another one may have faults of its own; when
/// no fault has `only` in its name, or the reference server does not start.
pub async fn prove(plan: FuzzPlan, only: Option<&str>) -> Result<PlantedReport, FuzzError> {
    if !is_reference(&plan.profile) {
        let what = "faults are planted in front of the reference server only";
        return Err(FuzzError::Harness(what.to_owned()));
    }
    let begun = Instant::now();
    let mut plan = plan;
    let mut profile = (*plan.profile).clone().with_time_scale(SCALE);
    plan.launch = launcher(plan.protocol, &profile);
    profile.limits.patience = profile.limits.patience.min(HASTY);
    plan.profile = Arc::new(profile);
    // A fault swallows what the player waits for, so time runs out all the time; see `look_for`.
    plan.confirms = false;
    let oracle = Oracle::of(plan.suite()?);
    plan.jobs = plan.jobs.div_ceil(SIDE_BY_SIDE);
    let wanted = chosen(plan.protocol.faults(), |fault| fault.name, only)?;
    let searches = wanted.into_iter().map(|fault| {
        let saboteur = Sabotaging {
            saboteur: (fault.make)(),
            time_scale: plan.profile.time_scale,
        };
        let (plan, oracle) = (&plan, oracle.clone());
        async move {
            // With a model of its own: cases of the same number ask it the same.
            let clean = plan.field().await?;
            let field = Arc::new(clean.behind(Arc::new(saboteur)));
            let found = look_for(plan, fault, [&field, &Arc::new(clean)], oracle).await;
            plan.tell(FuzzEvent::Fault(Box::new(found.clone())));
            Ok(found)
        }
    });
    let details: Vec<Found> = stream::iter(searches)
        .buffered(SIDE_BY_SIDE)
        .try_collect()
        .await?;
    Ok(PlantedReport {
        suite: plan.protocol.suite().to_owned(),
        seed: plan.seed,
        cases: plan.cases,
        seconds: (begun.elapsed().as_secs_f64() * 100.0).round() / 100.0,
        faults: details.iter().map(Found::report).collect(),
        details,
    })
}

/// A case counts only when it fails again, and the server passes it without the fault, so that a busy machine finds
/// nothing.
async fn look_for(
    plan: &FuzzPlan,
    fault: &'static PlantedFault,
    [field, clean]: [&Arc<Field>; 2],
    oracle: Oracle,
) -> Found {
    let begun = Instant::now();
    let (mut first, mut played, end) = (plan.first, 0, plan.first + plan.cases);
    let mut smallest = None;
    while smallest.is_none() && first < end {
        let plan = FuzzPlan {
            first,
            cases: end - first,
            events: None,
            ..plan.clone()
        };
        let hunt = Arc::new(Hunt::new(
            plan,
            Arc::clone(field),
            oracle.clone(),
            CANDIDATES,
        ));
        hunt.play_all().await;
        played += hunt.played();
        first += hunt.played();
        let failures = hunt.failures();
        if failures.is_empty() {
            break;
        }
        for mut failure in failures
            .into_iter()
            .filter(|failure| !failure.broken.is_empty())
        {
            hunt.make_smaller(&mut failure, TRIES).await;
            if failure.tries > 0 && hunt.passes_on(clean, &failure).await {
                let steps = |failure: &Failure| failure.case.steps.len();
                let better = smallest
                    .as_ref()
                    .is_none_or(|best| steps(&failure) < steps(best));
                if better {
                    smallest = Some(failure);
                }
            }
            if smallest
                .as_ref()
                .is_some_and(|best| best.case.steps.len() <= SMALL)
            {
                break;
            }
        }
    }
    Found {
        fault,
        failure: smallest,
        cases: played,
        took: begun.elapsed(),
    }
}
