//! Judging without a target: checks over transcripts and HAR files.
//!
//! - [`file`]: a file, whichever of the two forms it has;
//! - [`detect`]: which protocol its traffic belongs to;
//! - [`report`]: verdicts over files, as a run would give them.
//!
//! Every check runs over every file. A check that needs a scenario's labels finds them in a transcript of that
//! scenario and nowhere else; then its requirement is not exercised, which never passes. Reading files is here,
//! printing is not.

pub mod detect;
pub mod file;
pub mod report;
#[cfg(test)]
mod tests;

pub use detect::detect;
pub use file::{FileError, Source, load};
pub use report::{Checked, check};
