//! Plays a case of `covel-sse`.
//!
//! After each step the player waits until every client that reads has what the step gave it, so that a case is
//! recorded the same each time. What it waits for is an event that it has just caused itself: a value with a number
//! of its own, or the end of a turn. When that does not come in time the case goes on; what is missing stands in the
//! transcript.
//!
//! - [`clients`]: how clients connect, and with which cursor; [`texts`]: what is stored and said.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use turnwire_spec::cursor::CursorBuf;

use super::{AUDITOR, AUTHORITY, NAMESPACE};
use crate::{
    drivers::{
        DriveError,
        http::{Call, EventStream, Reading, Reply},
    },
    fuzz::{Case, Step, step::Ending},
    stage::{CreateSession, Session, Stage, Subscribe},
    transcript::views::stream::StreamFrame,
};

mod clients;
mod texts;

pub(super) use clients::open;
use texts::{key, store, text, value, wait_for_value};

/// How long something may take that ought to come at once.
const SOON: Duration = Duration::from_secs(5);
/// Events of one portion of a burst: less than a connection's queue holds.
const PORTION: u16 = 100;

/// Plays the steps, brings every client up to date, and asks for the authoritative state.
///
/// # Errors
///
/// When there is no session, no answer, or no restart.
pub(super) async fn play(stage: &Stage, case: &Case) -> Result<(), DriveError> {
    let mut player = Player::begin(stage, case).await?;
    for step in &case.steps {
        player.step(step).await?;
    }
    player.converge().await?;
    player.leave().await
}

struct Player<'s> {
    stage: &'s Stage,
    rooms: Vec<Room>,
    clients: BTreeMap<u8, Client>,
    /// Plugin and namespace of what the clients hold.
    tables: Vec<(String, String)>,
    /// Number of the newest value.
    written: u32,
}

/// A session of the case.
struct Room {
    session: Session,
    /// The newest known event of each epoch, in the order in which the epochs were seen.
    epochs: Vec<CursorBuf>,
    /// Turns whose models are silent: what lets them go on, and their action streams.
    begun: Vec<(String, Reading)>,
}

struct Client {
    room: usize,
    line: Option<Line>,
    /// The cursor that it would send.
    position: Option<String>,
    narrow: bool,
    /// The connection will break off by itself.
    is_doomed: bool,
}

/// An open subscription.
enum Line {
    Quick(Reading),
    Slow(Box<EventStream>, Vec<StreamFrame>),
}

impl Line {
    fn frames(&self) -> Vec<StreamFrame> {
        match self {
            Self::Quick(reading) => reading.frames(),
            Self::Slow(_, frames) => frames.clone(),
        }
    }
}

impl<'s> Player<'s> {
    async fn begin(stage: &'s Stage, case: &Case) -> Result<Self, DriveError> {
        let named = case.steps.iter().filter_map(Step::session).max();
        let mut rooms = Vec::new();
        for _ in 0..=named.unwrap_or_default() {
            rooms.push(Room {
                session: stage.create_session(CreateSession::default()).await?,
                epochs: Vec::new(),
                begun: Vec::new(),
            });
        }
        let mut tables = vec![(stage.data_plugin().to_owned(), NAMESPACE.to_owned())];
        let turns = |step: &Step| matches!(step, Step::Turn { writes: 1.., .. });
        let story = stage.profile().session_plugins.first();
        if let Some(story) = story.filter(|_| case.steps.iter().any(turns)) {
            tables.push((story.clone(), NAMESPACE.to_owned()));
        }
        if case
            .steps
            .iter()
            .any(|step| matches!(step, Step::Burst { .. }))
        {
            tables.push((stage.profile().fixture_plugin.clone(), "burst".to_owned()));
        }
        tables.dedup();
        Ok(Self {
            stage,
            rooms,
            clients: BTreeMap::new(),
            tables,
            written: 0,
        })
    }

    async fn step(&mut self, step: &Step) -> Result<(), DriveError> {
        match *step {
            Step::Write { session, count } => {
                self.stage.label("act");
                self.write(session.into(), count).await
            }
            Step::Turn {
                session,
                words,
                writes,
                ending,
            } => self.turn(session.into(), words, writes, ending).await,
            Step::Begin { session, words } => self.begin_turn(session.into(), words).await,
            Step::Finish { session } => self.finish_turns(session.into()).await,
            Step::Burst {
                session,
                count,
                bytes,
            } => self.burst(session.into(), count, bytes).await,
            Step::LosePublish { session } => self.lose_publish(session.into()).await,
            Step::Connect { .. } => self.connect(step).await,
            Step::Read { client } => self.read(client).await,
            Step::Drop { client } => {
                self.hang_up(client).await;
                Ok(())
            }
            Step::Restart { kill } => self.restart(kill).await,
            Step::Queue { .. }
            | Step::Command { .. }
            | Step::Continue { .. }
            | Step::Cancel { .. } => Ok(()),
        }
    }

