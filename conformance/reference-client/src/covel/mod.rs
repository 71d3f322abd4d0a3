//! A Covel client: what it shows of one session, and how it keeps that true.
//!
//! ```text
//! person, answers, frames, timers ---> Core ---> commands (ask, post, subscribe, wait) ---> edge (sockets)
//!                                        |
//!                                      Shown ---> report
//! ```
//!
//! - [`shown`]: what a person sees, and the report of it;
//! - `control`: commands, controls of plugins, interjections, and what the client keeps in a store of its own;
//! - `history`: traces, and failed tasks with what became of them;
//! - [`core`]: opening a session, the subscription and its cursor, actions, recovery of what was lost;
//! - `turn`: the events of a turn; `background`: jobs, suspensions, data, slots, and the other events that any
//!   stream brings; `view`: what the session view says, merged with what is shown;
//! - [`edge`]: the I/O.
//!
//! Two rules carry the rest. What the server says it has stored wins over what was shown while it streamed. And an
//! answer counts only for the visit of the session that asked for it, and never over an event that came after the
//! question.
//!
//! Source: the catalogue's entries that bind `client`; their ids stand beside the code.

mod background;
mod control;
pub mod core;
pub mod edge;
mod history;
pub mod shown;
mod turn;
mod view;

pub use core::{Ask, Command, Core, Input, Person, Timer};
pub use shown::Shown;
