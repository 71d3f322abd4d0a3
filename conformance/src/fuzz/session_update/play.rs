//! Plays a case of `session-update`.
//!
//! A turn is over for a client when it has heard its end; after each turn the player waits for that on every connection
//! that has subscribed. A connection that is to break off does so after some lines and bytes of its subscription, or of what
//! follows; at the end its client connects again.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{ACTOR, AUDITOR};
use crate::{
    drivers::DriveError,
    fuzz::{
        Case, Step,
        covel::client_label,
        step::{Ending, GARBAGE, Place, cut_at},
    },
    stage::{Stage, session_update::Lines},
    transcript::cut::CutAt,
};

/// How long the end of a turn may take.
const SOON: Duration = Duration::from_secs(5);
/// How long a connection may take to end after its target has.
const ENDS: Duration = Duration::from_millis(200);
/// Bytes of the receive buffer of a client that does not read.
const SLOW_BUFFER: u32 = 2048;
/// Name of the tool that a turn may use.
const TOOL: &str = "plugin_data_set";

/// Plays the steps, then lets every client hear a last turn, and subscribes once more.
///
/// # Errors
///
/// When there is no connection, no session, or no restart.
pub(super) async fn play(stage: &Stage, case: &Case) -> Result<(), DriveError> {
    stage.label(ACTOR);
    let mut actor = stage.lines().await?;
    let named = case.steps.iter().filter_map(Step::session).max();
    let mut sessions = Vec::new();
    for _ in 0..=named.unwrap_or_default() {
        sessions.push(actor.session().await?);
    }
    let mut player = Player {
        stage,
        actor,
        sessions,
        begun: BTreeMap::new(),
        clients: BTreeMap::new(),
    };
    for step in &case.steps {
        player.step(step).await?;
    }
    player.converge().await
}

struct Player<'s> {
    stage: &'s Stage,
    actor: Lines,
    sessions: Vec<String>,
    /// Turns whose models are silent, by session: what lets them go on, and their requests.
    begun: BTreeMap<usize, (String, String)>,
    clients: BTreeMap<u8, Client>,
}

struct Client {
    session: usize,
    lines: Option<Lines>,
    /// It does not read until it is told to.
    slow: bool,
    /// The connection will break off by itself.
    is_doomed: bool,
}

fn ends_turn(line: &Value) -> bool {
    let kind = line["event"]["type"].as_str().unwrap_or_default();
    matches!(kind, "turn_completed" | "turn_failed" | "turn_cancelled")
}

/// What the model is heard to say in a session.
fn said(lines: Option<&[Value]>, session: &str) -> String {
    let ours = lines
        .unwrap_or_default()
        .iter()
        .filter(|line| line["session_id"] == session && line["event"]["type"] == "assistant_delta");
    ours.filter_map(|line| line["event"]["text"].as_str())
        .collect()
}