    fn soon(&self) -> Duration {
        self.stage.patience(SOON)
    }

    fn session(&self, room: usize) -> Session {
        self.rooms[room].session.clone()
    }

    /// Stores `count` values, one commit each, and waits until all who read have the last one.
    async fn write(&mut self, room: usize, count: u8) -> Result<(), DriveError> {
        let first = self.written + 1;
        self.written += u32::from(count);
        store(self.stage, &self.session(room), first, count).await?;
        self.settle(room).await;
        Ok(())
    }

    /// Waits until all who read in a room have the newest value.
    async fn settle(&self, room: usize) {
        let newest = self.written;
        for client in self.clients.values().filter(|client| client.room == room) {
            if let Some(Line::Quick(reading)) = &client.line {
                wait_for_value(reading, newest, self.soon()).await;
            }
        }
    }

    /// The positions in the streams of a room, for [`Player::settle_turn`].
    fn marks(&self, room: usize) -> Vec<(u8, usize)> {
        let in_room = self
            .clients
            .iter()
            .filter(|(_, client)| client.room == room);
        in_room
            .filter_map(|(number, client)| match &client.line {
                Some(Line::Quick(reading)) if !client.narrow => Some((*number, reading.mark())),
                _ => None,
            })
            .collect()
    }

    /// Waits until all who read have the end of the turn that began after the marks.
    async fn settle_turn(&self, marks: &[(u8, usize)]) {
        for (number, mark) in marks {
            if let Some(Line::Quick(reading)) = self
                .clients
                .get(number)
                .and_then(|client| client.line.as_ref())
            {
                reading
                    .wait_after(*mark, "execution.completed", self.soon())
                    .await;
            }
        }
    }

    async fn turn(
        &mut self,
        room: usize,
        words: u8,
        writes: u8,
        ending: Ending,
    ) -> Result<(), DriveError> {
        if ending == Ending::Stopped {
            self.begin_turn(room, words).await?;
            return self.stop_turn(room).await;
        }
        self.finish_turns(room).await?;
        self.stage.label("act");
        let marks = self.marks(room);
        let token = self.stage.token();
        let model = self.stage.model()?;
        match ending {
            Ending::Failed => model.fails(&token, 400),
            _ if writes == 0 => model.says(&token, &text(words)),
            _ => {
                let values = (0..writes).map(|nth| {
                    let number = self.written + u32::from(nth) + 1;
                    let arguments =
                        json!({ "namespace": NAMESPACE, "key": key(number), "value": value(number) });
                    ("plugin_data_set", arguments)
                });
                model.calls_then_says(&token, &values.collect::<Vec<_>>(), &text(words));
                self.written += u32::from(writes);
            }
        }
        self.act(room, &token).await?;
        self.settle_turn(&marks).await;
        // Whoever sees no end of a turn sees this.
        self.write(room, 1).await
    }

    /// The player says something; the action's stream is read to its end.
    async fn act(&self, room: usize, token: &str) -> Result<(), DriveError> {
        let mut action = self.stage.say(&self.session(room), token).await?;
        action.read_to_end(self.soon()).await;
        Ok(())
    }

    async fn begin_turn(&mut self, room: usize, words: u8) -> Result<(), DriveError> {
        self.finish_turns(room).await?;
        self.stage.label("act");
        let token = self.stage.token();
        let words = text(words);
        self.stage
            .model()?
            .says_and_waits(&token, &words, &format!(" {words}"));
        let action = self.stage.say(&self.session(room), &token).await?;
        let action = action.keep_reading();
        action.wait_for("narrative.delta", self.soon()).await;
        self.rooms[room].begun.push((token, action));
        self.write(room, 1).await
    }

    async fn finish_turns(&mut self, room: usize) -> Result<(), DriveError> {
        while let Some((token, action)) = self.rooms[room].begun.pop() {
            self.stage.label("act");
            let marks = self.marks(room);
            self.stage.model()?.go_on(&token);
            action.wait_end(self.soon()).await;
            self.settle_turn(&marks).await;
            self.write(room, 1).await?;
        }
        Ok(())
    }

    async fn stop_turn(&mut self, room: usize) -> Result<(), DriveError> {
        while let Some((token, action)) = self.rooms[room].begun.pop() {
            let session = self.session(room);
            let marks = self.marks(room);
            let call = Call::post(session.path("/abort")).bearer(session.owner_token.as_deref());
            self.stage.send(call).await?;
            action.wait_end(self.soon()).await;
            self.stage.model()?.go_on(&token);
            self.settle_turn(&marks).await;
            self.write(room, 1).await?;
        }
        Ok(())
    }

