//! Playing a case of `chat-ws`: a chat on one socket, what the case does to it, and a finale that is valid again.
//!
//! In the finale the client has a new socket. The server tells it to read the transcript, and then plays a whole turn.
//! What the client then shows must be that transcript and that turn: see [`Model`].

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_spec::chat_ws::{PATH, kind, kinds::Routed};

use super::{
    bytes,
    case::{Case, Frame, Loss, Step},
    frames::{CHAT, frame},
    steps::Steps,
};
use crate::{
    drivers::{
        DriveError,
        websocket::{WebSocket, server::ChatServer},
    },
    fuzz::envelopes::body,
    stage::TesteeStage,
    transcript::WsFrame,
};

/// The chat of a case.
const SESSION: &str = "fuzzed";
/// Its project.
const PROJECT: &str = "garden";
/// Its transcript.
const TRANSCRIPT: &str = "/api/chats/fuzzed/messages";
/// How often the finale looks at what is shown.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// How long a client may take to answer a close.
const CLOSES_WITHIN: Duration = Duration::from_millis(200);

/// What the person does.
const DEEDS: &[&str] = &[
    r#"{"step":"say","text":"what was said meanwhile"}"#,
    r#"{"step":"say","new":true,"projectSlug":"garden","text":"in a new chat"}"#,
    r#"{"step":"queue","text":"what is to be said next"}"#,
    r#"{"step":"queue","text":null}"#,
    r#"{"step":"stop"}"#,
    r#"{"step":"continue"}"#,
    r#"{"step":"command","text":"/compact"}"#,
    r#"{"step":"open","sessionId":"another","projectSlug":"garden"}"#,
    r#"{"step":"open","sessionId":"fuzzed","projectSlug":"garden"}"#,
];

/// Plays a case with a fresh client that may take so long for anything. What is wrong, in words; nothing when all is
/// well.
///
/// # Errors
///
/// When there is no port.
pub(super) async fn play(
    stage: &TesteeStage,
    case: &Case,
    number: u64,
    longest: Duration,
) -> Result<Option<String>, DriveError> {
    let server = ChatServer::start(stage.recorder().clone()).await?;
    let base = server.base()?.to_string();
    let mut talk = Talk {
        steps: Steps::new(stage, longest),
        server,
        socket: None,
        sent: 0,
    };
    let connect = json!({
        "step": "connect",
        "url": format!("{}{PATH}", base.trim_end_matches('/').replacen("http://", "ws://", 1)),
        "transcripts": TRANSCRIPT.replace(SESSION, "{session}"),
        "timeScale": stage.profile().time_scale,
    });
    Ok(talk.play(&connect, case, number).await.err())
}

struct Talk<'a> {
    steps: Steps<'a>,
    server: ChatServer,
    socket: Option<WebSocket>,
    /// Frames of the turn so far.
    sent: u64,
}

