//! What happens in a session, in the engine's own words: for faces that tell a turn as it goes.
//!
//! The Covel face has events of its own (`events`); every other face translates [`Happening`]s. Those that a
//! stored fact stands behind are *facts* ([`Happened::is_fact`]): their id and time are made from what is
//! stored, so that [`history`](super::history) gives them again exactly as they were told. The others are for
//! those who listen at the moment, and are gone then.
//!
//! Source: seed 002, lines 3, 16-18 and 22-27.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use turnwire_spec::covel::payloads::models::Usage;
use turnwire_spec::covel::vocabulary::StopReason;

use super::ids::{MessageId, SessionKey, TurnId, hex};
use super::model::{ExecutionRow, Job, Message, Object, ToolRecord};
use crate::gateway::ErrorKind;

/// One thing that happened in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// Its identity: 32 hexadecimal digits, the same for everybody who hears of it.
    pub event_id: String,
    /// The session, and which life of it.
    pub session: SessionKey,
    /// The turn that it belongs to; `None` for what belongs to no turn, such as a background job.
    pub turn_id: Option<TurnId>,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub what: Happened,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// A turn began: its row and the player's input are stored.
    TurnStarted {
        /// Length of the player's input in characters; 0 without input.
        input_chars: u64,
        /// The player's message that it answers.
        input: Option<MessageId>,
    },
    /// A piece of text for the reader.
    Text {
        /// The piece, as the model gave it.
        delta: String,
    },
    /// The text since the last step is void: the model is asked again, or the text stood beside tool calls.
    TextVoided {
        /// The step or attempt, from 1.
        attempt: u32,
        /// Why, in one word.
        reason: &'static str,
    },
    /// The model began to write the arguments of a tool call.
    ToolInputStarted(ToolName),
    /// A piece of these arguments.
    ToolInput {
        /// Which call.
        call: ToolName,
        /// The piece, as the model gave it.
        delta: String,
    },
    /// The arguments are complete.
    ToolInputEnded(ToolName),
    /// A tool was asked for; the record is stored.
    ToolRequested(ToolRecord),
    /// The tool began to work.
    ToolStarted(ToolName),
    /// The tool tells how far it is.
    ToolProgress {
        /// Which call.
        call: ToolName,
        /// What it tells.
        payload: Object,
    },
    /// The tool has ended; the record with its result is stored.
    ToolEnded(ToolRecord),
    /// What one call of the model cost.
    Usage(Usage),
    /// A message of the turn was committed.
    MessageCompleted(Message),
    /// The turn has ended; its row says how.
    TurnEnded(ExecutionRow),
    /// A background job changed.
    Task(Job),
    /// A runtime of the turn failed; told before the end of the turn.
    RuntimeFailed {
        /// Why, for people.
        error: String,
        /// The category, when a model failed.
        kind: Option<ErrorKind>,
        /// How its tool loop ended.
        stop: Option<StopReason>,
    },
    /// The text that waited in the session's queue was taken; without it, a repetition was thrown away.
    QueueTaken {
        /// The text, which is said now.
        text: Option<String>,
    },
    /// A slash command was run.
    CommandDone {
        /// A turn of its own, in which nothing else happens.
        turn: TurnId,
        /// What came of it, in words.
        note: String,
        /// Whether it could be run.
        success: bool,
    },
    /// A background task that the session waited for was killed.
    TaskKilled {
        /// What was killed, where that is known.
        summary: Option<String>,
    },
    /// The session was deleted.
    Deleted,
}

/// A tool call that is under way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolName {
    /// The provider's id of the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
}

impl Happened {
    /// Whether a stored fact stands behind it, so that it can be told again.
    #[must_use]
    pub fn is_fact(&self) -> bool {
        match self {
            Self::TurnStarted { .. }
            | Self::ToolRequested(_)
            | Self::ToolEnded(_)
            | Self::MessageCompleted(_)
            | Self::TurnEnded(_) => true,
            Self::Task(job) => job.status.is_final(),
            _ => false,
        }
    }
}

impl Happening {
    /// The start of the execution of this row.
    pub(super) fn turn_started(
        session: &SessionKey,
        row: &ExecutionRow,
        input: Option<&str>,
    ) -> Self {
        let what = Happened::TurnStarted {
            input_chars: input.map_or(0, |text| text.chars().count() as u64),
            input: row.input_message_id.clone(),
        };
        Self::fact(session, &row.turn_id, "", row.started_at, what)
    }

    /// The end of the execution of this row; `None` while it has none.
    pub(super) fn turn_ended(session: &SessionKey, row: &ExecutionRow) -> Option<Self> {
        let ended_at = row.end.as_ref()?.ended_at;
        let what = Happened::TurnEnded(row.clone());
        Some(Self::fact(session, &row.turn_id, "", ended_at, what))
    }

