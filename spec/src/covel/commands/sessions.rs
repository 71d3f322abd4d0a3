//! Making, changing and forking sessions, and control during a turn.
//!
//! Source: seed 000, lines 216-234, 845-847 and 1435-1437; bounds are public.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::covel::limits::{LORE_CHARS, NEW_SESSION_ID_CHARS, WORLD_ID_CHARS};
use crate::covel::shape::{Object, True, shape};
use crate::covel::vocabulary::SessionStatus;
use crate::words::words;

shape! {
    /// The body of `POST /api/sessions`. Every member may be absent.
    #[derive(Default)]
    struct CreateSession {
        /// The world that is played.
        #[schemars(length(min = 1, max = WORLD_ID_CHARS), regex(pattern = "^[A-Za-z0-9_-]+$"))]
        world_id?: String,
        /// The language, fixed from now on.
        locale?: String,
        /// The plugins that are active at first.
        plugins?: Vec<String>,
        /// The id; the server makes one when it is absent.
        #[schemars(length(min = 1, max = NEW_SESSION_ID_CHARS), regex(pattern = "^[A-Za-z0-9_-]+$"))]
        id?: String,
        /// Replaces the world's lore.
        #[schemars(length(max = LORE_CHARS))]
        lore_override?: String,
        /// The role of the new human seat; the values are in no readable source.
        seat_role?: String,
    }
}

shape! {
    /// The body of `PATCH /api/sessions/:id`. Public.
    #[derive(Default)]
    struct PatchSession {
        /// The new status; `ended` is final.
        status?: SessionStatus,
        /// The models of runtimes; empty clears.
        runtime_model_overrides?: BTreeMap<String, String>,
    }
}

shape! {
    /// The body of `POST /api/sessions/:id/steer`.
    struct Steer {
        /// What the player interjects; not only white space.
        #[schemars(regex(pattern = "\\S"))]
        message: String,
    }
}

shape! {
    /// The body of `POST /api/sessions/:id/setup/:runtimeId/waive`. Public.
    struct WaiveSetup {
        /// `true`.
        confirm: True,
    }
}

shape! {
    /// The body of `POST /api/sessions/:id/fork`. Public.
    struct Fork {
        /// The snapshot that the child begins with.
        from_snapshot_id: String,
    }
}

shape! {
    /// The body of `POST /api/sessions/:id/messages/sync`. Public.
    struct SyncMessages {
        /// The messages; known ids are skipped.
        messages: Vec<SyncedMessage>,
    }
}

shape! {
    /// A message that a client has saved. Public.
    struct SyncedMessage {
        /// Its id; the server makes one when it is absent.
        id?: String,
        /// Who speaks.
        role: Role,
        /// Its text.
        content: String,
        /// Its turn.
        turn_id?: String,
        /// The runtime that wrote it.
        runtime_id?: String,
        /// A block instead of text.
        block?: Object,
        /// When: ISO 8601, UTC.
        created_at?: String,
    }
}

words! {
    /// Who speaks in a message. Public.
    "role" enum Role {
        /// The player.
        User = "user",
        /// The story.
        Assistant = "assistant",
        /// The server.
        System = "system",
        /// A tool.
        Tool = "tool",
    }
}

shape! {
    /// The body of `POST /api/events/emit`, an aid for debugging. Public.
    struct EmitEvent {
        /// The topic, and the name of the event.
        topic: String,
        /// The session.
        session_id: String,
        /// What it tells.
        payload?: Object,
        /// The runtime that it is for.
        target_runtime?: String,
    }
}

shape! {
    /// The body of `PUT /api/sessions/:id/plugin-data/:pluginId/:ns/:key`. Public.
    struct PutPluginData {
        /// The value, at most 64 KiB as JSON.
        value: Value,
    }
}
