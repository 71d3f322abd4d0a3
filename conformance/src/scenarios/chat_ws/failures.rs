//! What ends a turn early, and texts that are no frames.

use serde_json::json;
use turnwire_mock::{Call, CutHow, ErrorReply, Position, Reply, Rule, Script, When};

use super::{QUIET, TOOLS, TURN, new_chat, over, scenario, started};
use crate::{
    drivers::{DriveError, websocket::WebSocket},
    scenarios::Scenario,
    stage::Stage,
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "chat-errors",
        "sends texts that are no JSON, no frame and no known kind, and a message to no project, while another socket is open",
        &[],
        |stage| Box::pin(errors(stage)),
    ),
    scenario(
        "chat-failures",
        "turns that end at a usage limit, a failing API, a refused key and a broken connection, while others listen",
        &[],
        |stage| Box::pin(failures(stage)),
    ),
    scenario(
        "chat-max-turns",
        "a model that calls tools without end",
        &[TOOLS],
        |stage| Box::pin(max_turns(stage)),
    ),
    scenario(
        "chat-cancel",
        "two turns that wait, of which one is cancelled",
        &[],
        |stage| Box::pin(cancel(stage)),
    ),
];

async fn errors(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let mut other = stage.chat().await?;
    stage.label("errors");
    for text in [
        "{",
        "nonsense",
        "[1]",
        r#"{"type":"chat:nope","payload":{}}"#,
        r#"{"type":"chat:complete","payload":{}}"#,
    ] {
        socket.send_text(text).await?;
        socket.wait_for_kind("chat:error", QUIET).await;
    }
    stage.label("no-project");
    let slug = "no-such-project-of-turnwire";
    let payload = json!({
        "projectSlug": slug, "target": slug, "sessionId": null, "message": stage.token(),
    });
    socket.say("chat:send", payload).await?;
    socket.wait_for_kind("chat:error", QUIET).await;
    stage.label("after-errors");
    socket.send(&json!({ "type": "ping" })).await?;
    socket.wait_for_kind("pong", TURN).await;
    other.wait_for_kind("chat:error", QUIET).await;
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn failures(stage: &Stage) -> Result<(), DriveError> {
    let model = stage.model()?;
    let mut socket = stage.chat().await?;
    let (follower, stranger) = (stage.chat().await?, stage.chat().await?);
    let project = stage.profile().chat.project.clone();
    stage.label("ok-before");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    let elsewhere = new_chat(stage, &mut socket, &stage.token()).await?;
    subscribe(&follower, &project, &session).await?;
    subscribe(&stranger, &project, &elsewhere).await?;
    let limit = ErrorReply::new(429).message("Usage limit reached, resets 03:00 (UTC)");
    let replies = [
        ("limit", Reply::from(limit)),
        ("error-api", Reply::error(500)),
        ("error-busy", Reply::error(503)),
        ("error-key", Reply::error(401)),
        (
            "error-network",
            Reply::text("Half of it").cut(Position::Tokens(1), CutHow::Close),
        ),
    ];
    for (label, reply) in replies {
        stage.label(label);
        let token = stage.token();
        model.answers(&token, reply);
        socket.chat_send(&project, Some(&session), &token).await?;
        over(&mut socket, TURN / 3).await;
        // The follower gets its frames a little later.
        stage.pause(QUIET / 4).await;
    }
    stage.label("ok-after");
    stage.pause(QUIET).await;
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn subscribe(socket: &WebSocket, project: &str, session: &str) -> Result<(), DriveError> {
    let payload = json!({ "projectSlug": project, "target": project, "sessionId": session });
    socket.say("chat:subscribe", payload).await
}

async fn max_turns(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let token = stage.token();
    stage.label("max-turns");
    // No answer where no tools are offered any more, so that nothing but the cap ends the turn.
    let asked = When::new().any_message(&token);
    let calls = [Call::new("fixture_work", json!({}))];
    let script = Script::new(token.as_str())
        .rule(
            Rule::new("calls")
                .when(asked.clone().offers_tool("fixture_work"))
                .reply(Reply::new().calls(calls)),
        )
        .rule(Rule::new("ends").when(asked).reply(Reply::new()));
    stage.model()?.load(script);
    socket
        .chat_send(&stage.profile().chat.project, None, &token)
        .await?;
    over(&mut socket, TURN).await;
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn cancel(stage: &Stage) -> Result<(), DriveError> {
    let model = stage.model()?;
    let mut socket = stage.chat().await?;
    let project = stage.profile().chat.project.clone();
    stage.label("two-turns");
    let (first, second) = (stage.token(), stage.token());
    model.says_and_waits(&first, "I begin ", "and go on.");
    model.says_and_waits(&second, "I too ", "and end.");
    socket.chat_send(&project, None, &first).await?;
    let (_, job) = started(&mut socket).await?;
    socket.chat_send(&project, None, &second).await?;
    started(&mut socket).await?;
    model.wait_asked(&second, 1, TURN).await;
    stage.pause(QUIET / 2).await;
    stage.label("cancel");
    socket.say("chat:cancel", json!({ "jobId": job })).await?;
    over(&mut socket, TURN / 2).await;
    stage.label("after-cancel");
    model.go_on(&second);
    over(&mut socket, TURN).await;
    model.go_on(&first);
    stage.pause(QUIET).await;
    socket.close(1000, QUIET).await;
    Ok(())
}
