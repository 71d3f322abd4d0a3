//! The faces: what the engine does, in the words of each protocol.
//!
//! - [`covel`]: `/api/...`, two event streams;
//! - [`chat_ws`]: one WebSocket at `/ws`;
//! - [`session_update`]: lines of JSON over a socket or stdio;
//! - [`doors`]: under which names a server is asked, and by whose pages;
//! - [`writer`]: one connection's outgoing frames, their bound and their limits;
//! - [`http_stream`]: such a writer as the body of a response; [`connection`]: what lies below it.

pub mod chat_ws;
pub mod connection;
pub mod covel;
pub mod doors;
pub mod http_stream;
pub mod session_update;
#[cfg(test)]
pub(crate) mod test_wire;
pub mod writer;
