//! What happened in a session, told again from what is stored: turns, tool calls, messages, ended jobs.
//!
//! There is no log of events. [`Engine::history`] reads the facts and gives the [`Happening`]s that were told
//! when they became facts, with the same ids and times, in the order in which they were told.
//!
//! Source: seed 002, lines 13-14 and 18.

use std::collections::BTreeMap;

use super::happening::Happening;
use super::ids::{MessageId, SessionId, SessionKey, TurnId};
use super::model::{ExecutionEnd, ExecutionRow, Job, Message, Role, ToolRecord};
use super::{Engine, EngineError};

/// Why a turn has no result that was interrupted.
pub const INTERRUPTED: &str = "interrupted";
/// What a person reads of it.
const INTERRUPTED_TEXT: &str = "The turn was interrupted";

/// What is stored of a session.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The session, and which life of it.
    pub session: SessionKey,
    /// Its executions, in the order in which they began. One that nobody runs any more has an end.
    pub turns: Vec<ExecutionRow>,
    /// Its messages, oldest first.
    pub messages: Vec<Message>,
    /// Its tool calls, in the order in which they were asked for.
    pub tools: Vec<ToolRecord>,
    /// Its jobs, by the time they were queued.
    pub jobs: Vec<Job>,
}

impl Engine {
    /// What is stored of a session.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn facts(&self, id: &SessionId) -> Result<Facts, EngineError> {
        let session = self.session(id).await?.key();
        let store = &self.inner.store;
        let mut turns = store.executions(id).await?;
        for row in turns.iter_mut().filter(|row| row.end.is_none()) {
            self.close_if_interrupted(id, row).await?;
        }
        Ok(Facts {
            session,
            turns,
            messages: store.messages(id).await?,
            tools: store.tool_calls(id).await?,
            jobs: store.jobs(id).await?,
        })
    }

    /// What happened in a session, from its stored facts.
    ///
    /// # Errors
    ///
    /// As [`Engine::facts`].
    pub async fn history(&self, id: &SessionId) -> Result<Vec<Happening>, EngineError> {
        Ok(self.facts(id).await?.happenings())
    }

    /// Gives an end to the row of an execution that nobody runs any more. An action leaves the list of those
    /// under way only after its end is stored, so the row is read again once it is not on the list.
    async fn close_if_interrupted(
        &self,
        id: &SessionId,
        row: &mut ExecutionRow,
    ) -> Result<(), EngineError> {
        let runs = |turn: &TurnId| {
            let current = self.inner.active.current(id);
            current.is_some_and(|control| control.turn_id() == *turn)
        };
        if runs(&row.turn_id) {
            return Ok(());
        }
        let now = self.inner.store.execution(id, &row.turn_id).await?;
        row.end = now.and_then(|row| row.end).or_else(|| {
            Some(ExecutionEnd {
                committed: false,
                error: Some(INTERRUPTED_TEXT.to_owned()),
                abort_reason: Some(INTERRUPTED.to_owned()),
                ended_at: row.started_at,
            })
        });
        Ok(())
    }
}

impl Facts {
    /// What happened, in the order in which it was told.
    #[must_use]
    pub fn happenings(&self) -> Vec<Happening> {
        let texts: BTreeMap<&MessageId, &str> = self
            .messages
            .iter()
            .map(|message| (&message.id, message.content.as_str()))
            .collect();
        let mut ended: Vec<&Job> = self
            .jobs
            .iter()
            .filter(|job| job.status.is_final())
            .collect();
        ended.sort_by_key(|job| (job.finished_at, job.id.clone()));
        let mut ended = ended.into_iter().peekable();
        let mut told = Vec::new();
        for row in &self.turns {
            while let Some(job) = ended.next_if(|job| job.finished_at < Some(row.started_at)) {
                told.push(Happening::task(&self.session, job));
            }
            let input = row.input_message_id.as_ref().and_then(|id| texts.get(id));
            told.push(Happening::turn_started(&self.session, row, input.copied()));
            self.tools_of(&row.turn_id, &mut told);
            let written = self.messages.iter().filter(|message| {
                message.role == Role::Assistant && message.turn_id.as_ref() == Some(&row.turn_id)
            });
            told.extend(
                written.filter_map(|message| Happening::message_completed(&self.session, message)),
            );
            told.extend(Happening::turn_ended(&self.session, row));
        }
        told.extend(ended.map(|job| Happening::task(&self.session, job)));
        told
    }

    /// The tool calls of a turn: those of one step are asked for together, then end one after the other.
    fn tools_of(&self, turn: &TurnId, told: &mut Vec<Happening>) {
        let ours: Vec<&ToolRecord> = self
            .tools
            .iter()
            .filter(|record| record.turn_id == *turn)
            .collect();
        for step in ours.chunk_by(|a, b| a.step == b.step) {
            told.extend(
                step.iter()
                    .map(|record| Happening::tool_requested(&self.session, record)),
            );
            told.extend(
                step.iter()
                    .filter_map(|record| Happening::tool_ended(&self.session, record)),
            );
        }
    }
}
