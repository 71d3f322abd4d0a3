//! The clients of a case: how they subscribe, and what they do about what they missed.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Player, label, leave,
    line::{Known, Line, follow, numbered},
};
use crate::{
    drivers::{DriveError, websocket::Seen},
    fuzz::{
        Step,
        chat_ws::SAID,
        step::{Ending, Place, cut_at},
    },
    stage::Stage,
    transcript::cut,
};

/// A client.
#[derive(Default)]
pub(super) struct Client {
    /// The session that it follows.
    pub(super) room: usize,
    pub(super) line: Option<Line>,
    /// The turn that it follows.
    turn: Option<Known>,
    /// It has read the transcript.
    knows: bool,
    /// It asked for something else than the protocol wants, and may have missed anything.
    strays: bool,
    /// It was told to read the transcript in the middle of a turn, so it will once more when that is over.
    due: bool,
    /// It does not read.
    pub(super) slow: bool,
}

/// What a client names as the last number that it has.
enum Last {
    /// What the protocol wants.
    Own,
    /// Nothing.
    Absent,
    /// This number, in these words.
    Number(String),
    /// What is no number.
    Wrong(Value),
}

impl Client {
    /// Reads on, when it is slow.
    pub(super) fn read_on(&mut self) {
        if let Some(line) = &self.line {
            line.socket.read_on();
        }
        self.slow = false;
    }

    /// Waits for what there is, when it reads.
    pub(super) async fn catch(&mut self, session: &str, soon: Duration) {
        if self.slow {
            return;
        }
        let Some(line) = &mut self.line else { return };
        let alive = line.sync(soon).await || !line.socket.has_ended();
        follow(&mut self.turn, session, &line.fresh());
        if !alive {
            self.line = None;
        }
    }

    /// The target has gone.
    pub(super) async fn lose(&mut self, stage: &Stage) {
        if let Some(mut line) = self.line.take() {
            if self.slow {
                stage.recorder().tell(cut::note(line.socket.exchange()));
            } else {
                line.socket.wait_end(super::ENDS).await;
            }
        }
        self.slow = false;
    }

    /// After an answer that broke off: when the client did not follow a turn, so that the transcript was to be read next,
    /// or it was told of another turn, or of a gap, all has to be asked for again.
    fn forget_what_moved(&mut self, before: Option<&Known>, session: &str, fresh: &[Seen]) {
        let now = self.turn.as_ref().and_then(|turn| turn.job.as_ref());
        let follows = before.is_some_and(|turn| turn.job.as_ref() == now);
        if !follows || fresh.iter().any(|seen| is_resync(seen, session)) {
            self.knows = false;
        }
    }

    /// The turn whose end it waits for.
    fn in_flight(&self) -> Option<&Known> {
        self.turn.as_ref().filter(|turn| self.knows && !turn.over)
    }
}

