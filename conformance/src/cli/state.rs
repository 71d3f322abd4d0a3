//! The last results of each suite, for `explain` and `coverage`.
//!
//! They are kept as JSON under `$XDG_STATE_HOME/turnwire/last` (else `~/.local/state/turnwire/last`):
//! `SUITE.json` is the last [`Report`], `SUITE.prove.json` the last [`Proof`]. A missing or unreadable file means that there
//! was no run; that it cannot be written is worth a note and no failure.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::console::Console;
use crate::report::Report;

/// What the last proof of a suite showed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Proof {
    /// Start of the run, RFC 3339.
    pub(super) started: String,
    /// Requirements that it looked at.
    pub(super) judged: BTreeSet<String>,
    /// Those that were proven.
    pub(super) proven: BTreeSet<String>,
}

/// The last report of a suite.
pub(super) fn last_report(suite: &str) -> Option<Report> {
    read(&format!("{suite}.json"))
}

/// The last proof of a suite.
pub(super) fn last_proof(suite: &str) -> Option<Proof> {
    read(&format!("{suite}.prove.json"))
}

/// Keeps a report.
pub(super) fn keep_report(report: &Report, console: &Console) {
    keep(&format!("{}.json", report.suite), report, console);
}

/// Keeps a proof; what an earlier one showed of other requirements stays.
pub(super) fn keep_proof(suite: &str, proof: Proof, console: &Console) {
    let mut kept = last_proof(suite).unwrap_or_default();
    kept.proven.retain(|id| !proof.judged.contains(id));
    kept.proven.extend(proof.proven);
    kept.judged.extend(proof.judged);
    kept.started = proof.started;
    keep(&format!("{suite}.prove.json"), &kept, console);
}

fn read<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_slice(&fs::read(folder()?.join(name)).ok()?).ok()
}

fn keep<T: Serialize>(name: &str, value: &T, console: &Console) {
    let Some(folder) = folder() else { return };
    let path = folder.join(name);
    let written = serde_json::to_vec(value)
        .map_err(std::io::Error::other)
        .and_then(|text| {
            fs::create_dir_all(&folder)?;
            // Another run may read it at this moment, so it appears all at once.
            let file = tempfile::NamedTempFile::new_in(&folder)?;
            fs::write(file.path(), text)?;
            file.persist(&path)?;
            Ok(())
        });
    if let Err(error) = written {
        console.note(&format!(
            "note: the result is not kept for `turnwire explain`: {}: {error}",
            path.display()
        ));
    }
}

fn folder() -> Option<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty());
    let state = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let windows = || variable("LOCALAPPDATA").map(PathBuf::from);
    Some(
        state
            .or_else(home)
            .or_else(windows)?
            .join("turnwire")
            .join("last"),
    )
}