impl Talk<'_> {
    async fn play(&mut self, connect: &Value, case: &Case, number: u64) -> Result<(), String> {
        self.steps.take(connect).await?;
        self.follow("it does not connect").await?;
        self.steps
            .take(&json!({ "step": "open", "sessionId": SESSION, "projectSlug": PROJECT }))
            .await?;
        let look = json!({ "step": "look" });
        for step in &case.steps {
            self.step(step).await?;
            self.steps.lives(&look, step).await?;
        }
        self.finale(&Model { number }).await
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Event(frame) => {
                self.follow("it does not connect again").await?;
                let text = self.event(frame);
                self.send(&text, frame).await;
            }
            Step::Frame(change) => {
                let rows = Model { number: 0 }.transcript();
                let document = body::changed(rows, &change.changes);
                self.server.document_bytes(TRANSCRIPT, document.into());
                self.follow("it does not connect again").await?;
                let resync = placed("chat:resync", json!({})).to_string();
                self.send(resync.as_bytes(), change).await;
            }
            Step::Person { does } => {
                let deed = DEEDS[usize::from(*does) % DEEDS.len()];
                let deed: Value = serde_json::from_str(deed).unwrap_or_default();
                self.steps.take(&deed).await?;
            }
            Step::Lose { how } => self.lose(*how).await,
            Step::Drop { .. } | Step::Line { .. } => {}
        }
        Ok(())
    }

    /// Sees to it that there is a socket, the newest one that the client has opened.
    async fn follow(&mut self, otherwise: &str) -> Result<(), String> {
        self.newest(Duration::ZERO).await;
        if self.socket.is_none() {
            self.newest(self.steps.longest()).await;
        }
        match self.socket {
            Some(_) => Ok(()),
            None => Err(otherwise.to_owned()),
        }
    }

    /// Takes the newest socket in place of one that has ended, or was left; whether there is another one now.
    async fn newest(&mut self, within: Duration) -> bool {
        self.socket.take_if(|socket| socket.has_ended());
        let within = match &self.socket {
            Some(_) => Duration::ZERO,
            None => within,
        };
        let mut found = self.server.socket(within).await;
        let is_another = found.is_some();
        while found.is_some() {
            self.socket = found;
            found = self.server.socket(Duration::ZERO).await;
        }
        is_another
    }

    fn event(&mut self, change: &Frame) -> Vec<u8> {
        let (name, payload) = frame(CHAT, change.frame);
        let mut value = if payload.is_null() {
            json!({ "type": name })
        } else {
            placed(&name, payload)
        };
        if kind(&name).is_some_and(|kind| kind.routed == Routed::Numbered) {
            value["payload"]["jobId"] = json!("j-1");
            value["payload"]["seq"] = json!(self.sent);
            self.sent += 1;
        }
        body::changed(value, &change.changes)
    }

    async fn send(&mut self, text: &[u8], how: &Frame) {
        let Some(socket) = &self.socket else { return };
        let message = bytes::message(text, how.wrap);
        let pieces = bytes::pieces(&message, how.pieces);
        for _ in 0..=u8::from(how.again) {
            let shown = match std::str::from_utf8(text) {
                Ok(text) => WsFrame::Text(text.to_owned()),
                Err(_) => WsFrame::Binary(text.to_vec().into()),
            };
            // A client that has gone opens another socket, which is waited for.
            let _ = socket.send_raw(shown, &pieces).await;
        }
    }

    async fn say(&self, frame: Value) {
        if let Some(socket) = &self.socket {
            // As above.
            let _ = socket.send(&frame).await;
        }
    }

    async fn lose(&mut self, how: Loss) {
        if how == Loss::Refused {
            self.server.refuse_next();
        }
        let Some(socket) = self.socket.take() else {
            return;
        };
        match how {
            Loss::End | Loss::Refused => socket.close(1001, CLOSES_WITHIN).await,
            Loss::Reset => socket.cut(),
            Loss::Half => {
                let text = self.event(&Frame::default());
                let message = bytes::message(&text, bytes::Wrap::Plain);
                let half = &message[..message.len() / 2];
                // As above.
                let _ = socket
                    .send_raw(WsFrame::Binary(half.to_vec().into()), &[half])
                    .await;
                socket.cut();
            }
        }
    }

    /// Ends what is open, and brings the client up to date.
    async fn finale(&mut self, model: &Model) -> Result<(), String> {
        self.steps.label("finale");
        self.server.document(TRANSCRIPT, &model.transcript());
        self.newest(Duration::ZERO).await;
        self.lose(Loss::Reset).await;
        let until = Instant::now() + self.steps.longest();
        let (mut scene, mut attempt) = (Scene::Away, 0);
        loop {
            // It may have opened one more, for reasons of its own: then all is told again.
            if self.newest(LOOKS_EVERY).await || self.socket.is_none() {
                scene = Scene::Away;
            }
            let fault = match scene {
                Scene::Away => match self.subscribed().await {
                    Ok(()) => {
                        attempt += 1;
                        self.resync().await;
                        scene = Scene::Reads;
                        continue;
                    }
                    Err(why) => Some(why),
                },
                Scene::Reads => {
                    let fault = model.fault(&self.look().await?, &model.read());
                    if fault.is_none() {
                        self.turn(model, attempt).await;
                        scene = Scene::Turn;
                        continue;
                    }
                    fault
                }
                Scene::Turn => {
                    let state = self.look().await?;
                    let fault = model.fault(&state, &model.all());
                    fault.or_else(|| model.turn_fault(&state, attempt))
                }
            };
            let Some(fault) = fault else { return Ok(()) };
            if Instant::now() > until {
                return Err(fault);
            }
            if scene != Scene::Away {
                tokio::time::sleep(LOOKS_EVERY / 5).await;
            }
        }
    }

    async fn look(&self) -> Result<Value, String> {
        self.steps.take(&json!({ "step": "look" })).await
    }

    /// Waits a while until the client has subscribed to the chat on its socket.
    async fn subscribed(&mut self) -> Result<(), String> {
        let Some(socket) = &mut self.socket else {
            return Err("it does not connect again in the end".to_owned());
        };
        let subscribes = socket
            .wait_for(LOOKS_EVERY, |seen| {
                seen.kind() == Some("chat:subscribe")
                    && seen.text("/payload/sessionId") == Some(SESSION)
            })
            .await;
        match subscribes {
            Some(_) => Ok(()),
            None => Err("it does not subscribe to the chat again".to_owned()),
        }
    }

    async fn resync(&self) {
        let idle = json!({ "jobId": null, "running": false });
        self.say(placed("chat:active", idle)).await;
        self.say(placed("chat:resync", json!({}))).await;
    }

    async fn turn(&self, model: &Model, attempt: u32) {
        for frame in model.frames(attempt) {
            self.say(frame).await;
        }
    }
}

/// How far the finale is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scene {
    /// The client has not subscribed again.
    Away,
    /// It reads the transcript.
    Reads,
    /// It has been told the whole turn.
    Turn,
}

