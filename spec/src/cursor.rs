//! The cursor of a Covel subscription: `<epoch>:<seq>`.
//!
//! A cursor is the `id:` line of every subscription event, the `lastEventId` that a client sends
//! when it reconnects, and the `cursor` member of the frames `system.connected` and `system.reset`.
//! [`Cursor`] borrows its text, [`CursorBuf`] owns it.
//!
//! What a server answers to a cursor (replay, gap, epoch change) is decided elsewhere; here a text
//! is only read and written.
//!
//! Source: seed 000, lines 644-650 and 724-731.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The greatest `seq` that every JSON reader takes without loss: 2^53 - 1.
pub const MAX_SEQ: u64 = (1 << 53) - 1;

/// Why a text is no subscription cursor.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CursorError {
    /// Nothing stands before the last `:` of this text, or it has no `:` at all.
    #[error("cursor {0:?} has no epoch")]
    NoEpoch(String),
    /// What follows the last `:` of this text is no decimal number.
    #[error("cursor {0:?} has no decimal sequence number")]
    BadSeq(String),
    /// The sequence number of this text is greater than [`MAX_SEQ`].
    #[error("cursor {0:?} has a sequence number above {MAX_SEQ}")]
    SeqTooLarge(String),
}

/// A position in the events of one session, borrowed from the text that carried it.
///
/// `epoch` is opaque: compare it for equality and nothing else. `seq` counts the events of one
/// session within one epoch; 0 means none yet. Cursors have no order, because two epochs have none.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Cursor<'a> {
    /// The server's replay state that the number belongs to; never empty, may contain `:`.
    pub epoch: &'a str,
    /// `0 <= seq <= MAX_SEQ`.
    pub seq: u64,
}

impl<'a> Cursor<'a> {
    /// Reads a subscription cursor, `<epoch>:<seq>`, split at the last colon.
    ///
    /// # Errors
    ///
    /// [`CursorError::NoEpoch`] for digits alone (the old form, which a server answers with
    /// `system.reset`) and for an empty epoch; [`CursorError::BadSeq`] when the last part has
    /// anything but decimal digits; [`CursorError::SeqTooLarge`] above [`MAX_SEQ`].
    ///
    /// Source: seed 000, lines 724-731.
    pub fn parse(text: &'a str) -> Result<Self, CursorError> {
        let Some((epoch, digits)) = text.rsplit_once(':').filter(|(epoch, _)| !epoch.is_empty())
        else {
            return Err(CursorError::NoEpoch(text.to_owned()));
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(CursorError::BadSeq(text.to_owned()));
        }
        match digits.parse() {
            Ok(seq) if seq <= MAX_SEQ => Ok(Self { epoch, seq }),
            _ => Err(CursorError::SeqTooLarge(text.to_owned())),
        }
    }

    /// The same position with its own copy of the epoch.
    #[must_use]
    pub fn to_owned(self) -> CursorBuf {
        CursorBuf {
            epoch: self.epoch.to_owned(),
            seq: self.seq,
        }
    }
}

impl fmt::Display for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.seq)
    }
}

/// A position in the events of one session. In JSON it is its text.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CursorBuf {
    /// The server's replay state that the number belongs to; never empty, may contain `:`.
    pub epoch: String,
    /// `0 <= seq <= MAX_SEQ`.
    pub seq: u64,
}

impl CursorBuf {
    /// The position `seq` of the epoch `epoch`.
    #[must_use]
    pub fn new(epoch: impl Into<String>, seq: u64) -> Self {
        Self {
            epoch: epoch.into(),
            seq,
        }
    }

    /// The same position, borrowed.
    #[must_use]
    pub fn as_cursor(&self) -> Cursor<'_> {
        Cursor {
            epoch: &self.epoch,
            seq: self.seq,
        }
    }
}

impl fmt::Display for CursorBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_cursor().fmt(f)
    }
}

impl FromStr for CursorBuf {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        Cursor::parse(text).map(Cursor::to_owned)
    }
}

impl Serialize for CursorBuf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CursorBuf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for CursorBuf {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "`<epoch>:<seq>`; the epoch is opaque, the sequence number decimal",
            "pattern": "^.+:[0-9]+$",
        })
    }
}

/// Reads the id of a subscription event, or tells that it has not the form `<epoch>:<seq>`.
///
/// The library boundary that the seed names: it never fails otherwise. [`Cursor::parse`] gives the
/// reason.
///
/// Source: seed 000, line 731.
#[must_use]
pub fn parse_subscription_event_id(id: &str) -> Option<Cursor<'_>> {
    Cursor::parse(id).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// COV-SUB-086.
    #[test]
    fn event_id_parser_returns_epoch_and_seq() {
        let cursor = parse_subscription_event_id("abc:12").unwrap();
        assert_eq!((cursor.epoch, cursor.seq), ("abc", 12));
    }

    /// COV-SUB-087.
    #[test]
    fn event_id_parser_rejects_digits_alone() {
        assert_eq!(parse_subscription_event_id("42"), None);
        assert_eq!(Cursor::parse("42"), Err(CursorError::NoEpoch("42".into())));
    }

    /// COV-SUB-179.
    #[test]
    fn malformed_id_parses_to_nothing() {
        for text in [
            "", "abc", "abc:", ":5", "abc:x", ":", "abc:-1", "abc:+1", "abc: 1", "abc:1e3",
        ] {
            assert_eq!(parse_subscription_event_id(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_epoch_may_contain_colons() {
        assert_eq!(
            Cursor::parse("2030:05:7"),
            Ok(Cursor {
                epoch: "2030:05",
                seq: 7
            })
        );
    }

    #[test]
    fn a_seq_beyond_the_safe_integers_is_refused_with_its_reason() {
        assert!(Cursor::parse("e:9007199254740991").is_ok());
        for text in ["e:9007199254740992", "e:99999999999999999999999999"] {
            assert_eq!(
                Cursor::parse(text),
                Err(CursorError::SeqTooLarge(text.into()))
            );
        }
    }

    #[test]
    fn a_bad_cursor_in_json_quotes_the_text() {
        let error = serde_json::from_str::<CursorBuf>("\"abc:x\"").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cursor \"abc:x\" has no decimal"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn what_was_written_reads_back(epoch in "\\PC{1,20}", seq in 0..=MAX_SEQ) {
            let cursor = CursorBuf::new(epoch, seq);
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
            let json = serde_json::to_string(&cursor).unwrap();
            prop_assert_eq!(serde_json::from_str::<CursorBuf>(&json).unwrap(), cursor);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
            if let Some(cursor) = parse_subscription_event_id(&text) {
                prop_assert!(!cursor.epoch.is_empty());
                prop_assert!(cursor.seq <= MAX_SEQ);
                prop_assert!(text.starts_with(cursor.epoch));
            }
        }
    }
}
