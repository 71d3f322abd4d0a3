//! The notation for JSON objects, and small types that payloads share.
//!
//! `shape!` declares an object as the seed writes it:
//!
//! ```text
//! shape! {
//!     /// What it is.
//!     struct Segment {
//!         /// What it tells.
//!         index: u64,
//!         /// May be absent.
//!         speaker?: String,
//!     }
//! }
//! ```
//!
//! `payload!` does the same for the payload of an event, whose name stands in front.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Declares a JSON object with camelCase members; `name?: Type` may be absent.
macro_rules! shape {
    ($(#[$meta:meta])* struct $name:ident { $($members:tt)* }) => {
        $crate::covel::shape::shape! {
            @ [
                #[derive(
                    Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize,
                    schemars::JsonSchema,
                )]
                $(#[$meta])*
                #[serde(rename_all = "camelCase")]
                pub struct $name
            ] [] $($members)*
        }
    };
    (@ [$($head:tt)*] [$($done:tt)*]) => { $($head)* { $($done)* } };
    (@ [$($head:tt)*] [$($done:tt)*]
        $(#[$meta:meta])* $member:ident ? : $type:ty, $($rest:tt)*
    ) => {
        $crate::covel::shape::shape! {
            @ [$($head)*] [
                $($done)*
                $(#[$meta])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $member: Option<$type>,
            ] $($rest)*
        }
    };
    (@ [$($head:tt)*] [$($done:tt)*]
        $(#[$meta:meta])* $member:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::covel::shape::shape! {
            @ [$($head)*] [$($done)* $(#[$meta])* pub $member: $type,] $($rest)*
        }
    };
}

/// Declares the payload of the event of this name, in the notation of `shape!`.
macro_rules! payload {
    ($(#[$meta:meta])* $event:literal struct $name:ident { $($members:tt)* }) => {
        $crate::covel::shape::shape! { $(#[$meta])* struct $name { $($members)* } }

        impl $crate::covel::payloads::EventPayload for $name {
            const EVENT: &'static str = $event;
        }
    };
}

/// Declares the payload of an event whose members no source tells: any object.
macro_rules! unpinned {
    ($($(#[$meta:meta])* $event:literal struct $name:ident;)+) => {
        $(
            $(#[$meta])*
            #[derive(
                Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize,
                schemars::JsonSchema,
            )]
            #[serde(transparent)]
            pub struct $name(pub $crate::covel::envelope::Payload);

            impl $crate::covel::payloads::EventPayload for $name {
                const EVENT: &'static str = $event;
            }
        )+
    };
}

pub(crate) use {payload, shape, unpinned};

/// A JSON object with any members.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// A duration in milliseconds. We send whole ones; others may send a fraction.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Ms(pub u64);

impl<'de> Deserialize<'de> for Ms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        let ms = std::time::Duration::try_from_secs_f64(number / 1000.0);
        let ms = ms.map_err(|_| D::Error::custom(format!("{number} is no duration in ms")))?;
        u64::try_from(ms.as_millis())
            .map(Self)
            .map_err(D::Error::custom)
    }
}

impl JsonSchema for Ms {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Ms".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// A member that is this one truth value whenever it is there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Always<const VALUE: bool>;

/// A member that is `true` whenever it is there.
pub type True = Always<true>;

/// A member that is `false` whenever it is there.
pub type False = Always<false>;

impl<const VALUE: bool> Serialize for Always<VALUE> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(VALUE)
    }
}

impl<'de, const VALUE: bool> Deserialize<'de> for Always<VALUE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? == VALUE {
            Ok(Self)
        } else {
            Err(D::Error::custom(format!(
                "expected {VALUE}, got {}",
                !VALUE
            )))
        }
    }
}

impl<const VALUE: bool> JsonSchema for Always<VALUE> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Always-{VALUE}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": VALUE })
    }
}

/// A member that is always there, and null when it has no value.
///
/// An `Option` instead would be a member that may be absent.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Nullable<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

impl<T> From<Option<T>> for Nullable<T> {
    fn from(value: Option<T>) -> Self {
        Self(value)
    }
}

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Nullable-{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [generator.subschema_for::<T>(), { "type": "null" }] })
    }
}

/// A text, or JSON null. Unlike an absent member, null is sent.
pub(crate) fn text_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [{ "type": "string" }, { "type": "null" }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_whole_and_read_with_a_fraction() {
        assert_eq!(serde_json::to_string(&Ms(8800)).unwrap(), "8800");
        assert_eq!(serde_json::from_str::<Ms>("8800.7").unwrap(), Ms(8800));
        assert!(serde_json::from_str::<Ms>("-1").is_err());
        assert!(serde_json::from_str::<Ms>("1e300").is_err());
    }

    #[test]
    fn a_member_that_is_always_true_is_never_false() {
        assert_eq!(serde_json::to_string(&Always::<true>).unwrap(), "true");
        let error = serde_json::from_str::<True>("false").unwrap_err();
        assert_eq!(error.to_string(), "expected true, got false");
    }
}
