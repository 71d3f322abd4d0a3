//! How a session is read: the view that recovers a client, message pages, traces.

use serde_json::Value;
use turnwire_spec::covel::limits::{
    MESSAGES_PAGE_MAX, TRACE_EVENTS, TRACE_PAGE_MAX, VIEW_MESSAGES, VIEW_STEPS,
};

use super::emitter::is_lifecycle;
use super::ids::{PluginId, SessionId, TurnId};
use super::model::{ExecutionStatus, Message, Object, Record, Session, Shelf, TraceEvent};
use super::pages::{List, Page};
use super::{Engine, EngineError};

/// What a client needs to take up a session.
#[derive(Clone, Debug)]
pub struct View {
    /// The newest event id from before anything below was read: what later events announce may be
    /// in the view already, what earlier ones announced is.
    pub event_cursor: String,
    /// The session.
    pub session: Session,
    /// The newest messages, oldest first.
    pub messages: Vec<Message>,
    /// Continues with the messages before these.
    pub messages_cursor: Option<String>,
    /// The newest lifecycle events, oldest first.
    pub steps: Vec<TraceEvent>,
    /// Where the latest execution stands.
    pub execution: ExecutionStatus,
    /// The characters, in the order in which they came.
    pub characters: Vec<Object>,
    /// The definition of their fields.
    pub character_schema: Option<Object>,
    /// The plugins that the server has.
    pub plugins: Vec<PluginInfo>,
}

/// One plugin as a session sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PluginInfo {
    /// Its id.
    pub id: PluginId,
    /// What a person calls it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether it is active in the session.
    pub active: bool,
    /// The names of its slash commands.
    pub commands: Vec<&'static str>,
}

/// The trace events of one turn, or of the part of it that is on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceTurn {
    /// The turn.
    pub turn_id: TurnId,
    /// Its events, oldest first.
    pub events: Vec<TraceEvent>,
}

impl Engine {
    /// Reads the view of a session.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::IncarnationChanged`] when the session was
    /// replaced meanwhile, or [`EngineError::Store`].
    pub async fn view(&self, id: &SessionId) -> Result<View, EngineError> {
        let key = self.session(id).await?.key();
        let event_cursor = self.inner.publisher.cursor(&key);
        let store = &self.inner.store;
        let messages = store.messages_before(id, None, VIEW_MESSAGES).await?;
        let steps = store.traces_before(id, None, TRACE_EVENTS).await?.rows;
        let execution = self.execution_of(id).await?;
        let characters = self.characters(id).await?;
        let schemas = store.records(id, Shelf::CharacterSchema).await?;
        let session = self.session(id).await?;
        if session.incarnation != key.incarnation {
            return Err(EngineError::IncarnationChanged(id.clone()));
        }
        let messages = Page::of(List::Messages, messages, VIEW_MESSAGES);
        Ok(View {
            event_cursor,
            messages: messages.items,
            messages_cursor: messages.next,
            steps: newest_steps(steps),
            execution,
            characters,
            character_schema: schemas.into_iter().find_map(object),
            plugins: self.plugins_of(&session),
            session,
        })
    }

    /// The plugins that the server has, and which of them are active in the session.
    #[must_use]
    pub fn plugins_of(&self, session: &Session) -> Vec<PluginInfo> {
        let info = |plugin: &dyn super::plugins::Plugin| {
            let manifest = plugin.manifest();
            PluginInfo {
                id: manifest.id.clone(),
                name: manifest.name.clone(),
                version: manifest.version.clone(),
                active: session.active_plugins.contains(&manifest.id),
                commands: plugin.commands().iter().map(|spec| spec.name).collect(),
            }
        };
        self.inner
            .registry
            .plugins()
            .map(|plugin| info(plugin.as_ref()))
            .collect()
    }

    /// The characters of a session, in the order in which they came.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn characters(&self, id: &SessionId) -> Result<Vec<Object>, EngineError> {
        self.session(id).await?;
        let records = self.inner.store.records(id, Shelf::Character).await?;
        Ok(records.into_iter().filter_map(object).collect())
    }

    /// All messages, oldest first.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn messages(&self, id: &SessionId) -> Result<Vec<Message>, EngineError> {
        self.session(id).await?;
        Ok(self.inner.store.messages(id).await?)
    }

    /// One page of messages: the newest, or those before the cursor.
    ///
    /// `limit` is taken as at least 1 and at most the protocol's maximum.
    ///
    /// # Errors
    ///
    /// [`EngineError::InvalidCursor`], [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn messages_page(
        &self,
        id: &SessionId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<Message>, EngineError> {
        let before = cursor
            .map(|cursor| List::Messages.place(cursor))
            .transpose()?;
        self.session(id).await?;
        let limit = limit.clamp(1, MESSAGES_PAGE_MAX);
        let window = self.inner.store.messages_before(id, before, limit).await?;
        Ok(Page::of(List::Messages, window, limit))
    }

    /// The newest trace events, or those before the cursor.
    ///
    /// # Errors
    ///
    /// [`EngineError::InvalidCursor`], [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn traces(
        &self,
        id: &SessionId,
        cursor: Option<&str>,
    ) -> Result<Page<TraceEvent>, EngineError> {
        self.trace_page(id, cursor, TRACE_EVENTS).await
    }

    /// Trace events grouped by turn; `limit` counts events, so a turn may be cut at the older edge.
    ///
    /// # Errors
    ///
    /// As [`Engine::traces`].
    pub async fn trace_turns(
        &self,
        id: &SessionId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<TraceTurn>, EngineError> {
        let page = self
            .trace_page(id, cursor, limit.clamp(1, TRACE_PAGE_MAX))
            .await?;
        Ok(Page {
            items: by_turn(page.items),
            next: page.next,
        })
    }

    async fn trace_page(
        &self,
        id: &SessionId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<TraceEvent>, EngineError> {
        let before = cursor
            .map(|cursor| List::Traces.place(cursor))
            .transpose()?;
        self.session(id).await?;
        let window = self.inner.store.traces_before(id, before, limit).await?;
        Ok(Page::of(List::Traces, window, limit))
    }
}

fn object(record: Record) -> Option<Object> {
    match record.doc {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// The lifecycle events among these, the newest ones.
fn newest_steps(events: Vec<TraceEvent>) -> Vec<TraceEvent> {
    let mut steps: Vec<_> = events
        .into_iter()
        .filter(|event| is_lifecycle(&event.kind))
        .collect();
    steps.drain(..steps.len().saturating_sub(VIEW_STEPS));
    steps
}

/// Groups events by turn, turns in the order of their first event.
fn by_turn(events: Vec<TraceEvent>) -> Vec<TraceTurn> {
    let mut turns: Vec<TraceTurn> = Vec::new();
    for event in events {
        match turns.iter_mut().find(|turn| turn.turn_id == event.turn_id) {
            Some(turn) => turn.events.push(event),
            None => turns.push(TraceTurn {
                turn_id: event.turn_id.clone(),
                events: vec![event],
            }),
        }
    }
    turns
}
