//! The session-update face over real sockets, and over pipes as a child has them.

mod conversation;
mod storage;
mod support;
