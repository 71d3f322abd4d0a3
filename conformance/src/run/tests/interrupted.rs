//! Runs that are interrupted.

use super::*;

/// Plays these scenarios one by one, and interrupts the run at the first such event.
async fn interrupted_at(is_it: fn(&RunEvent) -> bool, names: &[&str]) -> RunReport {
    let mut plan = plan(names).await;
    // Only the interruption ends what hangs.
    profile(&mut plan).limits = Limits::default();
    plan.jobs = 1;
    let (sender, mut events) = unbounded_channel();
    plan.events = Some(sender);
    let interrupt = plan.interrupt.clone();
    let watch = async {
        while let Some(event) = events.recv().await {
            if is_it(&event) {
                interrupt.cancel();
            }
        }
    };
    let (report, ()) = tokio::join!(run(plan), watch);
    report.unwrap()
}

fn hangs(event: &RunEvent) -> bool {
    matches!(event, RunEvent::ScenarioStarted { name } if name == "hangs")
}

fn is_done(event: &RunEvent) -> bool {
    matches!(event, RunEvent::ScenarioFinished { .. })
}

#[tokio::test]
async fn what_was_seen_before_an_interruption_is_judged_and_the_rest_is_left_out() {
    let report = interrupted_at(hangs, &["good", "hangs", "panics"]).await;
    assert_eq!(report.outcome(), Outcome::Interrupted);
    assert_eq!(report.verdict("T-1"), Some(&Verdict::Pass { judged: 1 }));
    let left_out = |name: &str| (name.to_owned(), "the run was interrupted".to_owned());
    // In the order of the suite.
    assert_eq!(report.skipped, [left_out("hangs"), left_out("panics")]);
    assert_eq!(report.problems, []);
}

#[tokio::test]
async fn a_fault_that_was_seen_before_an_interruption_is_told() {
    let report = interrupted_at(hangs, &["bad", "hangs"]).await;
    assert_eq!(report.outcome(), Outcome::Interrupted);
    assert!(report.is_red("T-1"), "{:?}", report.red);
}

#[tokio::test]
async fn a_run_that_was_done_before_its_interruption_is_a_whole_one() {
    let report = interrupted_at(is_done, &["good"]).await;
    assert_eq!(report.verdict("T-1"), Some(&Verdict::Pass { judged: 1 }));
    assert_eq!(report.outcome(), Outcome::Conformant);
}