    /// That a tool was asked for.
    pub(super) fn tool_requested(session: &SessionKey, record: &ToolRecord) -> Self {
        let asked = ToolRecord {
            end: None,
            ..record.clone()
        };
        let (key, what) = (record.nth.to_string(), Happened::ToolRequested(asked));
        Self::fact(session, &record.turn_id, &key, record.requested_at, what)
    }

    /// The end of a tool call; `None` while it has none.
    pub(super) fn tool_ended(session: &SessionKey, record: &ToolRecord) -> Option<Self> {
        let ended_at = record.end.as_ref()?.ended_at;
        let (key, what) = (record.nth.to_string(), Happened::ToolEnded(record.clone()));
        Some(Self::fact(session, &record.turn_id, &key, ended_at, what))
    }

    /// A committed message of a turn; `None` for one that belongs to no turn.
    pub(super) fn message_completed(session: &SessionKey, message: &Message) -> Option<Self> {
        let turn = message.turn_id.as_ref()?;
        let what = Happened::MessageCompleted(message.clone());
        let (key, at) = (message.id.as_str(), message.created_at);
        Some(Self::fact(session, turn, key, at, what))
    }

    /// A change of a job. Its id is made from the job and the number of the change.
    pub(super) fn task(session: &SessionKey, job: &Job) -> Self {
        let key = format!("{}#{}", job.id, job.sequence);
        Self {
            event_id: event_id(session, "task", &key),
            session: session.clone(),
            turn_id: None,
            at: job.updated_at,
            what: Happened::Task(job.clone()),
        }
    }

    /// Something that no stored fact stands behind; `nonce` is a text that was never used before.
    pub(crate) fn passing(
        session: &SessionKey,
        turn: Option<&TurnId>,
        nonce: &str,
        at: Timestamp,
        what: Happened,
    ) -> Self {
        Self {
            event_id: event_id(session, "passing", nonce),
            session: session.clone(),
            turn_id: turn.cloned(),
            at,
            what,
        }
    }

    fn fact(session: &SessionKey, turn: &TurnId, key: &str, at: Timestamp, what: Happened) -> Self {
        let kind = match &what {
            Happened::TurnStarted { .. } => "turn-started",
            Happened::ToolRequested(_) => "tool-requested",
            Happened::ToolEnded(_) => "tool-ended",
            Happened::MessageCompleted(_) => "message",
            _ => "turn-ended",
        };
        Self {
            event_id: event_id(session, kind, &format!("{turn}#{key}")),
            session: session.clone(),
            turn_id: Some(turn.clone()),
            at,
            what,
        }
    }
}

/// Half a SHA-256 over what the event is about: nothing else in the session has this id.
fn event_id(session: &SessionKey, kind: &str, key: &str) -> String {
    let about = format!("{}\n{}\n{kind}\n{key}", session.id, session.incarnation);
    hex(&Sha256::digest(about.as_bytes())[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::Incarnation;
    use crate::engine::model::Origin;

    fn key() -> SessionKey {
        SessionKey {
            id: "s".into(),
            incarnation: Incarnation::of_nonce(b"life"),
        }
    }

    fn row() -> ExecutionRow {
        ExecutionRow {
            session_id: "s".into(),
            turn_id: "t-1".into(),
            logical_turn_id: "t-1".into(),
            request_id: "r".into(),
            trace_id: "tr".into(),
            origin: Origin::Player,
            retry: None,
            input_message_id: None,
            started_at: Timestamp::UNIX_EPOCH,
            end: None,
        }
    }

    #[test]
    fn a_fact_has_the_same_id_however_often_it_is_told() {
        let told = Happening::turn_started(&key(), &row(), Some("héllo"));
        let again = Happening::turn_started(&key(), &row(), Some("héllo"));

        assert_eq!(told, again);
        assert_eq!(told.event_id.len(), 32);
        assert!(matches!(
            told.what,
            Happened::TurnStarted { input_chars: 5, .. }
        ));
    }

    #[test]
    fn what_passes_has_an_id_of_its_own() {
        let now = Timestamp::UNIX_EPOCH;
        let text = || Happened::Text { delta: "x".into() };
        let one = Happening::passing(&key(), None, "1", now, text());
        let two = Happening::passing(&key(), None, "2", now, text());

        assert_ne!(one.event_id, two.event_id);
        assert!(!one.what.is_fact());
    }

    #[test]
    fn a_turn_without_an_end_has_not_ended() {
        assert_eq!(Happening::turn_ended(&key(), &row()), None);
    }
}