impl Player<'_> {
    async fn step(&mut self, step: &Step) -> Result<(), DriveError> {
        match *step {
            Step::Turn {
                session,
                words,
                writes,
                ending,
            } => self.turn(session.into(), words, writes, ending).await,
            Step::Begin { session, words } => self.begin(session.into(), words).await,
            Step::Finish { session } => self.finish(session.into(), false).await,
            Step::Write { session, .. } => self.turn(session.into(), 1, 0, Ending::Said).await,
            Step::Connect {
                client,
                session,
                query,
                slow,
                cut,
                race,
                ..
            } => {
                let how = Connecting {
                    place: query,
                    slow,
                    cut: cut_at(cut),
                    race: race > 0,
                };
                self.connect(client, session.into(), how).await
            }
            Step::Read { client } => self.read(client).await,
            Step::Drop { client } => {
                self.hang_up(client).await;
                Ok(())
            }
            Step::Restart { kill } => self.restart(kill).await,
            Step::Burst { .. }
            | Step::LosePublish { .. }
            | Step::Queue { .. }
            | Step::Command { .. }
            | Step::Continue { .. }
            | Step::Cancel { .. } => Ok(()),
        }
    }

    /// Waits until every client of the session has heard the end of the turn.
    async fn settle(&mut self, session: usize) {
        let soon = self.stage.patience(SOON);
        for client in self.clients.values_mut() {
            let hears = client.session == session && !client.slow;
            if let Some(lines) = client.lines.as_mut().filter(|_| hears) {
                lines.channel().wait(soon, ends_turn).await;
            }
        }
    }

    async fn turn(
        &mut self,
        session: usize,
        words: u8,
        writes: u8,
        ending: Ending,
    ) -> Result<(), DriveError> {
        if ending == Ending::Stopped {
            self.begin(session, words).await?;
            return self.finish(session, true).await;
        }
        self.finish(session, false).await?;
        let token = self.script(words, writes, ending)?;
        self.actor.turn(&self.sessions[session], &token).await?;
        self.settle(session).await;
        Ok(())
    }

    /// Tells the model what it says to the token that is returned.
    fn script(&self, words: u8, writes: u8, ending: Ending) -> Result<String, DriveError> {
        let (token, model) = (self.stage.token(), self.stage.model()?);
        let arguments = json!({ "namespace": "fuzz", "key": "k", "value": { "t": token } });
        match ending {
            Ending::Failed => model.fails(&token, 400),
            _ if writes == 0 => model.says(&token, &text(words)),
            _ => model.calls_then_says(&token, &[(TOOL, arguments)], &text(words)),
        }
        Ok(token)
    }

    async fn begin(&mut self, session: usize, words: u8) -> Result<(), DriveError> {
        self.finish(session, false).await?;
        let token = self.stage.token();
        let words = text(words);
        self.stage
            .model()?
            .says_and_waits(&token, &words, &format!(" {words}"));
        let before = self.actor.channel().lines().len();
        let request = self.actor.prompt(&self.sessions[session], &token).await?;
        self.hear(session, before, &words).await;
        self.begun.insert(session, (token, request));
        Ok(())
    }

    /// Waits until the actor has heard a turn say these words, after so many lines; then its model is silent.
    async fn hear(&mut self, session: usize, before: usize, words: &str) {
        let (soon, session) = (self.stage.patience(SOON), &self.sessions[session]);
        let says = |lines: &[Value]| said(lines.get(before..), session).ends_with(words);
        self.actor.channel().wait_until(soon, says).await;
    }

    async fn finish(&mut self, session: usize, stop: bool) -> Result<(), DriveError> {
        let Some((token, request)) = self.begun.remove(&session) else {
            return Ok(());
        };
        if stop {
            let params = json!({ "session_id": self.sessions[session] });
            self.actor.ask("session/cancel", params).await?;
        } else {
            self.stage.model()?.go_on(&token);
        }
        self.actor.response(&request).await;
        self.stage.model()?.go_on(&token);
        self.settle(session).await;
        Ok(())
    }

    async fn connect(
        &mut self,
        number: u8,
        session: usize,
        how: Connecting,
    ) -> Result<(), DriveError> {
        let Connecting {
            place,
            slow,
            cut,
            race,
        } = how;
        self.stage.label(&client_label(number));
        let mut lines = if slow {
            self.stage.slow_lines(SLOW_BUFFER).await?
        } else {
            self.stage.lines().await?
        };
        let id = self.sessions[session].clone();
        if let Some(at) = cut {
            lines.channel().cut(at);
        }
        if let Some(wrong) = wrong_session(place) {
            lines.subscribe(&wrong).await?;
        }
        if lines.channel().has_ended() {
            // It broke off before the right subscription.
        } else if race && !self.begun.contains_key(&session) {
            let token = self.script(3, 0, Ending::Said)?;
            let (subscribed, played) =
                tokio::join!(lines.subscribe(&id), self.actor.turn(&id, &token));
            subscribed?;
            played?;
            lines
                .channel()
                .wait(self.stage.patience(SOON), ends_turn)
                .await;
        } else {
            lines.subscribe(&id).await?;
        }
        pass_over(&mut lines).await;
        self.hang_up(number).await;
        if slow {
            lines.channel().stop_reading();
        }
        let client = Client {
            session,
            lines: Some(lines),
            slow,
            is_doomed: cut.is_some(),
        };
        self.clients.insert(number, client);
        Ok(())
    }

    /// A slow client reads all that has come, up to the answer of a request that it sends now.
    async fn read(&mut self, number: u8) -> Result<(), DriveError> {
        let client = self.clients.get_mut(&number).filter(|client| client.slow);
        let Some(client) = client else { return Ok(()) };
        client.slow = false;
        if let Some(lines) = &mut client.lines {
            lines.channel().read_on();
            lines.ask("ping", json!({})).await?;
            pass_over(lines).await;
        }
        Ok(())
    }

    async fn hang_up(&mut self, number: u8) {
        if let Some(client) = self.clients.get_mut(&number)
            && let Some(lines) = client.lines.take()
        {
            lines.close().await;
        }
    }

    /// The target has gone, and its connections end.
    async fn lose(&mut self, number: u8) {
        if let Some(client) = self.clients.get_mut(&number).filter(|client| !client.slow)
            && let Some(lines) = client.lines.as_mut()
        {
            lines.channel().wait_end(ENDS).await;
        }
        self.hang_up(number).await;
    }

    async fn restart(&mut self, kill: bool) -> Result<(), DriveError> {
        self.begun.clear();
        if kill {
            self.stage.kill().await?;
        } else {
            self.stage.stop().await?;
        }
        self.actor.channel().wait_end(ENDS).await;
        let numbers: Vec<u8> = self.clients.keys().copied().collect();
        for number in numbers {
            self.lose(number).await;
        }
        self.stage.start().await?;
        self.stage.label(ACTOR);
        self.actor = self.stage.lines().await?;
        for session in &self.sessions {
            self.actor.subscribe(session).await?;
        }
        Ok(())
    }

    async fn converge(mut self) -> Result<(), DriveError> {
        for session in 0..self.sessions.len() {
            self.finish(session, false).await?;
        }
        let numbers: Vec<u8> = self.clients.keys().copied().collect();
        for number in numbers {
            self.read(number).await?;
        }
        let absent: Vec<(u8, usize)> = self
            .clients
            .iter()
            .filter(|(_, client)| client.lines.is_none() || client.is_doomed)
            .map(|(number, client)| (*number, client.session))
            .collect();
        for (number, session) in absent {
            self.connect(number, session, Connecting::default()).await?;
        }
        if self.stage.model().is_ok() {
            for session in 0..self.sessions.len() {
                self.turn(session, 1, 0, Ending::Said).await?;
            }
        }
        self.stage.label(AUDITOR);
        let mut auditor = self.stage.lines().await?;
        for session in &self.sessions {
            auditor.subscribe(session).await?;
        }
        self.stage.label("leave");
        auditor.close().await;
        let numbers: Vec<u8> = self.clients.keys().copied().collect();
        for number in numbers {
            self.hang_up(number).await;
        }
        for session in &self.sessions {
            let params = json!({ "session_id": session });
            self.actor.ask("session/delete", params).await?;
        }
        self.actor.close().await;
        Ok(())
    }
}

