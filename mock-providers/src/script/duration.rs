//! Durations in script files: a number of milliseconds, or a text such as `250ms`, `1.5s`, `2m`.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserializer, Serializer};

/// Whether there is nothing to wait for; such fields are not written.
pub(super) fn is_zero(duration: &Duration) -> bool {
    duration.is_zero()
}

/// Writes milliseconds with `ms`.
pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let micros = duration.as_micros();
    if micros.is_multiple_of(1000) {
        to.serialize_str(&format!("{}ms", micros / 1000))
    } else {
        to.serialize_str(&format!("{}us", micros))
    }
}

/// Reads a number of milliseconds, or a text with a unit.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_any(DurationVisitor)
}

/// Reads `250ms`, `1.5s`, `2m` or `40us`; `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.trim().parse().ok()?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" | "" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("milliseconds, or a text such as 250ms, 1.5s or 2m")
    }

    fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Duration, E> {
        Ok(Duration::from_millis(millis))
    }

    fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Duration, E> {
        u64::try_from(millis)
            .map(Duration::from_millis)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(millis), &self))
    }

    fn visit_f64<E: de::Error>(self, millis: f64) -> Result<Duration, E> {
        Duration::try_from_secs_f64(millis / 1e3)
            .map_err(|_| E::invalid_value(de::Unexpected::Float(millis), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_units_are_read() {
        assert_eq!(parse("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse("2m"), Some(Duration::from_secs(120)));
        assert_eq!(parse("30"), Some(Duration::from_millis(30)));
        for bad in ["", "soon", "-1s", "1 fortnight", "NaNs"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
