//! Does a request meet a rule's conditions, and if not, which ones does it miss.
//!
//! - [`facts`]: what a wire module reads from a request, in one model for all wires.
//! - `judge`: conditions against facts.
//! - `near`: how far a text is from the one that was wanted.
//! - `text`: globs, texts and paths into JSON.
//!
//! Matching looks at facts and state and at nothing else. It is pure; counting uses and choosing
//! replies is the mock's.

pub mod facts;
mod judge;
mod near;
mod text;

pub use facts::{Facts, Speaker, Talk, ToolResult, Turn};
pub use judge::{Mismatch, conditions, matches, mismatches};
pub(crate) use text::check_path;
