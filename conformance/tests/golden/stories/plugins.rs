//! What plugins do: actions, jobs, injected events, relayed model calls.

use std::time::Duration;

use serde_json::json;
use turnwire::{
    drivers::{DriveError, http::Call},
    stage::{Stage, Subscribe},
};

use super::traced;
use crate::machine::Story;

const SOON: Duration = Duration::from_secs(10);

pub(crate) const STORIES: &[Story] = &[
    story!(
        "plugin-action",
        "an action of a plugin writes its data twice",
        ["COV-SUB-078"],
        action
    ),
    story!(
        "plugin-job-cancelled",
        "a job is cancelled while it runs",
        ["COV-JOB-128", "COV-JOB-202"],
        job_cancelled
    ),
    story!(
        "publish-fails",
        "a publish fails after its commit, and the trace says so",
        ["COV-SUB-157", "COV-SUB-190"],
        publish_fails
    ),
    story!(
        "event-injected",
        "an event is injected through the debug endpoint",
        ["COV-OVW-013", "COV-OVW-016"],
        injected
    ),
    story!(
        "model-relay",
        "a model request is handed to the browser and called off",
        ["COV-SUB-010"],
        relay
    ),
    story!(
        "model-relay-answered",
        "a model request is handed to the browser, which sends the model's answer in two pieces",
        ["COV-SUB-010"],
        relay_answered
    ),
];

async fn action(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = stage
        .subscribe(&Subscribe::to(&session))
        .await?
        .keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    stage
        .fixture(&session, "burst", json!({ "count": 2 }))
        .await?;
    watcher.wait_count("plugin-data.changed", 2, SOON).await;
    watcher.close().await;
    Ok(())
}

async fn job_cancelled(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = stage
        .subscribe(&Subscribe::to(&session).topics(&["job"]))
        .await?
        .keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    let reply = stage
        .fixture(&session, "queue-job", json!({ "steps": 1, "stepMs": 5000 }))
        .await?;
    watcher.wait_count("job-status.updated", 2, SOON).await;
    let job = reply
        .string("/jobId")
        .or_else(|| reply.string("/result/jobId"))
        .unwrap_or_default();
    let call = Call::post(session.path(&format!("/runtime-jobs/{job}/cancel")));
    stage
        .send(call.bearer(session.owner_token.as_deref()))
        .await?;
    watcher.wait_count("job-status.updated", 3, SOON).await;
    watcher.close().await;
    Ok(())
}

async fn publish_fails(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage
        .fixture(&session, "fail-publish", json!({ "nth": [1] }))
        .await?;
    stage.publish_one(&session).await?;
    traced(stage, &session, "commit.fanout.failed").await?;
    let call =
        Call::get(format!("/api/traces/{}", session.id)).bearer(session.owner_token.as_deref());
    stage.send(call).await?;
    Ok(())
}

async fn injected(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = stage
        .subscribe(&Subscribe::to(&session))
        .await?
        .keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    stage
        .emit(&session, "game", json!({ "name": "bell" }))
        .await?;
    watcher.wait_for("event.emitted", SOON).await;
    watcher.close().await;
    Ok(())
}

async fn relay(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let call = Call::get("/api/model-relay/stream")
        .header("x-model-relay", "page-1")
        .header("accept", "text/event-stream");
    let relay = stage.open(call).await?.keep_reading();
    relay.wait_for("ready", SOON).await;
    stage
        .fixture(
            &session,
            "relay-call",
            json!({ "cancel": true, "channel": "page-1" }),
        )
        .await?;
    relay.wait_for("cancel", SOON).await;
    relay.close().await;
    Ok(())
}

async fn relay_answered(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let call = Call::get("/api/model-relay/stream")
        .header("x-model-relay", "page-1")
        .header("accept", "text/event-stream");
    let relay = stage.open(call).await?.keep_reading();
    relay.wait_for("ready", SOON).await;
    let called = stage
        .fixture(&session, "relay-call", json!({ "channel": "page-1" }))
        .await?;
    relay.wait_for("request", SOON).await;
    let id = called.string("/result/requestId").unwrap_or_default();
    for (part, body) in [
        (
            "chunk",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n",
        ),
        ("end", ""),
    ] {
        let path = format!("/api/model-relay/requests/{id}/{part}");
        let call = Call::post(path).body("application/octet-stream", body);
        stage.send(call).await?;
    }
    relay.close().await;
    Ok(())
}
