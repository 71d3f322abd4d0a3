//! The faces: what the engine does, in the words of each protocol.
//!
//! - [`writer`]: one connection's outgoing frames, their bound and their limits.

pub mod writer;
