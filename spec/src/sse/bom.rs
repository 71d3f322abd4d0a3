//! The one byte order mark that may open a stream, even when it arrives byte by byte.

/// U+FEFF in UTF-8.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Whether a leading byte order mark is still possible, and what of it has been seen.
///
/// ```text
/// Open(0) --EF--> Open(1) --BB--> Open(2) --BF--> Closed (skipped)
///    any other byte, or the end: Closed (what was held back opens the first line)
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) enum BomState {
    /// So many bytes of the stream have come, all of them of the mark; `0 <= n < 3`.
    Open(usize),
    /// It is known whether the stream opens with a mark.
    Closed,
}

/// What [`BomState::feed`] found.
pub(super) struct Opening {
    /// Bytes at the start of the chunk that belong to the mark.
    pub(super) consumed: usize,
    /// Bytes of the mark that earlier chunks held back and that now open the first line.
    pub(super) held_back: &'static [u8],
    /// Whether the mark became complete.
    pub(super) found: bool,
}

impl BomState {
    /// Takes the bytes of the mark off the start of `chunk`.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Opening {
        let mut opening = Opening {
            consumed: 0,
            held_back: b"",
            found: false,
        };
        let Self::Open(seen) = *self else {
            return opening;
        };
        let missing = &BOM[seen..];
        let common = missing
            .iter()
            .zip(chunk)
            .take_while(|(a, b)| a == b)
            .count();
        if common == missing.len() {
            *self = Self::Closed;
            opening.consumed = common;
            opening.found = true;
        } else if common == chunk.len() {
            *self = Self::Open(seen + common);
            opening.consumed = common;
        } else {
            *self = Self::Closed;
            opening.held_back = &BOM[..seen];
        }
        opening
    }

    /// Ends the stream: the part of a mark that turned out to be none.
    pub(super) fn finish(&mut self) -> &'static [u8] {
        match std::mem::replace(self, Self::Closed) {
            Self::Open(seen) => &BOM[..seen],
            Self::Closed => b"",
        }
    }
}
