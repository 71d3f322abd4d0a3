//! Frames and messages that were read before, lent to views on the same thread.
//!
//! Views are functions of a transcript and know nothing of each other, and a hundred checks build the same ones.
//! While [`remember`] runs, [`frames`] and [`documents`] give what was read of that one transcript instead of reading
//! it again.

use std::{cell::RefCell, sync::Arc};

use super::{messages::Documents, stream::Frames};
use crate::transcript::Transcript;

/// What was read of one transcript.
#[derive(Clone)]
pub(super) struct Known {
    /// The frames of its streams.
    pub(super) frames: Arc<[Frames]>,
    /// The JSON of its messages.
    pub(super) documents: Documents,
}

thread_local! {
    /// The transcript by its address, which is unique as long as it is borrowed, and what was read of it.
    static KNOWN: RefCell<Option<(usize, Known)>> = const { RefCell::new(None) };
}

/// Calls `act`, in which this is known of a transcript.
pub(super) fn remember<T>(transcript: &Transcript, known: Known, act: impl FnOnce() -> T) -> T {
    let _before = Restore(KNOWN.replace(Some((address(transcript), known))));
    act()
}

/// The frames of the streams of a transcript, known or read now.
pub(super) fn frames(
    transcript: &Transcript,
    read: impl FnOnce() -> Arc<[Frames]>,
) -> Arc<[Frames]> {
    recall(transcript, |known| Arc::clone(&known.frames)).unwrap_or_else(read)
}

/// The JSON of the messages of a transcript, known or read now.
pub(super) fn documents(transcript: &Transcript, read: impl FnOnce() -> Documents) -> Documents {
    recall(transcript, |known| Arc::clone(&known.documents)).unwrap_or_else(read)
}

fn recall<T>(transcript: &Transcript, take: impl FnOnce(&Known) -> T) -> Option<T> {
    KNOWN.with_borrow(|known| {
        let (whose, known) = known.as_ref()?;
        (*whose == address(transcript)).then(|| take(known))
    })
}

fn address(transcript: &Transcript) -> usize {
    std::ptr::from_ref(transcript).addr()
}

/// Forgets again, also when a check panics.
struct Restore(Option<(usize, Known)>);

impl Drop for Restore {
    fn drop(&mut self) {
        KNOWN.set(self.0.take());
    }
}
