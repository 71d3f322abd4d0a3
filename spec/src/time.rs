//! The timestamps on the wire: ISO 8601, UTC.
//!
//! [`format_ms`] and [`format()`] write the one form that Turnwire sends, with milliseconds and `Z`;
//! [`parse`] reads any ISO 8601 date and time whose offset is UTC, because the seeds ask for no more.
//!
//! The clock is not read here: the caller brings the time.
//!
//! Source: seed 000, lines 757 and 1099.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Why a text is no timestamp of the protocol.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// This text is no ISO 8601 date and time with an offset.
    #[error("{0:?} is no ISO 8601 date and time")]
    NotIso(String),
    /// This text is a date and time whose offset is not UTC.
    #[error("{0:?} is not in UTC")]
    NotUtc(String),
}

/// Writes milliseconds since the Unix epoch as `2030-05-01T10:00:00.120Z`.
///
/// A value beyond the years -9999 to 9999 is written as the nearest end of that range.
#[must_use]
pub fn format_ms(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(if unix_ms < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    });
    format!("{time:.3}")
}

/// Writes a point in time as `2030-05-01T10:00:00.120Z`; parts of a millisecond are cut off.
#[must_use]
pub fn format(time: SystemTime) -> String {
    let ms = |since: Duration| i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    format_ms(match time.duration_since(UNIX_EPOCH) {
        Ok(after) => ms(after),
        Err(before) => -ms(before.duration()),
    })
}

/// Reads a timestamp of the protocol as milliseconds since the Unix epoch.
///
/// # Errors
///
/// [`TimeError::NotIso`] when this is no ISO 8601 date and time with an offset;
/// [`TimeError::NotUtc`] when the offset is neither `Z` nor zero.
pub fn parse(text: &str) -> Result<i64, TimeError> {
    let not_iso = || TimeError::NotIso(text.to_owned());
    // The reader below takes RFC 9557 annotations and a space for the `T` too; ISO 8601 has neither.
    if text.contains(['[', ' ']) {
        return Err(not_iso());
    }
    let time: Timestamp = text.parse().map_err(|_| not_iso())?;
    if !is_utc(text) {
        return Err(TimeError::NotUtc(text.to_owned()));
    }
    Ok(time.as_millisecond())
}

/// Tells whether this is an ISO 8601 date and time in UTC.
#[must_use]
pub fn is_timestamp(text: &str) -> bool {
    parse(text).is_ok()
}

fn is_utc(text: &str) -> bool {
    text.ends_with(['Z', 'z'])
        || text
            .rsplit_once('+')
            .is_some_and(|(_, offset)| offset.bytes().all(|byte| byte == b'0' || byte == b':'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_is_written_with_milliseconds_and_z() {
        assert_eq!(format_ms(1_903_860_000_120), "2030-05-01T10:00:00.120Z");
        assert_eq!(format_ms(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            format(UNIX_EPOCH + Duration::from_micros(1_999)),
            "1970-01-01T00:00:00.001Z"
        );
        assert_eq!(
            format(UNIX_EPOCH - Duration::from_millis(1)),
            "1969-12-31T23:59:59.999Z"
        );
    }

    #[test]
    fn a_time_out_of_range_is_written_as_the_end_of_the_range() {
        assert!(format_ms(i64::MAX).starts_with("9999-"));
        assert!(format_ms(i64::MIN).starts_with("-009999-"));
    }

    #[test]
    fn utc_is_read_in_its_iso_spellings() {
        for text in [
            "2030-05-01T10:00:00.120Z",
            "2030-05-01T10:00:00.120+00:00",
            "2030-05-01T10:00:00.120000Z",
            "20300501T100000.120Z",
        ] {
            assert_eq!(parse(text), Ok(1_903_860_000_120), "{text}");
        }
    }

    #[test]
    fn other_offsets_and_other_texts_are_told_apart() {
        let text = "2030-05-01T12:00:00+02:00".to_owned();
        assert_eq!(parse(&text), Err(TimeError::NotUtc(text.clone())));
        for text in [
            "",
            "now",
            "1903860000120",
            "2030-05-01",
            "2030-05-01T10:00:00",
            "2030-13-01T10:00:00Z",
        ] {
            assert_eq!(parse(text), Err(TimeError::NotIso(text.into())), "{text}");
        }
        assert!(!is_timestamp("2030-05-01 10:00:00Z"));
        assert!(!is_timestamp("2030-05-01T10:00:00Z[UTC]"));
    }

    proptest! {
        #[test]
        fn what_was_written_reads_back(ms in -62_000_000_000_000_i64..253_000_000_000_000) {
            prop_assert_eq!(parse(&format_ms(ms)), Ok(ms));
        }
    }
}