/// How a client connects.
#[derive(Clone, Copy, Default)]
struct Connecting {
    place: Option<Place>,
    slow: bool,
    cut: Option<CutAt>,
    race: bool,
}

/// What has come counts as looked at, so that the end of a later turn is not taken for that of an earlier.
async fn pass_over(lines: &mut Lines) {
    while lines
        .channel()
        .wait(Duration::ZERO, ends_turn)
        .await
        .is_some()
    {}
}

/// A session that is asked for before the right one; none for a client that does as it should.
fn wrong_session(place: Option<Place>) -> Option<String> {
    Some(match place? {
        Place::Foreign | Place::Former | Place::OtherSession => "session-never-made".to_owned(),
        Place::Empty => String::new(),
        Place::Digits => "17".to_owned(),
        Place::Garbage(nth) => GARBAGE[usize::from(nth) % GARBAGE.len()].to_owned(),
        Place::Long(length) => "x".repeat(length as usize),
        Place::Own | Place::Behind(_) | Place::Start | Place::Ahead(_) => return None,
    })
}

fn text(words: u8) -> String {
    const WORDS: [&str; 5] = ["The", "river", "rises", "over", "night."];
    let words = WORDS.iter().cycle().take(usize::from(words.max(1)));
    words.copied().collect::<Vec<_>>().join(" ")
}
