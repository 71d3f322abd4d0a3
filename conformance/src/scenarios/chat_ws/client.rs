//! Clients under test: the harness is the server, and tells the client what to do, step by step.
//!
//! `docs/src/chat-ws.md` has the steps. Session, job and texts are fixed, so that a check knows what to find.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_spec::chat_ws::{PATH, limits::CLIENT_PING_EVERY};

use crate::{
    drivers::{
        DriveError,
        websocket::{WebSocket, server::ChatServer},
    },
    scenarios::{Act, Isolation, Running, Scenario},
    stage::TesteeStage,
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    client(
        "client-chats",
        "opens three chats, says something in a new and an old one, commands, stops, queues, and idles",
        |stage| Box::pin(chats(stage)),
    ),
    client(
        "client-reconnect",
        "loses its socket in the middle of a turn, and in peace",
        |stage| Box::pin(reconnect(stage)),
    ),
    client(
        "client-screen",
        "gets a turn with tools and two messages, a flushed queue, notices and a resync",
        |stage| Box::pin(screen(stage)),
    ),
    client(
        "client-killed-task",
        "gets killed tasks, some twice, and presses Continue on one",
        |stage| Box::pin(killed(stage)),
    ),
];

const fn client(
    name: &'static str,
    about: &'static str,
    run: for<'a> fn(&'a TesteeStage) -> Running<'a>,
) -> Scenario {
    Scenario {
        name,
        about,
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Testee(run),
    }
}

/// The session that is in front.
const SESSION: &str = "s-1";
/// Its running job.
const JOB: &str = "j-1";
/// Its project.
const PROJECT: &str = "garden";

/// A client in front of our server.
struct Bench<'a> {
    stage: &'a TesteeStage,
    server: ChatServer,
    socket: WebSocket,
}

impl<'a> Bench<'a> {
    async fn begin(stage: &'a TesteeStage) -> Result<Self, DriveError> {
        let server = ChatServer::start(stage.recorder().clone()).await?;
        let base = stage.front(&server.base()?).await?.to_string();
        let ws = base.replacen("http://", "ws://", 1);
        tell(
            stage,
            json!({
                "step": "connect", "url": format!("{ws}{PATH}"),
                "transcripts": "/api/chats/{session}/messages",
                "timeScale": stage.profile().time_scale,
            }),
        )
        .await?;
        let socket = server.socket(Duration::from_secs(5)).await;
        let socket = socket.ok_or_else(|| DriveError::Unexpected {
            request: format!("GET {PATH}"),
            expected: "a socket of the client".to_owned(),
            got: "none".to_owned(),
        })?;
        Ok(Self {
            stage,
            server,
            socket,
        })
    }

    async fn step(&self, step: Value) -> Result<(), DriveError> {
        tell(self.stage, step).await?;
        self.pause().await;
        Ok(())
    }

    async fn open(&self, session: &str) -> Result<(), DriveError> {
        self.step(json!({ "step": "open", "sessionId": session, "projectSlug": PROJECT }))
            .await
    }

    /// Sends a frame of the session.
    async fn frame(&self, kind: &str, members: Value) -> Result<(), DriveError> {
        let mut payload =
            json!({ "projectSlug": PROJECT, "target": PROJECT, "sessionId": SESSION });
        for (name, value) in members.as_object().into_iter().flatten() {
            payload[name] = value.clone();
        }
        self.socket
            .send(&json!({ "type": kind, "payload": payload }))
            .await
    }

    /// Sends a numbered frame of the running turn.
    async fn turn(&self, kind: &str, seq: u64, members: Value) -> Result<(), DriveError> {
        let mut members = members;
        members["jobId"] = json!(JOB);
        members["seq"] = json!(seq);
        self.frame(kind, members).await
    }

    async fn runs(&self, running: bool) -> Result<(), DriveError> {
        self.frame("chat:active", json!({ "jobId": JOB, "running": running }))
            .await
    }

    /// Lets the client take what it was sent.
    async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    /// Has the client report what it shows, under a label.
    async fn look(&self, label: &str) -> Result<(), DriveError> {
        self.pause().await;
        self.stage.label(label);
        tell(self.stage, json!({ "step": "look" })).await?;
        self.stage.label("client-more");
        Ok(())
    }
}

/// Sends a step, waits for the report, and leaves what it shows for the checks.
async fn tell(stage: &TesteeStage, step: Value) -> Result<(), DriveError> {
    stage.tell(&step).await?;
    // A client that reports nothing is judged by what is missing.
    if let Some(report) = stage.report(stage.patience()).await {
        stage.state(report["state"].clone());
    }
    Ok(())
}

