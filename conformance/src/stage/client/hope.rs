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
    /// Why it was last waited for in vain.
    last: Mutex<Option<String>>,
    /// Why it is given up.
    lost: Mutex<Option<String>>,
}

impl Hope {
    /// It has asked for something.
    pub(super) fn asked(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// A fresh client did not ask for anything within this time, and has ended for this reason if it has; on so many
    /// connections it spoke no HTTP. One that never asks is given up, or each case would wait for it.
    pub(super) fn waited_in_vain(&self, within: Duration, ended: Option<String>, strangers: usize) {
        let vain = self.vain.fetch_add(1, Ordering::Relaxed) + 1;
        if self.asked.load(Ordering::Relaxed) {
            return;
        }
        let mut why = match ended {
            Some(why) => format!("it ended and had asked for nothing: {why}"),
            None => format!("it asked for nothing within {within:?}, {vain} times"),
        };
        if strangers > 0 {
            why.push_str("; it connected and spoke something else than HTTP/1.1");
        }
        if vain < VAIN {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(why);
        } else {
            self.lose(why);
        }
    }

    /// Why nothing was seen of the client in the whole scenario; nothing when it has asked for something, or nobody
    /// waited for it.
    pub(super) fn nothing_seen(&self) -> Option<DriveError> {
        if self.asked.load(Ordering::Relaxed) {
            return None;
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone().map(|why| DriveError::NotPossible {
            what: "to see anything of the client".to_owned(),
            why,
        })
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
        (1..VAIN).for_each(|_| hope.waited_in_vain(WAITED, None, 0));
        assert!(hope.left().is_ok());
        hope.waited_in_vain(WAITED, Some("exit status 1 | no module".to_owned()), 0);
        let error = hope.left().unwrap_err().to_string();
        assert!(error.contains("no module"), "{error}");
    }

    #[test]
    fn a_client_that_asked_once_is_never_given_up_for_its_silence() {
        let hope = Hope::default();
        hope.asked();
        (0..9).for_each(|_| hope.waited_in_vain(WAITED, None, 0));
        assert!(hope.left().is_ok());
    }

    #[test]
    fn a_scenario_in_which_a_client_asked_for_nothing_says_why() {
        let hope = Hope::default();
        assert!(hope.nothing_seen().is_none(), "nobody waited for it");
        hope.waited_in_vain(WAITED, None, 3);
        let error = hope.nothing_seen().unwrap().to_string();
        assert!(error.contains("within 15s"), "{error}");
        assert!(error.contains("something else than HTTP"), "{error}");
        hope.waited_in_vain(WAITED, Some("exit status: 7".to_owned()), 0);
        let error = hope.nothing_seen().unwrap().to_string();
        assert!(error.contains("exit status: 7"), "{error}");
        hope.asked();
        assert!(hope.nothing_seen().is_none());
    }
}
