//! The faces: what the engine does, in the words of each protocol.
//!
//! - [`covel`]: `/api/...`, two event streams;
//! - [`writer`]: one connection's outgoing frames, their bound and their limits;
//! - [`http_stream`]: such a writer as the body of a response; [`connection`]: what lies below it.

pub mod connection;
pub mod covel;
pub mod http_stream;
#[cfg(test)]
pub(crate) mod test_wire;
pub mod writer;
