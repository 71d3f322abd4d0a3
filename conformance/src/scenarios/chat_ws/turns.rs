//! Turns that go well: chats, tools, usage, commands.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use turnwire_mock::{Call, Reply, Rule, Script, Usage, When};
use turnwire_spec::chat_ws::SCRATCH;

use super::{QUIET, TOOLS, TURN, idle, new_chat, over, scenario};
use crate::{
    drivers::{
        DriveError,
        http::Call as Request,
        websocket::{Seen, WebSocket},
    },
    scenarios::Scenario,
    stage::Stage,
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "chat-turns",
        "two turns of one chat and one of a chat outside any project, in many pieces, while another socket listens",
        &[],
        |stage| Box::pin(turns(stage)),
    ),
    scenario(
        "chat-sends",
        "says something in every form that chat:send has, in new chats and in one that exists",
        &[],
        |stage| Box::pin(sends(stage)),
    ),
    scenario(
        "chat-tools",
        "tools that work, fail, take time and run side by side, with text before and after",
        &[TOOLS],
        |stage| Box::pin(tools(stage)),
    ),
    scenario(
        "chat-usage",
        "turns whose model reports tokens, with short and long answers, and on two models",
        &[],
        |stage| Box::pin(usage(stage)),
    ),
    scenario(
        "chat-commands",
        "compacts a chat with history",
        &[],
        |stage| Box::pin(commands(stage)),
    ),
];

/// Sixty pieces of text.
fn pieces() -> Vec<String> {
    (0..60).map(|n| format!("word{n} ")).collect()
}

async fn turns(stage: &Stage) -> Result<(), DriveError> {
    let model = stage.model()?;
    let mut socket = stage.chat().await?;
    let mut listener = stage.chat().await?;
    let pieces = pieces();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let project = &stage.profile().chat.project;
    stage.label("ok-project");
    let token = stage.token();
    model.says_in_pieces(&token, &pieces, Duration::from_millis(2));
    let session = new_chat(stage, &mut socket, &token).await?;
    stage.label("ok-again");
    let token = stage.token();
    model.says_in_pieces(&token, &pieces, Duration::from_millis(1));
    socket.chat_send(project, Some(&session), &token).await?;
    over(&mut socket, TURN).await;
    transcript(stage, &session, "transcript").await?;
    stage.label("ok-scratch");
    let token = stage.token();
    model.says(&token, "Nobody knows.");
    socket.chat_send(SCRATCH, None, &token).await?;
    over(&mut socket, TURN).await;
    told_elsewhere(&socket, &mut listener, "chat:active", "/payload/running").await;
    drop(listener);
    socket.close(1000, QUIET).await;
    Ok(())
}

/// Waits until another socket was told what this one was: of each session, every value of `member` in frames of this
/// kind. What it is not told counts as missing after four seconds.
pub(super) async fn told_elsewhere(
    socket: &WebSocket,
    listener: &mut WebSocket,
    kind: &str,
    member: &str,
) {
    let values = |seen: &[Seen]| -> BTreeSet<String> {
        let ours = seen.iter().filter(|it| it.kind() == Some(kind));
        ours.map(|it| format!("{:?}", (it.text("/payload/sessionId"), it.pointer(member))))
            .collect()
    };
    let told = values(&socket.seen());
    listener
        .wait_until(TURN / 2, |seen| values(seen).is_superset(&told))
        .await;
}

/// Reads the transcript of a chat under a label.
pub(super) async fn transcript(
    stage: &Stage,
    session: &str,
    label: &str,
) -> Result<(), DriveError> {
    let chat = &stage.profile().chat;
    let path = chat.transcript.replace("{session}", session);
    let token = stage.profile().operator_token.as_deref();
    stage.label(label);
    stage.send(Request::get(path).bearer(token)).await?;
    Ok(())
}

