//! The forms of a rule that hold two places of one conversation against each other.
//!
//! A [`RelateRule`] compares values: what the view says with what the message list says, what was there before
//! with what is there after, the id of a frame with the ids of a later answer. A [`PairRule`] compares frames:
//! each start with its end, each end with its start, each event of one stream with its copy on another.
//!
//! Both leave open what they cannot see: without any observation on one of the sides nothing is judged.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rule::{Count, StreamKind};

/// Demands on two lists of values of one conversation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RelateRule {
    /// The one list.
    pub these: Picked,
    /// The other list.
    pub those: Picked,
    /// What holds between them.
    pub holds: Relation,
}

/// Values of one conversation, in the order in which they came.
///
/// They are taken from frames when `stream` or `type` is given, and from responses otherwise. A place that an
/// observation does not have gives no value.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Picked {
    /// Streams whose frames are read; empty means all.
    pub stream: Vec<StreamKind>,
    /// Frame types, patterns as in [`FrameRule::types`](super::rule::FrameRule::types); empty means all.
    #[serde(rename = "type")]
    pub types: Vec<String>,
    /// Request methods; empty means any.
    pub method: Vec<String>,
    /// Path templates; empty means any.
    pub path: Vec<String>,
    /// Only exchanges that were opened under this label (a prefix ending in `*` is allowed).
    pub label: Option<String>,
    /// Only responses with one of these statuses; empty means all.
    pub when_status: Vec<u16>,
    /// JSON Schema: only frames whose data, or responses whose body, satisfies it.
    #[serde(rename = "where")]
    pub where_data: Option<Value>,
    /// The first or the last of the selected frames or responses; all of them without.
    pub only: Option<Which>,
    /// The place of the values: a source as in [`FrameRule::equal`](super::rule::FrameRule::equal). A segment `*`
    /// of a `/json/pointer` stands for every element.
    pub at: String,
    /// JSON Schema: only values that satisfy it.
    pub item: Option<Value>,
    /// `/json/pointer` into each value: what stands there is taken in its place.
    pub value: Option<String>,
    /// Takes the number of the values in their place.
    pub count: bool,
}

/// One end of a list of observations.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The first of them.
    First,
    /// The last of them.
    Last,
}

/// What holds between two lists of values, these and those.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Relation {
    /// They are equal, in their order.
    Equal,
    /// They are equal in any order.
    SameSet,
    /// They are not equal.
    Different,
    /// Each of these is among those.
    Within,
    /// None of these is among those.
    Apart,
    /// Those begin with these.
    Prefix,
    /// Those end with these.
    Suffix,
    /// There are fewer of these than of those.
    Fewer,
    /// The first number of those is larger by this than the first number of these.
    GrowsBy(i64),
}

/// Demands on frames that belong together: for each frame of one kind, how many there are of the other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PairRule {
    /// The frames that are judged.
    pub each: Sighted,
    /// The frames that belong to them.
    pub with: Sighted,
    /// Pairs of sources, one of each frame: only frames in which all pairs are equal belong together.
    #[serde(default)]
    pub by: Vec<(String, String)>,
    /// How many belong to each.
    pub count: Count,
    /// Where they stand.
    #[serde(default)]
    pub side: Side,
}

/// Frames of event streams.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sighted {
    /// Streams; empty means all. For frames of the same stream, of no use on `with`.
    pub stream: Vec<StreamKind>,
    /// Frame types, patterns as in [`FrameRule::types`](super::rule::FrameRule::types); empty means all.
    #[serde(rename = "type")]
    pub types: Vec<String>,
    /// Frame types that are left out.
    pub not_type: Vec<String>,
    /// Only streams that were opened under this label (a prefix ending in `*` is allowed).
    pub label: Option<String>,
    /// JSON Schema: only frames whose data satisfies it.
    #[serde(rename = "where")]
    pub where_data: Option<Value>,
}

/// Where the frames stand that belong to another.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// In the same stream, before it or after it. Too few are a fault on streams that the target ended.
    #[default]
    Around,
    /// In the same stream, before it.
    Before,
    /// In the same stream, after it. Too few are a fault on streams that the target ended.
    After,
    /// In the same stream, the very next frame after it that is no comment. One that has not come is no fault.
    Next,
    /// On other streams. Those have to be read long enough: too few are always a fault.
    Elsewhere,
}
