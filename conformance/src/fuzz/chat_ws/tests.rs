//! The fuzzer against the reference server, with small numbers.

use std::collections::BTreeSet;

use super::{ChatWs, faults::FAULTS};
use crate::{
    fuzz::{FuzzPlan, fuzz, oracle::Oracle, prove::prove},
    profile::Profile,
    suites,
    transcript::text,
};

fn plan(seed: u64, cases: u64) -> FuzzPlan {
    FuzzPlan::new(&ChatWs, Profile::reference(), seed, cases)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_passes_and_every_answer_comes_up() {
    let report = fuzz(plan(1, 80)).await.unwrap();
    assert!(report.holds(), "{}", report.render());
    for answer in [
        "replay",
        "nothing-missed",
        "live-only",
        "resync",
        "refused",
        "cut-off",
    ] {
        assert!(
            report.seen.answers.contains_key(answer),
            "{answer}: {:?}",
            report.seen
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_fault_is_found_and_its_counterexample_is_red_offline() {
    let report = prove(plan(1, 400), Some("loss-at-the-seam")).await.unwrap();
    assert!(report.holds(), "{}", report.render());
    let oracle = Oracle::of(suites::find("chat-ws").unwrap());
    let failure = report.details()[0].failure.as_ref().unwrap();
    let read = text::parse(&text::write(&failure.transcript)).unwrap();
    let ids = |broken: Vec<&'static str>| broken.into_iter().collect::<BTreeSet<_>>();
    let offline = ids(oracle.judge(&read).iter().map(|it| it.id).collect());
    assert_eq!(
        offline,
        ids(failure.broken.iter().map(|it| it.id).collect())
    );
    assert!(!offline.is_empty());
}

#[test]
fn there_are_more_than_twelve_faults_and_their_names_are_unique() {
    let names: BTreeSet<_> = FAULTS.iter().map(|fault| fault.name).collect();
    assert!(names.len() >= 12);
    assert_eq!(names.len(), FAULTS.len());
}
