//! The executable half of a requirement, as data: what a generic check demands.
//!
//! A rule says which observations it is about (`frames` of a stream, `responses` of an endpoint, whole
//! `streams`) and what must hold for each of them. JSON is judged by JSON Schema fragments, bytes by counts
//! of event-stream lines. Behaviour that needs more logic than this is a function in the harness, not a rule.
//!
//! The harness's `checks::generic` executes these; this module only gives them their shape. Rules are written
//! in `spec/requirements/*.yaml` under the key `rule`.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::messages::{AnswerRule, ChannelRule, MessageRule, StateRule};
use super::relation::{PairRule, RelateRule};

/// What must hold, for every observation that it selects.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    /// Every selected event-stream frame is as described.
    Frames(FrameRule),
    /// Every selected HTTP response is as described.
    Responses(ResponseRule),
    /// Every selected stream as a whole is as described.
    Streams(StreamRule),
    /// What a testee reports of every selected case is what happened.
    Outcome(OutcomeRule),
    /// Every selected message of a channel is as described.
    Messages(MessageRule),
    /// Every selected channel as a whole is as described.
    Channels(ChannelRule),
    /// Every selected message is answered as described.
    Answers(AnswerRule),
    /// What a client reports of itself is as described.
    States(StateRule),
    /// What a client under test asks for is as described.
    Asked(AskedRule),
    /// What an adapter's requests let the user say is as described, on whatever wire.
    Said(SaidRule),
    /// An adapter lets time pass before it asks again.
    Waits(WaitRule),
    /// Two places of one conversation say the same, or what else holds between them.
    Relate(RelateRule),
    /// Frames that belong together are all there, in their order.
    Pairs(PairRule),
    /// All of these hold.
    All(Vec<Rule>),
}

/// Demands on what a testee (an adapter under test) reports at the end of a case. What is right stands in the
/// transcript beside the case.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutcomeRule {
    /// Cases judged: those whose id is this, or begins with this and a `/`.
    pub hazard: String,
    /// Judges the pieces that the testee handed on while the answer came in, in place of the text and the thinking
    /// that it ended up with. A report without pieces is a fault.
    pub deltas: bool,
    /// JSON Schema that the report satisfies besides.
    pub that: Option<Value>,
}

/// Demands on the time between an error of the service and the next request of the same case.
///
/// There is only a lower bound, because a busy machine makes every wait longer. A case in which nobody asks again
/// shows nothing.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WaitRule {
    /// Cases judged: those whose id is this, or begins with this and a `/`.
    pub hazard: String,
    /// Shortest time in milliseconds from an answer with status 429 or 500 and above to the next request.
    pub at_least_ms: u64,
}

/// Demands on the requests of a client under test, in the acts of some labels in which it asked for anything.
///
/// Schemas are about an object of `method`, `path`, `query` and `headers` (by name, headers in lower case) and
/// `body` (JSON, when it is) and `bytes` (the length of the body).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskedRule {
    /// Labels whose requests are judged; a prefix ending in `*` is allowed.
    pub label: Vec<String>,
    /// Request methods; empty means any.
    pub method: Vec<String>,
    /// Path templates; empty means any.
    pub path: Vec<String>,
    /// JSON Schema: only requests that satisfy it.
    #[serde(rename = "where")]
    pub where_request: Option<Value>,
    /// JSON Schema that every selected request satisfies.
    pub that: Option<Value>,
    /// Texts that no selected request has in its target or its body.
    pub without: Vec<String>,
    /// How many requests are selected under each label.
    pub count: Option<Count>,
    /// `/json/pointer` of a text that is there, not empty, and another one in each selected request of an act, under
    /// whichever of the labels; judged from the second request on.
    pub distinct: Option<String>,
    /// Whether the client leaves the selected requests before their answers are over. Only requests that came to an
    /// end are judged.
    pub left: Option<bool>,
    /// Pointers whose value is one in all selected requests of an act; judged from the second one on.
    pub constant: Vec<String>,
}

