//! The clients of a case: how they connect, with which cursor, and what they fetch.

use std::time::Duration;

use tokio::time::Instant;
use turnwire_spec::cursor::CursorBuf;

use super::{
    Client, Line, Player, SOON,
    texts::{after, holds, learn, store, told},
};
use crate::{
    drivers::{DriveError, http::EventStream},
    fuzz::{
        Step,
        covel::client_label,
        step::{GARBAGE, Place, cut_at},
    },
    stage::{Stage, Subscribe},
    transcript::{cut, views::covel::cursor},
};

/// Time between two requests for a connection while the target still counts the ones that were closed: at first, and at
/// most.
const ASK_AGAIN: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];

/// Where a new connection stands: what it was asked with, and what it was answered.
pub(super) struct Asked {
    had_cursor: bool,
}

impl Player<'_> {
    pub(super) async fn connect(&mut self, step: &Step) -> Result<(), DriveError> {
        let Step::Connect {
            client,
            session,
            query,
            header,
            narrow,
            slow,
            cut,
            race,
        } = *step
        else {
            return Ok(());
        };
        let room = usize::from(session);
        self.enter(client, room, narrow).await;
        // Who knows nothing yet fetches the state before it sends a cursor, and after it has connected without one.
        let sends_one = query.or(header).is_some_and(|place| place != Place::Empty);
        if sends_one && self.clients[&client].position.is_none() {
            self.restore(client).await?;
        }
        let query_cursor = self.resolve(client, room, query).await?;
        let header_cursor = self.resolve(client, room, header).await?;
        let had_cursor = query_cursor.as_ref().or(header_cursor.as_ref());
        let asked = Asked {
            had_cursor: had_cursor.is_some_and(|text| !text.is_empty()),
        };
        let how = Subscribe {
            topics: if narrow {
                vec!["plugin".to_owned()]
            } else {
                Vec::new()
            },
            query_cursor,
            header_cursor,
            receive_buffer: slow.then_some(2048),
            cut: cut_at(cut),
            ..Subscribe::to(&self.session(room))
        };
        self.stage.label(&client_label(client));
        let stream = if race > 0 {
            let (first, session) = (self.written + 1, self.session(room));
            self.written += u32::from(race);
            let (stream, stored) = tokio::join!(
                open(self.stage, &how),
                store(self.stage, &session, first, race)
            );
            stored?;
            stream?
        } else {
            open(self.stage, &how).await?
        };
        self.hang_up(client).await;
        if let Some(client) = self.clients.get_mut(&client) {
            client.is_doomed = cut.is_some();
        }
        self.take_up(client, stream, slow, &asked).await
    }

    /// The client is in this room now; of another room it knows nothing any more.
    pub(super) async fn enter(&mut self, number: u8, room: usize, narrow: bool) {
        let stays = |client: &Client| client.room == room && client.narrow == narrow;
        if self
            .clients
            .get(&number)
            .is_some_and(|client| !stays(client))
        {
            self.hang_up(number).await;
            self.clients.remove(&number);
        }
        self.clients.entry(number).or_insert(Client {
            room,
            line: None,
            position: None,
            narrow,
            is_doomed: false,
        });
    }

    /// The client goes on with a new connection: it reads up to the present, and fetches the state when it has to.
    pub(super) async fn take_up(
        &mut self,
        number: u8,
        stream: EventStream,
        slow: bool,
        asked: &Asked,
    ) -> Result<(), DriveError> {
        let is_stream = stream.status == 200;
        let Some(client) = self.clients.get_mut(&number).filter(|_| is_stream) else {
            stream.close();
            return Ok(());
        };
        if slow {
            client.line = Some(Line::Slow(Box::new(stream), Vec::new()));
            return Ok(());
        }
        let reading = stream.keep_reading();
        reading
            .wait_for("system.connected", self.stage.patience(SOON))
            .await;
        client.line = Some(Line::Quick(reading));
        let room = client.room;
        self.stage.label("act");
        self.write(room, 1).await?;
        self.fetch_when_due(number, asked).await
    }

    /// A client without a cursor, or that was reset, fetches the authoritative state.
    pub(super) async fn fetch_when_due(
        &mut self,
        number: u8,
        asked: &Asked,
    ) -> Result<(), DriveError> {
        let frames = self.clients[&number].line.as_ref().map(Line::frames);
        let was_reset = frames
            .unwrap_or_default()
            .iter()
            .any(|frame| frame.event_type() == "system.reset");
        if was_reset || !asked.had_cursor {
            self.restore(number).await?;
        }
        Ok(())
    }

    /// A client fetches the view, the messages and the stored values.
    pub(super) async fn restore(&mut self, number: u8) -> Result<(), DriveError> {
        self.stage.label(&client_label(number));
        let room = self.clients[&number].room;
        let view = self.fetch(room).await?;
        if let Some(client) = self.clients.get_mut(&number)
            && client.position.is_none()
            && client.line.is_none()
        {
            client.position = view.string("/eventCursor");
        }
        Ok(())
    }

    /// A slow client reads up to the present.
    pub(super) async fn read(&mut self, number: u8) -> Result<(), DriveError> {
        let Some(client) = self.clients.get(&number) else {
            return Ok(());
        };
        let room = client.room;
        if !matches!(client.line, Some(Line::Slow(..))) {
            return Ok(());
        }
        self.stage.label("act");
        self.write(room, 1).await?;
        let (newest, soon) = (self.written, self.soon());
        if let Some(Client {
            line: Some(Line::Slow(stream, frames)),
            ..
        }) = self.clients.get_mut(&number)
        {
            frames.extend(stream.read_up_to(soon, |frame| holds(frame, newest)).await);
        }
        Ok(())
    }

    /// Closes the client's connection and notes what it has learned.
    pub(super) async fn hang_up(&mut self, number: u8) {
        let Some(client) = self.clients.get_mut(&number) else {
            return;
        };
        let Some(line) = client.line.take() else {
            return;
        };
        let frames = line.frames();
        match line {
            Line::Quick(reading) => reading.close().await,
            Line::Slow(stream, _) => {
                self.stage
                    .http()
                    .recorder()
                    .tell(cut::note(stream.exchange()));
                stream.close();
            }
        }
        learn(&mut client.position, &frames);
        let room = &mut self.rooms[client.room];
        frames.iter().filter_map(told).for_each(|at| room.know(at));
    }

    /// The text of a cursor.
    pub(super) async fn resolve(
        &mut self,
        number: u8,
        room: usize,
        place: Option<Place>,
    ) -> Result<Option<String>, DriveError> {
        let Some(place) = place else {
            return Ok(None);
        };
        let own = self.position(number);
        let text = match place {
            Place::Own => own,
            Place::Behind(events) => {
                let at = self.base(number, room).await?;
                at.map(|at| after(&at, -i64::from(events)))
            }
            Place::Start => {
                let at = self.base(number, room).await?;
                at.map(|at| format!("{}:0", at.epoch))
            }
            Place::Ahead(events) => {
                let at = self.look(room).await?;
                at.map(|at| after(&at, i64::from(events) + 1))
            }
            Place::Former => {
                self.learn_all();
                let epochs = &self.rooms[room].epochs;
                let former = epochs.iter().rev().nth(1);
                former.map(ToString::to_string)
            }
            Place::OtherSession => {
                let other = (0..self.rooms.len()).find(|other| *other != room);
                match other {
                    Some(other) => self.look(other).await?.map(|at| at.to_string()),
                    None => None,
                }
            }
            Place::Foreign => None,
            Place::Empty => Some(String::new()),
            Place::Digits => Some("17".to_owned()),
            Place::Garbage(nth) => {
                let nth = usize::from(nth) % GARBAGE.len();
                GARBAGE.get(nth).map(|text| (*text).to_owned())
            }
            Place::Long(length) => Some("x".repeat(length as usize)),
        };
        Ok(text.or_else(|| Some("never-issued:3".to_owned())))
    }

    /// Where a client stands, by what it was sent.
    pub(super) fn position(&self, number: u8) -> Option<String> {
        let client = self.clients.get(&number)?;
        let mut position = client.position.clone();
        if let Some(line) = &client.line {
            learn(&mut position, &line.frames());
        }
        position
    }

    /// Where a client stands, or else where the session does.
    pub(super) async fn base(
        &self,
        number: u8,
        room: usize,
    ) -> Result<Option<CursorBuf>, DriveError> {
        match self.position(number).as_deref().and_then(cursor) {
            Some(at) => Ok(Some(at)),
            None => self.look(room).await,
        }
    }

    /// Where a session stands.
    pub(super) async fn look(&self, room: usize) -> Result<Option<CursorBuf>, DriveError> {
        self.stage.label("look");
        let view = self.stage.view(&self.session(room)).await?;
        Ok(view.string("/eventCursor").as_deref().and_then(cursor))
    }

    /// Notes the epochs that open connections have told.
    pub(super) fn learn_all(&mut self) {
        for client in self.clients.values() {
            let frames = client.line.as_ref().map(Line::frames).unwrap_or_default();
            let room = &mut self.rooms[client.room];
            frames.iter().filter_map(told).for_each(|at| room.know(at));
        }
    }
}

/// Opens a subscription; again while the target has no place for it, since it may not yet know that others left.
pub(in crate::fuzz::covel) async fn open(
    stage: &Stage,
    how: &Subscribe,
) -> Result<EventStream, DriveError> {
    let until = Instant::now() + stage.patience(SOON);
    let [mut pause, longest] = ASK_AGAIN;
    loop {
        let stream = stage.subscribe(how).await?;
        if stream.status != 429 || Instant::now() >= until {
            return Ok(stream);
        }
        stream.close();
        stage.pause(pause).await;
        pause = (pause * 2).min(longest);
    }
}
