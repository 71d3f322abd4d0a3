//! A seed repeats a run: the same cases, and of each case the same record.

use super::{
    Case, FuzzPlan, PROTOCOLS, Protocol, field::Field, fuzz, normal::normal, random::Random,
};
use crate::profile::Profile;

/// Cases of each protocol that are looked at.
const CASES: u64 = 40;

fn plan(protocol: &'static dyn Protocol) -> FuzzPlan {
    FuzzPlan::new(protocol, Profile::reference(), 5, 0)
}

fn case(plan: &FuzzPlan, number: u64) -> Case {
    let mut random = Random::new(plan.seed, number);
    plan.protocol.case(&mut random, &plan.abilities())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_case_is_recorded_the_same_twice() {
    for protocol in PROTOCOLS {
        let plan = plan(*protocol);
        let field = plan.field().await.unwrap();
        let mut compared = 0;
        for number in 0..CASES {
            let case = case(&plan, number);
            if case.is_racy() || case.steps.is_empty() {
                continue;
            }
            let first = record(&field, number, &case).await;
            assert_same(&first, &record(&field, number, &case).await, &case);
            compared += 1;
        }
        assert!(compared > 5, "{compared}");
    }
}

async fn record(field: &Field, number: u64, case: &Case) -> String {
    let played = field.play(number, case).await;
    assert_eq!(played.problem, None, "{}", case.to_json());
    normal(&played.transcript)
}

fn assert_same(first: &str, second: &str, case: &Case) {
    // Of two sides that end a stream at the same time, either may be first. One of them may be killed.
    let kills = case.to_json().contains(r#""kill":true"#);
    let ends = |line| match line {
        "  complete" => "  closed",
        "  broken" if kills => "  closed",
        line => line,
    };
    let mut lines = first.lines().map(ends).zip(second.lines().map(ends));
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
