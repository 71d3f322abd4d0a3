//! The sabotage of a requirement, as data: what a generic saboteur does to the traffic.
//!
//! A saboteur is a proxy between a conformant peer and the harness. Each rewrite is one small fault: it
//! changes the request on its way in, the response head, a JSON body, or single event-stream frames. Faults
//! that need memory or timing of their own are functions in the harness.
//!
//! The harness's `saboteurs::generic` executes these; this module only gives them their shape. Rewrites are
//! written in `spec/requirements/*.yaml` under the key `rewrite`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::messages::MessageRewrite;
use super::rule::StreamKind;

/// One deliberate fault.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rewrite {
    /// Changes the request before the target sees it.
    Request(RequestRewrite),
    /// Changes an HTTP response, head or JSON body.
    Response(ResponseRewrite),
    /// Changes single frames of an event stream.
    Frames(FrameRewrite),
    /// Changes what a testee reports.
    Report(ReportRewrite),
    /// Changes single messages of a channel.
    Messages(MessageRewrite),
    /// Sends requests that the testee did not send.
    Extra(ExtraRewrite),
    /// All of these at once.
    All(Vec<Rewrite>),
}

/// A change of what a testee (an adapter or a client under test) reports.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReportRewrite {
    /// Only reports of cases whose id is this, or begins with this and a `/`; empty means all.
    pub hazard: String,
    /// Only reports of a client whose `state` has this `session`; scripted sessions are named like their act.
    /// Empty means all.
    pub session: String,
    /// JSON Schema: only reports that satisfy it.
    #[serde(rename = "where")]
    pub where_report: Option<Value>,
    /// Changes of the report.
    pub json: Vec<JsonEdit>,
    /// The report never comes.
    pub drop: bool,
}

/// Requests of a faulty testee: each request that is selected is followed by one more, whose answer is thrown away.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExtraRewrite {
    /// Request method; empty means any.
    pub method: Vec<String>,
    /// Path templates; empty means any.
    pub path: Vec<String>,
    /// Only requests whose query has all of these parameters (`NAME`, or `NAME=VALUE`).
    pub when_query: Vec<String>,
    /// JSON Schema: only requests whose JSON body satisfies it.
    pub where_request: Option<Value>,
    /// Lets this many matching requests pass without one more.
    pub skip: u64,
    /// Adds at most this many; 0: no limit.
    pub limit: u64,
    /// Method and target of the other request, such as `POST /api/actions`; the same request again without.
    pub send: Option<String>,
    /// Its JSON body.
    pub body: Option<Value>,
    /// Sends it so long after the other one, in milliseconds before scaling; 0: at once.
    pub delay_ms: u64,
}

/// A change of requests. A fault such as "ignores the cursor" is a request that lost its cursor on the way.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestRewrite {
    /// Request method; empty means any.
    pub method: Vec<String>,
    /// Path templates such as `/api/sessions/:id/view`; empty means any.
    pub path: Vec<String>,
    /// Only requests whose query has all of these parameters (`NAME`, or `NAME=VALUE`).
    pub when_query: Vec<String>,
    /// JSON Schema: only requests whose JSON body satisfies it.
    pub where_request: Option<Value>,
    /// Lets this many matching requests pass unchanged first.
    pub skip: u64,
    /// Touches at most this many requests; 0: no limit.
    pub limit: u64,
    /// Query parameters that are removed.
    pub drop_query: Vec<String>,
    /// Query parameters that are set, whether or not they were there.
    pub set_query: BTreeMap<String, String>,
    /// Headers that are removed.
    pub drop_header: Vec<String>,
    /// Headers that are set.
    pub set_header: BTreeMap<String, String>,
    /// Moves the value of a query parameter or header (`query:NAME`, `header:NAME`) to another, if present.
    #[serde(rename = "move")]
    pub moves: Vec<(String, String)>,
    /// Changes of the JSON body.
    pub json: Vec<JsonEdit>,
    /// Sends the request with this method instead.
    pub set_method: Option<String>,
    /// Sends the bytes of the body this many times more, in the same request.
    pub repeat_body: u64,
}

