//! The fuzzer against the reference server, with small numbers.

use std::collections::BTreeSet;

use super::{CovelSse, faults::FAULTS};
use crate::{
    fuzz::{Case, FuzzPlan, Step, field::case_of, fuzz, oracle::Oracle, prove::prove, step::Place},
    profile::Profile,
    suites,
    transcript::text,
};

fn plan(seed: u64, cases: u64) -> FuzzPlan {
    FuzzPlan::new(&CovelSse, Profile::reference(), seed, cases)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_passes_and_every_answer_comes_up() {
    let report = fuzz(plan(1, 150)).await.unwrap();
    assert!(report.holds(), "{}", report.render());
    assert_eq!(report.played, 150);
    for answer in ["none", "replay", "nothing-missed", "gap", "epoch-change"] {
        assert!(
            report.seen.answers.contains_key(answer),
            "{answer}: {:?}",
            report.seen
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_faults_are_found_and_their_counterexamples_are_red_offline() {
    let report = prove(plan(1, 400), Some("replay-off-by-one"))
        .await
        .unwrap();
    assert!(report.holds(), "{}", report.render());
    let oracle = Oracle::of(suites::find("covel-sse").unwrap());
    for found in report.details() {
        let failure = found.failure.as_ref().unwrap();
        let written = text::write(&failure.transcript);
        let read = text::parse(&written).unwrap();
        let ids: BTreeSet<_> = oracle.judge(&read).iter().map(|broken| broken.id).collect();
        let wanted: BTreeSet<_> = failure.broken.iter().map(|broken| broken.id).collect();
        assert_eq!(ids, wanted, "{}", found.fault.name);
        assert!(!ids.is_empty());
        assert_eq!(case_of(&read), Some(failure.case.clone()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_played_on_a_store_that_outlives_it() {
    let plan = plan(0, 0);
    let field = plan.field().await.unwrap();
    let case = Case {
        steps: vec![
            Step::connect(0, 0),
            Step::Write {
                session: 0,
                count: 2,
            },
            Step::Restart { kill: true },
            Step::Connect {
                client: 0,
                session: 0,
                query: Some(Place::Own),
                header: None,
                narrow: false,
                slow: false,
                cut: None,
                race: 0,
            },
        ],
    };
    let played = field.play(0, &case).await;
    assert_eq!(played.problem, None);
    let oracle = Oracle::of(suites::find("covel-sse").unwrap());
    assert_eq!(oracle.judge(&played.transcript), []);
    let text = text::write(&played.transcript);
    assert!(text.contains("target killed") && text.contains(r#""reason":"epoch-change""#));
}

#[test]
fn there_are_more_than_twelve_faults_and_their_names_are_unique() {
    let names: BTreeSet<_> = FAULTS.iter().map(|fault| fault.name).collect();
    assert!(names.len() >= 12);
    assert_eq!(names.len(), FAULTS.len());
}