/// A frame of the chat.
fn placed(kind: &str, mut payload: Value) -> Value {
    payload["projectSlug"] = json!(PROJECT);
    payload["target"] = json!(PROJECT);
    payload["sessionId"] = json!(SESSION);
    json!({ "type": kind, "payload": payload })
}

/// What a client shows in the end.
struct Model {
    number: u64,
}

impl Model {
    /// The bubbles of the transcript.
    fn read(&self) -> Vec<(&'static str, String)> {
        vec![
            ("user", format!("what was said in case {}", self.number)),
            (
                "assistant",
                format!("what was told in case {}", self.number),
            ),
        ]
    }

    /// The bubbles of the transcript, and those of the turn after it.
    fn all(&self) -> Vec<(&'static str, String)> {
        let live = [
            format!("told live in case {}", self.number),
            "and more".to_owned(),
        ];
        let live = live.map(|text| ("assistant", text));
        self.read().into_iter().chain(live).collect()
    }

    fn transcript(&self) -> Value {
        let rows = self.read().into_iter().enumerate();
        let rows: Vec<_> = rows
            .map(|(place, (role, text))| {
                json!({ "id": format!("m-{place}"), "role": role, "content": text })
            })
            .collect();
        json!({ "items": rows })
    }

    /// The turn of the finale. Its ids are those of this attempt, since a client that comes back hears it again.
    fn frames(&self, attempt: u32) -> Vec<Value> {
        let job = format!("j-last-{attempt}");
        let active = |running: bool| {
            let job = running.then_some(&job);
            placed("chat:active", json!({ "jobId": job, "running": running }))
        };
        let tool = tool(attempt);
        let turn = [
            (
                "chat:tool_start",
                json!({ "toolName": "Read", "toolUseId": tool, "parentToolUseId": null }),
            ),
            (
                "chat:tool_call",
                json!({ "toolName": "Read", "toolUseId": tool, "output": "oak,21", "isError": false }),
            ),
            ("chat:response", json!({ "chunk": "told live " })),
            (
                "chat:response",
                json!({ "chunk": format!("in case {}", self.number) }),
            ),
            ("chat:message_boundary", json!({})),
            ("chat:response", json!({ "chunk": "and more" })),
            ("chat:complete", json!({ "success": true })),
        ];
        let numbered = turn
            .into_iter()
            .enumerate()
            .map(|(seq, (kind, mut payload))| {
                payload["jobId"] = json!(job);
                payload["seq"] = json!(seq);
                placed(kind, payload)
            });
        let killed = json!({ "summary": killed(attempt), "timestamp": format!("2031-01-01T00:00:{:02}.000Z", attempt % 60) });
        let killed = placed("chat:killed_task", killed);
        let flushed = placed("chat:queued_flushed", json!({}));
        [active(true)]
            .into_iter()
            .chain(numbered)
            .chain([active(false), flushed, killed.clone(), killed])
            .collect()
    }

    /// What is wrong with the bubbles of the chat; nothing when they are right, or when the client reports none.
    fn fault(&self, state: &Value, wanted: &[(&str, String)]) -> Option<String> {
        let chats = state.get("chats")?;
        let shown = chats[SESSION]["bubbles"].as_array();
        let shown: Vec<(&str, String)> = shown
            .into_iter()
            .flatten()
            .map(|bubble| {
                let text = |name: &str| bubble[name].as_str().unwrap_or_default();
                (text("role"), text("text").to_owned())
            })
            .collect();
        (shown != wanted).then(|| {
            let shown: String = format!("{shown:?}").chars().take(300).collect();
            format!("bubbles: {wanted:?} is right, it shows {shown}")
        })
    }

    /// What is wrong with the rest of the chat after the turn. A member that is not reported is not judged.
    fn turn_fault(&self, state: &Value, attempt: u32) -> Option<String> {
        let chat = state.get("chats")?.get(SESSION)?;
        let wanted = |member: &str, wanted: Value| {
            let shown = chat.get(member)?;
            (*shown != wanted).then(|| format!("{member}: {wanted} is right, it shows {shown}"))
        };
        let once = |list: &str, member: &str, value: &str| {
            let rows = chat.get(list)?.as_array()?;
            let rows: Vec<_> = rows.iter().filter(|row| row[member] == value).collect();
            match rows.as_slice() {
                [row] if row["pending"] != true => None,
                [_] => Some(format!("{list}: {value} is shown as pending")),
                rows => Some(format!("{list}: {value} is shown {} times", rows.len())),
            }
        };
        wanted("running", json!(false))
            .or_else(|| wanted("queued", Value::Null))
            .or_else(|| once("tools", "toolUseId", &tool(attempt)))
            .or_else(|| once("notices", "text", &killed(attempt)))
    }
}

/// The tool of the finale's turn.
fn tool(attempt: u32) -> String {
    format!("t-last-{attempt}")
}

/// The killed task of the finale.
fn killed(attempt: u32) -> String {
    format!("task {attempt} was killed")
}
