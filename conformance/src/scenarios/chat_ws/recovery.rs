//! Killed background tasks, and chats that hang because of one.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    KILLED_TASKS, QUIET, TURN, new_chat, over, scenario,
    turns::{told_elsewhere, transcript},
};
use crate::{
    drivers::{DriveError, http::Call, websocket::WebSocket},
    scenarios::{Act, Isolation, Scenario},
    stage::Stage,
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "chat-killed-task",
        "kills background tasks with and without a summary while two sockets are open",
        &[KILLED_TASKS],
        |stage| Box::pin(killed(stage)),
    ),
    scenario(
        "chat-continue",
        "has a hung chat driven again, with and without naming its project, and no chat at all",
        &[KILLED_TASKS],
        |stage| Box::pin(drive_again(stage)),
    ),
    Scenario {
        name: "chat-recovery-off",
        about: "kills a task and asks to continue where recovery.surfaceKilledTask is off",
        needs: &[KILLED_TASKS],
        variant: Some("chat-recovery-off"),
        isolation: Isolation::Own,
        run: Act::Server(|stage| Box::pin(off(stage))),
    },
];

/// Kills a task of a chat; the notification has this summary.
async fn kill(stage: &Stage, session: &str, summary: Option<&str>) -> Result<(), DriveError> {
    let notification = match summary {
        Some(summary) => {
            format!(
                "<task-notification><status>killed</status><summary>{summary}</summary></task-notification>"
            )
        }
        None => "<task-notification><status>killed</status></task-notification>".to_owned(),
    };
    let profile = stage.profile();
    let body = json!({
        "pluginId": profile.fixture_plugin, "kind": "action", "action": "kill-task",
        "payload": { "notification": notification },
    });
    let call = Call::post(format!("/api/sessions/{session}/plugin-rpc"))
        .bearer(profile.operator_token.as_deref())
        .json(&body);
    stage.send(call).await?;
    Ok(())
}

async fn killed(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let mut other = stage.chat().await?;
    stage.label("ok-before");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    let cases = [
        ("kill-live", Some("build stopped")),
        ("kill-plain", None),
        ("kill-default", Some("by default")),
    ];
    for (label, summary) in cases {
        stage.label(label);
        kill(stage, &session, summary).await?;
        socket.wait_for_kind("chat:killed_task", QUIET).await;
        // Not answered by any turn: the notice has to come by itself.
        stage.pause(QUIET / 2).await;
    }
    stage.label("ok-after");
    socket
        .chat_send(
            &stage.profile().chat.project,
            Some(&session),
            &stage.token(),
        )
        .await?;
    over(&mut socket, TURN).await;
    told_elsewhere(
        &socket,
        &mut other,
        "chat:killed_task",
        "/payload/timestamp",
    )
    .await;
    drop(other);
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn again(socket: &mut WebSocket, payload: Value, within: Duration) -> Result<(), DriveError> {
    socket.say("chat:continue", payload).await?;
    over(socket, within).await;
    Ok(())
}

async fn drive_again(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let project = stage.profile().chat.project.clone();
    stage.label("ok-before");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    let payload = json!({ "projectSlug": project, "target": project, "sessionId": session });
    socket.say("chat:subscribe", payload.clone()).await?;
    kill(stage, &session, Some("build stopped")).await?;
    stage.label("continue");
    again(&mut socket, payload, TURN / 2).await?;
    transcript(stage, &session, "nudge-transcript").await?;
    stage.label("continue-bare");
    kill(stage, &session, Some("build stopped")).await?;
    again(&mut socket, json!({ "sessionId": session }), TURN / 2).await?;
    stage.label("continue-nothing");
    for payload in [
        json!({ "projectSlug": project, "target": project }),
        json!({ "projectSlug": project, "target": project, "sessionId": null }),
    ] {
        socket.say("chat:continue", payload).await?;
        stage.pause(QUIET).await;
    }
    stage.label("after");
    stage.pause(QUIET).await;
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn off(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let project = stage.profile().chat.project.clone();
    stage.label("ok-before");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    let payload = json!({ "projectSlug": project, "target": project, "sessionId": session });
    socket.say("chat:subscribe", payload.clone()).await?;
    stage.label("kill-off");
    kill(stage, &session, Some("build stopped")).await?;
    stage.pause(QUIET).await;
    socket.send(&json!({ "type": "ping" })).await?;
    socket.wait_for_kind("pong", TURN).await;
    stage.pause(QUIET).await;
    stage.label("continue-off");
    again(&mut socket, payload, QUIET * 2).await?;
    stage.pause(QUIET).await;
    socket.close(1000, QUIET).await;
    Ok(())
}