/// Demands on what the user says in an adapter's requests, read alike on all LLM wires.
///
/// A text is itself. An image is `{"type", "data", "length"}` (`length`: characters of its base64) or
/// `{"url", "path"}` (with `type` where the wire has a place for it). What cannot be read is `{"unknown"}`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SaidRule {
    /// Cases whose requests are judged: those whose id is this, or begins with this and a `/`.
    pub hazard: String,
    /// Only requests that ask for this model.
    pub model: Option<String>,
    /// The texts and images of the user's messages, in order and no others. Members of an image that are not named
    /// here are not looked at.
    pub user: Vec<Value>,
}

/// The event streams that frames come from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// `POST /api/actions`.
    Action,
    /// `GET /api/events/stream`.
    Subscription,
    /// `GET /api/model-relay/stream`.
    Relay,
}

/// Demands on single frames. A frame without a `data` or `event` line (a comment) is not selected.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrameRule {
    /// Streams whose frames are judged; empty means all.
    pub stream: Vec<StreamKind>,
    /// Frame types judged; empty means all. `system.*` matches a prefix. The type of an action frame is its
    /// `type` member, that of a named frame its `event` line.
    #[serde(rename = "type")]
    pub types: Vec<String>,
    /// Frame types not judged, same patterns.
    pub not_type: Vec<String>,
    /// Only frames of exchanges that were opened under this label (a prefix ending in `*` is allowed).
    pub label: Option<String>,
    /// JSON Schema: only frames whose data satisfies it are judged.
    #[serde(rename = "where")]
    pub where_data: Option<Value>,
    /// How many lines of each field the frame has; `:` stands for comments.
    pub lines: BTreeMap<String, Count>,
    /// Regular expression that the value of each line of a field matches. Not judged without such a line.
    pub line_pattern: BTreeMap<String, String>,
    /// The frame has lines of these fields only; `:` allows comments.
    pub only_lines: Vec<String>,
    /// JSON Schema that the frame's data satisfies; a string names a schema of `spec/schemas`.
    pub data: Option<Value>,
    /// Pairs of sources that are equal strings or values: `/json/pointer` of the data, `line:NAME`,
    /// `request:NAME` (query parameter, or member or `/json/pointer` of the JSON body), `request-header:NAME`,
    /// `header:NAME`, `path:NAME` (segment at `:NAME`, in response rules), `=text` with templates
    /// `{/json/pointer}` (any source). A pair of which one side is missing is not judged: that it is missing is
    /// another requirement's fault. Values from lines, queries and headers are compared as text.
    pub equal: Vec<(String, String)>,
    /// `/json/pointer` of an ISO 8601 UTC time that is at most a minute away from the harness's clock.
    pub clock: Option<String>,
    /// The type is the name of an event of the protocol (`spec::covel::EVENTS`), for action frames, or that or
    /// a control frame, for subscriptions.
    pub known_type: bool,
    /// The same source has one value in all selected frames of one stream; judged from the second frame on.
    pub constant: Vec<String>,
    /// The number at this pointer rises strictly from selected frame to selected frame of one stream; judged
    /// from the second frame on.
    pub rising: Option<String>,
    /// No frame is selected: each one that matches is a fault. Judged are the streams that brought any frame,
    /// and of the other demands none.
    pub forbidden: bool,
}

