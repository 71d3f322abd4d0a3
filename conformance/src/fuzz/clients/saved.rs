//! A case that fails, in the header of its transcript, and a case from one.

use super::{Case, Kind, report::Failure};
use crate::transcript::{Transcript, text};

/// The note that carries the case begins so.
const CASE: &str = "case: ";

/// Writes the case and what is wrong into the header.
pub fn mark(transcript: &mut Transcript, seed: u64, number: u64, case: &Case, what: &str) {
    transcript.header.notes = vec![
        format!("seed {seed}, number {number}"),
        format!("{CASE}{}", case.to_json()),
        what.replace(['\n', '\r'], " "),
    ];
}

/// The case that a transcript was saved for, and its number; `None` when its header carries none.
pub fn case_of(transcript: &Transcript) -> Option<(u64, Case)> {
    let notes = || transcript.header.notes.iter().map(|note| note.trim());
    let case = notes().find_map(|note| note.strip_prefix(CASE))?;
    let number = notes().find_map(|note| note.split_once("number ")?.1.parse().ok())?;
    Some((number, serde_json::from_str(case).ok()?))
}

/// Name of its file.
pub fn file_name(kind: Kind, seed: u64, failure: &Failure) -> String {
    format!(
        "{}-client-seed-{seed}-case-{}.{}",
        kind.suite(),
        failure.number,
        text::EXTENSION
    )
}
