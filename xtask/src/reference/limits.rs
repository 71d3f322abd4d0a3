//! The page of limits: the named constants of `spec/`, with their comments, as they stand in the source.

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
    let mut text = String::from("| name | value | |\n| --- | --- | --- |\n");
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
            let _ = writeln!(text, "| `{name}` | `{value}` | {} |", cell(said.trim()));
        }
        said.clear();
    }
    text
}
