//! Page cursors: opaque to clients, a place in a list to the server.
//!
//! A cursor says of which list it is, so one list's cursor is refused by another.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::EngineError;
use crate::store::{Ordinal, Window};

/// A list that is read in pages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum List {
    /// The messages of a session.
    Messages,
    /// The trace events of a session.
    Traces,
}

impl List {
    const fn tag(self) -> &'static str {
        match self {
            Self::Messages => "m",
            Self::Traces => "t",
        }
    }

    /// The cursor that continues before this place.
    #[must_use]
    pub fn cursor(self, place: Ordinal) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{}{}", self.tag(), place.0))
    }

    /// Reads a cursor of this list.
    ///
    /// # Errors
    ///
    /// [`EngineError::InvalidCursor`] for anything that [`List::cursor`] did not make.
    pub fn place(self, cursor: &str) -> Result<Ordinal, EngineError> {
        let invalid = || EngineError::InvalidCursor(cursor.to_owned());
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(cursor)
            .map_err(|_| invalid())?;
        let text = std::str::from_utf8(&bytes).map_err(|_| invalid())?;
        let digits = text.strip_prefix(self.tag()).ok_or_else(invalid)?;
        let place = Ordinal(digits.parse().map_err(|_| invalid())?);
        // One place has one spelling: no sign, no leading zeros.
        if self.cursor(place) == cursor {
            Ok(place)
        } else {
            Err(invalid())
        }
    }
}

/// One page of a list that is read from its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The rows, oldest first.
    pub items: Vec<T>,
    /// Continues with older rows; `None` when fewer rows came back than were asked for.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The page of this window, which was asked to hold `limit` rows.
    #[must_use]
    pub fn of(list: List, window: Window<T>, limit: usize) -> Self {
        let full = window.rows.len() >= limit;
        let next = window
            .first
            .filter(|_| full)
            .map(|first| list.cursor(first));
        Self {
            items: window.rows,
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::Store;
    use crate::store::memory::MemoryStore;

    proptest! {
        #[test]
        fn a_cursor_reads_back_in_its_own_list_and_in_no_other(place: u64) {
            let cursor = List::Messages.cursor(Ordinal(place));
            prop_assert_eq!(List::Messages.place(&cursor), Ok(Ordinal(place)));
            prop_assert_eq!(List::Traces.place(&cursor), Err(EngineError::InvalidCursor(cursor.clone())));
        }

        #[test]
        fn no_text_makes_the_reader_panic_and_what_it_accepts_it_wrote(text in "\\PC{0,40}") {
            if let Ok(place) = List::Traces.place(&text) {
                prop_assert_eq!(List::Traces.cursor(place), text);
            }
        }

        #[test]
        fn pages_join_to_the_whole_list_whatever_their_size(count in 0_usize..40, limit in 1_usize..12) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (all, seen) = runtime.block_on(async {
                let store = MemoryStore::new();
                let key = crate::store::testing::session_with_messages(&store, count).await;
                let mut seen = Vec::new();
                let mut cursor: Option<String> = None;
                loop {
                    let before = cursor.map(|cursor| List::Messages.place(&cursor).unwrap());
                    let window = store.messages_before(&key.id, before, limit).await.unwrap();
                    let page = Page::of(List::Messages, window, limit);
                    seen.splice(0..0, page.items);
                    cursor = page.next;
                    if cursor.is_none() {
                        break;
                    }
                }
                (store.messages(&key.id).await.unwrap(), seen)
            });
            prop_assert_eq!(all.len(), count);
            prop_assert_eq!(all, seen);
        }
    }
}
