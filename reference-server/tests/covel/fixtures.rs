use serde_json::{Value, json};

use crate::support::{Stream, fast, types};

async fn end_of(stream: &mut Stream) -> Vec<Value> {
    stream
        .rest()
        .await
        .iter()
        .map(crate::support::Frame::json)
        .collect()
}

#[tokio::test]
async fn a_job_runs_outside_any_turn_and_tells_its_states() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut stream = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=job"))
        .await;
    stream.next().await.unwrap();
    let queued = rig
        .client
        .rpc(&session, "queue-job", json!({ "steps": 2 }))
        .await;
    let job = queued.json()["result"]["jobId"].clone();

    let mut states = Vec::new();
    while states.last() != Some(&json!("succeeded")) {
        let frame = stream.news().await.unwrap();
        assert_eq!(frame.event(), "job-status.updated");
        assert_eq!(frame.json()["payload"]["jobId"], job);
        states.push(frame.json()["payload"]["state"].clone());
    }
    assert_eq!(
        states,
        ["queued", "running", "progress", "progress", "succeeded"]
    );
    let jobs = rig
        .client
        .get(&format!("/api/sessions/{session}/runtime-jobs"))
        .await
        .json();
    assert_eq!(
        (&jobs["items"][0]["jobId"], &jobs["items"][0]["status"]),
        (&job, &json!("succeeded"))
    );
    assert_eq!(jobs["items"][0].get("payload"), None);
}

#[tokio::test]
async fn a_failed_publish_keeps_the_turn_and_resets_every_subscriber() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let data = json!({ "namespace": "n", "key": "k", "value": 1 });
    rig.model
        .will_say([crate::support::Piece::Tool("plugin_data_set", data)]);
    let mut first = rig.client.subscribe(&format!("sessionId={session}")).await;
    let mut second = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=job"))
        .await;
    let connected = first.next().await.unwrap().json();
    second.next().await.unwrap();
    let order = json!({ "nth": [1], "messages": ["wire cut"] });
    assert_eq!(
        rig.client.rpc(&session, "fail-publish", order).await.status,
        200
    );

    let frames = rig.client.turn(&session, "Hello").await;

    let last = frames.last().unwrap();
    assert_eq!(last["type"], "execution.completed");
    assert_eq!(
        (&last["payload"]["committed"], &last["payload"]["resync"]),
        (&json!(true), &json!(true))
    );
    assert!(!types(&frames).contains(&"commit.fanout.failed"));
    for stream in [&mut first, &mut second] {
        let reset = stream.until("system.reset").await.json();
        assert_eq!(reset["reason"], "publish-failed");
        assert_ne!(
            reset["epoch"],
            connected["cursor"]
                .as_str()
                .unwrap()
                .rsplit_once(':')
                .unwrap()
                .0
        );
        assert!(
            end_of(stream).await.is_empty(),
            "the stream ends with its reset"
        );
    }
    let trace = rig
        .client
        .get(&format!("/api/traces/{session}"))
        .await
        .json();
    let events = trace["events"].as_array().unwrap();
    let failed = events
        .iter()
        .find(|row| row["type"] == "commit.fanout.failed")
        .unwrap();
    assert_eq!(failed["payload"]["failedCount"], 1);
    assert!(failed["payload"]["errors"].to_string().contains("wire cut"));
    let messages = rig
        .client
        .get(&format!("/api/sessions/{session}/messages"))
        .await
        .json();
    assert_eq!(messages.as_array().unwrap().len(), 2);

    let again = rig.client.turn(&session, "And on").await;
    assert_ne!(again.last().unwrap()["payload"]["resync"], true);
}

#[tokio::test]
async fn a_failed_commit_saves_nothing_and_resets_nobody() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut stream = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=plugin"))
        .await;
    stream.next().await.unwrap();
    rig.client.rpc(&session, "fail-commit", Value::Null).await;

    let frames = rig.client.turn(&session, "Hello").await;

    let last = frames.last().unwrap();
    assert_eq!(
        (&last["type"], &last["payload"]["committed"]),
        (&json!("execution.completed"), &json!(false))
    );
    let view = rig
        .client
        .get(&format!("/api/sessions/{session}/view"))
        .await
        .json();
    assert!(!view["messages"].to_string().contains("Rain falls."));
    assert!(stream.is_quiet().await);
}

#[tokio::test]
async fn the_hook_of_the_fixtures_fires_and_rewrites_in_every_turn() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut stream = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=hooks"))
        .await;
    stream.next().await.unwrap();

    let frames = rig.client.turn(&session, "Hello").await;

    assert!(
        types(&frames).contains(&"hook.fired"),
        "{:?}",
        types(&frames)
    );
    assert!(!types(&frames).contains(&"hook.rewrote"));
    let mut hooks = [stream.news().await.unwrap(), stream.news().await.unwrap()];
    hooks.sort_by_key(|frame| frame.event().to_owned());
    assert_eq!(
        (hooks[0].event(), hooks[1].event()),
        ("hook.fired", "hook.rewrote")
    );
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_refused() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    for (action, payload, status) in [
        ("dance", Value::Null, 404),
        ("burst", json!({ "count": 0 }), 400),
        ("burst", json!([]), 400),
        ("fail-publish", json!({}), 400),
        ("relay-call", Value::Null, 400),
    ] {
        let answer = rig.client.rpc(&session, action, payload).await;
        assert_eq!(answer.status, status, "{action}: {answer:?}");
    }
}
