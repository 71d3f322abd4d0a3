//! Changes to single events, after a wire has written them: for faults that are not worth a switch.
//!
//! A stream is written as the real service would; then each [`Edit`] is applied in order to the events
//! that it picks. Of a plain answer the one JSON body is the one event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sound;

/// A change to the events that `on` picks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Edit {
    /// Which events.
    pub on: Pick,
    /// Leaves the event out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
    /// Members to take away, as JSON pointers.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "sound::pointer_list"
    )]
    pub remove: Vec<String>,
    /// Members to set, by JSON pointer; objects on the way are made.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "sound::pointers"
    )]
    pub set: BTreeMap<String, Value>,
    /// Another name in the `event:` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Other data, JSON or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Events to put before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<RawEvent>,
    /// Events to put after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<RawEvent>,
    /// Sends it so many more times.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeat: usize,
    /// Lets the next event go first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub swap: bool,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Which events. Nothing said means all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pick {
    /// Those with this `type` in the data, or this name in the `event:` line.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Those whose data has this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Of those, only this one: 0 is the first, -1 the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<i64>,
}

/// An event of the author's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawEvent {
    /// The name in the `event:` line; none if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The data: a text is sent as it is, anything else as JSON.
    pub data: Value,
}

impl RawEvent {
    /// An event with this data.
    pub fn new(data: impl Into<Value>) -> Self {
        Self {
            event: None,
            data: data.into(),
        }
    }

    /// An event with this data and name.
    pub fn named(event: impl Into<String>, data: impl Into<Value>) -> Self {
        Self {
            event: Some(event.into()),
            data: data.into(),
        }
    }

    /// The data as text.
    pub fn text(&self) -> String {
        match &self.data {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

impl Edit {
    /// A change to events with this type or name.
    pub fn on(kind: impl Into<String>) -> Self {
        let on = Pick {
            kind: Some(kind.into()),
            ..Pick::default()
        };
        Self {
            on,
            ..Self::default()
        }
    }

    /// A change to every event.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only to this one of them: 0 is the first, -1 the last.
    #[must_use]
    pub fn nth(mut self, nth: i64) -> Self {
        self.on.nth = Some(nth);
        self
    }

    /// Leaves it out.
    #[must_use]
    pub fn drop(mut self) -> Self {
        self.drop = true;
        self
    }

    /// Takes this member away.
    #[must_use]
    pub fn remove(mut self, pointer: impl Into<String>) -> Self {
        self.remove.push(pointer.into());
        self
    }

    /// Sets this member.
    #[must_use]
    pub fn set(mut self, pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set.insert(pointer.into(), value.into());
        self
    }

    /// Sends it once more.
    #[must_use]
    pub fn twice(mut self) -> Self {
        self.repeat = 1;
        self
    }

    /// Lets the next event go first.
    #[must_use]
    pub fn swap(mut self) -> Self {
        self.swap = true;
        self
    }

    /// Puts an event before it.
    #[must_use]
    pub fn before(mut self, event: RawEvent) -> Self {
        self.before.push(event);
        self
    }

    /// Puts an event after it.
    #[must_use]
    pub fn after(mut self, event: RawEvent) -> Self {
        self.after.push(event);
        self
    }
}
