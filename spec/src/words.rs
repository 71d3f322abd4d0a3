//! The macro behind every closed set of words: topics, states, reasons, codes.
//!
//! A set is written once, as an enum whose variants name their text. It then knows its members
//! (`ALL`), writes and reads them, in text and in JSON, and tells a foreign word by name.

/// This text is none of the words of a closed set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown {what} {text:?}")]
pub struct UnknownWord {
    /// What the set is of, as a noun.
    pub what: &'static str,
    /// The text that was read.
    pub text: String,
}

/// Declares a closed set of words: `words! { /// doc \n "noun" enum Name { /// doc \n Variant = "text", .. } }`.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $what:literal enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd,
            serde::Deserialize, serde::Serialize,
        )]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every word of the set, in the order of its source.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($text),+] })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|word| word.name() == text).ok_or_else(|| {
                    $crate::words::UnknownWord { what: $what, text: text.to_owned() }
                })
            }
        }
    };
}

pub(crate) use words;
