//! `POST /api/actions`: the five types of action, and what a server refuses before it opens a stream.
//!
//! [`ActionRequest::parse`] reads a body as far as no session is needed. The item shape of
//! `submit_actions` is in no readable source, so [`Action`] is ours.
//!
//! Source: seed 000, lines 855-932; bounds are public.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::covel::limits::{
    ACTIONS, COMMAND_CHARS, LORE_CHARS, MODEL_CHARS, REQUEST_ID_CHARS, RETRY_RUNTIMES,
    RUNTIME_ID_CHARS, SAY_CHARS, SESSION_ID_CHARS, SUBMISSIONS, TURN_ID_CHARS,
};
use crate::covel::shape::{Object, shape};
use crate::words::words;

words! {
    /// What an action asks for.
    ///
    /// Source: seed 000, lines 862-866.
    "action type" enum ActionType {
        /// A new turn from what the player says, does, commands and answers.
        SubmitActions = "submit_actions",
        /// The setup and the opening of a session.
        StartSession = "start_session",
        /// A new turn from the committed context.
        RetryTurn = "retry_turn",
        /// One runtime again.
        RetryRuntime = "retry_runtime",
        /// The failed runtimes of one turn again.
        RetryFailedRuntimes = "retry_failed_runtimes",
    }
}

shape! {
    /// The body of an action. Unknown members are refused.
    #[serde(deny_unknown_fields)]
    struct ActionRequest {
        /// The id of the request, chosen by the client; every frame repeats it.
        #[schemars(length(min = 1, max = REQUEST_ID_CHARS), regex(pattern = ID))]
        request_id: String,
        /// The session.
        #[schemars(length(min = 1, max = SESSION_ID_CHARS), regex(pattern = ID))]
        session_id: String,
        /// What is asked for.
        r#type: ActionType,
        /// The members of the type: [`SubmitActions`], [`StartSession`] and so on.
        payload: Object,
        /// The model to use, without control characters.
        #[schemars(length(min = 1, max = MODEL_CHARS))]
        model?: String,
    }
}

/// Request and session ids: a letter or digit, then these and `. _ : / -`. Public.
const ID: &str = "^[A-Za-z0-9][A-Za-z0-9._:/-]*$";

shape! {
    /// The payload of `submit_actions`.
    #[serde(deny_unknown_fields)]
    struct SubmitActions {
        /// What the player does, in order.
        #[schemars(length(min = 1, max = ACTIONS))]
        actions: Vec<Action>,
        /// The id of the player's message, which the client has saved already.
        #[schemars(length(min = 1))]
        input_message_id?: String,
        /// The turn that this recovers; must match what the server described.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        recover_from_turn_id?: String,
    }
}

/// One thing that a player does. Ours: the sources name the four kinds and not their members.
#[derive(Clone, Debug, Deserialize, PartialEq, schemars::JsonSchema, Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[serde(deny_unknown_fields)]
pub enum Action {
    /// The player speaks.
    Say {
        /// What is said.
        #[schemars(length(min = 1, max = SAY_CHARS))]
        text: String,
    },
    /// The player acts.
    Act {
        /// What is done.
        #[schemars(length(min = 1, max = SAY_CHARS))]
        text: String,
    },
    /// The player enters a slash command that no plugin knows.
    Command {
        /// The command line.
        #[schemars(length(min = 1, max = COMMAND_CHARS))]
        command: String,
    },
    /// The player answers what a turn asked.
    Interaction {
        /// The turn that asked.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        turn_id: String,
        /// The answers.
        #[schemars(length(min = 1, max = SUBMISSIONS))]
        submissions: Vec<Submission>,
    },
}

shape! {
    /// The answer to one interaction. Public.
    struct Submission {
        /// The interaction.
        #[schemars(length(min = 1))]
        interaction_id: String,
        /// Its type.
        r#type: InteractionType,
        /// The values, by field; for a choice `selectedId`, for a confirmation `confirmed`.
        values: Object,
    }
}

words! {
    /// What a player is asked for. Public.
    "interaction type" enum InteractionType {
        /// Values for fields.
        Form = "form",
        /// One of several options.
        Choice = "choice",
        /// Yes or no.
        Confirmation = "confirmation",
    }
}

