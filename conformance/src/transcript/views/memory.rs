//! Frames that were read before, lent to views on the same thread.
//!
//! Views are functions of a transcript and know nothing of each other, and a hundred checks build the same ones.
//! While [`remember`] runs, [`recall`] gives the frames of that one transcript instead of reading them again.

use std::{cell::RefCell, sync::Arc};

use super::stream::Frames;
use crate::transcript::Transcript;

thread_local! {
    /// The transcript by its address, which is unique as long as it is borrowed, and the frames of its streams.
    static KNOWN: RefCell<Option<(usize, Arc<[Frames]>)>> = const { RefCell::new(None) };
}

/// Calls `act`, in which the frames of this transcript are known.
pub(super) fn remember<T>(
    transcript: &Transcript,
    frames: Arc<[Frames]>,
    act: impl FnOnce() -> T,
) -> T {
    let _before = Restore(KNOWN.replace(Some((address(transcript), frames))));
    act()
}

/// The frames of the streams of a transcript, known or read now.
pub(super) fn recall(
    transcript: &Transcript,
    read: impl FnOnce() -> Arc<[Frames]>,
) -> Arc<[Frames]> {
    let known = KNOWN.with_borrow(|known| {
        let (whose, frames) = known.as_ref()?;
        (*whose == address(transcript)).then(|| Arc::clone(frames))
    });
    known.unwrap_or_else(read)
}

fn address(transcript: &Transcript) -> usize {
    std::ptr::from_ref(transcript).addr()
}

/// Forgets again, also when a check panics.
struct Restore(Option<(usize, Arc<[Frames]>)>);

impl Drop for Restore {
    fn drop(&mut self) {
        KNOWN.set(self.0.take());
    }
}
