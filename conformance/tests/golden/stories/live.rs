//! Turns as a subscriber sees them, and what their events are when something fails.

use std::time::Duration;

use serde_json::json;
use turnwire::{
    drivers::{DriveError, http::Call},
    stage::{Session, Stage, Subscribe},
};

use crate::machine::Story;

const SOON: Duration = Duration::from_secs(10);

pub(crate) const STORIES: &[Story] = &[
    story!(
        "live-tools",
        "a subscriber hears of a tool that works and of one that fails",
        ["COV-TRACE-016"],
        tools
    ),
    story!(
        "live-model-fails",
        "a subscriber hears of a turn whose model fails",
        ["COV-CTL-058"],
        model_fails
    ),
    story!(
        "live-publish-fails",
        "a publish fails while a subscriber listens: it is reset, and a subscriber of the traces is told why",
        ["COV-SUB-157", "COV-SUB-190"],
        publish_fails
    ),
    story!(
        "action-event-emitted",
        "the model emits an event of the game: previewed at once, emitted with the commit",
        ["COV-FWD-035"],
        event_emitted
    ),
];

/// Plays a turn while a subscriber listens, to its end on both streams.
async fn watched(stage: &Stage, session: &Session, texts: &[&str]) -> Result<(), DriveError> {
    let watcher = stage
        .subscribe(&Subscribe::to(session))
        .await?
        .keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    for (count, text) in (1..).zip(texts) {
        stage.say(session, text).await?.read_to_end(SOON).await;
        watcher.wait_count("execution.completed", count, SOON).await;
    }
    watcher.close().await;
    Ok(())
}

async fn tools(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let model = stage.model()?;
    for (text, arguments) in [
        ("work", json!({ "result": { "found": 3 } })),
        ("fail", json!({ "fail": true })),
    ] {
        model.calls_then_says(text, &[("fixture_work", arguments)], "Done.");
    }
    watched(stage, &session, &["work", "fail"]).await
}

async fn model_fails(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.model()?.fails("trouble", 400);
    watched(stage, &session, &["trouble"]).await
}

async fn publish_fails(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = stage
        .subscribe(&Subscribe::to(&session))
        .await?
        .keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    let traces = stage
        .subscribe(&Subscribe::to(&session).topics(&["trace"]))
        .await?
        .keep_reading();
    traces.wait_for("system.connected", SOON).await;
    stage
        .fixture(&session, "fail-publish", json!({ "nth": [1] }))
        .await?;
    stage.publish_one(&session).await?;
    watcher.wait_for("system.reset", SOON).await;
    traces.wait_for("system.reset", SOON).await;
    let call =
        Call::get(format!("/api/traces/{}", session.id)).bearer(session.owner_token.as_deref());
    stage.send(call).await?;
    watcher.wait_end(SOON).await;
    traces.wait_end(SOON).await;
    watcher.close().await;
    traces.close().await;
    Ok(())
}

async fn event_emitted(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let bell = (
        "emit-event",
        json!({ "topic": "bell", "data": { "times": 2 } }),
    );
    stage.model()?.calls_then_says("ring", &[bell], "It rings.");
    watched(stage, &session, &["ring"]).await
}
