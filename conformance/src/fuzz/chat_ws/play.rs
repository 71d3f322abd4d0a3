//! Plays a case of `chat-ws`.
//!
//! After each step the player asks every socket that is read for a `pong`: what came before it is all that the step
//! gave that socket. So a case meets the target in a quiet state, except where a step says `race`.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{ACTOR, AUDITOR, RESTART, SAID, TRANSCRIPT, truth};
use crate::{
    drivers::{DriveError, http::Call},
    fuzz::{Case, Step, covel::client_label, step::Ending},
    profile::{FUZZ_CHAT, FUZZ_CHAT_FRAMES},
    stage::Stage,
    transcript::cut,
};

mod clients;
mod line;

use clients::Client;
use line::{Known, Line, follow};

/// How long what ought to come at once may take.
const SOON: Duration = Duration::from_secs(5);
/// How long a socket may take to end after its target has.
const ENDS: Duration = Duration::from_millis(200);
/// Name of the tool that a turn may use.
const TOOL: &str = "plugin_data_set";
/// The client's clock at the first text that it queues, in milliseconds.
const CLOCK: u64 = 1_750_000_000_000;

/// Plays the steps, then lets every client come up to date, hear a last turn, and reads what is stored.
///
/// # Errors
///
/// When there is no socket, no session, or no restart.
pub(super) async fn play(stage: &Stage, case: &Case) -> Result<(), DriveError> {
    if stage.model().is_err() {
        return Ok(());
    }
    for note in hub_notes(stage) {
        stage.note(&note);
    }
    stage.label(ACTOR);
    let mut player = Player {
        stage,
        project: stage.profile().chat.project.clone(),
        actor: Line::new(stage.chat().await?),
        rooms: Vec::new(),
        clients: BTreeMap::new(),
        told: 0,
    };
    player.actor.sync(player.soon()).await;
    let named = case.steps.iter().filter_map(Step::session).max();
    for _ in 0..=named.unwrap_or_default() {
        player.room().await?;
    }
    for step in &case.steps {
        player.step(step).await?;
        player.settle().await;
    }
    player.converge().await
}

/// What is known of the target's hub, for the model.
fn hub_notes(stage: &Stage) -> Vec<String> {
    let chat = &stage.profile().chat;
    let kept = if FUZZ_CHAT.contains(&stage.variant()) {
        u64::try_from(FUZZ_CHAT_FRAMES).ok()
    } else {
        chat.buffer
    };
    let notes = [
        kept.map(truth::keeps_note),
        chat.linger_ms.map(truth::lingers_note),
    ];
    notes.into_iter().flatten().collect()
}

struct Player<'s> {
    stage: &'s Stage,
    project: String,
    actor: Line,
    rooms: Vec<Room>,
    clients: BTreeMap<u8, Client>,
    /// Turns that were scripted.
    told: u64,
}

/// A session of the case.
struct Room {
    session: String,
    /// Its newest turn, as the actor knows it.
    turn: Option<Known>,
    /// What lets the model of a turn go on that is silent.
    begun: Option<String>,
    /// The text that waits in its queue.
    waits: Option<String>,
}

