//! One action of a session at a time, and a list of those that are under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;

use super::cancel::{Cancel, CancelCause};
use super::ids::{RequestId, SessionId, TurnId};
use super::model::Origin;
use super::steering::Steering;

/// The session locks of this process, first come first served.
#[derive(Debug, Default)]
pub(super) struct SessionLocks {
    locks: Mutex<BTreeMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
}

/// The lock of a session, until it is dropped.
#[derive(Debug)]
pub(super) struct SessionGuard {
    _held: OwnedMutexGuard<()>,
}

impl SessionLocks {
    /// Waits for the lock of a session; `None` when it was not free in time.
    pub(super) async fn lock(&self, session: &SessionId, within: Duration) -> Option<SessionGuard> {
        let lock = self.lock_of(session);
        let held = tokio::time::timeout(within, lock.lock_owned()).await.ok()?;
        Some(SessionGuard { _held: held })
    }

    fn lock_of(&self, session: &SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Locks that nobody holds or waits for any more are only here.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(session.clone()).or_default())
    }
}

/// One action that is under way, from its admission to the end of its work after the commit.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) session: SessionId,
    pub(super) request_id: RequestId,
    pub(super) origin: Origin,
    pub(super) started_at: Timestamp,
    pub(super) cancel: Cancel,
    /// What the player interjects.
    pub(super) steering: Steering,
    /// Whether it is a request of the player, which he can stop and steer; runs on their own are not.
    is_action: bool,
    turn: Mutex<Writing>,
}

/// What an action writes.
#[derive(Debug)]
struct Writing {
    turn: TurnId,
    /// It has begun.
    entered: bool,
    /// Its end is being told, or was.
    told: bool,
}

impl Control {
    pub(super) fn new(
        session: SessionId,
        request_id: RequestId,
        origin: Origin,
        turn: TurnId,
        started_at: Timestamp,
    ) -> Self {
        let turn = Mutex::new(Writing {
            turn,
            entered: false,
            told: false,
        });
        Self {
            session,
            request_id,
            origin,
            started_at,
            cancel: Cancel::new(),
            steering: Steering::default(),
            is_action: true,
            turn,
        }
    }

    /// The same, as no request of the player.
    pub(super) fn on_its_own(self) -> Self {
        Self {
            is_action: false,
            ..self
        }
    }

    /// The turn that is being written, or will be once the session is free.
    pub(super) fn turn_id(&self) -> TurnId {
        self.writing().turn.clone()
    }

    /// The action now writes this turn.
    pub(super) fn enter(&self, turn: TurnId) {
        *self.writing() = Writing {
            turn,
            entered: true,
            told: false,
        };
    }

    /// The end of the turn is told from now on.
    pub(super) fn tell_end(&self) {
        self.writing().told = true;
    }

    /// Whether the end of the turn is being told, or was, and the action is about to be over.
    pub(super) fn tells_its_end(&self) -> bool {
        self.writing().told
    }

    /// Whether its turn has begun.
    pub(super) fn has_entered(&self) -> bool {
        self.writing().entered
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The actions that are under way.
#[derive(Debug, Default)]
pub(super) struct Active {
    controls: Arc<Mutex<Vec<Arc<Control>>>>,
}

/// An action on the list of those that are under way. Leaves it however the action ends.
#[derive(Debug)]
pub(super) struct Enlisted {
    controls: Arc<Mutex<Vec<Arc<Control>>>>,
    control: Arc<Control>,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls.retain(|other| !Arc::ptr_eq(other, &self.control));
    }
}

impl Active {
    /// Lists an action until the value is dropped.
    pub(super) fn enlist(&self, control: &Arc<Control>) -> Enlisted {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls.push(Arc::clone(control));
        Enlisted {
            controls: Arc::clone(&self.controls),
            control: Arc::clone(control),
        }
    }

    /// The work of this session that writes a turn, else what waits longest.
    pub(super) fn current(&self, session: &SessionId) -> Option<Arc<Control>> {
        self.first_of(session, |_| true)
    }