    async fn burst(&mut self, room: usize, count: u16, bytes: u16) -> Result<(), DriveError> {
        let mut left = count;
        while left > 0 {
            self.stage.label("act");
            let portion = left.min(PORTION);
            let order = json!({ "count": portion, "bytes": bytes });
            self.stage
                .fixture(&self.session(room), "burst", order)
                .await?;
            left -= portion;
            self.write(room, 1).await?;
        }
        Ok(())
    }

    /// A turn that is committed, and whose events then cannot be published. All connections of the room end with
    /// a reset, and their clients fetch the state.
    async fn lose_publish(&mut self, room: usize) -> Result<(), DriveError> {
        self.finish_turns(room).await?;
        self.stage.label("act");
        let session = self.session(room);
        self.stage
            .fixture(&session, "fail-publish", json!({ "nth": [1] }))
            .await?;
        let token = self.stage.token();
        self.stage.model()?.says(&token, &text(2));
        self.act(room, &token).await?;
        let here: Vec<u8> = self
            .clients
            .iter()
            .filter(|(_, client)| client.room == room)
            .map(|(number, _)| *number)
            .collect();
        for number in here {
            if let Some(Line::Quick(reading)) = &self.clients[&number].line {
                reading.wait_end(self.soon()).await;
                self.hang_up(number).await;
                self.restore(number).await?;
            }
        }
        Ok(())
    }

    async fn restart(&mut self, kill: bool) -> Result<(), DriveError> {
        for room in &mut self.rooms {
            room.begun.clear();
        }
        if kill {
            self.stage.kill().await?;
        } else {
            self.stage.stop().await?;
        }
        let numbers: Vec<u8> = self.clients.keys().copied().collect();
        for number in numbers {
            if let Some(Line::Quick(reading)) = &self.clients[&number].line {
                reading.wait_end(self.soon()).await;
            }
            self.hang_up(number).await;
        }
        self.stage.start().await
    }

    /// The view, which comes first, the messages and the stored values of a room. Gives the view.
    async fn fetch(&self, room: usize) -> Result<Reply, DriveError> {
        let session = self.session(room);
        let view = self.stage.view(&session).await?;
        self.stage.messages(&session).await?;
        for (plugin, namespace) in &self.tables {
            let path = format!("/plugin-data/{plugin}/{namespace}");
            self.stage.query(&session, &path).await?;
        }
        Ok(view)
    }

    /// Brings every client up to date, audits every session, and asks for the authoritative state.
    async fn converge(&mut self) -> Result<(), DriveError> {
        for room in 0..self.rooms.len() {
            self.finish_turns(room).await?;
        }
        let numbers: Vec<u8> = self.clients.keys().copied().collect();
        for number in numbers {
            let client = &self.clients[&number];
            let reads =
                matches!(&client.line, Some(Line::Quick(reading)) if reading.ended().is_none());
            if !reads || client.is_doomed {
                let (room, narrow) = (client.room, client.narrow);
                self.hang_up(number).await;
                let mut step = Step::connect(number, u8::try_from(room).unwrap_or_default());
                if let Step::Connect { narrow: own, .. } = &mut step {
                    *own = narrow;
                }
                self.connect(&step).await?;
            }
        }
        for room in 0..self.rooms.len() {
            self.audit(room).await?;
        }
        for room in 0..self.rooms.len() {
            self.stage.label(AUTHORITY);
            self.fetch(room).await?;
        }
        Ok(())
    }

    /// Subscribes from before the first event on, up to one more value, which all others get too.
    async fn audit(&mut self, room: usize) -> Result<(), DriveError> {
        let Some(at) = self.look(room).await? else {
            return self.write(room, 1).await;
        };
        let how = Subscribe::to(&self.session(room)).after(&format!("{}:0", at.epoch));
        self.stage.label(AUDITOR);
        let auditor = open(self.stage, &how).await?.keep_reading();
        auditor.wait_for("system.connected", self.soon()).await;
        self.stage.label("settle");
        self.write(room, 1).await?;
        wait_for_value(&auditor, self.written, self.soon()).await;
        auditor.close().await;
        Ok(())
    }

    /// Closes everything and deletes the sessions.
    async fn leave(mut self) -> Result<(), DriveError> {
        self.stage.label("leave");
        let numbers: Vec<u8> = self.clients.keys().copied().collect();
        for number in numbers {
            self.hang_up(number).await;
        }
        for room in &self.rooms {
            self.stage.delete_session(&room.session).await?;
        }
        Ok(())
    }
}

impl Room {
    fn know(&mut self, at: CursorBuf) {
        match self.epochs.iter_mut().find(|known| known.epoch == at.epoch) {
            Some(known) => known.seq = known.seq.max(at.seq),
            None => self.epochs.push(at),
        }
    }
}
