//! What runtimes show and write beside the story: questions, blocks, characters, rows, operations.

use serde_json::{Value, json};

use super::{
    CAST, NEEDS, NOTES, SOON, TURN_WITHIN, fail_commit, order, owned, read, session, turn, until,
};
use crate::{
    drivers::{DriveError, http::Call},
    scenarios::{
        Act, Scenario,
        watching::{settle, watch},
    },
    stage::{Session, Stage, Subscribe},
};

/// The scenarios of this file.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        needs: &[NEEDS, "fixture-notes"],
        ..Scenario::shared(
            "shown-beside-the-story",
            "runtimes ask the player, draw blocks, write characters and rows, in a turn and called by hand",
            Act::Server(|stage| Box::pin(shown(stage))),
        )
    },
    Scenario {
        needs: &[NEEDS, "fail-commit"],
        ..Scenario::shared(
            "operations-dropped",
            "operations beside the story whose writes are refused, in turns that are saved and in one that is not",
            Act::Server(|stage| Box::pin(operations(stage))),
        )
    },
];

fn form(id: &str) -> Value {
    json!({
        "id": id, "type": "form", "meta": {},
        "data": { "title": "Who are you?", "fields": [{ "id": "name", "type": "text" }] },
    })
}

async fn with_notes(stage: &Stage) -> Result<Session, DriveError> {
    stage.session_with(&[CAST, NOTES]).await
}

async fn shown(stage: &Stage) -> Result<(), DriveError> {
    let session = with_notes(stage).await?;
    let topics = |topics: &[&str]| Subscribe::to(&session).topics(topics);
    let named = [
        "session", "runtime", "state", "game", "plugin", "job", "hooks", "trace",
    ];
    let all = watch(stage, "watch-shown", &topics(&named)).await?;
    let state = watch(stage, "watch-state", &topics(&["state"])).await?;
    let others = watch(stage, "watch-elsewhere", &topics(&["game", "plugin"])).await?;
    let row = |namespace: &str, key: &str| json!({ "namespace": namespace, "key": key, "value": { "n": 1 } });
    let does = json!({
        "ask": [form("form-a")],
        "render": [{ "id": "panel-a", "type": "panel", "data": { "text": "A map" } }],
        "schema": { "fields": [{ "id": "mood", "type": "string" }] },
        "characters": [{ "id": "ada", "name": "Ada" }, { "id": "ben", "name": "Ben" }],
        "write": [row("memory", "one"), row("memory", "two"), row("other", "three")],
    });
    order(stage, &session, "first", does).await?;
    stage.label("shows");
    let acting = stage.say_and_reply(&session, "The bell rings twice.");
    let acting = acting.await?.keep_reading();
    until(stage, &all, 0, "interaction.requested").await;
    read(stage, &session, "read-shown", "/view").await?;
    acting.wait_end(stage.patience(TURN_WITHIN)).await;
    acting.close().await;
    settle(stage, &session, &all).await?;

    for namespace in ["memory", "other"] {
        let place = format!("/plugin-data/{CAST}/{namespace}");
        read(stage, &session, "read-memory", &place).await?;
    }

    let state_of_call = topics(&["state", "hooks"]);
    let state_of_call = watch(stage, "watch-manual-call", &state_of_call).await?;
    order(
        stage,
        &session,
        "manual",
        json!({ "ask": [form("form-b")] }),
    )
    .await?;
    stage.label("called");
    let body = json!({
        "kind": "runtime", "pluginId": CAST, "runtimeId": format!("{CAST}/manual"), "payload": {},
    });
    let call = Call::post(session.path("/plugin-rpc")).json(&body);
    stage.send(owned(call, &session)).await?;
    let soon = stage.patience(SOON);
    state_of_call.wait_for("interaction.requested", soon).await;
    settle(stage, &session, &all).await?;
    for watcher in [all, state, others, state_of_call] {
        watcher.close().await;
    }

    order(stage, &session, "first", json!({ "ask": [form("form-c")] })).await?;
    turn(stage, &session, "unwatched").await?;
    read(stage, &session, "read-unwatched", "/view").await?;
    Ok(())
}

async fn operations(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    let watcher = watch(stage, "watch-operations", &Subscribe::to(&session)).await?;
    let good = |key: &str| json!({ "namespace": "harness", "key": key, "value": 1 });
    let bad = || json!({ "namespace": "_marker-of-a-fault", "key": "k", "value": 1 });
    let three = json!({ "operations": [
        [good("dropped-a"), bad()], [bad()], [bad(), good("dropped-b")], [good("kept")],
    ] });
    order(stage, &session, "first", three).await?;
    turn(stage, &session, "drops-three").await?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;
    let place = format!("/plugin-data/{CAST}/harness");
    read(stage, &session, "read-dropped", &place).await?;
    read(stage, &session, "read-dropped-story", "/messages").await?;

    let topics = [
        "session", "runtime", "state", "game", "plugin", "job", "hooks",
    ];
    let failed = Subscribe::to(&session).topics(&topics);
    let failed = watch(stage, "watch-operations-lost", &failed).await?;
    order(stage, &session, "first", json!({ "operations": [[bad()]] })).await?;
    fail_commit(stage, &session).await?;
    turn(stage, &session, "drops-lost").await?;
    settle(stage, &session, &failed).await?;
    failed.close().await;
    Ok(())
}
