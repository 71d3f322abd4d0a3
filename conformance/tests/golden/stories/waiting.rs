//! Runs that wait for the player, snapshots and forks, and what runtimes show and drop beside the story.

use std::time::Duration;

use serde_json::json;
use turnwire::{
    drivers::{
        DriveError,
        http::{Call, Reply},
    },
    stage::{CAST, Session, Stage, Subscribe},
};

use crate::machine::Story;

const SOON: Duration = Duration::from_secs(30);

pub(crate) const STORIES: &[Story] = &[
    story!(
        "turn-suspended",
        "two runs wait for the player: one is answered, the other one is given up",
        ["COV-SUSP-001", "COV-SUSP-014"],
        suspended
    ),
    story!(
        "session-forked",
        "a session is captured, and another one is made from that",
        ["COV-SUSP-032", "COV-SUSP-042"],
        forked
    ),
    story!(
        "turn-shows-more",
        "runtimes beside the story ask the player, draw, describe characters, and lose an operation",
        ["COV-SUSP-045", "COV-SUSP-063", "COV-SUSP-094"],
        shows_more
    ),
];

async fn send(stage: &Stage, session: &Session, call: Call) -> Result<Reply, DriveError> {
    let call = call.bearer(session.owner_token.as_deref());
    stage.send(call).await
}

async fn suspended(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[CAST]).await?;
    let schema = json!({ "type": "object", "required": ["name"] });
    for runtime in ["first", "second"] {
        let suspend = json!({ "reason": "Who are you?", "resumeSchema": schema, "then": {} });
        stage
            .order(&session, runtime, json!({ "suspend": suspend }))
            .await?;
    }
    stage.model()?.says("look", "The door opens.");
    stage.say(&session, "look").await?.read_to_end(SOON).await;
    let list = stage.query(&session, "/suspensions").await?;
    let item = |n: usize| list.need_string(&format!("/items/{n}/id"));
    let (first, second) = (item(0)?, item(1)?);

    let topics = Subscribe::to(&session).topics(&["runtime"]);
    let watcher = stage.subscribe(&topics).await?.keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    let path = session.path(&format!("/suspensions/{first}/resume"));
    let answer = json!({ "data": { "name": "Ada" } });
    send(stage, &session, Call::post(path).json(&answer)).await?;
    watcher.wait_for("turn.resumed", SOON).await;
    watcher.close().await;
    let path = session.path(&format!("/suspensions/{second}"));
    send(stage, &session, Call::delete(path)).await?;
    Ok(())
}

async fn forked(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[CAST]).await?;
    let topics = Subscribe::to(&session).topics(&["session"]);
    let watcher = stage.subscribe(&topics).await?.keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    let call = Call::post(session.path("/snapshots"));
    let taken = send(stage, &session, call).await?.need_string("/id")?;
    watcher.wait_for("state.snapshot.created", SOON).await;
    stage.query(&session, "/snapshots").await?;
    let body = json!({ "fromSnapshotId": taken });
    let call = Call::post(session.path("/fork")).json(&body);
    send(stage, &session, call).await?;
    watcher.wait_for("session.forked", SOON).await;
    watcher.close().await;
    Ok(())
}

async fn shows_more(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[CAST]).await?;
    let reserved = json!({ "namespace": "_reserved", "key": "k", "value": 1 });
    let does = json!({
        "ask": [{ "id": "form-a", "type": "form", "data": { "title": "Who are you?" }, "meta": {} }],
        "render": [{ "id": "panel-a", "type": "panel" }],
        "schema": { "fields": [{ "id": "mood", "type": "string" }] },
        "characters": [{ "id": "ada", "name": "Ada" }],
        "operations": [[reserved]],
    });
    stage.order(&session, "first", does).await?;
    stage.model()?.says("look", "The door opens.");
    stage.say(&session, "look").await?.read_to_end(SOON).await;
    stage.query(&session, "/view").await?;
    Ok(())
}