async fn sends(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let chat = stage.profile().chat.clone();
    let project = chat.project.as_str();
    stage.label("ok-first");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    let both = json!({ "projectSlug": project, "target": project });
    let mut forms = vec![
        ("new-null", json!({ "sessionId": null })),
        ("send-bare", json!({})),
        (
            "send-preload",
            json!({ "sessionId": null, "preloadContext": true }),
        ),
        (
            "send-no-preload",
            json!({ "sessionId": null, "preloadContext": false }),
        ),
        ("resume", json!({ "sessionId": session })),
        ("slug-only", json!({ "sessionId": null, "target": null })),
        (
            "target-only",
            json!({ "sessionId": null, "projectSlug": null }),
        ),
    ];
    if let Some((name, _)) = chat.models.last() {
        forms.push(("with-model", json!({ "sessionId": null, "model": name })));
    }
    for (label, form) in forms {
        stage.label(label);
        let mut payload = both.clone();
        for (name, value) in form.as_object().into_iter().flatten() {
            payload[name] = value.clone();
        }
        if let Some(members) = payload.as_object_mut() {
            members.retain(|name, value| !value.is_null() || name == "sessionId");
            members.insert("message".to_owned(), Value::from(stage.token()));
        }
        socket.say("chat:send", payload).await?;
        over(&mut socket, TURN).await;
    }
    transcript(stage, &session, "transcript").await?;
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn tools(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let work = |arguments: Value| Call::new("fixture_work", arguments);
    stage.label("ok-tool-works");
    say(
        stage,
        &mut socket,
        vec![work(json!({ "result": "oak,21" }))],
    )
    .await?;
    stage.label("tool-fails");
    say(stage, &mut socket, vec![work(json!({ "fail": true }))]).await?;
    stage.label("ok-slow-tool");
    say(stage, &mut socket, vec![work(json!({ "ms": 400 }))]).await?;
    stage.label("ok-side-by-side");
    let two = vec![
        work(json!({ "result": "one" })),
        work(json!({ "result": "two" })),
    ];
    say(stage, &mut socket, two).await?;
    socket.close(1000, QUIET).await;
    Ok(())
}

/// A new chat in which the model writes, calls these tools, and writes again.
async fn say(stage: &Stage, socket: &mut WebSocket, calls: Vec<Call>) -> Result<(), DriveError> {
    let token = stage.token();
    let asked = When::new().last_user(&token);
    let script = Script::new(token.as_str())
        .rule(
            Rule::new("calls")
                .when(asked.clone().step(0))
                .reply(Reply::text("Let me look.").calls(calls)),
        )
        .rule(
            Rule::new("says")
                .when(asked)
                .reply(Reply::text("Twenty-one metres.")),
        );
    stage.model()?.load(script);
    socket
        .chat_send(&stage.profile().chat.project, None, &token)
        .await?;
    over(socket, TURN).await;
    Ok(())
}

async fn usage(stage: &Stage) -> Result<(), DriveError> {
    let model = stage.model()?;
    let mut socket = stage.chat().await?;
    let chat = stage.profile().chat.clone();
    for (label, output) in [("usage-short", 10), ("usage-long", 5_000)] {
        stage.label(label);
        let token = stage.token();
        let usage = Usage {
            input: 2_130,
            output,
            cached: 2_000,
            ..Usage::default()
        };
        model.answers(&token, Reply::text("Some text.").usage(usage));
        socket.chat_send(&chat.project, None, &token).await?;
        over(&mut socket, TURN).await;
    }
    for (name, limit) in &chat.models {
        stage.label(&format!("limit-{limit}"));
        let token = stage.token();
        model.says(&token, "Yes.");
        let payload = json!({
            "projectSlug": chat.project, "target": chat.project,
            "sessionId": null, "message": token, "model": name,
        });
        socket.say("chat:send", payload).await?;
        over(&mut socket, TURN).await;
    }
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn commands(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let project = stage.profile().chat.project.clone();
    stage.label("ok-history");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    socket
        .say(
            "chat:subscribe",
            json!({ "projectSlug": project, "target": project, "sessionId": session }),
        )
        .await?;
    stage.label("compact");
    let payload = json!({
        "projectSlug": project, "target": project,
        "sessionId": session, "command": "/compact keep the names",
    });
    socket.say("chat:command", payload).await?;
    socket.wait_for_kind("chat:complete", TURN).await;
    idle(&mut socket).await;
    socket.close(1000, QUIET).await;
    Ok(())
}
