use std::time::Duration;

use serde_json::json;

use crate::support::{Piece, action, fast, types};

#[tokio::test]
async fn an_action_is_answered_by_data_lines_from_seq_0_to_execution_completed() {
    let rig = fast().await;
    let session = rig.client.session_id().await;

    let mut stream = rig.client.say(&session, "Hello").await;
    assert!(
        stream.head.contains("content-type: text/event-stream"),
        "{}",
        stream.head
    );
    let frames = stream.rest().await;

    for frame in &frames {
        assert!(
            frame.0.starts_with("data: {") && frame.0.matches('\n').count() == 2,
            "{frame:?}"
        );
    }
    let envelopes: Vec<_> = frames.iter().map(crate::support::Frame::json).collect();
    for (seq, envelope) in envelopes.iter().enumerate() {
        assert_eq!(envelope["seq"], json!(seq));
        assert_eq!(envelope["requestId"], "rq-1");
        assert_eq!(envelope["flowId"], envelope["traceId"]);
        assert_eq!(envelope.as_object().unwrap().len(), 9);
    }
    let types = types(&envelopes);
    assert_eq!(types.first(), Some(&"execution.started"));
    assert_eq!(types.last(), Some(&"execution.completed"));
    assert_eq!(envelopes.last().unwrap()["payload"]["committed"], true);
    assert_eq!(
        types
            .iter()
            .filter(|kind| **kind == "execution.completed")
            .count(),
        1
    );
    let told: String = envelopes
        .iter()
        .filter(|envelope| envelope["type"] == "narrative.delta")
        .map(|envelope| envelope["payload"]["delta"].as_str().unwrap())
        .collect();
    assert_eq!(told, "Rain falls.");
}

#[tokio::test]
async fn every_frame_leaves_on_its_own() {
    let rig = fast().await;
    let session = rig.client.session_id().await;

    let mut stream = rig.client.say(&session, "Hello").await;
    let mut chunks = 0;
    while let Some(chunk) = stream.chunk().await {
        assert!(
            chunk.ends_with("\n\n") && chunk.matches("\n\n").count() == 1,
            "{chunk:?}"
        );
        chunks += 1;
    }

    assert!(chunks > 5);
}

#[tokio::test]
async fn a_frame_arrives_while_the_turn_goes_on() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    // Longer than a test waits for a frame.
    let pause = Piece::Pause(Duration::from_secs(600));
    rig.model
        .will_say([Piece::Text("Now"), pause, Piece::Text("then")]);

    let mut stream = rig.client.say(&session, "Hello").await;
    while stream.next().await.unwrap().json()["type"] != "narrative.delta" {}
}

#[tokio::test]
async fn a_request_without_sense_is_refused_before_a_stream_opens() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let say = json!({ "actions": [{ "type": "say", "text": "x" }] });
    for (body, status, code) in [
        (
            action(&session, "r", "send_message", json!({})),
            400,
            "invalid_action_request",
        ),
        (
            action(&session, "", "submit_actions", say.clone()),
            400,
            "invalid_action_request",
        ),
        (
            action(&session, "r", "submit_actions", json!({})),
            400,
            "invalid_action_request",
        ),
        (
            action("nobody", "r", "submit_actions", say.clone()),
            404,
            "session_not_found",
        ),
        (
            action(&session, "r", "retry_runtime", json!({ "runtimeId": "x" })),
            409,
            "recovery_refused",
        ),
        (json!([]), 400, "invalid_json_body"),
    ] {
        let answer = rig.client.post("/api/actions", body.clone()).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{body}"
        );
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .starts_with("application/json")
        );
    }
    let unknown = rig
        .client
        .post("/api/actions", action(&session, "r", "dance", json!({})))
        .await;
    assert_eq!(unknown.json()["error"], "Unsupported action type: dance");
}

#[tokio::test]
async fn an_opening_without_plugins_and_a_paused_session_are_refused() {
    let rig = fast().await;
    let bare = rig.client.session_with(json!({ "plugins": [] })).await["id"].clone();
    let bare = bare.as_str().unwrap();
    let start = action(bare, "r", "start_session", json!({}));
    let answer = rig.client.post("/api/actions", start).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "no_active_plugins")
    );

    let session = rig.client.session_id().await;
    let path = format!("/api/sessions/{session}");
    let paused = rig
        .client
        .ask("PATCH", &path, &[], Some(r#"{"status":"paused"}"#))
        .await;
    assert_eq!(paused.json()["status"], "paused");
    let answer = rig
        .client
        .post(
            "/api/actions",
            action(&session, "r", "retry_turn", json!({})),
        )
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (409, "session_not_active")
    );
}

#[tokio::test]
async fn a_refused_action_leaves_its_connection_usable() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let body = action(&session, "r", "start_session", json!({})).to_string();
    let path = format!("/api/sessions/{session}");
    rig.client
        .ask("PATCH", &path, &[], Some(r#"{"status":"ended"}"#))
        .await;

    let answer = rig
        .client
        .ask("POST", "/api/actions", &[], Some(&body))
        .await;

    assert_eq!(answer.status, 409);
    assert_eq!(answer.header("connection"), None, "{}", answer.head);
}

#[tokio::test]
async fn a_lost_client_does_not_stop_its_turn() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let pause = Piece::Pause(Duration::from_millis(300));
    rig.model
        .will_say([Piece::Text("On and "), pause, Piece::Text("on.")]);

    let mut stream = rig.client.say(&session, "Hello").await;
    stream.next().await.unwrap();
    drop(stream);

    let path = format!("/api/sessions/{session}/execution");
    for _ in 0..400 {
        if rig.client.get(&path).await.json()["state"] != "running" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(rig.client.get(&path).await.json()["state"], "completed");
    let messages = rig
        .client
        .get(&format!("/api/sessions/{session}/messages"))
        .await
        .json();
    assert_eq!(messages[1]["content"], "On and on.");
}

#[tokio::test]
async fn a_turn_that_was_steered_is_stopped_by_abort_and_says_so() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    rig.model
        .will_say([Piece::Text("Wait"), Piece::Pause(Duration::from_secs(60))]);
    let mut stream = rig.client.say(&session, "Hello").await;
    while stream.next().await.unwrap().json()["type"] != "narrative.delta" {}

    let steer = format!("/api/sessions/{session}/steer");
    let heard = rig
        .client
        .post(&steer, json!({ "message": "Faster" }))
        .await;
    assert_eq!((heard.status, &heard.json()["ok"]), (200, &json!(true)));
    let aborted = rig
        .client
        .post(&format!("/api/sessions/{session}/abort"), json!({}))
        .await;
    assert_eq!(aborted.json()["ok"], true);

    let last = stream.rest().await.last().unwrap().json();
    assert_eq!(last["type"], "execution.completed");
    assert_eq!(last["payload"]["abortReason"], "aborted-by-player");
    let idle = rig
        .client
        .post(&format!("/api/sessions/{session}/abort"), json!({}))
        .await;
    assert_eq!(
        (idle.status, idle.code().as_str()),
        (409, "no_running_turn")
    );
}
