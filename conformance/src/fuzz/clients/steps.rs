//! Clients that take steps: each is told, and answered with what the client then shows.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    stage::TesteeStage,
    transcript::{End, Fact},
};

/// A client that takes steps.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    stage: &'a TesteeStage,
    longest: Duration,
}

impl<'a> Steps<'a> {
    /// A client that may take so long for anything.
    pub(super) fn new(stage: &'a TesteeStage, longest: Duration) -> Self {
        Self { stage, longest }
    }

    /// The longest that anything is waited for that the client does.
    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// Names what follows.
    pub(super) fn label(&self, name: &str) {
        self.stage.label(name);
    }

    /// Tells a step, and gives what is shown then; null when the client does not say.
    ///
    /// # Errors
    ///
    /// In words: the client is gone or silent.
    pub(super) async fn take(&self, step: &Value) -> Result<Value, String> {
        self.tell(step).await?;
        self.shown(step).await
    }

    /// Tells a step.
    ///
    /// # Errors
    ///
    /// In words: the client takes none.
    pub(super) async fn tell(&self, step: &Value) -> Result<(), String> {
        let told = self.stage.tell(step).await;
        told.map_err(|error| format!("it ended: {error}"))
    }

    /// Waits for the answer to a step: what is shown.
    ///
    /// # Errors
    ///
    /// As [`Steps::take`].
    pub(super) async fn shown(&self, step: &Value) -> Result<Value, String> {
        match self.stage.report(self.longest).await {
            Some(report) => Ok(report["state"].clone()),
            None => Err(format!("{} {}", self.why(), json!(step["step"]))),
        }
    }

    /// Whether the client is still there after something.
    ///
    /// # Errors
    ///
    /// As [`Steps::take`].
    pub(super) async fn lives(
        &self,
        look: &Value,
        after: &impl serde::Serialize,
    ) -> Result<(), String> {
        let after = serde_json::to_string(after).unwrap_or_default();
        let looked = self.take(look).await;
        looked
            .map(drop)
            .map_err(|why| format!("{why} after {after}"))
    }

    /// Why there was no answer.
    fn why(&self) -> String {
        let transcript = self.stage.recorder().transcript();
        let facts = || transcript.entries.iter().map(|entry| &entry.fact);
        // What the client said first is on the channel that steps are told on.
        let channel = facts().find_map(|fact| match fact {
            Fact::Line { exchange, .. } => Some(*exchange),
            _ => None,
        });
        let end = facts().find_map(|fact| match fact {
            Fact::End { exchange, how } if Some(*exchange) == channel => Some(how),
            _ => None,
        });
        match end {
            Some(End::Broken(why)) => format!("it ended: {why}, at step"),
            Some(End::TooLarge) => "it wrote a line that is too long: at step".to_owned(),
            _ => format!("it is silent: for {:?}, at step", self.longest),
        }
    }
}
