//! What a client calls its request, kept exactly as it was written.
//!
//! A `request_id` may be any JSON number, and the server copies it. A number beyond 64 bits, or with a fraction,
//! does not survive being read as a float: `18446744073709551617` would come back as `18446744073709552000`. A
//! [`RequestId`] therefore keeps the text, and two of them are equal when they are the same value.
//!
//! Source: public; the seed names no requests.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

/// The `request_id` of a message, as its JSON text. Serializes as that text.
///
/// ```
/// use turnwire_spec::session_update::RequestId;
///
/// let asked = RequestId::of(br#"{"request_id":18446744073709551617}"#);
/// assert_ne!(asked, RequestId::of(br#"{"request_id":18446744073709551618}"#));
/// assert_eq!(asked, RequestId::of(br#"{"request_id":1.8446744073709551617e19}"#));
/// ```
#[derive(Clone, Debug)]
pub struct RequestId(Box<RawValue>);

impl RequestId {
    /// The id of a message; `None` when the line is no JSON object, or has none, or null. Of several the last counts.
    #[must_use]
    pub fn of(line: &[u8]) -> Option<Self> {
        let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(line).ok()?;
        let id = *members.get("request_id")?;
        (id.get() != "null").then(|| Self(id.to_owned()))
    }

    /// No id: what an answer to an unreadable line has.
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Its JSON text, as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The text of a message, with this in the place of its `request_id`.
    #[must_use]
    pub fn in_message(&self, message: &Map<String, Value>) -> String {
        let member = |(name, value): (&String, &Value)| {
            let name = Value::from(name.as_str());
            if name == "request_id" {
                format!("{name}:{}", self.text())
            } else {
                format!("{name}:{value}")
            }
        };
        let members: Vec<_> = message.iter().map(member).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Whether its value, as JSON readers with floats have it, is this one.
    #[must_use]
    pub fn rounds_to(&self, value: &Value) -> bool {
        self.value().as_ref() == Some(value)
    }

    /// Its value; a number that has no exact one here is the nearest float.
    fn value(&self) -> Option<Value> {
        serde_json::from_str(self.text()).ok()
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        match (Decimal::read(self.text()), Decimal::read(other.text())) {
            (Some(one), Some(two)) => one == two,
            (None, None) => self.text() == other.text() || self.value() == other.value(),
            _ => false,
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A JSON number as sign, digits and exponent: `digits * 10^exponent`, without zeros at either end of `digits`.
#[derive(Debug, Eq, PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i128,
}

impl Decimal {
    /// `None` when the text is no JSON number, or its exponent is beyond 64 bits.
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, i128::from(exponent.parse::<i64>().ok()?)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_end_matches('0');
        let trimmed = i128::try_from(all.len() - digits.len()).ok()?;
        let places = i128::try_from(fraction.len()).ok()?;
        let digits = digits.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self {
                negative: false,
                digits,
                exponent: 0,
            });
        }
        Some(Self {
            negative,
            digits,
            exponent: exponent - places + trimmed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RequestId {
        RequestId::of(format!("{{\"request_id\":{text}}}").as_bytes()).unwrap()
    }

    #[test]
    fn numbers_are_equal_when_their_values_are_however_they_are_written() {
        for (one, two) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("100", "1E+2"),
            ("0", "-0.00"),
            ("18446744073709551617", "1.8446744073709551617e19"),
            ("0.1", "1e-1"),
        ] {
            assert_eq!(id(one), id(two), "{one} {two}");
        }
    }

    #[test]
    fn numbers_that_round_to_one_float_are_two() {
        for (one, two) in [
            ("18446744073709551616", "18446744073709551617"),
            ("-9223372036854775809", "-9223372036854775810"),
            ("0.1", "0.1000000000000000000001"),
            ("1e400", "1e401"),
            ("1", "-1"),
            ("1", "\"1\""),
        ] {
            assert_ne!(id(one), id(two), "{one} {two}");
        }
    }

    #[test]
    fn texts_are_equal_however_they_are_escaped() {
        assert_eq!(id("\"a\""), id("\"\\u0061\""));
        assert_ne!(id("\"a\""), id("\"A\""));
    }

    #[test]
    fn an_id_is_written_as_it_was_read_and_the_last_of_two_counts() {
        for text in ["18446744073709551617", "1.10", "\"a\\u0062\"", "{}"] {
            assert_eq!(serde_json::to_string(&id(text)).unwrap(), text);
        }
        let twice = RequestId::of(br#"{"request_id":1,"request_id":2}"#).unwrap();
        assert_eq!(twice.text(), "2");
    }

    #[test]
    fn a_message_that_is_read_and_written_keeps_its_id() {
        let line = r#"{"kind":"response","request_id":18446744073709551617,"result":{"a":"\""}}"#;
        let Value::Object(message) = serde_json::from_str(line).unwrap() else {
            panic!("no object");
        };
        let id = RequestId::of(line.as_bytes()).unwrap();

        assert!(id.rounds_to(&message["request_id"]));
        assert_eq!(id.in_message(&message), line);
    }

    #[test]
    fn what_has_no_id_has_none() {
        for line in [
            "{}",
            "[]",
            "7",
            "{\"request_id\":null}",
            "{\"request_id\":",
            "",
        ] {
            assert_eq!(RequestId::of(line.as_bytes()), None, "{line}");
        }
    }
}
