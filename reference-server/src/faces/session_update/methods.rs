//! What is done about a request: one function a method. Each gives a result or a refusal; the engine decides.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use turnwire_spec::session_update::events::TurnStatus;
use turnwire_spec::session_update::limits::{INPUT_CHARS, LISTED};
use turnwire_spec::session_update::methods::{
    Cancel, Deleted, Done, Initialized, ListSessions, NewSession, OfSession, Prompt, Prompted,
    Replayed, SessionInfo, SessionList, StoredMessage, StoredTool, StoredTurn,
};
use turnwire_spec::session_update::{ErrorType, METHODS, PROTOCOL_VERSION};

use super::connection::Client;
use super::errors::Refusal;
use super::requests::{Asked, answer, session_id};
use super::translate::{arguments, task, time, tool_status, turn_status};
use crate::engine::actions::{Action, ActionRequest, PlayerAction};
use crate::engine::history::Facts;
use crate::engine::ids::{PluginId, RequestId, SessionId};
use crate::engine::model::{ExecutionRow, ExecutionState, Message, Role, Session, ToolRecord};
use crate::engine::ports::{TurnEvent, TurnSink};
use crate::engine::sessions;

/// What a server of this kind can do, in the words of `initialize`.
const CAPABILITIES: &[&str] = &["sessions", "subscriptions", "rebuild", "tasks"];

/// What a method gives.
pub(super) type Outcome = Result<Value, Refusal>;

/// Does what is asked. `initialize` and `shutdown` are the connection's own.
pub(super) async fn call(client: &Client, asked: &Asked) -> Outcome {
    match asked.method.as_str() {
        "initialize" => given(initialize()),
        "ping" => given(Done { ok: true }),
        "session/new" => given(new(client, asked.params()?).await?),
        "session/list" => given(list(client, asked.params()?).await?),
        "session/delete" => given(delete(client, asked.params()?).await?),
        "session/subscribe" => {
            let params: OfSession = asked.params()?;
            let id = session_id(&params.session_id)?;
            let (face, outbox) = (&client.face, &client.outbox);
            given(client.subscriptions.rebuild(face, outbox, &id).await?)
        }
        "session/unsubscribe" => {
            let params: OfSession = asked.params()?;
            let id = session_id(&params.session_id)?;
            given(client.subscriptions.leave(&id).await)
        }
        "session/prompt" => given(prompt(client, asked.params()?).await?),
        "session/cancel" => given(cancel(client, asked.params()?).await?),
        "session/replay" => given(replay(client, asked.params()?).await?),
        other => {
            let message = format!("there is no method {other:?}");
            Err(Refusal::new(ErrorType::MethodNotFound, message))
        }
    }
}

fn given(result: impl serde::Serialize) -> Outcome {
    serde_json::to_value(result)
        .map_err(|error| Refusal::new(ErrorType::RuntimeError, error.to_string()))
}

fn initialize() -> Initialized {
    let owned = |text: &&str| (*text).to_owned();
    Initialized {
        protocol_version: PROTOCOL_VERSION.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: CAPABILITIES.iter().map(owned).collect(),
        methods: METHODS.iter().map(|meta| meta.name.to_owned()).collect(),
    }
}

async fn new(client: &Client, params: NewSession) -> Result<SessionInfo, Refusal> {
    let plugins = match params.plugins {
        Some(names) => names.into_iter().map(PluginId::from).collect(),
        None => client.face.plugins.clone(),
    };
    let new = sessions::NewSession {
        plugins: Some(plugins),
        ..sessions::NewSession::default()
    };
    let session = client.face.engine.create_session(new).await?.session;
    let (face, outbox) = (&client.face, &client.outbox);
    client
        .subscriptions
        .follow(face, outbox, &session.key())
        .await?;
    Ok(info(&session))
}

fn info(session: &Session) -> SessionInfo {
    SessionInfo {
        session_id: session.id.to_string(),
        created_at: Some(time(session.created_at)),
    }
}

async fn list(client: &Client, params: ListSessions) -> Result<SessionList, Refusal> {
    let (usual, most) = LISTED;
    let limit = params.limit.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        return Err(Refusal::invalid(format!("limit is not from 1 to {most}")));
    }
    let sessions = client.face.engine.sessions(None).await?;
    let newest = sessions.iter().rev();
    let newest = newest.take(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(SessionList {
        sessions: newest.map(info).collect(),
    })
}

async fn delete(client: &Client, params: OfSession) -> Result<Deleted, Refusal> {
    let id = session_id(&params.session_id)?;
    client.face.engine.delete_session(&id).await?;
    client.subscriptions.leave(&id).await;
    Ok(Deleted {
        ok: true,
        deleted: id.to_string(),
    })
}

