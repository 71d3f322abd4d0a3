//! One file a command. Each resolves its arguments, does its work, prints, and says how the process ends.
//!
//! - [`client`], [`demo`], [`server`], [`adapter`], [`provider`], [`prove`]: runs; [`run`] and [`target`] are what they share;
//! - [`check`], [`diff`]: recorded traffic, offline;
//! - [`fuzz`]: random conversations;
//! - [`list`], [`explain`], [`coverage`]: the catalogue; they run nothing;
//! - [`record`], [`replay`]: what passes is recorded, and played again;
//! - [`serve`], [`mock`]: servers, until they are told to stop;
//! - [`chat`]: the reference client in a terminal; [`completions`].

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::{
    args::{Format, PrintArgs},
    console::Console,
    exit::{CONFORMANT, CliError},
};
use crate::report::schemas;

pub(super) mod adapter;
pub(super) mod chat;
pub(super) mod check;
pub(super) mod client;
pub(super) mod completions;
pub(super) mod coverage;
pub(super) mod demo;
pub(super) mod diff;
pub(super) mod explain;
pub(super) mod fuzz;
pub(super) mod list;
pub(super) mod mock;
pub(super) mod prove;
pub(super) mod provider;
pub(super) mod record;
pub(super) mod replay;
pub(super) mod serve;
pub(super) mod server;

mod run;
mod target;

/// Prints a value as it was asked for: as text, as JSON, or its schema.
fn print<T: JsonSchema + Serialize>(
    console: &Console,
    how: PrintArgs,
    value: impl FnOnce() -> Result<T, CliError>,
    human: impl FnOnce(&T) -> String,
) -> Result<u8, CliError> {
    if how.schema {
        return schema::<T>(console);
    }
    let value = value()?;
    let text = match how.format {
        Format::Human => human(&value),
        Format::Json => json(&value)?,
    };
    console.print(&text)?;
    Ok(CONFORMANT)
}

/// Prints the schema of a type.
fn schema<T: JsonSchema>(console: &Console) -> Result<u8, CliError> {
    console.print(&schemas::text::<T>())?;
    Ok(CONFORMANT)
}

/// A file beside this path, which can become the file there when everything is written: whether there may be one is
/// known before the work begins. Nothing takes the place of a folder or a device.
fn beside(path: &Path) -> Result<NamedTempFile, CliError> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(CliError::Usage(format!(
            "{} is no file; name one",
            path.display()
        )));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))
        .map_err(|error| CliError::file("write", path, &error))
}

fn json<T: Serialize>(value: &T) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value);
    text.map_err(|error| CliError::Harness(format!("cannot write JSON: {error}")))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn no_file_takes_the_place_of_a_device_or_a_folder() {
        for path in ["/dev/null", "/"] {
            let error = beside(Path::new(path)).unwrap_err();
            assert_eq!(error.to_string(), format!("{path} is no file; name one"));
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(beside(&folder.path().join("new.twire")).is_ok());
    }
}
