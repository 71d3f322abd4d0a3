//! What the player interjects while a turn runs.
//!
//! ```text
//! taken ──> waits ──the story asks its model again──> read by the model ──the turn commits──> history
//!                └──the story has answered already──> refused as too late
//! ```
//!
//! Each action has its own queue. A turn that is stopped, fails or is rolled back keeps nothing of it.
//!
//! Source: seed 000, lines 220-225.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ids::{SessionId, TurnId};
use super::{Engine, EngineError};

/// Interjections that wait in one action, at most.
const WAITING: usize = 64;

/// The interjections of one action that no model has read yet.
#[derive(Debug, Default)]
pub struct Steering(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<String>,
    /// The story has its answer; what came now would not be read.
    closed: bool,
}

impl Steering {
    /// Adds one. False when the story has answered already, or too many wait.
    fn push(&self, text: String) -> bool {
        let mut queue = self.queue();
        let taken = !queue.closed && queue.waiting.len() < WAITING;
        if taken {
            queue.waiting.push(text);
        }
        taken
    }

    /// Those that wait, oldest first.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.queue().waiting)
    }

    /// Whether any wait.
    pub(super) fn waits(&self) -> bool {
        !self.queue().waiting.is_empty()
    }

    /// Takes no more, and gives those that came too late to be read.
    pub(super) fn close(&self) -> Vec<String> {
        let mut queue = self.queue();
        queue.closed = true;
        std::mem::take(&mut queue.waiting)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Hands an interjection of the player to the turn that runs.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoRunningTurn`]; [`EngineError::SteerTooLate`] when the turn is being stopped or its
    /// story has answered; [`EngineError::SessionNotFound`] or [`EngineError::Store`].
    pub async fn steer(&self, id: &SessionId, text: &str) -> Result<TurnId, EngineError> {
        self.session(id).await?;
        let control = self.inner.active.current_action(id);
        let control = control.filter(|control| control.has_entered());
        let control = control.ok_or_else(|| EngineError::NoRunningTurn(id.clone()))?;
        let is_stopped = control.cancel.cause().is_some();
        if is_stopped || !control.steering.push(text.to_owned()) {
            return Err(EngineError::SteerTooLate(id.clone()));
        }
        Ok(control.turn_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_answer_is_refused_and_what_came_before_is_kept_in_order() {
        let steering = Steering::default();
        assert!(steering.push("one".into()));
        assert!(steering.push("two".into()));
        assert_eq!(steering.take(), ["one", "two"]);

        assert!(steering.push("three".into()));
        assert!(steering.waits());
        assert_eq!(steering.close(), ["three"]);
        assert!(!steering.push("four".into()));
        assert!(!steering.waits());
    }

    #[test]
    fn only_so_many_wait() {
        let steering = Steering::default();
        for _ in 0..WAITING {
            assert!(steering.push("x".into()));
        }
        assert!(!steering.push("one more".into()));
    }
}
