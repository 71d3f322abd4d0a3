//! The bodies of answers.
//!
//! - [`sessions`]: session records, views, execution states and health;
//! - [`messages`]: messages, and lists in pages;
//! - [`jobs`]: background jobs, suspensions and snapshots;
//! - [`plugins`]: plugins, plugin data, RPC answers and approvals;
//! - [`traces`]: stored traces.
//!
//! Objects are open. A member that only the public sources tell may be absent in another server's
//! answer, so it is written with `?`; our own server sends it.

pub mod jobs;
pub mod messages;
pub mod plugins;
pub mod sessions;
pub mod traces;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::covel::shape::{Nullable, True, shape};

/// A list in an object: `{ items }`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Items<T> {
    /// The items.
    pub items: Vec<T>,
}

/// One page of a list: `{ items, nextCursor }`.
///
/// Source: seed 000, line 1077; the names of the members are public.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CursorPage<T> {
    /// The items of the page, the oldest first.
    pub items: Vec<T>,
    /// Leads to the next page; opaque. Null at the end.
    pub next_cursor: Nullable<String>,
}

shape! {
    /// The answer of a command that has nothing to tell: `{ ok: true }`.
    #[derive(Default)]
    struct Done {
        /// `true`.
        ok: True,
    }
}
