//! The fuzzer against the reference server, with small numbers.

use super::{SessionUpdate, faults::FAULTS};
use crate::{
    fuzz::{FuzzPlan, fuzz, prove::prove},
    profile::Profile,
};

fn plan(seed: u64, cases: u64) -> FuzzPlan {
    FuzzPlan::new(&SessionUpdate, Profile::reference(), seed, cases)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_passes_and_sessions_are_rebuilt() {
    let report = fuzz(plan(1, 60)).await.unwrap();
    assert!(report.holds(), "{}", report.render());
    for answer in ["rebuilt", "nothing-to-rebuild", "refused"] {
        assert!(
            report.seen.answers.contains_key(answer),
            "{answer}: {:?}",
            report.seen
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_fault_is_found() {
    let report = prove(plan(1, 200), Some("rebuilt-twice")).await.unwrap();
    assert!(report.holds(), "{}", report.render());
    assert!(FAULTS.len() >= 12);
}
