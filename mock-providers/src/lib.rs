//! Mock LLM providers: a server that speaks the wires of model services and says what a script says.
//!
//! - [`script`]: what to answer to which request; a builder and one file format.
//! - [`matching`]: does a request meet a rule's conditions, and if not, why.
//! - [`wires`]: one file a wire: reading requests, writing answers.
//! - [`verify`]: what a request may not say, one file a wire.
//! - [`faults`]: from an answer's bytes to what happens on the socket, and when.
//! - [`journal`]: what was asked, what was answered, how it ended.
//! - [`server`]: sockets and the control API; [`tap`]: watching every byte.
//! - [`record`]: a proxy that records a real service into a script.
//!
//! A reply is made once, as bytes with marks between events; faults and delays are a plan over those
//! bytes. So a cut can be asked for at any byte, and what is not cut is always the same.
//!
//! Not here: real models, real money, and any client of these wires. All time is Tokio's, so a test
//! with a paused clock moves it.
//!
//! ```
//! use turnwire_mock::{MockConfig, MockServer, Reply, Rule, Script};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let mock = MockServer::start(MockConfig::default()).await.unwrap();
//! mock.load(Script::new("greeting").rule(Rule::on("hello").reply(Reply::text("Hello to you."))));
//! // Point a client at mock.base_url(), then look at mock.journal().
//! mock.shutdown().await;
//! # });
//! ```

pub mod faults;
pub mod journal;
pub mod matching;
pub mod record;
pub mod script;
pub mod server;
pub mod tap;
pub mod verify;
pub mod wires;

mod ids;
mod mock;

pub use journal::{JournalEntry, Outcome};
pub use mock::{LoadedScript, Mock, MockConfig, ScriptId, Unmatched, Verify};
pub use script::{
    Call, Chunking, Cut, CutHow, Edit, ErrorForm, ErrorReply, Faults, Finish, Framing, Position,
    RawEvent, RawReply, Reasoning, Reply, Rule, Script, ScriptError, Service, SocketEnd,
    SocketReply, TextMatch, Timing, Until, Usage, Variation, When,
};
pub use server::{MockError, MockServer, ServeOptions, serve};
pub use tap::Tap;
pub use turnwire_spec::llm::Wire;
