//! The tool loop of the story runtime, and how it stops.

use serde_json::json;

use crate::engine::testing::{Bench, Say};
use crate::gateway::ErrorKind;

const BELL: (&str, &str) = ("emit-event", r#"{"topic":"bell","data":{"rings":3}}"#);
const SET: (&str, &str) = (
    "plugin_data_set",
    r#"{"namespace":"n","key":"k","value":1}"#,
);

#[tokio::test]
async fn tools_run_and_their_proposals_take_effect_with_the_commit() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench
        .gateway
        .says([Say::Calls("", vec![BELL, SET]), Say::Text(&["A bell."])]);

    let sink = bench.say(&session, "listen").await;

    let kinds = sink.kinds();
    let tools: Vec<_> = kinds
        .iter()
        .filter(|kind| kind.starts_with("tool.") || kind.contains("preview"))
        .collect();
    let expected = [
        "tool.calling",
        "tool.completed",
        "domain-event.previewed",
        "tool.calling",
        "tool.completed",
    ];
    assert_eq!(tools, expected.iter().collect::<Vec<_>>());
    assert_eq!(
        bench.publisher.committed(),
        [
            "narrative.completed",
            "event.emitted",
            "plugin-data.changed"
        ]
    );
    assert_eq!(
        sink.payload("event.emitted"),
        *json!({ "topic": "bell", "data": { "rings": 3 }, "pluginId": "story" })
            .as_object()
            .unwrap()
    );
    assert!(
        kinds.contains(&"plugin-data.changed"),
        "forwarded to the action stream"
    );
    let rows = bench
        .engine
        .plugin_data(&session.id, &"story".into(), "n")
        .await
        .unwrap();
    assert_eq!(rows[0].value, json!(1));
}

#[tokio::test]
async fn text_beside_tool_calls_is_taken_back() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([
        Say::Calls("Let me see. ", vec![BELL]),
        Say::Text(&["A bell."]),
    ]);

    let sink = bench.say(&session, "listen").await;

    assert_eq!(sink.shown(), "A bell.");
    assert_eq!(sink.payload("narrative.completed")["content"], "A bell.");
    assert_eq!(
        sink.payload("message.completed")["deltaCount"],
        3,
        "piece, reset, piece"
    );
}

#[tokio::test]
async fn a_failed_tool_is_told_to_the_model_and_the_loop_goes_on() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let calls = vec![
        ("no-such-tool", "{}"),
        ("emit-event", "{\"topic\":7}"),
        ("emit-event", "{oops"),
        (
            "plugin_data_set",
            r#"{"namespace":"_host","key":"k","value":1}"#,
        ),
    ];
    bench
        .gateway
        .says([Say::Calls("", calls), Say::Text(&["Well."])]);

    let sink = bench.say(&session, "try").await;

    let failures: Vec<_> = sink
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| event.kind == "tool.failed")
        .map(|event| event.payload["code"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        failures,
        ["not-found", "invalid-input", "invalid-input", "refused"]
    );
    assert!(!sink.kinds().contains(&"domain-event.previewed"));
    assert_eq!(sink.payload("execution.completed")["committed"], true);
    let step = sink
        .events
        .lock()
        .unwrap()
        .iter()
        .find(|event| event.kind == "step.completed")
        .unwrap()
        .payload
        .clone();
    assert_eq!(step["toolCalls"].as_array().unwrap().len(), 4);
    assert!(
        !step.contains_key("stopReason"),
        "only the last step has one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_call_that_can_succeed_later_is_tried_again() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([
        Say::Error(ErrorKind::Unavailable),
        Say::Breaks(&["Half a "]),
        Say::Text(&["Rain."]),
    ]);

    let sink = bench.say(&session, "look").await;

    assert_eq!(sink.shown(), "Rain.");
    let step = sink.payload("step.completed");
    let retries = json!([
        { "attempt": 1, "reason": "provider_unavailable" },
        { "attempt": 2, "reason": "network" },
    ]);
    assert_eq!(step["retries"], retries);
    assert_eq!(step["stopReason"], "completed");
    let attempts: Vec<_> = sink
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| event.kind == "llm.responded")
        .map(|event| {
            (
                event.payload["attempt"].clone(),
                event.payload.contains_key("error"),
            )
        })
        .collect();
    assert_eq!(
        attempts,
        [(json!(1), true), (json!(2), true), (json!(3), false)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_keeps_failing_ends_the_run() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench
        .gateway
        .says(std::iter::repeat_n(Say::Error(ErrorKind::RateLimited), 3));

    let sink = bench.say(&session, "look").await;

    assert_eq!(bench.gateway.requests.lock().unwrap().len(), 3);
    assert_eq!(sink.payload("runtime.failed")["stopReason"], "model-error");
    let step = sink.payload("step.completed");
    assert_eq!(step["stopReason"], "model-error");
    assert!(!step.contains_key("usage"));
}

#[tokio::test]
async fn when_the_steps_run_out_the_finalizer_writes_the_answer() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench
        .gateway
        .says(std::iter::repeat_n(Say::Calls("Draft.", vec![BELL]), 8));
    bench.gateway.says([Say::Text(&["At last."])]);

    let sink = bench.say(&session, "listen").await;

    let end = sink.payload("runtime.completed");
    assert_eq!(
        (&end["status"], &end["stopReason"]),
        (&json!("success"), &json!("max-steps"))
    );
    let last = sink.payload("step.completed");
    assert_eq!(
        (&last["step"], &last["finalizer"]),
        (&json!(9), &json!(true))
    );
    let request = bench.gateway.requests.lock().unwrap().pop().unwrap();
    assert!(request.tools.is_empty() && request.streaming);
    assert_eq!(sink.shown(), "At last.");
}

#[tokio::test]
async fn a_finalizer_without_an_answer_leaves_the_run_failed_by_its_steps() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench
        .gateway
        .says(std::iter::repeat_n(Say::Calls("Draft.", vec![BELL]), 8));
    bench.gateway.says([Say::Error(ErrorKind::BadRequest)]);

    let sink = bench.say(&session, "listen").await;

    assert_eq!(sink.payload("runtime.failed")["stopReason"], "max-steps");
    assert_eq!(sink.payload("execution.completed")["committed"], false);
    assert_eq!(
        bench.publisher.committed(),
        [""; 0],
        "no proposal of the failed run is written"
    );
}

#[tokio::test]
async fn an_empty_answer_is_repaired_once() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&[]), Say::Text(&["Rain."])]);

    let sink = bench.say(&session, "look").await;

    let step = sink.payload("step.completed");
    assert_eq!((&step["repair"], &step["step"]), (&json!(true), &json!(2)));
    assert_eq!(step["notes"], json!([{ "kind": "output-repair" }]));
    assert_eq!(step["stopReason"], "completed");
    assert_eq!(sink.payload("execution.completed")["committed"], true);
}

#[tokio::test]
async fn an_answer_that_stays_empty_is_invalid_output() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    bench.gateway.says([Say::Text(&[]), Say::Text(&[" "])]);

    let sink = bench.say(&session, "look").await;

    assert_eq!(
        sink.payload("runtime.failed")["stopReason"],
        "invalid-output"
    );
    assert_eq!(bench.gateway.requests.lock().unwrap().len(), 2);
}
