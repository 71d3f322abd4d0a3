//! What waits to be said next.

use serde_json::{Value, json};

use super::{QUIET, TURN, new_chat, over, scenario, started};
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
        "chat-queue",
        "queues during a turn and while idle, with and without a time, and looks for a second run",
        &[],
        |stage| Box::pin(queue(stage)),
    ),
    scenario(
        "chat-queue-slot",
        "replaces and clears what is queued",
        &[],
        |stage| Box::pin(slot(stage)),
    ),
    scenario(
        "chat-queue-leave",
        "queues, and leaves before the turn ends, while another socket is subscribed",
        &[],
        |stage| Box::pin(leave(stage)),
    ),
];

/// A chat whose turn waits, and what it takes to queue in it.
struct Waiting<'a> {
    stage: &'a Stage,
    token: String,
    project: String,
    session: String,
}

impl<'a> Waiting<'a> {
    /// Begins a turn, in a session or a new one, that waits for [`Waiting::end`].
    async fn begin(
        stage: &'a Stage,
        socket: &mut WebSocket,
        session: Option<&str>,
    ) -> Result<Self, DriveError> {
        let (token, project) = (stage.token(), stage.profile().chat.project.clone());
        stage
            .model()?
            .says_and_waits(&token, "I think ", "and that is that.");
        socket.chat_send(&project, session, &token).await?;
        let (session, _) = started(socket).await?;
        Ok(Self {
            stage,
            token,
            project,
            session,
        })
    }

    async fn set(&self, socket: &WebSocket, slot: Value) -> Result<(), DriveError> {
        let mut payload = json!({
            "projectSlug": self.project, "target": self.project, "sessionId": self.session,
        });
        for (name, value) in slot.as_object().into_iter().flatten() {
            payload[name] = value.clone();
        }
        socket.say("chat:set_queue", payload).await?;
        // So that what is set is set before the turn goes on.
        self.stage.pause(QUIET / 4).await;
        Ok(())
    }

    async fn end(&self, socket: &mut WebSocket) -> Result<(), DriveError> {
        self.stage.model()?.go_on(&self.token);
        over(socket, TURN).await;
        Ok(())
    }
}

async fn queue(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    stage.label("begin");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    let project = stage.profile().chat.project.clone();
    let payload = json!({ "projectSlug": project, "target": project, "sessionId": session });
    socket.say("chat:subscribe", payload).await?;
    let forms = [
        ("queue-turn", json!({ "ts": 1_750_000_000_000_u64 })),
        ("queue-ts-null", json!({ "ts": null })),
        ("queue-ts-absent", json!({})),
    ];
    for (label, mut slot) in forms {
        stage.label(label);
        let waiting = Waiting::begin(stage, &mut socket, Some(&session)).await?;
        slot["text"] = json!(format!("{}-{label}", stage.token()));
        waiting.set(&socket, slot).await?;
        waiting.end(&mut socket).await?;
        // The drained turn.
        over(&mut socket, QUIET * 2).await;
    }
    stage.label("queue-idle");
    let waiting = Waiting {
        stage,
        token: String::new(),
        project: stage.profile().chat.project.clone(),
        session: session.clone(),
    };
    let text = format!("{}-queue-idle", stage.token());
    let slot = json!({ "text": text, "ts": 1_750_000_000_001_u64 });
    waiting.set(&socket, slot).await?;
    over(&mut socket, QUIET * 2).await;
    stage.label("queue-once-more");
    socket
        .chat_send(&waiting.project, Some(&session), &stage.token())
        .await?;
    over(&mut socket, TURN).await;
    stage.pause(QUIET).await;
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn slot(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    stage.label("begin");
    let session = new_chat(stage, &mut socket, &stage.token()).await?;
    let project = stage.profile().chat.project.clone();
    let payload = json!({ "projectSlug": project, "target": project, "sessionId": session });
    socket.say("chat:subscribe", payload).await?;
    let cases = [
        ("queue-replace", Some(json!({ "text": "second-slot" }))),
        ("queue-null", Some(json!({ "text": null }))),
        ("queue-absent", Some(json!({}))),
        ("queue-empty", Some(json!({ "text": "" }))),
    ];
    for (label, then) in cases {
        stage.label("begin");
        let waiting = Waiting::begin(stage, &mut socket, Some(&session)).await?;
        stage.label(&format!("{label}-first"));
        let text = format!("{}-first", stage.token());
        waiting.set(&socket, json!({ "text": text })).await?;
        stage.label(&format!("{label}-then"));
        if let Some(then) = then {
            waiting.set(&socket, then).await?;
        }
        waiting.end(&mut socket).await?;
        over(&mut socket, QUIET * 2).await;
    }
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn leave(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let mut watcher = stage.chat().await?;
    stage.label("begin");
    let waiting = Waiting::begin(stage, &mut socket, None).await?;
    let payload = json!({
        "projectSlug": waiting.project, "target": waiting.project, "sessionId": waiting.session,
    });
    watcher.say("chat:subscribe", payload).await?;
    stage.pause(QUIET / 2).await;
    stage.label("queue-leave");
    let text = format!("{}-queue-leave", stage.token());
    waiting.set(&socket, json!({ "text": text })).await?;
    socket.close(1000, QUIET).await;
    stage.pause(QUIET / 2).await;
    waiting.end(&mut watcher).await?;
    let flushed = |seen: &[Seen]| {
        let mut kinds = seen.iter().map(Seen::kind);
        kinds.any(|kind| kind == Some("chat:queued_flushed"))
    };
    watcher.wait_until(TURN / 2, flushed).await;
    over(&mut watcher, QUIET * 2).await;
    stage.pause(QUIET).await;
    watcher.close(1000, QUIET).await;
    Ok(())
}