shape! {
    /// The payload of `start_session`.
    #[serde(deny_unknown_fields)]
    struct StartSession {
        /// Replaces the world's lore; empty clears the replacement.
        #[schemars(length(max = LORE_CHARS))]
        lore_override?: String,
        /// The turn that this recovers; must match what the server described.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        recover_from_turn_id?: String,
    }
}

shape! {
    /// The payload of `retry_turn`; empty outside a recovery.
    #[serde(deny_unknown_fields)]
    struct RetryTurn {
        /// The turn that this recovers; must match what the server described.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        recover_from_turn_id?: String,
    }
}

shape! {
    /// The payload of `retry_runtime`.
    #[serde(deny_unknown_fields)]
    struct RetryRuntime {
        /// The runtime.
        #[schemars(length(min = 1, max = RUNTIME_ID_CHARS))]
        runtime_id: String,
        /// The committed turn in which it failed; without it, the call is an ordinary manual one.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        retry_from_turn_id?: String,
        /// The turn that this recovers; must match what the server described.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        recover_from_turn_id?: String,
    }
}

shape! {
    /// The payload of `retry_failed_runtimes`.
    #[serde(deny_unknown_fields)]
    struct RetryFailedRuntimes {
        /// The committed turn in which they failed.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        retry_from_turn_id: String,
        /// The runtimes, each once.
        #[schemars(length(min = 1, max = RETRY_RUNTIMES), extend("uniqueItems" = true))]
        runtime_ids: Vec<String>,
        /// The turn that this recovers; must match what the server described.
        #[schemars(length(min = 1, max = TURN_ID_CHARS))]
        recover_from_turn_id?: String,
    }
}

/// An action whose payload was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `submit_actions`.
    SubmitActions(SubmitActions),
    /// `start_session`.
    StartSession(StartSession),
    /// `retry_turn`.
    RetryTurn(RetryTurn),
    /// `retry_runtime`.
    RetryRuntime(RetryRuntime),
    /// `retry_failed_runtimes`.
    RetryFailedRuntimes(RetryFailedRuntimes),
}

/// Why a body is no action. A server answers each with 400 and the code `invalid_action_request`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionFault {
    /// The type is none of the five. The message is the seed's (line 868).
    #[error("Unsupported action type: {0}")]
    UnsupportedType(String),
    /// A member is missing, unknown, of another type or out of bounds.
    #[error("{0}")]
    Invalid(String),
}

impl ActionRequest {
    /// Reads the body of an action: first the type, then the rest, as the public server does.
    ///
    /// # Errors
    ///
    /// [`ActionFault::UnsupportedType`] when `type` is a text that names no action;
    /// [`ActionFault::Invalid`] for everything else, with the first problem.
    pub fn parse(body: &Value) -> Result<(Self, Command), ActionFault> {
        if let Some(name) = body.get("type").and_then(Value::as_str) {
            let unsupported = |_| ActionFault::UnsupportedType(name.to_owned());
            name.parse::<ActionType>().map_err(unsupported)?;
        }
        no_null(body)?;
        no_null(&body["payload"])?;
        let request = Self::deserialize(body).map_err(invalid)?;
        request.check()?;
        let command = request.command()?;
        Ok((request, command))
    }

    /// Reads the payload of the request's type.
    ///
    /// # Errors
    ///
    /// [`ActionFault::Invalid`] with the first problem.
    pub fn command(&self) -> Result<Command, ActionFault> {
        let command = match self.r#type {
            ActionType::SubmitActions => Command::SubmitActions(self.read()?),
            ActionType::StartSession => Command::StartSession(self.read()?),
            ActionType::RetryTurn => Command::RetryTurn(self.read()?),
            ActionType::RetryRuntime => Command::RetryRuntime(self.read()?),
            ActionType::RetryFailedRuntimes => Command::RetryFailedRuntimes(self.read()?),
        };
        command.check()?;
        Ok(command)
    }

    fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ActionFault> {
        T::deserialize(&self.payload)
            .map_err(|error| ActionFault::Invalid(format!("payload: {error}")))
    }

    fn check(&self) -> Result<(), ActionFault> {
        id("requestId", &self.request_id, REQUEST_ID_CHARS)?;
        id("sessionId", &self.session_id, SESSION_ID_CHARS)?;
        if let Some(model) = &self.model {
            text("model", model, 1, MODEL_CHARS)?;
            require(!model.chars().any(char::is_control), || {
                "model has a control character".into()
            })?;
        }
        Ok(())
    }
}

