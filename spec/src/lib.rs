//! What Turnwire knows about the protocols that it checks and serves.
//!
//! In reading order:
//!
//! - [`sse`]: bytes to server-sent events, and back;
//! - [`cursor`]: the `<epoch>:<seq>` cursor of a subscription;
//! - [`time`]: the timestamps on the wire;
//! - [`words`]: closed sets of words, written once;
//! - [`catalogue`]: the requirements, and [`seeds`], the documents that they are taken from;
//! - [`chat_ws`]: frames, limits and close codes of the chat protocol over a WebSocket;
//! - [`covel`]: events, envelopes, commands, queries, limits and vocabularies of the Covel protocol;
//! - [`session_update`]: messages, events and methods of the session-update protocol;
//! - [`llm`]: the wires between a client and a model service;
//! - [`secrets`]: where secrets stand in what goes over a wire;
//! - [`schema`]: JSON Schemas of all of it, made from the types.
//!
//! This crate does no I/O, reads no clock and knows no runtime: drivers, mocks, proxies and faces
//! own the sockets, and hand in bytes and times.

pub mod catalogue;
pub mod chat_ws;
pub mod covel;
pub mod cursor;
pub mod llm;
pub mod schema;
pub mod secrets;
pub mod seeds;
pub mod session_update;
pub mod sse;
pub mod time;
pub mod words;