/// Plays a turn. However it ends, the answer is that it has: the outcome is in its terminal event.
async fn prompt(client: &Client, params: Prompt) -> Result<Prompted, Refusal> {
    let id = session_id(&params.session_id)?;
    let chars = params.input.chars().count();
    if params.input.trim().is_empty() || chars > INPUT_CHARS {
        let message = format!("input is blank, or longer than {INPUT_CHARS} characters");
        return Err(Refusal::invalid(message));
    }
    let sink = Arc::new(LastWord::default());
    let request = ActionRequest {
        request_id: RequestId::from(client.face.engine.ids().id("request")),
        session_id: id.clone(),
        action: Action::Submit {
            actions: vec![PlayerAction::Say(params.input)],
            input_message_id: None,
        },
        recover_from: None,
        model: None,
    };
    let told: Arc<dyn TurnSink> = Arc::clone(&sink) as Arc<dyn TurnSink>;
    let _running = client.prompts.enter(&id);
    let handle = client.face.engine.begin(request, told).await?;
    let turn_id = handle.turn_id.to_string();
    handle.finished().await;
    match sink.refusal() {
        Some(refusal) => Err(refusal),
        None => Ok(Prompted {
            ok: true,
            session_id: id.to_string(),
            turn_id,
        }),
    }
}

/// Hears whether an action was refused after it was admitted: then its last event is an error.
#[derive(Debug, Default)]
struct LastWord(Mutex<Option<TurnEvent>>);

impl TurnSink for LastWord {
    fn event(&self, event: TurnEvent) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
    }
}

impl LastWord {
    fn refusal(&self) -> Option<Refusal> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last
            .as_ref()
            .filter(|event| event.kind == "error.occurred")?;
        let text = |name: &str| last.payload.get(name).and_then(Value::as_str);
        let kind = match text("code") {
            Some("session_busy") => ErrorType::TurnActive,
            _ => ErrorType::RuntimeError,
        };
        let message = text("message").unwrap_or("the turn was refused");
        Some(Refusal::new(kind, message))
    }
}

async fn cancel(client: &Client, params: Cancel) -> Result<Done, Refusal> {
    let id = session_id(&params.session_id)?;
    if let Some(turn) = &params.turn_id {
        let status = client.face.engine.execution_status(&id).await?;
        let runs = status.state == ExecutionState::Running
            && status
                .turn_id
                .is_some_and(|running| running.as_str() == turn);
        if !runs {
            let message = format!("turn {turn:?} does not run");
            return Err(Refusal::new(ErrorType::TurnNotActive, message));
        }
    }
    client.face.engine.abort(&id).await?;
    Ok(Done { ok: true })
}

async fn replay(client: &Client, params: OfSession) -> Result<Replayed, Refusal> {
    let id = session_id(&params.session_id)?;
    let facts = client.face.engine.facts(&id).await?;
    Ok(stored(&id, &facts))
}

fn stored(id: &SessionId, facts: &Facts) -> Replayed {
    let turns: Vec<StoredTurn> = facts.turns.iter().map(stored_turn).collect();
    Replayed {
        session_id: id.to_string(),
        messages: facts.messages.iter().map(stored_message).collect(),
        tools: facts.tools.iter().map(stored_tool).collect(),
        turn_state: turns.last().cloned(),
        turns,
        tasks: facts.jobs.iter().map(task).collect(),
    }
}

fn stored_message(message: &Message) -> StoredMessage {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    };
    StoredMessage {
        role: role.to_owned(),
        content: message.content.clone(),
        turn_id: message
            .turn_id
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
    }
}

fn stored_tool(record: &ToolRecord) -> StoredTool {
    StoredTool {
        turn_id: record.turn_id.to_string(),
        tool_call_id: record.call_id.clone(),
        tool_name: record.name.clone(),
        arguments: arguments(record),
        status: record
            .end
            .as_ref()
            .map(|end| tool_status(end.outcome).to_string()),
        result: record.end.as_ref().map(|end| end.result.clone()),
    }
}

fn stored_turn(row: &ExecutionRow) -> StoredTurn {
    let status = turn_status(row.end.as_ref());
    let at = match (status, &row.end) {
        (TurnStatus::Running, _) | (_, None) => row.started_at,
        (_, Some(end)) => end.ended_at,
    };
    StoredTurn {
        turn_id: row.turn_id.to_string(),
        status,
        ts: time(at),
    }
}

/// The line that answers with this result.
pub(super) fn response(
    request_id: &turnwire_spec::session_update::RequestId,
    result: &Value,
) -> String {
    answer(request_id, "result", result)
}
