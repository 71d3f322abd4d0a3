//! The wire of Gemini's OpenAI-compatible endpoint: Chat Completions, with Gemini's thoughts and signatures.
//!
//! Thoughts come within `<thought>` tags or as marked deltas. Calls are signed in `extra_content`, and the
//! signature goes back on the same call; to another model or address nothing of it goes.
//!
//! Source: seed 000, line 536; section 5 of the facts about the wires.

use std::collections::BTreeSet;

use super::continuation::Origin;
use super::http::Outgoing;
use super::openai_chat::{Dialect, read, write};
use super::read::Reader;
use super::refusal::Fault;
use super::wires::Asking;

pub(super) fn outgoing(asking: &Asking<'_>) -> Result<Outgoing, Fault> {
    write(asking, Dialect::Gemini)
}

pub(super) fn reader(origin: Origin, taken: BTreeSet<String>) -> impl Reader {
    read(origin, taken, Dialect::Gemini)
}
