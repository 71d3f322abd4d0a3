//! Whether the client under test is started once more, shared by all parts of a scenario.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::drivers::DriveError;

/// A client that never asked for anything is given up when it was waited for so often.
const VAIN: usize = 4;

/// Whether it is worth while to start the client once more in this scenario.
#[derive(Debug, Default)]
pub(super) struct Hope {
    /// It has asked for something.
    asked: AtomicBool,
    /// So often it was waited for in vain.
    vain: AtomicUsize,
    /// Why it is given up.
    lost: Mutex<Option<String>>,
}

impl Hope {
    /// It has asked for something.
    pub(super) fn asked(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// A fresh client did not ask for anything within this time, and has ended for this reason if it has. One that
    /// never does is given up, or each case would wait for it.
    pub(super) fn waited_in_vain(&self, within: Duration, ended: Option<String>) {
        let vain = self.vain.fetch_add(1, Ordering::Relaxed) + 1;
        if vain < VAIN || self.asked.load(Ordering::Relaxed) {
            return;
        }
        self.lose(match ended {
            Some(why) => format!("it ended and had asked for nothing: {why}"),
            None => format!("it asked for nothing within {within:?}, {vain} times"),
        });
    }

    /// It is given up for this reason, unless it was before.
    pub(super) fn lose(&self, why: String) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(why);
    }

    /// Whether it can be started.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when there is none left.
    pub(super) fn left(&self) -> Result<(), DriveError> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        match &*lost {
            None => Ok(()),
            Some(why) => Err(DriveError::NotPossible {
                what: "to start the client again".to_owned(),
                why: why.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITED: Duration = Duration::from_secs(15);

    #[test]
    fn a_client_that_never_asks_is_given_up_with_its_last_words() {
        let hope = Hope::default();
        (1..VAIN).for_each(|_| hope.waited_in_vain(WAITED, None));
        assert!(hope.left().is_ok());
        hope.waited_in_vain(WAITED, Some("exit status 1 | no module".to_owned()));
        let error = hope.left().unwrap_err().to_string();
        assert!(error.contains("no module"), "{error}");
    }

    #[test]
    fn a_client_that_asked_once_is_never_given_up_for_its_silence() {
        let hope = Hope::default();
        hope.asked();
        (0..9).for_each(|_| hope.waited_in_vain(WAITED, None));
        assert!(hope.left().is_ok());
    }
}
