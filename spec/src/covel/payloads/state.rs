//! Committed game state: events, dimensions, characters, suspensions and snapshots.
//!
//! Source: seed 000, lines 143-157, 266-298, 571-593, 605-607 and 1352-1364.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::covel::shape::{Object, payload, shape};
use crate::covel::vocabulary::{SettlementStatus, SnapshotKind};

payload! {
    /// A business event of the game was committed.
    "event.emitted" struct EventEmitted {
        /// The topic of the game's own, no topic of a subscription.
        topic?: String,
        /// The type of the game's own.
        r#type?: String,
        /// Another name of the type.
        event_type?: String,
        /// What it tells.
        data?: Value,
        /// The plugin that emitted it.
        plugin_id?: String,
    }
}

payload! {
    /// A business event passed validation; nothing is saved.
    ///
    /// Source: seed 000, lines 147-157.
    "domain-event.previewed" struct DomainEventPreviewed {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The call of `emit-event`.
        tool_call_id: String,
        /// The topic of the game's own.
        topic: String,
        /// What it tells.
        data: Object,
    }
}

payload! {
    /// The author's declaration of dimensions changed; the session's values did not.
    ///
    /// Source: seed 000, lines 268-270.
    "world.dimensions.changed" struct WorldDimensionsChanged {
        /// The world.
        world_id: String,
        /// The keys whose declaration changed.
        changed_keys: Vec<String>,
    }
}

payload! {
    /// Values or effective definitions of session dimensions were committed.
    ///
    /// Source: seed 000, lines 275-289.
    "dimensions.changed" struct DimensionsChanged {
        /// The plugin that provides the dimensions.
        provider_plugin_id: String,
        /// The entries that changed, by id.
        #[schemars(schema_with = "dimension_entries")]
        dimensions: BTreeMap<String, Dimension>,
        /// The receipt that goes with the change.
        settlement?: SettlementSummary,
    }
}

/// The seed merges entries by id and names no container: an object by id (ours), or a list.
fn dimension_entries(generator: &mut SchemaGenerator) -> Schema {
    let entry = generator.subschema_for::<Dimension>();
    json_schema!({ "type": ["object", "array"], "additionalProperties": entry, "items": entry })
}

shape! {
    /// The public value of one dimension. Source: seed 000, line 281.
    struct Dimension {
        /// What it is called.
        name: String,
        /// What it means.
        description?: String,
        /// What values it takes.
        schema: Value,
        /// Its value.
        value: Value,
        /// The version of the value.
        version: Value,
    }
}

shape! {
    /// The receipt of an obligation to settle dimensions, without its owner.
    ///
    /// Source: seed 000, lines 282-283.
    struct SettlementSummary {
        /// The result that it settles.
        source: SettlementSource,
        /// The turn of that result.
        source_turn_id: String,
        /// The version of the receipt.
        version: Value,
        /// How it stands.
        status: SettlementStatus,
        /// Why an attempt failed.
        error?: String,
    }
}

shape! {
    /// A result whose dimensions are settled.
    struct SettlementSource {
        /// The result.
        result_id: String,
        /// The number of its turn.
        turn_number: u64,
    }
}

payload! {
    /// A settlement was registered, failed, or ended without a change of value.
    ///
    /// Source: seed 000, lines 276-289.
    "dimensions.settlement.changed" struct DimensionsSettlementChanged {
        /// The plugin that provides the dimensions.
        provider_plugin_id: String,
        /// The receipt.
        #[serde(flatten)]
        summary: SettlementSummary,
    }
}

payload! {
    /// The field definitions of characters were committed.
    "character-schema.changed" struct CharacterSchemaChanged {
        /// The definitions.
        schema: Object,
        /// The runtime that proposed it. Public.
        runtime_id?: String,
        /// Its plugin. Public.
        plugin_id?: String,
    }
}

payload! {
    /// A character was committed.
    "character.upserted" struct CharacterUpserted {
        /// The character.
        character: Object,
        /// The runtime that proposed it. Public.
        runtime_id?: String,
        /// Its plugin. Public.
        plugin_id?: String,
    }
}

payload! {
    /// Committed interface state changed.
    ///
    /// Source: seed 000, line 1356.
    "ui.slot.changed" struct UiSlotChanged {
        /// The slot.
        slot: String,
        /// The key within the slot.
        key?: String,
        /// Its value.
        value: Value,
        /// The revision of the value.
        revision: String,
    }
}

payload! {
    /// Covers the display of a slot for one turn.
    ///
    /// Source: seed 000, line 1357.
    "ui.slot.preview" struct UiSlotPreview {
        /// The slot.
        slot: String,
        /// The key within the slot.
        key?: String,
        /// The value that is shown.
        value: Value,
        /// The revision of the value.
        revision: String,
        /// The turn whose end removes it.
        turn_id: String,
    }
}

payload! {
    /// Removes the previews of one turn.
    "ui.slot.cleared" struct UiSlotCleared {
        /// The turn.
        turn_id: String,
    }
}

payload! {
    /// A runtime suspended, and its record is committed.
    "turn.suspended" struct TurnSuspended {
        /// The session.
        session_id: String,
        /// The turn.
        turn_id: String,
        /// The suspension.
        suspension_id: String,
        /// The plugin.
        plugin_id: String,
        /// The runtime.
        runtime_id: String,
        /// When: ISO 8601, UTC.
        suspended_at: String,
        /// What it waits for.
        reason: String,
        /// What the answer must look like.
        resume_schema: Value,
    }
}

payload! {
    /// A suspension was resumed with success.
    "turn.resumed" struct TurnResumed {
        /// The session.
        session_id: String,
        /// The turn.
        turn_id: String,
        /// The suspension.
        suspension_id: String,
    }
}

payload! {
    /// A snapshot was written.
    "state.snapshot.created" struct StateSnapshotCreated {
        /// The turn that it shows.
        turn_id: String,
        /// The snapshot.
        snapshot_id: String,
        /// Why it was made.
        kind: SnapshotKind,
        /// The snapshot that it follows.
        parent_snapshot_id?: String,
    }
}

payload! {
    /// A child session was made from a snapshot.
    "session.forked" struct SessionForked {
        /// The session that was forked.
        parent_session_id: String,
        /// The new session.
        child_session_id: String,
        /// The snapshot that it was made from.
        from_snapshot_id: String,
        /// The snapshot that the fork wrote.
        fork_snapshot_id: String,
    }
}
