//! The Covel protocol: what its two event streams, its commands and its queries are made of.
//!
//! - [`events`]: every event in one table, with [`meta`] as the type of its rows;
//! - [`envelope`]: the frames of both streams, and the control frames;
//! - [`payloads`]: what each event tells;
//! - [`commands`] and [`queries`]: the bodies of requests and answers;
//! - [`endpoints`]: which requests there are, and [`errors`], how they are refused;
//! - [`shape`]: the notation for JSON objects, and [`vocabulary`], the closed sets of words;
//! - [`limits`]: every period, size and count.
//!
//! Not here: how a stream of bytes becomes frames (`sse`), and who sends what when (that is the
//! business of a server).
//!
//! Source: seed 000. Where the seed is silent, the public sources of the protocol fill in, and a
//! row says so; where both are silent, the row is marked as ours, and no check may insist on it.

pub mod commands;
pub mod endpoints;
pub mod envelope;
pub mod errors;
pub mod events;
pub mod limits;
pub mod meta;
pub mod payloads;
pub mod queries;
pub mod shape;
pub mod vocabulary;

pub use endpoints::{ENDPOINTS, Endpoint, EndpointKind, endpoint};
pub use envelope::{Connected, Heartbeat, ProtocolEvent, Reset, ResetReason, SseEnvelope};
pub use errors::{ERROR_CODES, ErrorBody};
pub use events::{EVENTS, event};
pub use meta::{ActionStream, EventMeta, SUBSCRIPTION_TOPICS, Source, Topic, TopicRule};
pub use payloads::EventPayload;