/// A member that may be absent is never null.
fn no_null(object: &Value) -> Result<(), ActionFault> {
    let mut members = object.as_object().into_iter().flatten();
    match members.find(|(_, value)| value.is_null()) {
        Some((name, _)) => Err(ActionFault::Invalid(format!("{name} is null"))),
        None => Ok(()),
    }
}

impl Command {
    /// The turn that the action recovers, if it does.
    #[must_use]
    pub fn recover_from_turn_id(&self) -> Option<&str> {
        match self {
            Self::SubmitActions(payload) => &payload.recover_from_turn_id,
            Self::StartSession(payload) => &payload.recover_from_turn_id,
            Self::RetryTurn(payload) => &payload.recover_from_turn_id,
            Self::RetryRuntime(payload) => &payload.recover_from_turn_id,
            Self::RetryFailedRuntimes(payload) => &payload.recover_from_turn_id,
        }
        .as_deref()
    }

    fn check(&self) -> Result<(), ActionFault> {
        if let Some(turn) = self.recover_from_turn_id() {
            text("recoverFromTurnId", turn, 1, TURN_ID_CHARS)?;
        }
        match self {
            Self::SubmitActions(payload) => {
                count("actions", payload.actions.len(), ACTIONS)?;
                if let Some(id) = &payload.input_message_id {
                    text("inputMessageId", id, 1, usize::MAX)?;
                }
                payload.actions.iter().try_for_each(Action::check)
            }
            Self::StartSession(payload) => text(
                "loreOverride",
                payload.lore_override.as_deref().unwrap_or(""),
                0,
                LORE_CHARS,
            ),
            Self::RetryTurn(_) => Ok(()),
            Self::RetryRuntime(payload) => {
                text("runtimeId", &payload.runtime_id, 1, RUNTIME_ID_CHARS)?;
                let turn = payload.retry_from_turn_id.as_deref();
                turn.map_or(Ok(()), |turn| {
                    text("retryFromTurnId", turn, 1, TURN_ID_CHARS)
                })
            }
            Self::RetryFailedRuntimes(payload) => payload.check(),
        }
    }
}

impl RetryFailedRuntimes {
    fn check(&self) -> Result<(), ActionFault> {
        text(
            "retryFromTurnId",
            &self.retry_from_turn_id,
            1,
            TURN_ID_CHARS,
        )?;
        count("runtimeIds", self.runtime_ids.len(), RETRY_RUNTIMES)?;
        for (at, id) in self.runtime_ids.iter().enumerate() {
            text("runtimeIds", id, 1, RUNTIME_ID_CHARS)?;
            require(!self.runtime_ids[..at].contains(id), || {
                format!("runtimeIds has {id:?} twice")
            })?;
        }
        Ok(())
    }
}

impl Action {
    fn check(&self) -> Result<(), ActionFault> {
        match self {
            Self::Say { text: said } | Self::Act { text: said } => text("text", said, 1, SAY_CHARS),
            Self::Command { command } => text("command", command, 1, COMMAND_CHARS),
            Self::Interaction {
                turn_id,
                submissions,
            } => {
                text("turnId", turn_id, 1, TURN_ID_CHARS)?;
                count("submissions", submissions.len(), SUBMISSIONS)?;
                let ids = submissions
                    .iter()
                    .map(|submission| &submission.interaction_id);
                ids.into_iter()
                    .try_for_each(|id| text("interactionId", id, 1, usize::MAX))
            }
        }
    }
}

fn invalid(error: serde_json::Error) -> ActionFault {
    ActionFault::Invalid(error.to_string())
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), ActionFault> {
    if holds {
        Ok(())
    } else {
        Err(ActionFault::Invalid(otherwise()))
    }
}

