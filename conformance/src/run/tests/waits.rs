//! A target that lets no more requests through for now.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A server that answers its first requests with these texts, one each, and the later ones with the last of them.
pub(super) async fn answering_in_turn(texts: &'static [&'static str]) -> BaseUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let asked = Arc::clone(&asked);
            tokio::spawn(async move {
                let _ = socket.read(&mut [0; 4096]).await;
                let place = asked.fetch_add(1, Ordering::SeqCst).min(texts.len() - 1);
                let _ = socket.write_all(texts[place].as_bytes()).await;
            });
        }
    });
    url
}

const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
const IN_A_SECOND: &str = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 1\r\n\
                           content-length: 30\r\n\r\n{\"code\":\"rate_limit_exceeded\"}";
const IN_AN_HOUR: &str = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 3600\r\n\
                          content-length: 30\r\n\r\n{\"code\":\"rate_limit_exceeded\"}";
const TOO_MANY_OPEN: &str = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 1\r\n\
                             content-length: 36\r\n\r\n{\"code\":\"connection_limit_exceeded\"}";

fn statuses(transcript: &Transcript) -> Vec<u16> {
    let status = |entry: &crate::transcript::Entry| match &entry.fact {
        Fact::Response { head, .. } => Some(head.status),
        _ => None,
    };
    transcript.entries.iter().filter_map(status).collect()
}

/// The plan for one scenario that asks for the health once, and needs a success; the first answer is for the look that
/// the harness has at the target.
async fn asking(texts: &'static [&'static str]) -> RunPlan {
    let mut plan = plan_at(answering_in_turn(texts).await, &["needs-health"]);
    // A busy machine is no fault of anybody here.
    profile(&mut plan).limits = Limits::default();
    plan.requirements = vec![
        requirement("T-1", None, &["needs-health"]),
        requirement("T-ANSWERS", None, &["needs-health"]),
    ];
    plan
}

#[tokio::test]
async fn a_request_that_is_refused_for_its_rate_is_sent_again_when_the_target_says() {
    let mut plan = asking(&[OK, IN_A_SECOND, IN_A_SECOND, OK]).await;
    let (sender, mut events) = unbounded_channel();
    plan.events = Some(sender);
    let report = run(plan).await.unwrap();
    assert_eq!((report.problems, report.skipped), (vec![], vec![]));
    assert_eq!(statuses(&report.transcripts[0]), [429, 429, 200]);
    let mut waits = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let RunEvent::ScenarioWaits { name, what } = event {
            waits.push(format!("{name}: {what}"));
        }
    }
    let once =
        "needs-health: waits 1 s, as the target asks (GET /api/health: 429 rate_limit_exceeded)";
    assert_eq!(waits, [once, once]);
}

#[tokio::test]
async fn what_was_refused_for_its_rate_is_kept_and_judged_by_nothing() {
    let report = run(asking(&[OK, IN_A_SECOND, OK]).await).await.unwrap();
    assert_eq!(statuses(&report.transcripts[0]), [429, 200]);
    assert_eq!(
        report.verdict("T-ANSWERS"),
        Some(&Verdict::Pass { judged: 1 }),
        "the check counts answers"
    );
}

#[tokio::test]
async fn a_target_that_lets_nothing_through_for_too_long_leaves_the_scenario_out() {
    let report = run(asking(&[OK, IN_AN_HOUR]).await).await.unwrap();
    insta::assert_snapshot!(report.skipped[0].1, @"GET /api/health is not possible: the target lets no more requests through for 3600 s (429 rate_limit_exceeded), 0 s of at most 120 s were waited already; raise its limit for the run, or [limits] retry_after in the profile");
    assert_eq!(report.problems, []);
    assert_eq!(report.outcome(), Outcome::NothingExercised);
}

#[tokio::test]
async fn other_refusals_are_answers_like_any_other() {
    let report = run(asking(&[OK, TOO_MANY_OPEN, OK]).await).await.unwrap();
    assert_eq!(statuses(&report.transcripts[0]), [429]);
    insta::assert_snapshot!(
        report.problems[0],
        @r#"needs-health: GET /api/health: expected a success status, got 429 (no content type) "{\"code\":\"connection_limit_exceeded\"}""#
    );
}

#[tokio::test]
async fn a_target_that_limits_rates_and_does_not_say_until_when_is_not_accused() {
    let slow_down = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 30\r\n\r\n{\"code\":\"rate_limit_exceeded\"}";
    let mut plan = plan_at(answering(slow_down).await, &["asks-for-health", "bad"]);
    plan.requirements = vec![requirement("T-1", None, &["asks-for-health"])];
    let report = run(plan).await.unwrap();
    assert!(
        report.skipped[0].1.contains("429 rate_limit_exceeded"),
        "{:?}",
        report.skipped
    );
    assert_eq!(report.timing.len(), 1, "the other scenario sent nothing");
}
