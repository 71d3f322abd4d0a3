//! Rules and rewrites about messages: of a WebSocket, or of a channel of lines; and about what a client
//! under test reports of itself.
//!
//! A message is one WebSocket message, one control frame, or one line. Its kind is told by its JSON: the member
//! `type`; else, where there is a member `kind`, the name of the event, or the method of the request, or
//! `response`. Control frames have the kinds `:ping`, `:pong` and `:close`, a binary message `:binary`, and a text
//! that names none `:text`; such kinds are selected only when they are asked for.
//!
//! These are members of [`Rule`](super::rule::Rule) and [`Rewrite`](super::rewrite::Rewrite), written in
//! `spec/requirements/*.yaml`; the harness's `checks::generic` and `saboteurs::generic` execute them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rewrite::JsonEdit;
use super::rule::{Count, Period};

/// Who sent a message.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// The client end.
    Client,
    /// The server end.
    #[default]
    Server,
}

/// Which messages.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Who sent them.
    pub from: Sender,
    /// Their kinds; empty means all that have JSON. `chat:*` matches a prefix.
    #[serde(rename = "type")]
    pub types: Vec<String>,
    /// Kinds that are left out, same patterns.
    pub not_type: Vec<String>,
    /// Newest label when the message passed; a prefix ending in `*` is allowed.
    pub label: Option<String>,
    /// JSON Schema: only messages whose JSON satisfies it.
    #[serde(rename = "where")]
    pub where_data: Option<Value>,
}

/// Demands on single messages.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessageRule {
    /// Who sent the messages that are judged.
    pub from: Sender,
    /// As in [`Selection`].
    #[serde(rename = "type")]
    pub types: Vec<String>,
    /// As in [`Selection`].
    pub not_type: Vec<String>,
    /// As in [`Selection`].
    pub label: Option<String>,
    /// As in [`Selection`].
    #[serde(rename = "where")]
    pub where_data: Option<Value>,
    /// JSON Schema that the message satisfies; a string names a schema of `spec/schemas`. A message that is no
    /// JSON is a fault.
    pub data: Option<Value>,
    /// Pairs of sources that are equal: `/json/pointer` of the message, or `=text` with templates
    /// `{/json/pointer}`. A pair of which one side is missing is not judged.
    pub equal: Vec<(String, String)>,
    /// `/json/pointer` of an ISO 8601 UTC time that is at most a minute away from the harness's clock.
    pub clock: Option<String>,
    /// The same source has one value in all selected messages of one channel; judged from the second one on.
    pub constant: Vec<String>,
    /// The number at this pointer rises strictly from selected message to selected message of one channel;
    /// judged from the second one on.
    pub rising: Option<String>,
    /// The source has another value in every selected message of one channel; judged from the second one on.
    pub unique: Vec<String>,
    /// No message is selected: each one is a fault. Judged are the channels in which the sender said anything,
    /// and of the other demands none. With a label, only the channels on which anything was said under it.
    pub forbidden: bool,
}

impl MessageRule {
    /// Which messages it is about.
    #[must_use]
    pub fn selection(&self) -> Selection {
        Selection {
            from: self.from,
            types: self.types.clone(),
            not_type: self.not_type.clone(),
            label: self.label.clone(),
            where_data: self.where_data.clone(),
        }
    }
}

/// Demands on whole channels.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelRule {
    /// Whose messages are looked at.
    pub from: Sender,
    /// Only channels that were opened under this label (a prefix ending in `*` is allowed).
    pub label: Option<String>,
    /// Only channels with this path, such as `/ws`; empty means all. A channel of lines has none.
    pub path: Vec<String>,
    /// The first message (control frames aside) has one of these kinds.
    pub first: Vec<String>,
    /// The kinds are within this list; kinds that begin with `:` must be listed too.
    pub only: Vec<String>,
    /// How many messages of each kind the channel has. Too few are a fault only on channels that brought anything.
    pub count: BTreeMap<String, Count>,
    /// Pairs of kinds: every message of the first comes before any of the second. Judged on channels with both.
    pub order: Vec<(String, String)>,
    /// The time from one message of a kind to the next, as in [`StreamRule`](super::rule::StreamRule).
    pub period: BTreeMap<String, Period>,
    /// How many channels the transcript has in all, under the label; judged once a transcript that has any.
    pub channels: Option<Count>,
}