/// A text has from `min` to `max` characters.
fn text(name: &str, value: &str, min: usize, max: usize) -> Result<(), ActionFault> {
    let chars = value.chars().count();
    require((min..=max).contains(&chars), || match max {
        usize::MAX => format!("{name} is empty"),
        _ => format!("{name} has {chars} characters, expected {min} to {max}"),
    })
}

/// An id is a text of the one alphabet.
fn id(name: &str, value: &str, max: usize) -> Result<(), ActionFault> {
    text(name, value, 1, max)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
    let begins = value.starts_with(|first: char| first.is_ascii_alphanumeric());
    require(begins && value.bytes().all(allowed), || {
        format!("{name} {value:?} is no id")
    })
}

/// A list has from 1 to `max` items.
fn count(name: &str, items: usize, max: usize) -> Result<(), ActionFault> {
    require((1..=max).contains(&items), || {
        format!("{name} has {items} items, expected 1 to {max}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(kind: &str, payload: Value) -> Value {
        json!({ "requestId": "rq-1", "sessionId": "s-1", "type": kind, "payload": payload })
    }

    fn fault(body: &Value) -> String {
        ActionRequest::parse(body).unwrap_err().to_string()
    }

    #[test]
    fn a_say_is_read() {
        let body = request(
            "submit_actions",
            json!({ "actions": [{ "type": "say", "text": "Hello." }] }),
        );
        let (request, command) = ActionRequest::parse(&body).unwrap();
        assert_eq!(request.request_id, "rq-1");
        let Command::SubmitActions(payload) = command else {
            panic!("{command:?}")
        };
        assert_eq!(
            payload.actions,
            [Action::Say {
                text: "Hello.".into()
            }]
        );
    }

    #[test]
    fn a_type_outside_the_five_is_named() {
        for kind in ["send_message", "execute_command", "submit_interaction", ""] {
            assert_eq!(
                fault(&request(kind, json!({}))),
                format!("Unsupported action type: {kind}")
            );
        }
    }

    #[test]
    fn every_type_has_its_payload() {
        for (kind, payload) in [
            ("start_session", json!({ "loreOverride": "" })),
            ("retry_turn", json!({ "recoverFromTurnId": "t-1" })),
            ("retry_runtime", json!({ "runtimeId": "r" })),
            (
                "retry_failed_runtimes",
                json!({ "retryFromTurnId": "t-1", "runtimeIds": ["a", "b"] }),
            ),
        ] {
            assert!(
                ActionRequest::parse(&request(kind, payload)).is_ok(),
                "{kind}"
            );
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let say = |text: String| {
            request(
                "submit_actions",
                json!({ "actions": [{ "type": "say", "text": text }] }),
            )
        };
        let retry = |ids: Value| {
            request(
                "retry_failed_runtimes",
                json!({ "retryFromTurnId": "t", "runtimeIds": ids }),
            )
        };
        let mut bad_id = say("Hello.".into());
        bad_id["requestId"] = json!("-1");
        for (body, expected) in [
            (
                say(String::new()),
                "text has 0 characters, expected 1 to 100000",
            ),
            (
                say("x".repeat(100_001)),
                "text has 100001 characters, expected 1 to 100000",
            ),
            (
                request("submit_actions", json!({ "actions": [] })),
                "actions has 0 items, expected 1 to 20",
            ),
            (retry(json!(["a", "a"])), "runtimeIds has \"a\" twice"),
            (retry(json!([])), "runtimeIds has 0 items, expected 1 to 20"),
            (bad_id, "requestId \"-1\" is no id"),
        ] {
            assert_eq!(fault(&body), expected);
        }
    }

    #[test]
    fn unknown_members_are_refused() {
        let body = request("retry_turn", json!({ "x": 1 }));
        assert!(fault(&body).starts_with("payload: unknown field `x`"));
        let mut body = request("retry_turn", json!({}));
        body["locale"] = json!("en");
        assert!(fault(&body).starts_with("unknown field `locale`"));
    }

    #[test]
    fn a_body_that_is_no_request_is_refused() {
        for body in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "type": 1 }),
            json!("x"),
        ] {
            assert!(
                matches!(ActionRequest::parse(&body), Err(ActionFault::Invalid(_))),
                "{body}"
            );
        }
    }
}