impl Player<'_> {
    fn soon(&self) -> Duration {
        self.stage.patience(SOON)
    }

    fn place(&self, room: usize) -> Value {
        let session = &self.rooms[room].session;
        json!({ "projectSlug": self.project, "target": self.project, "sessionId": session })
    }

    /// Makes a session, by a first turn, and listens to it.
    async fn room(&mut self) -> Result<(), DriveError> {
        let token = self.script(1, 0, Ending::Said)?;
        self.stage.label(SAID);
        self.actor
            .socket
            .chat_send(&self.project, None, &token)
            .await?;
        let runs = |seen: &crate::drivers::websocket::Seen| {
            seen.kind() == Some("chat:active")
                && seen.pointer("/payload/running") == Some(&true.into())
                && seen.text("/payload/sessionId").is_some()
        };
        let soon = self.soon();
        let begun = self
            .actor
            .socket
            .need_that("chat:active of a new session", soon, runs)
            .await?;
        let session = begun.text("/payload/sessionId").unwrap_or_default();
        self.rooms.push(Room {
            session: session.to_owned(),
            turn: None,
            begun: None,
            waits: None,
        });
        let room = self.rooms.len() - 1;
        self.over(room).await;
        self.listen(room).await
    }

    /// The actor subscribes to a session.
    async fn listen(&mut self, room: usize) -> Result<(), DriveError> {
        self.actor
            .socket
            .say("chat:subscribe", self.place(room))
            .await?;
        self.actor.sync(self.soon()).await;
        self.learn();
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), DriveError> {
        match *step {
            Step::Turn {
                session,
                words,
                writes,
                ending,
            } => self.turn(session.into(), words, writes, ending).await,
            Step::Write { session, .. } => self.turn(session.into(), 1, 0, Ending::Said).await,
            Step::Begin { session, words } => self.begin(session.into(), words).await,
            Step::Finish { session } => self.finish(session.into()).await,
            Step::Burst {
                session,
                count,
                bytes,
            } => self.burst(session.into(), count, bytes).await,
            Step::Queue { session, clear } => self.queue(session.into(), clear).await,
            Step::Command { session } => {
                let mut payload = self.place(session.into());
                payload["command"] = "/compact".into();
                self.act(session.into(), "command", "chat:command", payload)
                    .await
            }
            Step::Continue { session } => {
                let payload = self.place(session.into());
                self.act(session.into(), "continue", "chat:continue", payload)
                    .await
            }
            Step::Cancel { session } => self.cancel(session.into()).await,
            Step::Connect { .. } => self.connect(step).await,
            Step::Read { client } => {
                if let Some(client) = self.clients.get_mut(&client) {
                    client.read_on();
                }
                Ok(())
            }
            Step::Drop { client } => {
                self.hang_up(client).await;
                Ok(())
            }
            Step::Restart { kill } => self.restart(kill).await,
            Step::LosePublish { .. } => Ok(()),
        }
    }

    /// What has come on the actor's socket.
    fn learn(&mut self) {
        let fresh = self.actor.fresh();
        for room in &mut self.rooms {
            follow(&mut room.turn, &room.session, &fresh);
        }
    }

    /// Waits until every socket that is read has what there is for it.
    async fn settle(&mut self) {
        let soon = self.soon();
        self.actor.sync(soon).await;
        self.learn();
        for client in self.clients.values_mut() {
            let session = &self.rooms[client.room].session;
            client.catch(session, soon).await;
        }
    }

    /// Waits for the end of the turn of a session, and of the one with what waited in its queue.
    async fn over(&mut self, room: usize) {
        if !self.ends(room).await {
            return;
        }
        let Some(text) = self.rooms[room].waits.clone() else {
            return;
        };
        self.stage.label("drained");
        let (soon, session) = (self.soon(), self.rooms[room].session.clone());
        let taken = self.actor.socket.wait_for(soon, |seen| {
            seen.kind() == Some("chat:queued_flushed")
                && seen.text("/payload/sessionId") == Some(&session)
                && seen.text("/payload/text") == Some(&text)
        });
        if taken.await.is_some() {
            self.rooms[room].waits = None;
            self.ends(room).await;
        }
    }

    async fn ends(&mut self, room: usize) -> bool {
        let (soon, session) = (self.soon(), self.rooms[room].session.clone());
        let stops = self.actor.socket.wait_for(soon, |seen| {
            seen.kind() == Some("chat:active")
                && seen.pointer("/payload/running") == Some(&false.into())
                && seen.text("/payload/sessionId") == Some(&session)
        });
        let ended = stops.await.is_some();
        self.learn();
        ended
    }

    /// A turn from its beginning to its end.
    async fn turn(
        &mut self,
        room: usize,
        words: u8,
        writes: u8,
        ending: Ending,
    ) -> Result<(), DriveError> {
        if ending == Ending::Stopped {
            self.begin(room, words).await?;
            return self.cancel(room).await;
        }
        self.finish(room).await?;
        let token = self.script(words, writes, ending)?;
        let label = if ending == Ending::Failed {
            "error-turn"
        } else {
            SAID
        };
        self.say(room, &token, label).await?;
        self.over(room).await;
        Ok(())
    }

    async fn say(&mut self, room: usize, token: &str, label: &str) -> Result<(), DriveError> {
        self.stage.label(label);
        let session = self.rooms[room].session.clone();
        let socket = &self.actor.socket;
        socket.chat_send(&self.project, Some(&session), token).await
    }

    /// Tells the model what it says to the token that is returned.
    fn script(&mut self, words: u8, writes: u8, ending: Ending) -> Result<String, DriveError> {
        let (token, text, model) = (self.stage.token(), self.text(words), self.stage.model()?);
        let arguments = json!({ "namespace": "fuzz", "key": "k", "value": { "t": token } });
        match ending {
            Ending::Failed => model.fails(&token, 400),
            _ if writes == 0 => model.says(&token, &text),
            _ => model.calls_then_says(&token, &[(TOOL, arguments)], &text),
        }
        Ok(token)
    }

    /// So many words, and one that no other turn of the case says.
    fn text(&mut self, words: u8) -> String {
        const WORDS: [&str; 5] = ["The", "river", "rises", "over", "night"];
        self.told += 1;
        let words = WORDS.iter().cycle().take(usize::from(words.max(1)) - 1);
        let words = words.map(|word| format!("{word} ")).collect::<String>();
        format!("{words}{}.", self.told)
    }

    async fn begin(&mut self, room: usize, words: u8) -> Result<(), DriveError> {
        self.finish(room).await?;
        let (token, text) = (self.stage.token(), self.text(words));
        let model = self.stage.model()?;
        model.says_and_waits(&token, &text, &format!(" And so {text}"));
        self.begun(room, token, &text).await
    }

    async fn burst(&mut self, room: usize, count: u16, bytes: u16) -> Result<(), DriveError> {
        self.finish(room).await?;
        let token = self.stage.token();
        let filler = "x".repeat(bytes.into());
        let mut pieces: Vec<String> = (1..count).map(|n| format!("w{n}{filler} ")).collect();
        let last = self.text(1);
        pieces.push(last.clone());
        let model = self.stage.model()?;
        model.says_pieces_and_waits(&token, pieces, " The end.");
        self.begun(room, token, &last).await
    }

    /// Says something, and hears the answer up to this text, where the model falls silent.
    async fn begun(&mut self, room: usize, token: String, until: &str) -> Result<(), DriveError> {
        self.say(room, &token, SAID).await?;
        let (soon, session) = (self.soon(), self.rooms[room].session.clone());
        let mut heard = String::new();
        let hears = self.actor.socket.wait_for(soon, |seen| {
            let ours = seen.text("/payload/sessionId") == Some(&session);
            if ours && seen.kind() == Some("chat:response") {
                heard.push_str(seen.text("/payload/chunk").unwrap_or_default());
            }
            ours && heard.ends_with(until)
        });
        hears.await;
        self.learn();
        self.rooms[room].begun = Some(token);
        Ok(())
    }

    async fn finish(&mut self, room: usize) -> Result<(), DriveError> {
        if let Some(token) = self.rooms[room].begun.take() {
            self.stage.label("finish");
            self.stage.model()?.go_on(&token);
            self.over(room).await;
        }
        Ok(())
    }

    async fn cancel(&mut self, room: usize) -> Result<(), DriveError> {
        let turn = self.rooms[room].turn.as_ref();
        let Some(job) = turn.and_then(|turn| turn.job.clone()) else {
            return Ok(());
        };
        let begun = self.rooms[room].begun.take();
        self.stage.label("call-off");
        let payload = json!({
            "projectSlug": self.project, "target": self.project, "jobId": job,
        });
        self.actor.socket.say("chat:cancel", payload).await?;
        if let Some(token) = begun {
            self.over(room).await;
            self.stage.model()?.go_on(&token);
        }
        Ok(())
    }

    /// Does something that begins a turn of another kind.
    async fn act(
        &mut self,
        room: usize,
        label: &str,
        kind: &str,
        payload: Value,
    ) -> Result<(), DriveError> {
        self.finish(room).await?;
        self.stage.label(label);
        self.actor.socket.say(kind, payload).await?;
        self.over(room).await;
        Ok(())
    }

    async fn queue(&mut self, room: usize, clear: bool) -> Result<(), DriveError> {
        let mut payload = self.place(room);
        let text = if clear {
            None
        } else {
            Some(self.script(2, 0, Ending::Said)?)
        };
        payload["text"] = text.clone().into();
        payload["ts"] = (CLOCK + self.told).into();
        self.stage.label("queue");
        self.actor.socket.say("chat:set_queue", payload).await?;
        self.rooms[room].waits = text;
        if clear || self.rooms[room].begun.is_some() {
            self.actor.sync(self.soon()).await;
        } else {
            self.taken(room).await;
        }
        Ok(())
    }

    /// Waits for a text to be taken that came while nothing ran, and for the end of its turn.
    async fn taken(&mut self, room: usize) {
        let text = self.rooms[room].waits.clone();
        let soon = self.soon();
        let taken = self.actor.socket.wait_for(soon, |seen| {
            seen.kind() == Some("chat:queued_flushed")
                && seen.text("/payload/text") == text.as_deref()
        });
        if taken.await.is_some() {
            self.rooms[room].waits = None;
            self.ends(room).await;
        }
    }

    async fn restart(&mut self, kill: bool) -> Result<(), DriveError> {
        self.stage.label(RESTART);
        if kill {
            self.stage.kill().await?;
        } else {
            self.stage.stop().await?;
        }
        for room in &mut self.rooms {
            if let Some(token) = room.begun.take() {
                self.stage.model()?.go_on(&token);
            }
        }
        self.actor.socket.wait_end(ENDS).await;
        for client in self.clients.values_mut() {
            client.lose(self.stage).await;
        }
        self.stage.start().await?;
        self.stage.label(ACTOR);
        self.actor = Line::new(self.stage.chat().await?);
        self.actor.sync(self.soon()).await;
        for room in 0..self.rooms.len() {
            self.listen(room).await?;
        }
        Ok(())
    }

    async fn converge(mut self) -> Result<(), DriveError> {
        let rooms = 0..self.rooms.len();
        for room in rooms.clone() {
            self.finish(room).await?;
        }
        self.settle().await;
        let numbers: Vec<u8> = self.clients.keys().copied().collect();
        for number in &numbers {
            self.come_back(*number).await?;
        }
        for room in rooms.clone() {
            self.turn(room, 1, 0, Ending::Said).await?;
        }
        self.settle().await;
        for number in &numbers {
            self.read_again(*number).await?;
        }
        self.audit().await?;
        self.stage.label("leave");
        for number in numbers {
            self.hang_up(number).await;
        }
        self.actor.socket.close(1000, ENDS).await;
        Ok(())
    }

    /// Asks for all of the newest turn of each session, and reads the transcripts.
    async fn audit(&mut self) -> Result<(), DriveError> {
        self.stage.label(AUDITOR);
        let mut line = Line::new(self.stage.chat().await?);
        line.sync(self.soon()).await;
        for room in 0..self.rooms.len() {
            let mut payload = self.place(room);
            payload["wantReplay"] = true.into();
            payload["lastSeq"] = (-1).into();
            line.socket.say("chat:subscribe", payload).await?;
            line.sync(self.soon()).await;
        }
        for room in 0..self.rooms.len() {
            self.read_transcript(TRANSCRIPT, room).await?;
        }
        line.socket.close(1000, ENDS).await;
        Ok(())
    }

    async fn read_transcript(&self, label: &str, room: usize) -> Result<(), DriveError> {
        let profile = self.stage.profile();
        let path = &profile.chat.transcript;
        let path = path.replace("{session}", &self.rooms[room].session);
        let token = profile.operator_token.as_deref();
        self.stage.label(label);
        self.stage.send(Call::get(path).bearer(token)).await?;
        Ok(())
    }

    async fn hang_up(&mut self, number: u8) {
        let soon = self.soon();
        let Some(client) = self.clients.get_mut(&number) else {
            return;
        };
        let session = &self.rooms[client.room].session;
        client.catch(session, soon).await;
        let Some(line) = client.line.take() else {
            return;
        };
        leave(self.stage, line, client.slow, number % 2 == 1).await;
    }
}

/// Closes a socket in good order, or cuts it.
async fn leave(stage: &Stage, line: Line, slow: bool, in_order: bool) {
    if slow {
        stage.recorder().tell(cut::note(line.socket.exchange()));
    }
    if in_order && !slow {
        line.socket.close(1000, ENDS).await;
    } else {
        line.socket.cut();
    }
}

/// Label of a client.
fn label(number: u8) -> String {
    client_label(number)
}
