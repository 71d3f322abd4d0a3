//! Typed readings of a transcript: what checks look at.
//!
//! - [`http`]: exchanges, with request, response, body and the label they were opened under;
//! - [`stream`]: the frames of event streams, with the time at which each was complete;
//! - [`covel`]: the two session streams of `covel-sse`: subscriptions with their cursors, action streams,
//!   and the event log of a session as all its subscribers together saw it;
//! - [`cases`]: the cases that an adapter was put through;
//! - [`messages`]: WebSocket connections and channels of lines, as messages with direction and time;
//! - [`states`]: what a client under test reported of itself;
//! - [`session_update`]: the connections, turns and rebuilds of that protocol;
//! - [`client`]: conversations with a client under test, label by label;
//! - [`request`]: what a request asks for;
//! - [`reading`]: a transcript read once, for many checks.
//!
//! Views are built on demand, borrow the transcript where they can, and judge nothing.

pub mod cases;
pub mod client;
pub mod covel;
pub mod http;
mod memory;
pub mod messages;
pub mod reading;
pub mod request;
pub mod session_update;
pub mod states;
pub mod stream;
