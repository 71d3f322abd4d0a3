//! The fuzzer against the reference server, with small numbers.

use std::{collections::BTreeSet, sync::Arc};

use super::{ACTOR, ChatWs, RESTART, faults::FAULTS, model, truth};
use crate::{
    fuzz::{Case, FuzzPlan, SCENARIO, Step, fuzz, oracle::Oracle, prove::prove},
    profile::Profile,
    prove::intercept::Sabotaging,
    suites,
    transcript::{TargetFact, Transcript, testing::Script, text},
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

/// What a case breaks that is played behind a planted fault, each of the two times that it is played.
async fn breaks(fault: &str, steps: Vec<Step>) -> Vec<&'static str> {
    let plan = plan(0, 0);
    let fault = FAULTS.iter().find(|known| known.name == fault).unwrap();
    let saboteur = Sabotaging {
        saboteur: (fault.make)(),
        time_scale: plan.profile.time_scale,
    };
    let field = plan.field().await.unwrap().behind(Arc::new(saboteur));
    let oracle = Oracle::of(suites::find("chat-ws").unwrap());
    let case = Case { steps };
    let mut always: Option<BTreeSet<&str>> = None;
    for _ in 0..2 {
        let played = field.play(0, &case).await;
        assert_eq!(played.problem, None);
        let ids = oracle.judge(&played.transcript);
        let ids = ids.into_iter().map(|broken| broken.id).collect();
        always = Some(match always {
            None => ids,
            Some(before) => before.intersection(&ids).copied().collect(),
        });
    }
    always.unwrap_or_default().into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_comes_back_after_a_restart_is_found() {
    let begin = Step::Begin {
        session: 0,
        words: 2,
    };
    let kill = Step::Restart { kill: true };
    let broken = breaks("job-reused-after-restart", vec![begin, kill]).await;
    assert!(broken.contains(&"CWS-036"), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_taken_twice_is_found_each_time() {
    let queue = Step::Queue {
        session: 0,
        clear: false,
    };
    let broken = breaks("queue-drained-twice", vec![queue]).await;
    assert!(broken.contains(&"CWS-097"), "{broken:?}");
}

#[test]
fn there_are_more_than_twelve_faults_and_their_names_are_unique() {
    let names: BTreeSet<_> = FAULTS.iter().map(|fault| fault.name).collect();
    assert!(names.len() >= 12);
    assert_eq!(names.len(), FAULTS.len());
}

/// A frame of the session `s`, with the job `j`.
fn frame(kind: &str, more: &str) -> String {
    format!(
        r#"{{"type":"{kind}","payload":{{"projectSlug":"p","target":"p","sessionId":"s","jobId":"j"{more}}}}}"#
    )
}

/// What the rules of the model for a requirement find in a case.
fn faults(id: &str, script: Script) -> usize {
    let mut case: Transcript = script.transcript();
    case.header.scenario = SCENARIO.to_owned();
    let rules = model::CHECKS.iter().filter(|check| check.id == id);
    rules.map(|check| (check.judge)(&case).faults.len()).sum()
}

fn started(script: Script) -> Script {
    let variant = "default".to_owned();
    script
        .target(TargetFact::Started { variant })
        .wait_ms(1)
        .label(ACTOR)
        .websocket("/ws")
        .wait_ms(1)
}

#[test]
fn a_job_that_died_with_its_target_cannot_be_called_off() {
    let runs = started(Script::new()).server_says(&frame("chat:active", r#","running":true"#));
    let call_off = |script: Script| {
        let cancel = r#"{"type":"chat:cancel","payload":{"jobId":"j"}}"#;
        script.wait_ms(1).client_says(cancel).wait_ms(1).closes()
    };
    let killed = runs.clone().wait_ms(1).label(RESTART);
    let killed = killed.target(TargetFact::Killed).breaks().wait_ms(1);
    assert_eq!(faults("CWS-048", call_off(runs)), 1);
    assert_eq!(faults("CWS-048", call_off(started(killed))), 0);
}

#[test]
fn a_resync_is_missing_only_where_the_answer_has_come() {
    let mut script =
        started(Script::new().label("x")).server_says(&frame("chat:active", r#","running":true"#));
    script = script.note(&truth::keeps_note(2));
    for seq in 0..6 {
        script = script.server_says(&frame(
            "chat:response",
            &format!(r#","chunk":"x","seq":{seq}"#),
        ));
    }
    let ask = frame("chat:subscribe", r#","wantReplay":true,"lastSeq":-1"#);
    let asked = script
        .wait_ms(1)
        .label("client-0")
        .websocket("/ws")
        .wait_ms(1)
        .client_says(&ask)
        .wait_ms(1);
    let cut = asked.clone().note("cut on purpose: #2").closes();
    let answered = asked.server_says(r#"{"type":"pong"}"#).wait_ms(1).closes();
    assert_eq!(faults("CWS-091", answered), 1);
    assert_eq!(faults("CWS-091", cut), 0);
}
