//! Streams that the harness cut off on purpose: what did not come on them is nobody's fault.
//!
//! A stream that the harness closes after waiting shows what is missing on it; one that it cut off in the middle,
//! or that a slow reader left before it had read what was there, does not. Whoever cuts leaves a [`Fact::Note`] of
//! the form `cut on purpose: #12`, and checks on absence look at it.

use std::collections::BTreeSet;

use super::{ExchangeId, Fact, Transcript, mark::ExchangeMark};

const CUT: ExchangeMark = ExchangeMark("cut on purpose");

/// The note that marks a stream as cut off.
pub fn note(exchange: ExchangeId) -> Fact {
    Fact::Note(CUT.of(exchange))
}

/// The streams that were cut off.
pub fn exchanges(transcript: &Transcript) -> BTreeSet<ExchangeId> {
    CUT.exchanges(transcript).collect()
}

/// Where a stream is to be cut off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CutAt {
    /// Whole frames that still come.
    pub frames: u32,
    /// Bytes of the next frame that still come; never the whole frame.
    pub bytes: u32,
}

/// Finds the place in a stream's bytes, however they are cut into pieces.
#[derive(Clone, Copy, Debug)]
pub struct Cutter {
    left: CutAt,
    /// The line feeds that came in a row, carriage returns left out.
    feeds: u8,
}

impl Cutter {
    /// Looks for this place from the beginning of a stream on.
    pub fn new(at: CutAt) -> Self {
        Self { left: at, feeds: 1 }
    }

    /// How many bytes of the next piece come before the place; `None` when all of them do.
    pub fn within(&mut self, piece: &[u8]) -> Option<usize> {
        for (index, byte) in piece.iter().enumerate() {
            let feeds = match byte {
                b'\n' => self.feeds + 1,
                b'\r' => self.feeds,
                _ => 0,
            };
            if self.left.frames == 0 {
                if self.left.bytes == 0 || feeds == 2 {
                    return Some(index);
                }
                self.left.bytes -= 1;
            } else if feeds == 2 {
                self.left.frames -= 1;
            }
            self.feeds = if feeds == 2 { 0 } else { feeds };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::transcript::Entry;

    const STREAM: &[u8] = b"event: a\ndata: 1\n\nevent: b\r\ndata: 2\r\n\r\ndata: 3\n\n";

    fn kept(frames: u32, bytes: u32, piece: usize) -> String {
        let mut cutter = Cutter::new(CutAt { frames, bytes });
        let mut kept = Vec::new();
        for piece in STREAM.chunks(piece) {
            match cutter.within(piece) {
                None => kept.extend_from_slice(piece),
                Some(length) => {
                    kept.extend_from_slice(&piece[..length]);
                    break;
                }
            }
        }
        String::from_utf8(kept).unwrap()
    }

    #[test]
    fn a_stream_is_cut_after_whole_frames_and_some_bytes_whatever_its_pieces_are() {
        for piece in [1, 2, 7, 100] {
            assert_eq!(kept(0, 0, piece), "");
            assert_eq!(kept(0, 3, piece), "eve");
            assert_eq!(kept(1, 0, piece), "event: a\ndata: 1\n\n");
            assert_eq!(kept(1, 5, piece), "event: a\ndata: 1\n\nevent");
            assert_eq!(
                kept(1, 99, piece),
                "event: a\ndata: 1\n\nevent: b\r\ndata: 2\r\n\r"
            );
        }
    }

    #[test]
    fn a_stream_that_is_shorter_is_not_cut() {
        assert_eq!(kept(3, 1, 5).len(), STREAM.len());
    }

    #[test]
    fn the_note_is_read_back() {
        let entries = vec![Entry {
            at: Duration::ZERO,
            fact: note(ExchangeId(7)),
        }];
        let transcript = Transcript {
            entries,
            ..Transcript::default()
        };
        assert_eq!(exchanges(&transcript), BTreeSet::from([ExchangeId(7)]));
    }
}
