//! Calls to language models: one client over all wires.
//!
//! In reading order:
//!
//! - what is said: [`message`](ChatMessage), [`request`](ModelRequest), [`reply`](ModelReply),
//!   [`error`](GatewayError), and what a service wants back ([`Continuation`]);
//! - how: [`settings`](ClientConfig), and [`Client`], which waits, tries again and falls back;
//! - a file or folder a wire, by the names of [`turnwire_spec::llm`]: what a request looks like, and how an
//!   answer is put together, without I/O;
//! - what all wires share: images and the model table, the history, thinking in tags, error bodies, retry
//!   times, structured output, the traces of what was sent, HTTP.
//!
//! The engine knows only the traits of this file. It tries failed calls again by its own policy, because it
//! has to take back what it has shown; a client on its own tries again before an answer has begun.
//!
//! ```
//! use turnwire_reference::gateway::{ChatMessage, Client, ClientConfig, ModelRequest, TargetConfig};
//! use turnwire_mock::{MockConfig, MockServer, Reply, Rule, Script, Wire};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let mock = MockServer::start(MockConfig::default()).await.unwrap();
//! mock.load(Script::new("greeting").rule(Rule::on("hello").reply(Reply::text("Hello to you."))));
//!
//! let target = TargetConfig::new(Wire::OpenaiChat, &mock.base_url(), "mock-model").key("sk-test");
//! let client = Client::new(ClientConfig::new(target)).unwrap();
//! let outcome = client
//!     .ask(ModelRequest {
//!         messages: vec![ChatMessage::User { content: "hello".into() }],
//!         streaming: true,
//!         ..ModelRequest::default()
//!     })
//!     .await;
//! assert_eq!(outcome.result.unwrap().text, "Hello to you.");
//! # mock.shutdown().await;
//! # });
//! ```
//!
//! Source: seed 000, lines 513-568 and 1153-1211.

mod client;
mod continuation;
mod draft;
mod error;
mod fallback;
mod history;
mod http;
mod images;
mod json;
mod message;
mod models;
mod read;
mod refusal;
mod reply;
mod request;
mod retry;
mod schema;
mod settings;
mod think;
mod trace;
mod wires;

mod anthropic_messages;
mod gemini;
mod gemini_openai;
mod openai_chat;
mod openai_responses;

use async_trait::async_trait;

pub use self::client::{BadClient, Call, Client, Outcome};
pub use self::continuation::Continuation;
pub use self::error::{CONFIG_ERROR, ErrorKind, GatewayError};
pub use self::http::BadBaseUrl;
pub use self::message::{ChatMessage, Content, ContentPart, ToolChoice, ToolRequest, ToolSpec};
pub use self::reply::{FinishReason, ModelEvent, ModelReply, TokenUsage, ToolPiece, Usage};
pub use self::request::{CallOptions, ModelRequest, Target, Thinking};
pub use self::settings::{
    ClientConfig, GatewayTimeouts, RetryPolicy, TargetConfig, default_base_url, key_variable,
};
pub use self::trace::SentRequest;

/// Reaches models.
#[async_trait]
pub trait Gateway: Send + Sync + 'static {
    /// Which model answers for this role.
    fn target(&self, slot: &str) -> Target;

    /// Sends one request and returns as soon as the provider has accepted or refused it; a refusal may also
    /// be the first thing that the stream gives.
    ///
    /// Dropping the returned stream cuts the call off.
    ///
    /// # Errors
    ///
    /// [`GatewayError`] when the provider refused, could not be reached, or was not in time.
    async fn call(&self, request: ModelRequest) -> Result<Box<dyn ModelStream>, GatewayError>;
}

/// The answer to one request while it comes in.
#[async_trait]
pub trait ModelStream: Send {
    /// The next piece, or `None` after [`ModelEvent::Done`].
    ///
    /// # Errors
    ///
    /// [`GatewayError`] when the answer breaks off; nothing follows it.
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>>;

    /// The requests that were sent for it. Nothing, where nobody observes them.
    fn sent(&self) -> &[SentRequest] {
        &[]
    }
}

#[cfg(test)]
mod tests;