async fn chats(stage: &TesteeStage) -> Result<(), DriveError> {
    stage.label("client-chats");
    let bench = Bench::begin(stage).await?;
    for session in ["s-2", "s-3", SESSION] {
        bench.open(session).await?;
    }
    stage.label("client-say-old");
    bench
        .step(json!({ "step": "say", "text": "How tall is the oak?" }))
        .await?;
    stage.label("client-say-new");
    let say = json!({
        "step": "say", "new": true, "projectSlug": PROJECT, "text": "How tall is the oak?", "model": "m-large",
    });
    bench.step(say).await?;
    bench.runs(true).await?;
    bench
        .turn("chat:response", 0, json!({ "chunk": "Let me measure." }))
        .await?;
    bench.pause().await;
    stage.label("client-queue");
    bench
        .step(json!({ "step": "queue", "text": "And the birch?" }))
        .await?;
    bench.step(json!({ "step": "queue", "text": null })).await?;
    stage.label("client-stop");
    bench.step(json!({ "step": "stop" })).await?;
    bench
        .turn("chat:complete", 1, json!({ "success": false }))
        .await?;
    bench.runs(false).await?;
    bench.pause().await;
    stage.label("client-command");
    bench
        .step(json!({ "step": "command", "text": "/compact keep names" }))
        .await?;
    stage.label("client-idle");
    let period = CLIENT_PING_EVERY.mul_f64(stage.profile().time_scale);
    tokio::time::sleep(period * 6).await;
    Ok(())
}

async fn reconnect(stage: &TesteeStage) -> Result<(), DriveError> {
    stage.label("client-first");
    let mut bench = Bench::begin(stage).await?;
    bench.open(SESSION).await?;
    bench.runs(true).await?;
    for seq in 0..8 {
        bench
            .turn("chat:response", seq, json!({ "chunk": format!("{seq} ") }))
            .await?;
    }
    bench.pause().await;
    let within =
        Duration::from_secs(15).mul_f64(stage.profile().time_scale) + Duration::from_secs(2);
    for label in ["client-drop", "client-drop-again"] {
        stage.label(label);
        bench.socket.hang_up().await;
        let Some(next) = bench.server.socket(within).await else {
            return Ok(());
        };
        bench.socket = next;
        bench
            .socket
            .wait_for_kind("chat:subscribe", Duration::from_secs(2))
            .await;
        bench.pause().await;
    }
    Ok(())
}

async fn screen(stage: &TesteeStage) -> Result<(), DriveError> {
    stage.label("client-first");
    let bench = Bench::begin(stage).await?;
    bench.open(SESSION).await?;
    bench.runs(true).await?;
    let tool = json!({ "toolName": "Read", "toolUseId": "t-1", "parentToolUseId": null });
    bench.turn("chat:tool_start", 0, tool).await?;
    bench.look("client-tool-start").await?;
    let result =
        json!({ "toolName": "Read", "toolUseId": "t-1", "output": "oak,21", "isError": false });
    bench.turn("chat:tool_call", 1, result).await?;
    bench.look("client-tool-call").await?;
    bench
        .turn("chat:response", 2, json!({ "chunk": "a" }))
        .await?;
    bench.turn("chat:message_boundary", 3, json!({})).await?;
    bench
        .turn("chat:response", 4, json!({ "chunk": "b" }))
        .await?;
    bench.look("client-boundary").await?;
    bench
        .turn("chat:complete", 5, json!({ "success": true }))
        .await?;
    bench.runs(false).await?;
    bench.step(json!({ "step": "queue", "text": "q" })).await?;
    bench
        .frame("chat:queued_flushed", json!({ "text": "q" }))
        .await?;
    bench.look("client-flushed").await?;
    bench
        .step(json!({ "step": "queue", "text": "stale" }))
        .await?;
    bench.frame("chat:queued_flushed", json!({})).await?;
    bench.look("client-flushed-bare").await?;
    let notice = |retryable: bool, message: &str| json!({ "notice": { "kind": "error", "message": message, "retryable": retryable } });
    bench
        .turn("chat:notice", 6, notice(true, "try again"))
        .await?;
    bench
        .turn("chat:notice", 7, notice(false, "give up"))
        .await?;
    bench.look("client-notice").await?;
    let transcript = json!({ "items": [
        { "id": "m-1", "role": "user", "content": "How tall is the oak?" },
        { "id": "m-2", "role": "assistant", "content": "21 metres." },
    ]});
    bench
        .server
        .document(&format!("/api/chats/{SESSION}/messages"), &transcript);
    stage.label("client-resync");
    bench.frame("chat:resync", json!({})).await?;
    // It has a transcript to read.
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.look("client-resync").await?;
    Ok(())
}

async fn killed(stage: &TesteeStage) -> Result<(), DriveError> {
    stage.label("client-hangs");
    let bench = Bench::begin(stage).await?;
    bench.open(SESSION).await?;
    let killed = |second: u32| json!({ "summary": "Build was killed", "timestamp": format!("2026-01-02T03:04:0{second}.678Z") });
    stage.label("client-killed");
    bench.frame("chat:killed_task", killed(1)).await?;
    bench.look("client-killed").await?;
    let patience = Duration::from_secs(60).mul_f64(stage.profile().time_scale);
    stage.label("client-killed");
    tokio::time::sleep(patience).await;
    bench.frame("chat:killed_task", killed(1)).await?;
    bench.look("client-killed-again").await?;
    bench.frame("chat:killed_task", killed(2)).await?;
    bench.look("client-killed-other").await?;
    stage.label("client-continue");
    bench.step(json!({ "step": "continue" })).await?;
    stage.label("client-last");
    bench.pause().await;
    Ok(())
}