impl Player<'_> {
    pub(super) async fn connect(&mut self, step: &Step) -> Result<(), DriveError> {
        let Step::Connect {
            client: number,
            session,
            query,
            narrow,
            slow,
            cut,
            race,
            ..
        } = *step
        else {
            return Ok(());
        };
        let room = usize::from(session);
        let mut client = self.clients.remove(&number).unwrap_or_default();
        let old = client.line.take().map(|line| (line, client.slow));
        if client.room != room {
            client = Client {
                room,
                ..Client::default()
            };
        }
        self.stage.label(&label(number));
        let mut open = self.stage.chat_open().cut(cut_at(cut));
        if slow {
            open = open.slow();
        }
        let mut line = Line::new(self.stage.open_socket(open).await?.socket()?);
        line.socket.read_on();
        line.sync(self.soon()).await;
        line.fresh();
        let mut last = self.last(&client, query);
        if let Last::Wrong(wrong) = &last {
            let payload = self.subscription(room, true, Some(wrong.clone()));
            // Where the socket has ended, nothing more comes on it.
            let _ = line.socket.say("chat:subscribe", payload).await;
            line.sync(self.soon()).await;
            line.fresh();
            last = Last::Own;
        }
        let own = matches!(last, Last::Own) && !narrow;
        if own && client.strays {
            // It has missed it does not know what: it asks for all, and reads the transcript.
            client.knows = false;
        }
        let racing = race > 0 && self.rooms[room].begun.is_none();
        if racing {
            let token = self.script(3, 0, Ending::Said)?;
            self.say(room, &token, SAID).await?;
        }
        self.subscribe(&client, &line, last, narrow).await;
        if racing {
            self.over(room).await;
        }
        let synced = line.sync(self.soon()).await;
        let before = client.in_flight().cloned();
        let fresh = line.fresh();
        let session = self.rooms[room].session.clone();
        follow(&mut client.turn, &session, &fresh);
        if own && synced {
            self.come_up_to_date(number, &mut client, &mut line, before, fresh)
                .await?;
        } else {
            client.strays |= !own;
            client.forget_what_moved(before.as_ref(), &session, &fresh);
        }
        if let Some((mut old, was_slow)) = old {
            if !was_slow {
                old.sync(self.soon()).await;
            }
            leave(self.stage, old, was_slow, number % 2 == 1).await;
        }
        if slow {
            line.socket.stop_reading();
        }
        client.slow = slow;
        client.line = Some(line).filter(|line| !line.socket.has_ended());
        self.clients.insert(number, client);
        Ok(())
    }

    fn subscription(&self, room: usize, replay: bool, last: Option<Value>) -> Value {
        let mut payload = self.place(room);
        payload["wantReplay"] = replay.into();
        if let Some(last) = last {
            payload["lastSeq"] = last;
        }
        payload
    }

    async fn subscribe(&self, client: &Client, line: &Line, last: Last, narrow: bool) {
        let number = match last {
            Last::Own => Some(client.in_flight().map_or(-1, |turn| turn.seq).to_string()),
            Last::Number(text) => Some(text),
            Last::Absent | Last::Wrong(_) => None,
        };
        // A number is sent in the words in which it was made: JSON has more than one for each.
        const HERE: &str = "#number#";
        let last = number.as_ref().map(|_| Value::from(HERE));
        let payload = self.subscription(client.room, !narrow, last);
        let text = json!({ "type": "chat:subscribe", "payload": payload }).to_string();
        let text = text.replace(&format!("{HERE:?}"), &number.unwrap_or_default());
        // Where the socket has ended, nothing more comes on it.
        let _ = line.socket.send_text(&text).await;
    }

    /// Does what a client does about what it was answered: it reads the transcript when it is told to, when it does not
    /// follow a turn, and when its turn is over without its having seen the end.
    async fn come_up_to_date(
        &mut self,
        number: u8,
        client: &mut Client,
        line: &mut Line,
        before: Option<Known>,
        mut fresh: Vec<Seen>,
    ) -> Result<(), DriveError> {
        let session = self.rooms[client.room].session.clone();
        let moved = before
            .as_ref()
            .is_some_and(|turn| moved(turn, client, line, &session, &fresh));
        if moved {
            // All of the turn that has followed.
            let all = Last::Number("-1".to_owned());
            self.subscribe(client, line, all, false).await;
            let synced = line.sync(self.soon()).await;
            let more = line.fresh();
            follow(&mut client.turn, &session, &more);
            fresh.extend(more);
            if !synced {
                // It broke off before all was there.
                client.knows = false;
                return Ok(());
            }
        }
        let resynced = fresh.iter().any(|seen| is_resync(seen, &session));
        client.due |= resynced;
        if before.is_none() || moved || resynced {
            self.read_transcript(&label(number), client.room).await?;
            client.knows = true;
        }
        client.strays = false;
        Ok(())
    }

    fn last(&self, client: &Client, place: Option<Place>) -> Last {
        let newest = |room: usize| {
            let turn = self.rooms.get(room).and_then(|room| room.turn.as_ref());
            turn.map_or(-1, |turn| turn.seq)
        };
        let own = client.turn.as_ref().map(|turn| turn.seq);
        let room = client.room;
        let Some(place) = place else {
            return Last::Absent;
        };
        let number = match place {
            Place::Own => return Last::Own,
            Place::Behind(frames) => (own.unwrap_or(newest(room)) - i64::from(frames)).max(-1),
            Place::Start => -1,
            Place::Ahead(frames) => newest(room) + 1 + i64::from(frames),
            Place::Foreign => 9_007_199_254_740_991,
            Place::Former => {
                let former = self.rooms[room].turn.as_ref().and_then(|turn| turn.former);
                former.unwrap_or(newest(room))
            }
            Place::OtherSession => newest(1 - room.min(1)),
            Place::Empty => return Last::Wrong("".into()),
            Place::Digits => return Last::Wrong("17".into()),
            Place::Garbage(nth) => return garbage(nth),
            Place::Long(length) if length <= 300 => {
                return Last::Number("9".repeat(length as usize));
            }
            Place::Long(length) => return Last::Wrong("9".repeat(length as usize).into()),
        };
        Last::Number(number.to_string())
    }

    /// At the end, a client that is away or has strayed comes back as the protocol wants it.
    pub(super) async fn come_back(&mut self, number: u8) -> Result<(), DriveError> {
        let soon = self.soon();
        let Some(client) = self.clients.get_mut(&number) else {
            return Ok(());
        };
        client.read_on();
        let session = &self.rooms[client.room].session;
        client.catch(session, soon).await;
        if client.line.is_some() && !client.strays {
            return Ok(());
        }
        let room = u8::try_from(client.room).unwrap_or_default();
        self.connect(&Step::connect(number, room)).await
    }

    /// A client that was told to reads the transcript once the turn is over.
    pub(super) async fn read_again(&mut self, number: u8) -> Result<(), DriveError> {
        match self.clients.get(&number) {
            Some(client) if client.due => self.read_transcript(&label(number), client.room).await,
            _ => Ok(()),
        }
    }
}

fn is_resync(seen: &Seen, session: &str) -> bool {
    seen.kind() == Some("chat:resync") && seen.text("/payload/sessionId") == Some(session)
}

/// Whether the turn that a client followed has gone on without it: another one is there, or none runs and its end was not
/// told.
fn moved(turn: &Known, client: &Client, line: &Line, session: &str, fresh: &[Seen]) -> bool {
    let another = fresh
        .iter()
        .filter_map(|seen| numbered(seen, session))
        .any(|(_, job)| job != turn.job.as_deref());
    let over = client.turn.as_ref().is_some_and(|turn| turn.over);
    match line.running.get(session) {
        _ if another => true,
        Some(Some(job)) => turn.job.as_ref() != Some(job),
        Some(None) => false,
        None => !over,
    }
}

/// Numbers that no turn has, and what is no number.
fn garbage(nth: u8) -> Last {
    const NUMBERS: [&str; 9] = [
        "-2", "-1000", "0.5", "2.5", "-0.5", "1e300", "-1e300", "-0", "1E1",
    ];
    let wrong = [
        Value::Null,
        true.into(),
        json!([]),
        json!([1]),
        json!({}),
        "abc".into(),
        "-1".into(),
    ];
    let nth = usize::from(nth) % (NUMBERS.len() + wrong.len());
    match NUMBERS.get(nth) {
        Some(number) => Last::Number((*number).to_owned()),
        None => Last::Wrong(wrong[nth - NUMBERS.len()].clone()),
    }
}
