//! The fuzzer against the reference server, with small numbers.

use super::{SessionUpdate, faults::FAULTS, model};
use crate::{
    fuzz::{FuzzPlan, SCENARIO, fuzz, prove::prove},
    profile::Profile,
    transcript::text,
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

/// What the rules of the model for a requirement find in a case: an actor hears two turns of the session `s`, and an
/// auditor subscribes between them.
fn faults(id: &str, case: &str) -> usize {
    let mut case = text::parse(case).unwrap();
    case.header.scenario = SCENARIO.to_owned();
    let rules = model::CHECKS.iter().filter(|check| check.id == id);
    rules.map(|check| (check.judge)(&case).faults.len()).sum()
}

/// A durable event on a connection.
fn event(connection: u8, sequence: u8, turn: &str, kind: &str) -> String {
    format!(
        r#"<{connection}$ {{"kind":"event","method":"session/update","sequence":{sequence},"durability":"durable","session_id":"s","turn_id":"{turn}","event":{{"type":"{kind}"}}}}"#
    )
}

/// A subscription on a connection, which was answered.
fn subscribes(connection: u8, events: &[String]) -> String {
    let events = events.join("\n");
    format!(
        r#">{connection}$ {{"kind":"request","request_id":"r","method":"session/subscribe","params":{{"session_id":"s"}}}}
{events}
<{connection}$ {{"kind":"response","request_id":"r","result":{{"ok":true}}}}
@+10ms"#
    )
}

#[test]
fn what_happens_after_the_audit_is_no_more_than_the_auditor_was_told() {
    let begins = event(1, 1, "t", "turn_started");
    let ends = event(1, 2, "t", "turn_completed");
    let heard = [event(2, 1, "t", "turn_started")];
    let case = |before: &str, after: &str| {
        let (actor, auditor) = (subscribes(1, &[]), subscribes(2, &heard));
        format!(
            "twire 1\nsuite: session-update\n\nlabel actor\n@+10ms\n{actor}\n{begins}\n{before}\n@+10ms\n\
             label auditor\n{auditor}\n{after}\n"
        )
    };
    assert_eq!(faults("SUP-031", &case("", &ends)), 0);
    assert_eq!(faults("SUP-031", &case(&ends, "")), 1);
}
