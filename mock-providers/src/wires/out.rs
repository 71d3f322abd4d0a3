//! Bytes with marks: what a wire module writes.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

/// A body, whole, with the places where events end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// All bytes.
    pub bytes: Bytes,
    /// Where pieces end, in ascending order; the last one is the end.
    pub marks: Vec<Mark>,
}

/// The end of a piece of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The offset behind the piece's last byte.
    pub end: usize,
    /// What the piece is.
    pub kind: MarkKind,
}

/// What a piece of a body is.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkKind {
    /// An event without new content.
    Event,
    /// An event with new text, thinking or arguments.
    Token,
    /// An event that belongs to the end.
    Tail,
    /// No bytes: silence.
    Pause(Duration),
    /// No bytes: silence until a gate of this name is opened.
    Gate(Arc<str>),
}

impl MarkKind {
    /// Whether bytes belong to it.
    pub const fn is_event(&self) -> bool {
        matches!(self, Self::Event | Self::Token | Self::Tail)
    }
}

impl Rendered {
    /// A body in one piece.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let marks = vec![Mark {
            end: bytes.len(),
            kind: MarkKind::Token,
        }];
        Self { bytes, marks }
    }

    /// The body as text, with U+FFFD for what is no UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// A body that is being written.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) bytes: Vec<u8>,
    marks: Vec<Mark>,
}

impl Out {
    /// Ends the piece that was just written.
    pub(crate) fn mark(&mut self, kind: MarkKind) {
        self.marks.push(Mark {
            end: self.bytes.len(),
            kind,
        });
    }

    /// Writes text as it is.
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// The body.
    pub(crate) fn finish(self) -> Rendered {
        Rendered {
            bytes: self.bytes.into(),
            marks: self.marks,
        }
    }
}

/// Writes a text as a JSON string, quotes included.
pub(crate) fn json_string(into: &mut Vec<u8>, text: &str) {
    // Writing a `str` into a `Vec` cannot fail.
    let _ = serde_json::to_writer(into, text);
}

/// The HTTP date `seconds` ahead of the system's clock.
pub(crate) fn http_date_in(seconds: u64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    http_date(now + seconds)
}

/// Unix seconds as an HTTP date (IMF-fixdate, RFC 9110 section 5.6.7).
fn http_date(unix: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, time) = (unix / 86_400, unix % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[(month - 1) as usize],
        time / 3600,
        time / 60 % 60,
        time % 60
    )
}

/// Year, month and day of the day number `days` since 1970-01-01 (proleptic Gregorian calendar).
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let of_era = z % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_wants_them() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(1_709_164_800), "Thu, 29 Feb 2024 00:00:00 GMT");
    }
}
