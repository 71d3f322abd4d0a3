//! The form of a scripted conversation: acts of steps, written in YAML.
//!
//! An [`ActScript`] has a fresh client, a session named like the act, and a [`World`](super::world) that answers
//! what the steps do not. A step is one thing that the person, the server or the network does.

use serde::Deserialize;
use serde_json::Value;

/// One act.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActScript {
    /// Name: the label in transcripts, and the id of the session.
    pub act: String,
    /// One line for people.
    #[serde(default)]
    pub about: String,
    /// What the server's answers hold, merged into the usual ones.
    #[serde(default)]
    pub world: Value,
    /// More of the client's environment.
    #[serde(default)]
    pub env: std::collections::BTreeMap<String, String>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// The person opens the session; the subscription that comes of it is answered.
    Open,
    /// The person does this; the line is sent to the client as it stands.
    Do(Value),
    /// The person says this; the action that comes of it gets an open stream.
    Say(String),
    /// The action that comes next gets an open stream.
    Take,
    /// The subscription that comes next is answered, with this cursor in `system.connected`; the world's without.
    Accept(Option<String>),
    /// As [`Step::Accept`], before the client has any cursor: one that waits for the view cannot do that, and what the
    /// rest of the act is about does not happen to it.
    Join(Option<String>),
    /// The request that comes next for this path, or member of the world, is answered with this status and code.
    Refuse(String, u16, String),
    /// As [`Step::Reply`], for the request that shows whether the client can do at all what the person wants.
    First(String, u16, Value),
    /// The request that comes next for this path is answered with this status and JSON.
    Reply(String, u16, Value),
    /// The connection of the request that comes next for this path is reset.
    Break(String),
    /// The open stream of the action becomes `earlier`; what comes next is another action's.
    Aside,
    /// A step in another session than the act's.
    In(String, Box<Step>),
    /// A frame of the action: type, payload, and members of the envelope.
    Frame(Vec<Value>),
    /// A frame of the subscription: type, payload, and members of the event.
    Event(Vec<Value>),
    /// A control frame of the subscription, which has no id: type, data.
    Control(String, Value),
    /// Bytes on a stream, as they stand.
    Raw(StreamName, String),
    /// A frame of the action, one byte at a time.
    Bytewise(Vec<Value>),
    /// A stream ends properly.
    End(StreamName),
    /// A stream's connection is reset.
    Cut(StreamName),
    /// The server's answers change: merged into the world.
    World(Value),
    /// Requests for this member of the world, or for this path, stay without an answer until they are released.
    Hold(String),
    /// The oldest request for this one is answered from the world, and later ones are again.
    Release(String),
    /// The request that comes next for this one is answered from the world, and others go on waiting.
    Answer(String),
    /// The request that comes next for this one, which was held, gets the world's answer of now, but not before
    /// `give`; others are answered again.
    Keep(String),
    /// The answer that was kept is sent.
    Give,
    /// The person opens this other session, whose subscription is answered too; what follows is about it.
    Visit(String),
    /// The model relay's stream is opened, which a page on a shared deployment asks for.
    RelayOpen,
    /// The model relay's stream is cut.
    RelayCut,
    /// The relay asks for a model under this id; the local model's answer is opened.
    RelayRequest(String),
    /// The local model sends, for this id, so many pieces of so many bytes.
    RelayPieces(String, usize, usize),
    /// The local model's answer for this id ends.
    RelayFinish(String),
    /// The relay takes the request of this id back.
    RelayCancel(String),
    /// Waits until the client is quiet.
    Settle,
    /// Waits so many milliseconds.
    Wait(u64),
    /// Waits so many milliseconds of the protocol, scaled.
    Period(u64),
    /// A label for what follows: `ACT/NAME`.
    Label(String),
    /// The network goes: both streams break, and nobody can be reached.
    Offline,
    /// The network comes back.
    Online,
    /// The client ends and starts afresh, as when a page is loaded again; then the session is opened.
    Reload,
}

/// A stream of the conversation.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub enum StreamName {
    /// The action's.
    Action,
    /// That of an action before.
    Earlier,
    /// The subscription's.
    Subscription,
}

/// Reads the acts of an area.
///
/// # Errors
///
/// In words, with line and column.
pub fn read(yaml: &str) -> Result<Vec<ActScript>, String> {
    serde_saphyr::from_str(yaml).map_err(|error| error.to_string())
}