/// Demands on HTTP responses, head and whole body.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseRule {
    /// Request method; empty means any.
    pub method: Vec<String>,
    /// Path templates such as `/api/sessions/:id/view`; empty means any.
    pub path: Vec<String>,
    /// Only exchanges that were opened under this label (a prefix ending in `*` is allowed).
    pub label: Option<String>,
    /// Only responses with one of these statuses are judged; empty means all, and then a request that the
    /// target leaves without any response is a fault too.
    pub when_status: Vec<u16>,
    /// Only responses to requests whose query has all of these parameters (`NAME`, or `NAME=VALUE`).
    pub when_query: Vec<String>,
    /// JSON Schema: only responses to requests whose JSON body satisfies it.
    pub where_request: Option<Value>,
    /// The status is one of these; `4xx` stands for a class.
    pub status: Vec<Value>,
    /// The media type, without parameters, is one of these; case does not matter.
    pub content_type: Vec<String>,
    /// JSON Schema that the body satisfies; a string names a schema of `spec/schemas`. A body that is no JSON
    /// is a fault, unless the harness cut it off.
    pub body: Option<Value>,
    /// Pairs of sources that are equal, as in [`FrameRule::equal`]; pointers point into the JSON body.
    pub equal: Vec<(String, String)>,
    /// Header names that are present.
    pub has_header: Vec<String>,
    /// Regular expression that the value of a header matches, where the header is present.
    pub header: BTreeMap<String, String>,
    /// The body holds no line that begins with one of these texts.
    pub no_line: Vec<String>,
    /// The response came to its end. Not judged where the harness closed it, or stopped the target.
    pub complete: bool,
}

/// Demands on whole streams.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamRule {
    /// Streams judged; empty means all.
    pub stream: Vec<StreamKind>,
    /// Only streams that were opened under this label (a prefix ending in `*` is allowed).
    pub label: Option<String>,
    /// The first frame (comments aside) has one of these types. A stream without any frame is a fault when the
    /// target ended it or was silent for a second.
    pub first: Vec<String>,
    /// The last frame has one of these types; judged on streams that the target ended cleanly.
    pub last: Vec<String>,
    /// How many frames of each type (patterns as in [`FrameRule::types`]) the stream has. Too few are a fault
    /// only where it shows: on an action stream that the target ended (or let hang), and on any other stream
    /// that brought a frame at all; use `label` to judge the streams that were read long enough.
    pub count: BTreeMap<String, Count>,
    /// The set of frame types is within this list.
    pub only: Vec<String>,
    /// Pairs of types: every frame of the first comes before any frame of the second. Judged on streams that
    /// have both.
    pub order: Vec<(String, String)>,
    /// The time from one frame of a type to the next; `:` stands for comments. The mean over a stream is judged
    /// where it has three such frames, or was open for five periods and has not.
    pub period: BTreeMap<String, Period>,
    /// The target ends the stream itself, cleanly. Not judged where the harness closed it, or stopped the target.
    pub ends: bool,
}

/// A repetition, before time scaling.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    /// Time from one frame to the next, in milliseconds.
    pub every_ms: u64,
    /// Deviation of the mean that is allowed, in milliseconds; at least a quarter of the period always is,
    /// because the scaled period may be as short as a machine's hiccup.
    #[serde(default)]
    pub within_ms: u64,
}

/// A number, exact, at least or at most: `1`, `">=1"`, `"<=3"`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Count {
    /// Smallest allowed number.
    pub min: u64,
    /// Largest allowed number; `None` is no upper bound.
    pub max: Option<u64>,
}

impl Count {
    /// Whether `number` is allowed.
    pub fn allows(self, number: u64) -> bool {
        number >= self.min && self.max.is_none_or(|max| number <= max)
    }
}

impl TryFrom<Value> for Count {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let after = |text: &str, sign: &str| text.strip_prefix(sign)?.trim().parse().ok();
        let bound = |text: &str| match (after(text, ">="), after(text, "<=")) {
            (Some(min), _) => Some(Self { min, max: None }),
            (_, Some(max)) => Some(Self {
                min: 0,
                max: Some(max),
            }),
            _ => None,
        };
        match &value {
            Value::Number(number) => number.as_u64().map(|n| Self {
                min: n,
                max: Some(n),
            }),
            Value::String(text) => bound(text),
            _ => None,
        }
        .ok_or_else(|| format!("expected a number, \">=NUMBER\" or \"<=NUMBER\", got {value}"))
    }
}

impl From<Count> for Value {
    fn from(count: Count) -> Self {
        match count.max {
            Some(max) if max == count.min => Value::from(max),
            _ => Value::from(count.to_string()),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => write!(f, "{max}"),
            Some(max) => write!(f, "<={max}"),
            None => write!(f, ">={}", self.min),
        }
    }
}
