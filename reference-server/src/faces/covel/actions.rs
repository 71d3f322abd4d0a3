//! `POST /api/actions`: what the player does, answered by the stream of its turns.
//!
//! Everything that is wrong with a request is found before the stream opens. After that the engine
//! runs the action to its end whoever listens; a sink turns its events into frames and never makes it
//! wait.
//!
//! Source: seed 000, lines 855-960; covel.md of the fact collection, section 2.2.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use turnwire_spec::covel::commands::{Action, ActionFault, ActionRequest, Command};
use turnwire_spec::covel::envelope::SseEnvelope;
use turnwire_spec::covel::limits::ACTIONS_PER_WINDOW;

use super::Covel;
use super::errors::ApiError;
use super::frames;
use super::request::{self, Query};
use crate::engine::actions::{self as engine, PlayerAction};
use crate::engine::ids::{MessageId, RequestId, SessionId, TurnId};
use crate::engine::model::Object;
use crate::engine::ports::{TurnEvent, TurnSink};
use crate::faces::connection::Connection;
use crate::faces::http_stream;
use crate::faces::writer::{FrameQueue, WriteLimits};

/// The code of a request that makes no sense.
const INVALID: &str = "invalid_action_request";

/// Admits an action and answers with its stream.
pub(super) async fn act(
    State(face): State<Arc<Covel>>,
    Extension(connection): Extension<Connection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    face.rates
        .count(connection.peer().ip(), "/api/actions", ACTIONS_PER_WINDOW)?;
    let body = request::object(body).await?;
    let (wanted, command) = ActionRequest::parse(&body)
        .map_err(|fault: ActionFault| ApiError::bad(INVALID, fault.to_string()))?;
    let session = face
        .engine
        .session(&SessionId::from(wanted.session_id.as_str()))
        .await?;
    let query = Query::parse(query.as_deref().unwrap_or_default());
    face.guard.owner(&session, &headers, &query)?;
    let request = engine::ActionRequest {
        request_id: RequestId::from(wanted.request_id),
        session_id: session.id,
        recover_from: command.recover_from_turn_id().map(TurnId::from),
        action: action(command)?,
        model: wanted.model,
    };
    Ok(stream(&face, &connection, request).await)
}

/// Starts the action and opens its stream; an action that is refused opens none.
async fn stream(face: &Covel, connection: &Connection, request: engine::ActionRequest) -> Response {
    let (queue, response) = http_stream::open(connection, WriteLimits::at(face.scale));
    let sink = Arc::new(ActionSink::new(
        queue.clone(),
        &request.request_id,
        &request.session_id,
    ));
    match face.engine.begin(request, sink).await {
        Ok(action) => {
            tokio::spawn(async move {
                action.finished().await;
                queue.finish().await;
            });
            response
        }
        Err(error) => {
            queue.abandon();
            ApiError::from(error).into_response()
        }
    }
}

/// Writes the events of one action as frames. Everything about a frame is fixed when it is queued.
struct ActionSink {
    queue: FrameQueue,
    request_id: String,
    session_id: String,
    next_seq: Mutex<u64>,
}

impl ActionSink {
    fn new(queue: FrameQueue, request: &RequestId, session: &SessionId) -> Self {
        Self {
            queue,
            request_id: request.as_str().to_owned(),
            session_id: session.as_str().to_owned(),
            next_seq: Mutex::new(0),
        }
    }
}

impl TurnSink for ActionSink {
    fn event(&self, event: TurnEvent) {
        let mut seq = self.next_seq.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = frames::action(&SseEnvelope {
            event: event.kind.to_owned(),
            request_id: self.request_id.clone(),
            trace_id: event.trace_id.as_str().to_owned(),
            session_id: self.session_id.clone(),
            turn_id: event.turn_id.as_str().to_owned(),
            flow_id: event.trace_id.as_str().to_owned(),
            seq: *seq,
            timestamp: frames::timestamp(event.timestamp),
            payload: event.payload,
        });
        *seq += 1;
        // A client that is gone changes nothing for the action. The lock is held until the frame is
        // queued, so that the numbers on the wire rise.
        if self.queue.push(frame).is_err() {
            tracing::trace!(
                request = self.request_id,
                "an event of an action has no reader"
            );
        }
    }
}

