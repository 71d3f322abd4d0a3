//! Runs that wait for the player: answered, answered again, answered in vain, voided, rolled back.

use serde_json::{Value, json};

use super::{NEEDS, SOON, TURN_WITHIN, fail_commit, order, owned, read, session, turn, until};
use crate::{
    drivers::{
        DriveError,
        http::{Call, Reply},
    },
    scenarios::{
        Act, Scenario,
        watching::{settle, watch},
    },
    stage::{Session, Stage, Subscribe},
};

/// The scenarios of this file.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        needs: &[NEEDS],
        ..Scenario::shared(
            "suspensions-answered",
            "two runs of one turn wait for the player, and are answered one after the other",
            Act::Server(|stage| Box::pin(answered(stage))),
        )
    },
    Scenario {
        needs: &[NEEDS],
        ..Scenario::shared(
            "suspensions-voided",
            "a run waits, and waits again in the next turn, while another one waits all the time",
            Act::Server(|stage| Box::pin(voided(stage))),
        )
    },
    Scenario {
        needs: &[NEEDS],
        ..Scenario::shared(
            "suspensions-again",
            "an answered run asks a second time, and ends with the second answer",
            Act::Server(|stage| Box::pin(again(stage))),
        )
    },
    Scenario {
        needs: &[NEEDS, "fail-commit"],
        ..Scenario::shared(
            "suspensions-lost",
            "an answered run fails, and a turn with a waiting run is rolled back",
            Act::Server(|stage| Box::pin(lost(stage))),
        )
    },
];

/// An order to wait for an answer of this schema, and then to do this.
fn waits(reason: &str, schema: &Value, then: &Value) -> Value {
    json!({ "suspend": { "reason": reason, "resumeSchema": schema, "then": then } })
}

/// A schema of two members, which says enough to be told from any other.
fn named() -> Value {
    json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "crew": { "type": "integer" } },
        "required": ["name"],
    })
}

fn anything() -> Value {
    json!({ "type": "object" })
}

/// The open item of this runtime, as a list of suspensions shows it. Another id, which nobody knows, when there is
/// none: the scenario goes on, and the answer shows what the target makes of it.
fn item_of(list: &Reply, runtime: &str) -> String {
    let list = list.json().unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let mut ours = items
        .iter()
        .rev()
        .filter(|item| text(item, "runtimeId").ends_with(runtime));
    let found = ours.next().map(|item| text(item, "id"));
    found.unwrap_or_else(|| "no-such-suspension".to_owned())
}

async fn resume(
    stage: &Stage,
    session: &Session,
    label: &str,
    item: &str,
    data: Value,
) -> Result<(), DriveError> {
    stage.label(label);
    let path = session.path(&format!("/suspensions/{item}/resume"));
    let call = Call::post(path).json(&json!({ "data": data }));
    stage.send(owned(call, session)).await?;
    Ok(())
}

async fn answered(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    let watcher = watch(stage, "watch-two", &Subscribe::to(&session)).await?;
    let other = watch(stage, "watch-two", &Subscribe::to(&session)).await?;
    let then = json!({ "write": [{ "namespace": "harness", "key": "answer" }] });
    order(
        stage,
        &session,
        "first",
        waits("Name the ship", &named(), &then),
    )
    .await?;
    order(
        stage,
        &session,
        "second",
        waits("Pick a port", &anything(), &json!({})),
    )
    .await?;

    let token = stage.token();
    let row = json!({ "namespace": "harness", "key": "beside", "value": { "n": 1 } });
    stage
        .model()?
        .calls_then_says(&token, &[("plugin_data_set", row)], "A ship is built.");
    stage.label("suspends-two");
    let acting = stage.say(&session, &token).await?.keep_reading();
    until(stage, &watcher, 0, "turn.suspended").await;
    read(stage, &session, "read-at-once", "/suspensions").await?;
    read(stage, &session, "read-beside", "/plugin-data/story/harness").await?;
    acting.wait_end(stage.patience(TURN_WITHIN)).await;
    acting.close().await;
    let list = read(stage, &session, "read-two", "/suspensions").await?;
    let (first, second) = (item_of(&list, "first"), item_of(&list, "second"));

    let soon = stage.patience(SOON);
    resume(stage, &session, "resume-second", &second, json!({})).await?;
    watcher.wait_count("turn.resumed", 1, soon).await;
    read(stage, &session, "read-one", "/suspensions").await?;
    let data = json!({ "name": "Argo", "crew": 50 });
    resume(stage, &session, "resume-first", &first, data).await?;
    watcher.wait_count("turn.resumed", 2, soon).await;
    read(stage, &session, "read-none", "/suspensions").await?;
    resume(
        stage,
        &session,
        "answer-twice",
        &first,
        json!({ "name": "Argo" }),
    )
    .await?;
    settle(stage, &session, &watcher).await?;
    settle(stage, &session, &other).await?;
    watcher.close().await;
    other.close().await;
    Ok(())
}

