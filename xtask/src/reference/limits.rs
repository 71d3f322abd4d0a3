//! The page of limits: the named constants of `spec/`, with their comments.
//!
//! They are read from the source, because a constant has no comment once it is compiled. A value that is more than
//! numbers, times, sums of bytes and lists of them is shown as it stands there.

use std::{fmt::Write as _, path::Path};

use super::schemas::cell;
use crate::ChoreError;

const SOURCES: &[(&str, &str)] = &[
    ("covel-sse", "spec/src/covel/limits.rs"),
    ("session-update", "spec/src/session_update/limits.rs"),
    ("chat-ws", "spec/src/chat_ws/limits.rs"),
    ("sse", "spec/src/sse/limits.rs"),
];

/// The page.
///
/// # Errors
///
/// [`ChoreError::File`] when a source cannot be read.
pub(super) fn page(root: &Path) -> Result<String, ChoreError> {
    let mut text = String::from("# Limits\n\nPeriods are those before time scaling.\n\n");
    for (suite, path) in SOURCES {
        let source =
            std::fs::read_to_string(root.join(path)).map_err(|error| ChoreError::File {
                path: (*path).to_owned(),
                why: error.to_string(),
            })?;
        let _ = writeln!(text, "## {suite}\n\n{}", table(&source));
    }
    Ok(text)
}

/// The constants of a source as a table.
pub(super) fn table(source: &str) -> String {
    let mut text = String::from("| name | value | meaning |\n| --- | --- | --- |\n");
    let mut said: Vec<&str> = Vec::new();
    for line in source.lines() {
        if let Some(comment) = line.strip_prefix("///") {
            said.push(comment.trim());
            continue;
        }
        let constant = line.strip_prefix("pub const ").and_then(|rest| {
            let (name, rest) = rest.split_once(':')?;
            let (_, value) = rest.split_once('=')?;
            Some((name, value.trim().trim_end_matches(';')))
        });
        if let Some((name, value)) = constant {
            let said = said.join(" ");
            let value = shown(name, value).unwrap_or_else(|| format!("`{value}`"));
            let _ = writeln!(text, "| `{name}` | {value} | {} |", cell(said.trim()));
        }
        said.clear();
    }
    text
}

/// A value for people: `30 s`, `20 MiB`, `100,000`; `None` when it is something else.
fn shown(name: &str, value: &str) -> Option<String> {
    let list = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .or_else(|| value.strip_prefix('(')?.strip_suffix(')'));
    if let Some(list) = list {
        let parts: Option<Vec<String>> = list
            .split(", ")
            .map(|part| shown(name, part.trim()))
            .collect();
        return Some(parts?.join(", "));
    }
    let times = [
        ("Duration::from_secs(", 1000),
        ("Duration::from_millis(", 1),
        ("secs(", 1000),
        ("millis(", 1),
    ];
    let time = times.iter().find_map(|(before, factor)| {
        let inner = value.strip_prefix(before)?.strip_suffix(')')?;
        number(inner)?.checked_mul(*factor)
    });
    if let Some(millis) = time {
        return Some(duration(millis));
    }
    let number = number(value)?;
    Some(if name.ends_with("BYTES") {
        bytes(number)
    } else {
        grouped(number)
    })
}

/// A number, a product of numbers, or a number shifted to the left.
fn number(text: &str) -> Option<u64> {
    let one = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
    if let Some((left, right)) = text.split_once("<<") {
        return one(left)?.checked_shl(u32::try_from(one(right)?).ok()?);
    }
    text.split('*')
        .try_fold(1u64, |product, factor| product.checked_mul(one(factor)?))
}

fn duration(millis: u64) -> String {
    match millis {
        0 => "0 s".to_owned(),
        _ if millis.is_multiple_of(60_000) && millis > 60_000 => format!("{} min", millis / 60_000),
        _ if millis.is_multiple_of(1000) => format!("{} s", millis / 1000),
        _ => format!("{millis} ms"),
    }
}

fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 2] = [(1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS
        .iter()
        .find(|(size, _)| bytes >= *size && bytes.is_multiple_of(*size));
    match unit {
        Some((size, unit)) => format!("{} {unit}", bytes / size),
        None => format!("{} B", grouped(bytes)),
    }
}

/// With a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
