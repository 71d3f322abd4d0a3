//! Why a turn ended without a normal reply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What stopped the turn.
    ///
    /// Source: public sources for the words; seed 004, line 46 for the three causes.
    "kind of notice" enum NoticeKind {
        /// A usage or subscription limit.
        UsageLimit = "usage_limit",
        /// A network failure, a failing or overloaded API, a refused credential, a crash.
        Error = "error",
        /// The cap on rounds of one turn.
        MaxTurns = "max_turns",
    }
}

/// The `notice` of `chat:notice`.
///
/// Source: seed 004, line 46: it carries the reset time of a usage limit, and `retryable`. All other members are
/// from public sources, so checks ask for none of them.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnNotice {
    /// What stopped the turn, one of [`NoticeKind`]; any text is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When a usage limit is reset, in the words of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_time: Option<String>,
    /// What failed, as far as it may be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether a client offers to try again.
    pub retryable: bool,
}
