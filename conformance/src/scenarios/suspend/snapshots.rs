//! Snapshots of a session: after a commit, on request, refused; and forks.

use serde_json::json;

use super::{NEEDS, SOON, TURN_WITHIN, fail_commit, owned, read, session, until};
use crate::{
    drivers::{DriveError, http::Call},
    scenarios::{
        Act, Scenario,
        watching::{settle, watch},
    },
    stage::{Session, Stage, Subscribe},
};

/// The scenarios of this file.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    needs: &[NEEDS, "fail-commit", "snapshots"],
    ..Scenario::shared(
        "snapshots-and-forks",
        "a session is captured after a commit and on request, and forked, with subscribers of every kind",
        Act::Server(|stage| Box::pin(snapshots(stage))),
    )
}];

/// Asks for a snapshot, and gives its id. Another id, which nobody knows, when there is none.
async fn take(stage: &Stage, session: &Session, label: &str) -> Result<String, DriveError> {
    stage.label(label);
    let call = Call::post(session.path("/snapshots"));
    let reply = stage.send(owned(call, session)).await?;
    Ok(reply
        .string("/id")
        .unwrap_or_else(|| "no-such-snapshot".to_owned()))
}

async fn fork(
    stage: &Stage,
    session: &Session,
    label: &str,
    from: &str,
) -> Result<Option<Session>, DriveError> {
    stage.label(label);
    let call = Call::post(session.path("/fork")).json(&json!({ "fromSnapshotId": from }));
    let reply = stage.send(owned(call, session)).await?;
    let child = reply.string("/sessionId").map(|id| Session {
        id,
        owner_token: reply.string("/ownerToken"),
    });
    Ok(child)
}

async fn snapshots(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    let all = watch(stage, "watch-all", &Subscribe::to(&session)).await?;
    let topics = |topics: &[&str]| Subscribe::to(&session).topics(topics);
    let narrow = watch(stage, "watch-session", &topics(&["session"])).await?;
    let too = watch(stage, "watch-session-too", &topics(&["session", "hooks"])).await?;
    let others = topics(&["runtime", "state", "game", "plugin"]);
    let others = watch(stage, "watch-others", &others).await?;

    stage.label("captured");
    let acting = stage.say_and_reply(&session, "The bell rings twice.");
    let acting = acting.await?.keep_reading();
    until(stage, &all, 0, "state.snapshot.created").await;
    read(stage, &session, "read-captured", "/messages").await?;
    acting.wait_end(stage.patience(TURN_WITHIN)).await;
    acting.close().await;

    let manual = watch(stage, "watch-manual", &topics(&["session", "game"])).await?;
    let taken = take(stage, &session, "snapshot-taken").await?;
    let soon = stage.patience(SOON);
    manual.wait_for("state.snapshot.created", soon).await;
    read(stage, &session, "read-taken", "/snapshots").await?;
    settle(stage, &session, &all).await?;
    manual.close().await;

    let forks = watch(stage, "watch-fork", &topics(&["session", "job"])).await?;
    let child = fork(stage, &session, "forked", &taken).await?;
    forks.wait_for("session.forked", soon).await;
    if let Some(child) = child {
        read(stage, &child, "read-child", "").await?;
        read(stage, &child, "read-child", "/view").await?;
    }
    settle(stage, &session, &all).await?;
    forks.close().await;

    let refused = watch(stage, "watch-refused", &topics(&["session", "plugin"])).await?;
    fork(stage, &session, "fork-refused", "no-such-snapshot").await?;
    fail_commit(stage, &session).await?;
    take(stage, &session, "snapshot-refused").await?;
    settle(stage, &session, &refused).await?;
    for watcher in [all, narrow, too, others, refused] {
        watcher.close().await;
    }
    Ok(())
}
