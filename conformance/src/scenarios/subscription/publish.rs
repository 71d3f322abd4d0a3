//! Publishes that fail after a commit, and commits that fail themselves.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    drivers::DriveError,
    scenarios::{Act, Isolation, Scenario, watching::watch},
    stage::{Session, Stage, Subscribe},
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "publish-fails",
        about: "a turn whose commit is saved but two of its publishes fail; two subscribers; then the old cursor",
        needs: &["fail-publish"],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(publish_fails(stage))),
    },
    Scenario {
        name: "commit-fails",
        about: "a turn whose transaction fails, watched by a subscriber",
        needs: &["fail-commit"],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(commit_fails(stage))),
    },
];

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

/// Texts of the planned failures; they come back in `commit.fanout.failed`.
const MESSAGES: [&str; 2] = ["first planned failure", "second planned failure"];

async fn publish_fails(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("ordinary-turn");
    stage
        .say_and_reply(&session, "All is well.")
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    stage.publish_one(&session).await?;

    stage.label("watch-1");
    let first = stage
        .subscribe(&Subscribe::to(&session))
        .await?
        .keep_reading();
    stage.label("watch-2");
    let second = stage
        .subscribe(&Subscribe::to(&session).topics(&["job"]))
        .await?
        .keep_reading();
    let connected = first
        .wait_for("system.connected", stage.patience(SOON))
        .await;
    second
        .wait_for("system.connected", stage.patience(SOON))
        .await;

    stage.label("plan");
    stage
        .fixture(
            &session,
            "fail-publish",
            json!({ "nth": [1, 2], "messages": MESSAGES }),
        )
        .await?;
    stage.label("turn-publish-fails");
    say_with_writes(stage, &session).await?;
    first.wait_for("system.reset", stage.patience(SOON)).await;
    stage.label("trace-on-reset");
    stage.get(&format!("/api/traces/{}", session.id)).await?;
    second.wait_for("system.reset", stage.patience(SOON)).await;
    stage.pause(Duration::from_millis(50)).await;
    first.close().await;
    second.close().await;

    stage.label("trace-later");
    stage.get(&format!("/api/traces/{}", session.id)).await?;
    stage.label("view-after-failed-publish");
    stage.view(&session).await?;
    if let Some(cursor) = connected
        .as_ref()
        .and_then(|frame| frame.member("cursor")?.as_str())
    {
        stage.label("old-cursor");
        let mut again = stage
            .subscribe(&Subscribe::to(&session).after(cursor))
            .await?;
        again.read_until("system.reset", stage.patience(SOON)).await;
        again.close();
    }
    stage.label("turn-after");
    stage
        .say_and_reply(&session, "Well again.")
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    Ok(())
}

async fn commit_fails(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch-commit-fails", &Subscribe::to(&session)).await?;
    stage.publish_one(&session).await?;
    stage.label("plan");
    stage.fixture(&session, "fail-commit", json!({})).await?;
    stage.label("turn-commit-fails");
    say_with_writes(stage, &session).await?;
    stage.label("after");
    stage.publish_one(&session).await?;
    watcher
        .wait_count("plugin-data.changed", 2, stage.patience(SOON))
        .await;
    stage.pause(Duration::from_millis(50)).await;
    watcher.close().await;
    Ok(())
}

/// A turn with three tool calls that write, so that its commit has at least four publishes.
async fn say_with_writes(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    let token = stage.token();
    let write = |n: u32| {
        (
            "plugin_data_set",
            json!({ "namespace": "harness", "key": format!("k{n}"), "value": n }),
        )
    };
    let calls: Vec<(&str, Value)> = (1..=3).map(write).collect();
    stage
        .model()?
        .calls_then_says(&token, &calls, "Written down.");
    stage
        .say(session, &token)
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    Ok(())
}
