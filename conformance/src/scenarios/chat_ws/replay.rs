//! Sockets that come late, or come back.

use std::time::Duration;

use serde_json::json;
use turnwire_mock::Reply;
use turnwire_spec::chat_ws::limits::KEPT_FRAMES;

use super::{QUIET, TURN, over, scenario, started};
use crate::{
    drivers::{
        DriveError,
        websocket::{Seen, WebSocket},
    },
    scenarios::Scenario,
    stage::Stage,
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "chat-replay",
        "connects, subscribes with and without replay, drops and comes back while a turn waits in its middle",
        &[],
        |stage| Box::pin(replay(stage)),
    ),
    scenario(
        "chat-resync",
        "lets a turn outgrow the buffer and asks for frames that are gone",
        &[],
        |stage| Box::pin(resync(stage)),
    ),
];

async fn replay(stage: &Stage) -> Result<(), DriveError> {
    let model = stage.model()?;
    let project = stage.profile().chat.project.clone();
    let mut origin = stage.chat().await?;
    let token = stage.token();
    stage.label("begin");
    model.says_and_waits(&token, "one two three four five six ", "seven eight nine");
    origin.chat_send(&project, None, &token).await?;
    let (session, _) = started(&mut origin).await?;
    let middle = last_seq(&mut origin).await;

    stage.label("connect-running");
    let silent = stage.chat().await?;
    stage.pause(QUIET).await;
    silent.close(1000, QUIET).await;

    stage.label("bare-reconnect");
    let bare = stage.chat().await?;
    stage.pause(QUIET).await;
    bare.close(1000, QUIET).await;

    stage.label("subscribe-running");
    let late = stage.chat().await?;
    // What a new socket is told comes before what a subscription is told.
    stage.pause(QUIET / 4).await;
    let payload = json!({ "projectSlug": project, "target": project, "sessionId": session });
    late.say("chat:subscribe", payload.clone()).await?;
    let again = stage.chat().await?;
    stage.pause(QUIET / 4).await;
    let mut wanted = payload.clone();
    wanted["wantReplay"] = json!(true);
    wanted["lastSeq"] = json!(middle.unwrap_or(2).min(2));
    again.say("chat:subscribe", wanted.clone()).await?;
    stage.pause(QUIET).await;

    stage.label("go-on");
    let lost = stage.chat().await?;
    wanted["lastSeq"] = json!(0);
    lost.say("chat:subscribe", wanted.clone()).await?;
    stage.pause(QUIET / 2).await;
    lost.cut();
    let back = stage.chat().await?;
    wanted["lastSeq"] = json!(1);
    back.say("chat:subscribe", wanted).await?;
    // The subscription is to meet the turn while it runs.
    stage.pause(QUIET / 2).await;
    model.go_on(&token);
    over(&mut origin, TURN).await;
    stage.pause(QUIET).await;
    for socket in [origin, late, again, back] {
        socket.close(1000, QUIET).await;
    }
    Ok(())
}

/// The highest number that came, once nothing more comes.
async fn last_seq(socket: &mut WebSocket) -> Option<i64> {
    let mut last = None;
    let numbered = |seen: &Seen| seen.pointer("/payload/seq").is_some();
    while let Some(seen) = socket.wait_for(QUIET, numbered).await {
        last = seen
            .pointer("/payload/seq")
            .and_then(serde_json::Value::as_i64)
            .or(last);
    }
    last
}

async fn resync(stage: &Stage) -> Result<(), DriveError> {
    let model = stage.model()?;
    let project = stage.profile().chat.project.clone();
    let frames = stage.profile().chat.buffer.unwrap_or(KEPT_FRAMES as u64);
    let mut origin = stage.chat().await?;
    let token = stage.token();
    stage.label("begin");
    let pieces: Vec<String> = (0..frames + 100).map(|n| format!("w{n} ")).collect();
    let reply = Reply::new().pieces(pieces).gate(&token).say("the end");
    model.answers(&token, reply);
    origin.chat_send(&project, None, &token).await?;
    let (session, _) = started(&mut origin).await?;
    let reaches = i64::try_from(frames + 50).unwrap_or(i64::MAX);
    let enough = |seen: &Seen| {
        let seq = seen
            .pointer("/payload/seq")
            .and_then(serde_json::Value::as_i64);
        seq.is_some_and(|seq| seq >= reaches)
    };
    origin
        .need_that("enough frames", Duration::from_secs(20), enough)
        .await?;
    // All that came until here is old for who subscribes now, and not on its way at the same time.
    stage.pause(QUIET).await;
    stage.label("aged-out");
    let late = stage.chat().await?;
    let payload = json!({
        "projectSlug": project, "target": project,
        "sessionId": session, "wantReplay": true, "lastSeq": 1,
    });
    late.say("chat:subscribe", payload).await?;
    stage.pause(QUIET).await;
    stage.label("go-on");
    model.go_on(&token);
    over(&mut origin, TURN).await;
    stage.pause(QUIET / 2).await;
    late.close(1000, QUIET).await;
    origin.close(1000, QUIET).await;
    Ok(())
}