/// A change of responses.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseRewrite {
    /// Request method; empty means any.
    pub method: Vec<String>,
    /// Path templates; empty means any.
    pub path: Vec<String>,
    /// Only responses with one of these statuses; empty means all.
    pub when_status: Vec<u16>,
    /// Only responses to requests whose query has all of these parameters (`NAME`, or `NAME=VALUE`).
    pub when_query: Vec<String>,
    /// JSON Schema: only responses to requests whose JSON body satisfies it.
    pub where_request: Option<Value>,
    /// Lets this many matching responses pass unchanged first.
    pub skip: u64,
    /// Touches at most this many responses; 0: no limit.
    pub limit: u64,
    /// Answers in place of the target, which never sees the request: with `status` (or else 200), `set_header`
    /// and `body`. `when_status` does not apply.
    pub instead: bool,
    /// Holds the response, head included, back for so long, in milliseconds before scaling.
    pub delay_ms: u64,
    /// The status that is sent.
    pub status: Option<u16>,
    /// Headers that are set.
    pub set_header: BTreeMap<String, String>,
    /// Headers that are removed.
    pub drop_header: Vec<String>,
    /// The body that is sent, a template over the JSON body of the target.
    pub body: Option<String>,
    /// Changes of the JSON body; a body that is no JSON stays as it is.
    pub json: Vec<JsonEdit>,
    /// Holds a streamed body back until its end and sends it in one piece.
    pub buffer: bool,
    /// Keeps the response open after its end.
    pub hold_open: bool,
    /// Cuts the connection after this many body bytes.
    pub cut_after: Option<u64>,
}

/// A change of event-stream frames.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrameRewrite {
    /// Streams; empty means all.
    pub stream: Vec<StreamKind>,
    /// Frame types; empty means all but comments. Patterns as in `rule`; `:` stands for frames that hold comments
    /// only.
    #[serde(rename = "type")]
    pub types: Vec<String>,
    /// Frame types that are left alone.
    pub not_type: Vec<String>,
    /// JSON Schema: only frames whose data satisfies it.
    #[serde(rename = "where")]
    pub where_data: Option<Value>,
    /// Only streams whose request query has all of these parameters (`NAME`, or `NAME=VALUE`).
    pub when_query: Vec<String>,
    /// JSON Schema: only streams whose request has a JSON body that satisfies it.
    pub where_request: Option<Value>,
    /// Lets this many matching frames of a stream pass unchanged first.
    pub skip: u64,
    /// Touches only each n-th matching frame of a stream, the first one included (1 or 0: every one).
    pub every: u64,
    /// Touches at most this many frames of a stream; 0: no limit.
    pub limit: u64,
    /// What happens to the frame, in this order.
    #[serde(rename = "do")]
    pub edits: Vec<FrameEdit>,
}

/// One change of a frame.
///
/// Texts are templates: `{/json/pointer}` of the frame's data, `{line:NAME}`, `{request:NAME}` (query parameter, or
/// member of the JSON body), `{index}` (position among the touched frames of the stream, from 0), all as they were
/// before the rewrite. Other braces stand for themselves; a placeholder without a value becomes nothing.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FrameEdit {
    /// Puts this line in front of the frame's lines.
    PrependLine(String),
    /// Puts this line after the frame's lines.
    AppendLine(String),
    /// Removes all lines of this field.
    DropLine(String),
    /// Gives the lines of a field (first element) a new value (second). Adds no line.
    SetLine(String, String),
    /// Changes the JSON of the data lines.
    Json(Vec<JsonEdit>),
    /// Replaces the data by this text, as it stands.
    Data(String),
    /// Replaces the data by the value at this pointer of it; a string stands without quotes.
    Unwrap(String),
    /// Removes the frame. What `before` and `after` send is sent all the same.
    Drop,
    /// Sends the frame this many times more.
    Repeat(u64),
    /// Holds the frame back and sends it after the next frame that is no comment, or at the end.
    SwapWithNext,
    /// Holds the frame back for this long before it and what follows are sent, in milliseconds before scaling.
    DelayMs(u64),
    /// Sends this text (whole frames with their blank lines) before the frame.
    Before(String),
    /// Sends this text (whole frames with their blank lines) after the frame.
    After(String),
    /// Ends the stream cleanly after this frame.
    End,
    /// Breaks the connection off after this frame, in the middle of the response.
    Cut,
}

/// One change of a JSON document.
///
/// A segment `*` of a pointer stands for every element (not for the targets of `copy`). A pointer that leads
/// nowhere changes nothing. Strings are templates as in [`FrameEdit`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum JsonEdit {
    /// Sets the value at a pointer (first) to a value (second); strings are templates. Missing parents are made.
    Set(String, Value),
    /// Removes the member at this pointer.
    Remove(String),
    /// Copies the value at a pointer (first) to another (second).
    Copy(String, String),
    /// Renames the member at a pointer (first) to another name (second).
    Rename(String, String),
    /// Adds a number (second) to the number at a pointer (first).
    Add(String, i64),
    /// Turns the value at this pointer into its text.
    Stringify(String),
    /// Replaces the whole document by the value at this pointer.
    Unwrap(String),
    /// Puts the whole document into an object under this name.
    Wrap(String),
    /// Removes the first elements (second: how many) of the array at a pointer (first).
    Shorten(String, u64),
    /// Reverses the array at this pointer.
    Reverse(String),
}
