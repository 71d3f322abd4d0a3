//! Messages, in the view and in lists.
//!
//! Source: seed 000, lines 136, 849 and 1076-1077; most members are public.

use serde_json::Value;

use crate::covel::shape::{Object, shape};

shape! {
    /// A message in the session view.
    struct SnapshotMessage {
        /// The message.
        id: String,
        /// Who speaks.
        role: String,
        /// Its text.
        content: String,
        /// Its turn.
        turn_id?: String,
        /// The runtime that wrote it.
        runtime_id?: String,
        /// The kind of output.
        kind?: String,
        /// A block instead of text.
        block?: Object,
        /// When: ISO 8601, UTC.
        created_at?: String,
        /// What the player submitted; on messages of the player.
        actions?: Vec<Value>,
        /// The paragraphs with resolved speakers; on stories.
        segments?: Vec<Value>,
    }
}

shape! {
    /// A message in the lists of messages.
    struct FlatMessage {
        /// The message.
        id: String,
        /// Its session.
        session_id?: String,
        /// Who speaks.
        role: String,
        /// Its text.
        content: String,
        /// Its turn.
        turn_id?: String,
        /// The runtime that wrote it.
        runtime_id?: String,
        /// The kind of output.
        kind?: String,
        /// A block instead of text.
        block?: Object,
        /// When: ISO 8601, UTC.
        created_at?: String,
        /// What the player submitted; on messages of the player.
        actions?: Vec<Value>,
        /// The paragraphs with resolved speakers; on stories.
        segments?: Vec<Value>,
    }
}