/// A message and what answers it.
///
/// Judged is each message that `when` selects. The answer is looked for after it: on the same channel, unless
/// `elsewhere` says so. Where too few answers came, the message is judged only if the harness waited `within_ms`
/// (scaled, and never less than half a second, or four where an answer is wanted on another channel), or the channel
/// ended, or `until` came.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerRule {
    /// The messages that ask for an answer.
    pub when: Selection,
    /// The answers.
    pub then: Selection,
    /// Pairs of sources that tell whether an answer is one to this message: `/json/pointer` of the message, and
    /// `/json/pointer` of the answer. `=value` on either side is that text.
    pub equal: Vec<(String, String)>,
    /// How many answers there are; at least one when absent.
    pub count: Option<Count>,
    /// Answers count up to the next message of this selection; to the end of the channel when absent.
    pub until: Option<Selection>,
    /// The time in which the answers come, in milliseconds before scaling; two seconds when 0.
    pub within_ms: u64,
    /// JSON Schema that each answer satisfies.
    pub data: Option<Value>,
    /// Answers on other channels are counted instead, on each that was open when the message passed, whenever they
    /// came. What the first member of `equal` names may be told of again in another state: then only what came since.
    pub elsewhere: bool,
}

/// Demands on what a client under test reports: the last report under a label.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateRule {
    /// Labels under which reports are judged; a prefix ending in `*` is allowed. Empty means all.
    pub label: Vec<String>,
    /// JSON Schema that the report satisfies.
    pub state: Option<Value>,
    /// JSON Schema of the object that the report has as `state`: what the client shows. A client that does not
    /// report one of the members that the schema requires is not judged.
    pub shows: Option<Value>,
    /// Judges every report, and not only the last one under each label.
    pub every: bool,
    /// `/json/pointers` into what the client shows: each has one value at the end of all these labels; judged from the
    /// second label on whose reports have it.
    pub same: Vec<String>,
}

/// A change of single messages.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessageRewrite {
    /// Whose messages are changed.
    pub from: Sender,
    /// As in [`Selection`]; empty means all that have JSON.
    #[serde(rename = "type")]
    pub types: Vec<String>,
    /// As in [`Selection`].
    pub not_type: Vec<String>,
    /// JSON Schema: only messages whose JSON satisfies it.
    #[serde(rename = "where")]
    pub where_data: Option<Value>,
    /// Lets this many matching messages of a channel pass unchanged first.
    pub skip: u64,
    /// Touches only each n-th matching message of a channel, the first one included (1 or 0: every one).
    pub every: u64,
    /// Touches at most this many messages of a channel; 0: no limit.
    pub limit: u64,
    /// What happens to the message, in this order.
    #[serde(rename = "do")]
    pub edits: Vec<MessageEdit>,
}

/// One change of a message. Texts are templates: `{/json/pointer}` of the message and `{index}` (position among
/// the touched messages of the channel, from 0), as they were before the rewrite.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MessageEdit {
    /// Changes its JSON.
    Json(Vec<JsonEdit>),
    /// Replaces it by this text.
    Text(String),
    /// Removes it. What `before`, `after` and `answer` send is sent all the same.
    Drop,
    /// Sends it this many times more.
    Repeat(u64),
    /// Holds it back and sends it after the next message of its sender that has JSON.
    SwapWithNext,
    /// Holds it back for this long before it and what follows are sent, in milliseconds before scaling.
    DelayMs(u64),
    /// Sends this text before it.
    Before(String),
    /// Sends this text after it.
    After(String),
    /// Sends this text to its sender.
    Answer(String),
    /// Sends it as a binary message.
    Binary,
    /// Closes the channel towards both sides after it: with this close code on a WebSocket, by its end elsewhere.
    Close(u16),
    /// Breaks the connections off after it.
    Cut,
}
