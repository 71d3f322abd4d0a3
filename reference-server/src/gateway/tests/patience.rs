//! How long a client waits, and when it tries again. Time is Tokio's: a test with a paused clock moves it.

use super::*;
use tokio::time::Instant;
use turnwire_mock::script::errors::RetryAfterForm;
use turnwire_mock::script::{Keepalive, Part, RawEvent, ReasoningField, Until};
use turnwire_mock::{Call, Chunking, ErrorReply, Position, Reasoning, Variation};

const FIRST: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_millis(300);

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn impatient(mock: &MockServer, wire: Wire) -> ClientConfig {
    ClientConfig {
        timeouts: GatewayTimeouts {
            first: FIRST,
            idle: IDLE,
            ..GatewayTimeouts::default()
        },
        ..config(target(mock, wire))
    }
}

async fn timed(config: ClientConfig) -> (Outcome, Duration) {
    let client = Client::new(config).unwrap();
    let begun = Instant::now();
    let outcome = client.ask(request()).await;
    (outcome, begun.elapsed())
}

fn thinks() -> Variation {
    Variation {
        reasoning_field: ReasoningField::ReasoningContent,
        ..Variation::default()
    }
}

#[track_caller]
fn about(elapsed: Duration, expected: u64) {
    let expected = millis(expected);
    assert!(
        elapsed >= expected && elapsed < expected + millis(150),
        "{elapsed:?}, not {expected:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_first_output_ends_the_call_after_the_first_token_time() {
    for wire in Wire::ALL {
        for late in [
            Reply::text("late").first_token(millis(10_000)),
            Reply::text("late").headers_after(millis(10_000)),
        ] {
            let mock = mock([late]).await;
            let (outcome, elapsed) = timed(impatient(&mock, wire)).await;
            assert_eq!(kind_of(&outcome), Some(ErrorKind::Timeout), "{wire}");
            about(elapsed, 300);
            assert_eq!(
                outcome.sent.len(),
                1,
                "a silent provider is not asked again"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn comments_and_pings_are_no_output() {
    for wire in [Wire::OpenaiChat, Wire::AnthropicMessages] {
        let ping = || Part::Keepalive(Keepalive::Ping);
        let reply = (0..10).fold(Reply::new(), |reply, _| {
            reply.part(ping()).pause(millis(100))
        });
        let mock = mock([reply.say("late")]).await;
        let (outcome, elapsed) = timed(impatient(&mock, wire)).await;
        assert_eq!(kind_of(&outcome), Some(ErrorKind::Timeout), "{wire}");
        about(elapsed, 300);
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_is_output_too() {
    let reply = Reply::new()
        .variation(thinks())
        .pause(millis(100))
        .reasoning(Reasoning::from("r"))
        .pause(millis(250))
        .say("text");
    let mock = mock([reply]).await;
    let (outcome, _) = timed(impatient(&mock, Wire::OpenaiChat)).await;
    assert_eq!(outcome.result.unwrap().text, "text");
}

#[tokio::test(start_paused = true)]
async fn silence_after_thinking_ends_the_call_after_the_idle_time() {
    let reply = Reply::new()
        .variation(thinks())
        .reasoning(Reasoning::from("r"))
        .pause(millis(10_000))
        .say("late");
    let mock = mock([reply]).await;
    let (outcome, elapsed) = timed(impatient(&mock, Wire::OpenaiChat)).await;
    assert_eq!(kind_of(&outcome), Some(ErrorKind::Timeout));
    assert_eq!(texts(&outcome).1, "r");
    about(elapsed, 300);
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_writing_is_not_limited() {
    let letters = Chunking::Chars(1);
    let long = "x".repeat(30);
    for reply in [
        Reply::text(long.clone()),
        Reply::new()
            .variation(thinks())
            .reasoning(Reasoning::from(long.as_str())),
        Reply::new().calls([Call::new(
            "look",
            Value::String(format!("{{\"a\":\"{long}\"}}")),
        )]),
    ] {
        let mock = mock([reply.chunk(letters).per_token(millis(200))]).await;
        let (outcome, elapsed) = timed(impatient(&mock, Wire::OpenaiChat)).await;
        outcome.result.unwrap();
        assert!(elapsed > 15 * IDLE, "{elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_another_attempt_does_not_count() {
    for status in [429, 503] {
        let busy = ErrorReply::new(status).retry_after(1);
        let mock = mock([Reply::from(busy), Reply::text("text")]).await;
        let (outcome, elapsed) = timed(impatient(&mock, Wire::OpenaiChat)).await;
        assert_eq!(outcome.result.unwrap().text, "text");
        about(elapsed, 1_000);
        assert_eq!(outcome.sent.len(), 2);
        let bodies = bodies(&mock);
        assert_eq!(bodies[0], bodies[1]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_token_time_begins_anew_with_the_later_answer() {
    let busy = Reply::from(ErrorReply::new(429).retry_after(1));
    let mock = mock([busy, Reply::text("late").first_token(millis(10_000))]).await;
    let (outcome, elapsed) = timed(impatient(&mock, Wire::OpenaiChat)).await;
    assert_eq!(kind_of(&outcome), Some(ErrorKind::Timeout));
    about(elapsed, 1_300);
}

#[tokio::test(start_paused = true)]
async fn the_budget_counts_everything() {
    let busy = || Reply::from(ErrorReply::new(429).retry_after(1));
    let mock_busy = mock([busy()]).await;
    let mut config = impatient(&mock_busy, Wire::OpenaiChat);
    config.retry.retries = 100;
    config.budget = Some(millis(2_500));
    let (outcome, elapsed) = timed(config).await;
    assert_eq!(kind_of(&outcome), Some(ErrorKind::Timeout));
    about(elapsed, 2_500);

    let endless = Reply::text("x".repeat(1_000))
        .chunk(Chunking::Chars(1))
        .per_token(millis(100));
    let mock_endless = mock([endless]).await;
    let mut config = impatient(&mock_endless, Wire::OpenaiChat);
    config.budget = Some(millis(2_500));
    let (outcome, elapsed) = timed(config).await;
    assert_eq!(kind_of(&outcome), Some(ErrorKind::Timeout));
    about(elapsed, 2_500);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_nobody_would_wait_ends_the_attempts() {
    let busy = Reply::from(ErrorReply::new(429).retry_after(3_600));
    let mock = mock([busy]).await;
    let (outcome, elapsed) = timed(impatient(&mock, Wire::OpenaiChat)).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3_600)));
    assert!(elapsed < millis(100), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_read_from_header_date_and_body() {
    let date = ErrorReply::new(429).retry_after_as(RetryAfterForm::DateIn(5));
    let mock_date = mock([Reply::from(date), Reply::text("text")]).await;
    let (outcome, elapsed) = timed(impatient(&mock_date, Wire::OpenaiChat)).await;
    outcome.result.unwrap();
    assert!(
        elapsed > Duration::from_secs(3) && elapsed < Duration::from_secs(6),
        "{elapsed:?}"
    );

    // Gemini says it in the body.
    let info = ErrorReply::new(429).retry_after(2);
    let mock_info = mock([Reply::from(info), Reply::text("text")]).await;
    let (outcome, elapsed) = timed(impatient(&mock_info, Wire::Gemini)).await;
    outcome.result.unwrap();
    about(elapsed, 2_000);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_at_its_end_whatever_stays_open() {
    for wire in Wire::ALL {
        let mut reply = Reply::text("text");
        reply.faults.hold_open = Duration::from_secs(30);
        let mock = mock([reply]).await;
        let config = ClientConfig {
            timeouts: GatewayTimeouts::default(),
            ..impatient(&mock, wire)
        };
        let (outcome, elapsed) = timed(config).await;
        assert_eq!(outcome.result.unwrap().text, "text", "{wire}");
        assert!(elapsed < Duration::from_secs(3), "{wire} {elapsed:?}");
    }
}

/// Behind the finish of a Chat Completions answer comes its usage, here so slowly that a wait which does not begin
/// anew with every byte is over before it.
#[tokio::test(start_paused = true)]
async fn what_follows_the_finish_slowly_still_belongs_to_the_answer() {
    let mut reply = Reply::text("text");
    reply.faults.write_size = Some(1);
    reply.faults.gap = millis(20);
    let mock = mock([reply]).await;
    let config = ClientConfig {
        timeouts: GatewayTimeouts::default(),
        ..impatient(&mock, Wire::OpenaiChat)
    };
    let (outcome, elapsed) = timed(config).await;
    let usage = outcome.result.unwrap().usage;
    assert!(usage.input_tokens.is_some(), "{usage:?}");
    assert!(elapsed > Duration::from_secs(10), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_complete_answer_does_not_wait_for_ever_for_one_that_keeps_writing() {
    let comment = || Part::Keepalive(Keepalive::Comment("still here".to_owned()));
    let finish = r#"{"choices":[{"index":0,"delta":{"content":"text"},"finish_reason":"stop"}]}"#;
    let reply = (0..1_000).fold(
        Reply::new().part(Part::Event(RawEvent::new(finish))),
        |reply, _| reply.part(comment()).pause(millis(500)),
    );
    let mock = mock([reply]).await;
    let config = ClientConfig {
        timeouts: GatewayTimeouts::default(),
        ..impatient(&mock, Wire::OpenaiChat)
    };
    let idle = config.timeouts.idle;
    let (outcome, elapsed) = timed(config).await;
    assert_eq!(outcome.result.unwrap().text, "text");
    assert!(
        elapsed >= idle && elapsed < idle + Duration::from_secs(2),
        "{elapsed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_falls_silent_is_left_for_a_fallback_before_output_only() {
    for (stall, expected) in [(1, "fallback"), (3, "")] {
        let silent = Reply::new()
            .pieces(["a", "b", "c"])
            .stall(Position::Events(stall), Until::Never);
        let mock = mock([silent, Reply::text("fallback")]).await;
        let other = target(&mock, Wire::AnthropicMessages);
        let (outcome, _) = timed(impatient(&mock, Wire::OpenaiChat).fallback(other)).await;
        match outcome.result {
            Ok(reply) => assert_eq!(reply.text, expected),
            Err(error) => assert_eq!((error.kind, expected), (ErrorKind::Timeout, "")),
        }
    }
}
