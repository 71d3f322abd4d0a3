//! The chat protocol over one WebSocket at `/ws`: every frame kind, limit, close code and word of it.
//!
//! - [`kinds`]: the table of frame kinds: who sends them, what routes them, whether they are numbered;
//! - [`client`]: what a client sends; [`server`]: what a server sends; [`notice`]: why a turn dead-ended;
//! - [`read`]: a text as a frame of a client, or why it is none;
//! - [`limits`]: periods, sizes and counts; [`close`]: close codes.
//!
//! Every frame is one JSON object `{ "type": string, "payload": object }` in one text message; `ping` and `pong`
//! are `{ "type": string }` alone. Reading of frames is here, sockets and turns are the server's.
//!
//! Source: seed 004.

pub mod client;
pub mod close;
pub mod kinds;
pub mod limits;
pub mod notice;
pub mod read;
pub mod server;

pub use client::ClientFrame;
pub use kinds::{KINDS, Kind, kind};
pub use notice::{NoticeKind, TurnNotice};
pub use read::{NotAFrame, read_client};
pub use server::{Routing, ServerFrame, Usage};

/// The path at which the socket is opened. Source: seed 004, line 3.
pub const PATH: &str = "/ws";

/// The slug of chats outside any project. Source: seed 004, line 14.
pub const SCRATCH: &str = "scratch";

/// What stands for the slug in the answer to a text that is no frame, so that there is none.
///
/// Source: public sources; the seed only says that the members are strings.
pub const NO_SLUG: &str = "?";
