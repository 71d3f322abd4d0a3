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
//! - [`inputs`]: what happens to a client, and what it wants done;
//! - [`core`]: opening a session, the subscription and its cursor, actions; [`visits`]: several sessions;
//! - `stored`: reading what the server has stored; `view`: what the session view says, merged with what is shown;
//!   `recovery`: an action whose stream was lost;
//! - `turn`: the events of a turn; `background`: jobs, suspensions, data, slots, and the other events that any
//!   stream brings; `media`: finished media;
//! - `plugins`: calls of plugins and their approvals; [`debug`]: the stored trace and the debug page;
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
pub mod debug;
pub mod edge;
mod history;
pub mod inputs;
mod media;
mod plugins;
mod recovery;
pub mod shown;
mod stored;
mod turn;
mod view;
pub mod visits;

pub use core::Core;
pub use inputs::{Ask, Command, Input, Person, Timer};
pub use shown::Shown;
pub use visits::Visits;
