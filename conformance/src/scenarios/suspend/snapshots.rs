//! Snapshots of a session: after a commit, on request, refused; and forks.

use serde_json::{Value, json};

use super::{NEEDS, SOON, TURN_WITHIN, fail_commit, owned, read, session, turn};
use crate::{
    drivers::{
        DriveError,
        http::{Call, Reading},
    },
    scenarios::{
        Act, Scenario,
        watching::{settle, watch},
    },
    stage::{Session, Stage, Subscribe},
    transcript::views::stream::StreamFrame,
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

/// The newest snapshot of this kind that the watcher has heard of.
fn newest(frames: &[StreamFrame], kind: &str) -> Option<String> {
    let ours = |frame: &&StreamFrame| {
        let named = frame.pointer("/payload/kind").and_then(Value::as_str);
        frame.event_type() == "state.snapshot.created" && named == Some(kind)
    };
    let newest = frames.iter().rev().find(ours)?;
    let id = newest.pointer("/payload/snapshotId")?.as_str()?;
    Some(id.to_owned())
}

/// Waits for a snapshot event of this kind that came after `seen` frames.
async fn wait_for(stage: &Stage, watcher: &Reading, seen: usize, kind: &str) {
    let came = |frames: &[StreamFrame]| {
        let since = frames.get(seen..).unwrap_or_default();
        newest(since, kind).map(|_| ())
    };
    watcher.wait_until(stage.patience(SOON), came).await;
}

async fn take(stage: &Stage, session: &Session, label: &str) -> Result<(), DriveError> {
    stage.label(label);
    let call = Call::post(session.path("/snapshots"));
    stage.send(owned(call, session)).await?;
    Ok(())
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
    let topic = || Subscribe::to(&session).topics(&["session"]);
    let narrow = watch(stage, "watch-session", &topic()).await?;
    let too = watch(stage, "watch-session", &topic()).await?;
    let others = Subscribe::to(&session).topics(&["runtime", "state", "game", "plugin"]);
    let others = watch(stage, "watch-others", &others).await?;

    stage.label("captured");
    let mut stream = stage
        .say_and_reply(&session, "The bell rings twice.")
        .await?;
    wait_for(stage, &narrow, 0, "auto").await;
    read(stage, &session, "read-captured", "/messages").await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;

    let manual = watch(stage, "watch-manual", &topic()).await?;
    take(stage, &session, "snapshot-taken").await?;
    wait_for(stage, &manual, 0, "manual").await;
    read(stage, &session, "read-taken", "/snapshots").await?;
    let taken = newest(&manual.frames(), "manual");
    settle(stage, &session, &all).await?;
    manual.close().await;

    if let Some(taken) = taken {
        let forks = watch(stage, "watch-fork", &topic()).await?;
        let child = fork(stage, &session, "forked", &taken).await?;
        forks.wait_for("session.forked", stage.patience(SOON)).await;
        if let Some(child) = child {
            read(stage, &child, "read-child", "").await?;
            read(stage, &child, "read-child", "/view").await?;
        }
        settle(stage, &session, &all).await?;
        forks.close().await;
    }

    let refused = watch(stage, "watch-refused", &topic()).await?;
    fork(stage, &session, "fork-refused", "no-such-snapshot").await?;
    fail_commit(stage, &session).await?;
    take(stage, &session, "snapshot-refused").await?;
    fail_commit(stage, &session).await?;
    turn(stage, &session, "uncaptured").await?;
    settle(stage, &session, &all).await?;
    settle(stage, &session, &others).await?;
    for watcher in [all, narrow, too, others, refused] {
        watcher.close().await;
    }
    Ok(())
}
