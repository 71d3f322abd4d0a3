//! Values of script files that can be written down and mean nothing: a status that does not exist, a header that
//! cannot be sent, half a byte. They are refused where a script is read, with what would be right.
//!
//! The builder does not ask here: who writes Rust may want to see what a mock makes of nonsense.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde::de::{Deserialize, Deserializer, Error};

use super::errors::{ErrorForm, ErrorReply};
use super::{Rule, SocketReply};
use crate::matching::check_path;

/// Statuses of a raw reply: three digits, and none that is only sent before the real one.
const RAW: std::ops::RangeInclusive<u64> = 200..=999;
/// Statuses of errors.
const ERRORS: std::ops::RangeInclusive<u64> = 400..=599;

/// The status of a raw reply.
pub(super) fn raw_status<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let status = u64::deserialize(from)?;
    let good = u16::try_from(status).ok().filter(|_| RAW.contains(&status));
    good.ok_or_else(|| {
        D::Error::custom(format!(
            "a raw reply has a status from 200 to 999, not {status}"
        ))
    })
}

/// The status of an error; whether it is one of an error is asked later, when its form is known.
pub(super) fn error_status<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let status = u64::deserialize(from)?;
    let good = u16::try_from(status).ok();
    good.ok_or_else(|| D::Error::custom(no_error(status)))
}

fn no_error(status: u64) -> String {
    let told = match status {
        0 => "an error has a `status`".to_owned(),
        _ => format!("an error has a status other than {status}"),
    };
    format!(
        "{told}: 400 to 599, or 200 with `form: base_resp` or a `body`; see `raw` for all others"
    )
}

/// Whether an error is one.
pub(super) fn error(error: &ErrorReply) -> Result<(), String> {
    let status = u64::from(error.status);
    let odd = error.form == Some(ErrorForm::BaseResp) || error.body.is_some();
    if ERRORS.contains(&status) || (status == 200 && odd) {
        return Ok(());
    }
    Err(no_error(status))
}

/// Whether a rule can answer.
pub(super) fn rule(rule: &Rule) -> Result<(), String> {
    if rule.replies.is_empty() {
        return Err("a rule has a `reply`, or `replies` of which there is one at least".to_owned());
    }
    Ok(())
}

/// Whether bytes for a socket are there, or its end is not the usual one.
pub(super) fn socket(socket: &SocketReply) -> Result<(), String> {
    if *socket == SocketReply::default() {
        return Err("a socket reply has `text`, `hex` or `then`".to_owned());
    }
    Ok(())
}

/// Names and values of response headers.
pub(super) fn headers<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let headers: BTreeMap<String, String> = header_names(from)?;
    for (name, value) in &headers {
        if HeaderValue::from_str(value).is_err() {
            let told =
                format!("the header {name:?} cannot have the value {value:?}: visible ASCII only");
            return Err(D::Error::custom(told));
        }
    }
    Ok(headers)
}

/// Anything by the names of headers.
pub(super) fn header_names<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let headers = BTreeMap::<String, T>::deserialize(from)?;
    match headers
        .keys()
        .find(|name| HeaderName::try_from(name.as_str()).is_err())
    {
        Some(name) => Err(D::Error::custom(format!(
            "no header can be called {name:?}: letters, digits and `-`, without blanks"
        ))),
        None => Ok(headers),
    }
}

/// Bytes as pairs of hexadecimal digits; blanks may separate them.
pub(super) fn hex<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let told = match digits.iter().find(|c| !c.is_ascii_hexdigit()) {
        Some(c) => format!("{c:?} is no hexadecimal digit"),
        None if digits.len() % 2 == 1 => "half a byte is left over".to_owned(),
        None => return Ok(text),
    };
    Err(D::Error::custom(format!(
        "`hex` is pairs of hexadecimal digits, such as `00 ff`: {told}"
    )))
}

/// A rate above zero.
pub(super) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let rate = Option::<f64>::deserialize(from)?;
    match rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
        Some(bad) => Err(D::Error::custom(format!(
            "a rate is a number above 0, not {bad}"
        ))),
        None => Ok(rate),
    }
}

/// A size of at least 1.
pub(super) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    match Option::<usize>::deserialize(from)? {
        Some(0) => Err(D::Error::custom("a size is 1 at least, not 0")),
        size => Ok(size),
    }
}

/// Anything by paths into JSON.
pub(super) fn paths<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let paths = BTreeMap::<String, T>::deserialize(from)?;
    for path in paths.keys() {
        check_path(path).map_err(D::Error::custom)?;
    }
    Ok(paths)
}

/// Anything by JSON pointers.
pub(super) fn pointers<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let pointers = BTreeMap::<String, T>::deserialize(from)?;
    for text in pointers.keys() {
        pointer(text).map_err(D::Error::custom)?;
    }
    Ok(pointers)
}

/// A list of JSON pointers.
pub(super) fn pointer_list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let pointers = Vec::<String>::deserialize(from)?;
    for text in &pointers {
        pointer(text).map_err(D::Error::custom)?;
    }
    Ok(pointers)
}

fn pointer(text: &str) -> Result<(), String> {
    if text.starts_with('/') {
        return Ok(());
    }
    Err(format!(
        "{text:?} is no JSON pointer, such as `/choices/0/delta`"
    ))
}
