//! The reference clients: what a client of each protocol has to do, small enough to learn from.
//!
//! - [`event_source`]: a reader of event streams by the rules of the WHATWG, with reconnecting;
//! - [`covel`]: a client of the Covel protocol: what it shows, and how it keeps that true;
//! - [`relay`]: answers relayed model requests with a model on the player's own machine;
//! - [`http`]: the HTTP/1.1 client that all stand on.
//!
//! Each client is a core that decides and does no I/O, and an edge that owns the sockets. The core takes what
//! happened and says what to do next, so every rule can be tested without a connection.
//!
//! Not here: what is under test and how it is judged; that is the harness.

pub mod covel;
pub mod event_source;
pub mod http;
pub mod relay;
