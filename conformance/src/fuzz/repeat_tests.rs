//! A seed repeats a run: the same cases, and of each case the same record.

use std::{collections::BTreeSet, sync::Arc};

use tokio::task::JoinSet;

use super::{
    Case, FuzzPlan, PROTOCOLS, Protocol, field::Field, fuzz, normal::normal, random::Random,
};
use crate::profile::Profile;

/// Cases of each protocol that are looked at.
const CASES: u64 = 40;
/// How many of them at least do not depend on who is faster.
const COMPARED: usize = 12;

fn plan(protocol: &'static dyn Protocol) -> FuzzPlan {
    FuzzPlan::new(protocol, Profile::reference(), 5, 0)
}

fn case(plan: &FuzzPlan, number: u64) -> Case {
    let mut random = Random::new(plan.seed, number);
    plan.protocol.case(&mut random, &plan.abilities())
}

/// Each case three times: alone, then twice at once beside other cases.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_case_is_recorded_the_same_twice() {
    for protocol in PROTOCOLS {
        let plan = plan(*protocol);
        let field = Arc::new(plan.field().await.unwrap());
        let steady: Vec<(u64, Case)> = (0..CASES)
            .map(|number| (number, case(&plan, number)))
            .filter(|(_, case)| !case.is_racy() && !case.steps.is_empty())
            .collect();
        let name = protocol.suite();
        assert!(steady.len() >= COMPARED, "{name}: {}", steady.len());
        let mut kinds = BTreeSet::new();
        for group in steady.chunks(4) {
            let mut alone = Vec::new();
            for (number, case) in group {
                alone.push(record(&field, *number, case).await);
                kinds.extend(
                    case.steps
                        .iter()
                        .map(std::mem::discriminant)
                        .map(|it| format!("{it:?}")),
                );
            }
            for _ in 0..2 {
                let together = at_once(&field, group).await;
                for ((first, second), (_, case)) in alone.iter().zip(&together).zip(group) {
                    assert_same(first, second, case);
                }
            }
        }
        assert!(kinds.len() >= 6, "{name}: {} kinds of steps", kinds.len());
    }
}

async fn record(field: &Field, number: u64, case: &Case) -> String {
    let played = field.play(number, case).await;
    assert_eq!(played.problem, None, "{}", case.to_json());
    normal(&played.transcript)
}

async fn at_once(field: &Arc<Field>, group: &[(u64, Case)]) -> Vec<String> {
    let mut playing = JoinSet::new();
    for (place, (number, case)) in group.iter().cloned().enumerate() {
        let field = Arc::clone(field);
        playing.spawn(async move { (place, record(&field, number, &case).await) });
    }
    let mut records = playing.join_all().await;
    records.sort();
    records.into_iter().map(|(_, record)| record).collect()
}

fn assert_same(first: &str, second: &str, case: &Case) {
    let mut lines = first.lines().zip(second.lines());
    let differs = lines.find(|(one, other)| one != other);
    assert_eq!(differs, None, "{}", case.to_json());
    let counts = (first.lines().count(), second.lines().count());
    assert_eq!(counts.0, counts.1, "{}", case.to_json());
    assert!(counts.0 > 3, "nothing is recorded: {first}");
}

/// Two whole runs with a seed come upon the same, as far as it does not depend on who is faster; one with another seed does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_seed_repeats_a_run_and_another_one_does_not() {
    for protocol in PROTOCOLS {
        let run = |seed: u64| async move {
            let plan = FuzzPlan {
                seed,
                cases: 12,
                ..plan(*protocol)
            };
            let cases: Vec<Case> = (0..12).map(|number| case(&plan, number)).collect();
            let report = fuzz(plan).await.unwrap();
            assert!(report.holds(), "{}", report.render());
            (cases, report.seen.connections)
        };
        let (first, again, other) = (run(3).await, run(3).await, run(4).await);
        assert_eq!(first, again, "{}", protocol.suite());
        assert_ne!(first.0, other.0, "{}", protocol.suite());
    }
}