async fn voided(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    let watcher = watch(stage, "watch-void", &Subscribe::to(&session)).await?;
    for runtime in ["first", "second"] {
        let order_of = waits("Once", &anything(), &json!({}));
        order(stage, &session, runtime, order_of).await?;
    }
    turn(stage, &session, "void-older").await?;
    let older = read(stage, &session, "read-older", "/suspensions").await?;
    let older = item_of(&older, "first");

    order(
        stage,
        &session,
        "first",
        waits("Twice", &anything(), &json!({})),
    )
    .await?;
    turn(stage, &session, "void-newer").await?;
    settle(stage, &session, &watcher).await?;
    read(stage, &session, "read-void", "/suspensions").await?;
    resume(stage, &session, "resume-voided", &older, json!({})).await?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;
    Ok(())
}

async fn again(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    let watcher = watch(stage, "watch-again", &Subscribe::to(&session)).await?;
    let second = waits("And then?", &anything(), &json!({}));
    order(
        stage,
        &session,
        "first",
        waits("What?", &anything(), &second),
    )
    .await?;
    turn(stage, &session, "suspends-first").await?;
    let list = read(stage, &session, "read-first", "/suspensions").await?;
    resume(
        stage,
        &session,
        "resume-again",
        &item_of(&list, "first"),
        json!({}),
    )
    .await?;
    settle(stage, &session, &watcher).await?;
    let list = read(stage, &session, "read-again", "/suspensions").await?;
    watcher.close().await;

    let watcher = watch(stage, "watch-last", &Subscribe::to(&session)).await?;
    resume(
        stage,
        &session,
        "resume-last",
        &item_of(&list, "first"),
        json!({}),
    )
    .await?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;
    Ok(())
}

async fn lost(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    let watcher = watch(stage, "watch-failed", &Subscribe::to(&session)).await?;
    let then = json!({ "fail": "the answer is of no use" });
    order(stage, &session, "first", waits("What?", &anything(), &then)).await?;
    turn(stage, &session, "suspends-fails").await?;
    let list = read(stage, &session, "read-before-failure", "/suspensions").await?;
    resume(
        stage,
        &session,
        "resume-fails",
        &item_of(&list, "first"),
        json!({}),
    )
    .await?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;

    // All topics but the trace, by name.
    let topics = [
        "session", "runtime", "state", "game", "plugin", "job", "hooks",
    ];
    let watched = Subscribe::to(&session).topics(&topics);
    let watcher = watch(stage, "watch-rolled-back", &watched).await?;
    let does = json!({
        "ask": [{ "id": "lost-form", "type": "form", "data": {}, "meta": {} }],
        "render": [{ "id": "lost-block", "type": "panel" }],
        "schema": { "fields": [] },
        "characters": [{ "id": "lost", "name": "Nobody" }],
        "operations": [[{ "namespace": "_reserved", "key": "k", "value": 1 }]],
        "write": [{ "namespace": "memory", "key": "lost", "value": 1 }],
    });
    order(stage, &session, "first", does).await?;
    order(
        stage,
        &session,
        "second",
        waits("Lost", &anything(), &json!({})),
    )
    .await?;
    read(stage, &session, "read-before-rollback", "/suspensions").await?;
    fail_commit(stage, &session).await?;
    turn(stage, &session, "rolled-back").await?;
    settle(stage, &session, &watcher).await?;
    read(stage, &session, "read-after-rollback", "/suspensions").await?;
    watcher.close().await;
    Ok(())
}