    /// The same among the requests of the player.
    pub(super) fn current_action(&self, session: &SessionId) -> Option<Arc<Control>> {
        self.first_of(session, |control| control.is_action)
    }

    fn first_of(
        &self,
        session: &SessionId,
        fits: impl Fn(&Control) -> bool,
    ) -> Option<Arc<Control>> {
        let controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ours = controls
            .iter()
            .filter(|control| control.session == *session && fits(control));
        ours.clone()
            .find(|control| control.has_entered())
            .or_else(|| ours.next())
            .cloned()
    }

    /// The action that writes this turn, or will.
    pub(super) fn of_turn(&self, turn: &TurnId) -> Option<Arc<Control>> {
        let controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls
            .iter()
            .find(|control| control.turn_id() == *turn)
            .cloned()
    }

    /// Stops all actions of one session.
    pub(super) fn cancel(&self, session: &SessionId, cause: CancelCause) {
        let controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls
            .iter()
            .filter(|control| control.session == *session)
            .for_each(|c| c.cancel.cancel(cause));
    }

    /// Stops all actions.
    pub(super) fn cancel_all(&self, cause: CancelCause) {
        let controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls
            .iter()
            .for_each(|control| control.cancel.cancel(cause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_action_of_a_session_waits_and_gives_up_in_time() {
        let locks = SessionLocks::default();
        let session = SessionId::from("s");
        let within = Duration::from_secs(30);
        let held = locks.lock(&session, within).await.unwrap();

        let started = tokio::time::Instant::now();
        assert!(locks.lock(&session, within).await.is_none());
        assert_eq!(started.elapsed(), within);
        assert!(
            locks
                .lock(&SessionId::from("other"), within)
                .await
                .is_some()
        );

        drop(held);
        assert!(locks.lock(&session, within).await.is_some());
    }

    #[test]
    fn a_stop_meets_the_action_that_writes_before_one_that_waits() {
        let active = Active::default();
        let control = |request: &str| {
            let turn = format!("turn of {request}").into();
            Arc::new(Control::new(
                "s".into(),
                request.into(),
                Origin::Player,
                turn,
                Timestamp::UNIX_EPOCH,
            ))
        };
        let (first, second) = (control("first"), control("second"));
        let listed = [active.enlist(&first), active.enlist(&second)];
        assert_eq!(
            active.current(&"s".into()).unwrap().request_id.as_str(),
            "first"
        );

        second.enter("t-2".into());
        assert_eq!(
            active.current(&"s".into()).unwrap().turn_id().as_str(),
            "t-2"
        );

        drop(listed);
        assert!(active.current(&"s".into()).is_none());
    }

    #[test]
    fn the_player_stops_his_own_request_and_no_run_on_its_own() {
        let active = Active::default();
        let new = |turn: &str| {
            let (origin, now) = (Origin::Player, Timestamp::UNIX_EPOCH);
            Control::new("s".into(), "r".into(), origin, turn.into(), now)
        };
        let alone = Arc::new(new("t-alone").on_its_own());
        alone.enter("t-alone".into());
        let waiting = Arc::new(new("t-waiting"));
        let _listed = [active.enlist(&alone), active.enlist(&waiting)];

        let turn = |control: Option<Arc<Control>>| control.unwrap().turn_id();
        assert_eq!(turn(active.current(&"s".into())).as_str(), "t-alone");
        let action = active.current_action(&"s".into());
        assert_eq!(turn(action).as_str(), "t-waiting");
    }

    #[test]
    fn an_action_that_goes_on_with_another_turn_has_not_told_the_end_of_that() {
        let control = Control::new(
            "s".into(),
            "r".into(),
            Origin::Player,
            "t-1".into(),
            Timestamp::UNIX_EPOCH,
        );
        control.enter("t-1".into());
        assert!(!control.tells_its_end());
        control.tell_end();
        assert!(control.tells_its_end());
        control.enter("t-2".into());
        assert!(!control.tells_its_end());
    }
}