/// What the engine is asked for.
///
/// Single runtimes are not run again by this server: a turn in which one failed was not committed, so
/// there is nothing to build on.
fn action(command: Command) -> Result<engine::Action, ApiError> {
    match command {
        Command::SubmitActions(payload) => Ok(engine::Action::Submit {
            actions: payload.actions.into_iter().map(player_action).collect(),
            input_message_id: payload.input_message_id.map(MessageId::from),
        }),
        Command::StartSession(payload) => Ok(engine::Action::StartSession {
            lore: payload.lore_override,
        }),
        Command::RetryTurn(_) => Ok(engine::Action::RetryTurn),
        Command::RetryRuntime(_) | Command::RetryFailedRuntimes(_) => {
            let error = "no failed runtime of a committed turn is left to run again";
            Err(ApiError::new(
                StatusCode::CONFLICT,
                "recovery_refused",
                error,
            ))
        }
    }
}

fn player_action(action: Action) -> PlayerAction {
    match action {
        Action::Say { text } => PlayerAction::Say(text),
        Action::Act { text } => PlayerAction::Act(text),
        Action::Command { command } => PlayerAction::Command(command),
        Action::Interaction {
            turn_id,
            submissions,
        } => PlayerAction::Interaction(Object::from_iter([
            ("turnId".to_owned(), turn_id.into()),
            ("submissions".to_owned(), json!(submissions)),
        ])),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::engine::ids::TraceId;
    use crate::faces::test_wire::{self, NEVER};

    fn event(turn: &str, number: u64) -> TurnEvent {
        TurnEvent {
            kind: "narrative.delta",
            turn_id: TurnId::from(turn),
            trace_id: TraceId::from("tr-1"),
            payload: Object::from_iter([("number".to_owned(), number.into())]),
            timestamp: Timestamp::UNIX_EPOCH,
            forwarded: false,
        }
    }

    fn envelope(frame: &bytes::Bytes) -> SseEnvelope {
        let text = std::str::from_utf8(frame).unwrap();
        serde_json::from_str(text.strip_prefix("data: ").unwrap()).unwrap()
    }

    /// COV-LIM-035 and COV-LIM-036.
    #[tokio::test(start_paused = true)]
    async fn number_turn_and_trace_of_a_frame_are_those_of_the_moment_it_was_queued() {
        let slow = Duration::from_millis(100);
        let (queue, seen) = test_wire::start(move |_| slow, None, Duration::ZERO);
        let sink = ActionSink::new(queue.clone(), &"rq".into(), &"s".into());
        sink.event(event("t-1", 1));
        sink.event(event("t-1", 2));
        sink.event(event("t-2", 3));
        queue.finish().await;

        let written: Vec<_> = seen.written().iter().map(envelope).collect();
        let seen: Vec<_> = written
            .iter()
            .map(|one| (one.seq, one.turn_id.as_str()))
            .collect();
        assert_eq!(seen, [(0, "t-1"), (1, "t-1"), (2, "t-2")]);
        assert!(
            written
                .iter()
                .all(|one| one.trace_id == "tr-1" && one.flow_id == "tr-1")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_gone_changes_nothing_for_the_action() {
        let (queue, _seen) = test_wire::start(|_| NEVER, None, Duration::ZERO);
        let sink = ActionSink::new(queue.clone(), &"rq".into(), &"s".into());
        for number in 0..1000 {
            sink.event(event("t-1", number));
        }

        assert!(queue.push(bytes::Bytes::new()).is_err());
    }
}
