//! Session records, views, execution states and health.
//!
//! Source: seed 000, lines 240-246, 294-298, 650-656, 845-851 and 1073-1085.

use std::collections::BTreeMap;

use serde_json::Value;

use super::messages::SnapshotMessage;
use super::plugins::SnapshotPlugin;
use crate::covel::commands::ActionType;
use crate::covel::payloads::state::{Dimension, SettlementSummary};
use crate::covel::shape::{Nullable, Object, True, shape};
use crate::covel::vocabulary::{
    AdvanceStopReason, ExecutionOrigin, ExecutionState, RecoveredPhase, SessionPhase, SessionStatus,
};
use crate::cursor::CursorBuf;

shape! {
    /// A session.
    ///
    /// Source: seed 000, lines 246, 713 and 874; the rest is public.
    struct SessionRecord {
        /// The session.
        id: String,
        /// The world that is played.
        world_id?: String,
        /// Whether it can be played.
        status?: SessionStatus,
        /// How far it is.
        phase: SessionPhase,
        /// How many turns the player has completed.
        completed_player_turns: u64,
        /// How the setup of each runtime stands.
        setup_runtimes: BTreeMap<String, SetupState>,
        /// The language, fixed at creation.
        locale?: String,
        /// The plugins that are active.
        active_plugins?: Vec<String>,
        /// Which life of this id it is: an opaque tag.
        incarnation: String,
        /// The models of runtimes.
        runtime_model_overrides?: BTreeMap<String, String>,
        /// When it was made: ISO 8601, UTC.
        created_at?: String,
        /// When it was changed: ISO 8601, UTC.
        updated_at?: String,
        /// What else is known, without secrets.
        metadata?: Object,
    }
}

shape! {
    /// How the setup of one runtime stands. Public.
    struct SetupState {
        /// `pending`, `done` or `blocked`.
        state?: String,
        /// The version of the plugin.
        plugin_version?: String,
        /// Rises when the setup begins anew.
        generation?: u64,
        /// How often it was tried.
        attempts?: u64,
        /// When done: `completed` or `waived`.
        resolution?: String,
        /// When done: the time, ISO 8601, UTC.
        completed_at?: String,
        /// When done: what was not quite right.
        warning?: String,
        /// When blocked: why.
        reason?: String,
        /// When blocked: the time, ISO 8601, UTC.
        blocked_at?: String,
        /// Why the last try failed.
        last_error?: String,
    }
}

shape! {
    /// The answer of `POST /api/sessions`: the record, and the owner's token, which is told once.
    ///
    /// Source: seed 000, line 845; the further members are public.
    struct CreatedSession {
        /// The session.
        #[serde(flatten)]
        record: SessionRecord,
        /// What the owner authenticates with.
        owner_token?: String,
        /// The language that was asked for, when the session has another.
        requested_locale?: String,
        /// The plugins that do not have the session's language.
        plugins_without_locale?: Vec<String>,
    }
}

shape! {
    /// The answer of `DELETE /api/sessions/:id`.
    ///
    /// Source: seed 000, line 847.
    struct DeletedSession {
        /// What was deleted.
        deleted: Value,
    }
}

shape! {
    /// Everything that a client needs to show a session.
    ///
    /// Source: seed 000, lines 294-298, 650-656, 849-851 and 1075.
    #[schemars(extend("anyOf" = [{ "required": ["steps"] }, { "required": ["executionSteps"] }]))]
    struct SessionSnapshot {
        /// The session.
        session?: SnapshotSession,
        /// The newest messages, the oldest first.
        messages: Vec<SnapshotMessage>,
        /// Leads to the messages before; opaque. Null when there are none.
        messages_cursor: Nullable<String>,
        /// The newest execution steps. The public name is `executionSteps`.
        #[serde(alias = "executionSteps")]
        steps?: Vec<SnapshotStep>,
        /// How the newest execution stands.
        execution?: ExecutionStatus,
        /// The characters.
        characters?: Vec<Object>,
        /// The state of the game.
        game_state?: Object,
        /// The plugins of the session.
        plugins?: Vec<SnapshotPlugin>,
        /// The interactions that were answered in the turns of the window.
        submitted_interactions: Vec<SubmittedInteraction>,
        /// The current dimensions, by id.
        dimensions?: BTreeMap<String, Dimension>,
        /// The receipts of settlements.
        dimension_settlements?: Vec<SettlementSummary>,
        /// The plugin that provides the dimensions.
        dimension_provider_plugin_id?: String,
        /// The runtimes that can settle what is pending.
        dimension_recovery?: DimensionRecovery,
        /// The newest event before the view was read.
        event_cursor: CursorBuf,
        /// The field definitions of characters.
        character_schema?: Object,
    }
}

shape! {
    /// The session in its view. Public.
    struct SnapshotSession {
        /// The session.
        id: String,
        /// The world that is played.
        world_id?: String,
        /// How far it is.
        phase: SessionPhase,
        /// How many turns the player has completed.
        completed_player_turns: u64,
        /// How the setup of each runtime stands.
        setup_runtimes: BTreeMap<String, SetupState>,
        /// The language.
        locale?: String,
        /// Which life of this id it is. Ours; the record's is the seed's.
        incarnation?: String,
    }
}

shape! {
    /// An event of an execution, as the view keeps it. Public.
    struct SnapshotStep {
        /// The event's name.
        r#type: String,
        /// The turn.
        turn_id?: String,
        /// What it tells.
        payload: Object,
        /// When: ISO 8601, UTC.
        timestamp?: String,
    }
}

shape! {
    /// An answered interaction.
    struct SubmittedInteraction {
        /// The turn that asked.
        turn_id: String,
        /// The interaction.
        interaction_id: String,
        /// The values that the server saved.
        values: Object,
    }
}

shape! {
    /// The runtimes that can settle pending dimensions. Source: seed 000, line 296.
    struct DimensionRecovery {
        /// Edits by hand.
        editor_runtime_id: String,
        /// Tracks the story.
        tracker_runtime_id: String,
    }
}

shape! {
    /// The answer of `GET /api/sessions/:id/execution`.
    ///
    /// Source: seed 000, lines 883-888 and 1433; the members are public.
    struct ExecutionStatus {
        /// How the newest execution stands.
        state: ExecutionState,
        /// Its turn.
        turn_id?: String,
        /// Its request.
        request_id?: String,
        /// When it began: ISO 8601, UTC.
        started_at?: String,
        /// What started it.
        origin?: ExecutionOrigin,
        /// Why it was stopped.
        abort_reason?: String,
        /// How it can be tried again.
        retry?: RetryAction,
        /// How its automatic rounds stand.
        advance?: RecoveredAdvance,
    }
}

shape! {
    /// The action that tries a turn again, as the server describes it.
    struct RetryAction {
        /// The type of the action.
        r#type: ActionType,
        /// Its payload, without `recoverFromTurnId`.
        payload: Object,
    }
}

shape! {
    /// How the automatic rounds of a request stand, as far as it is known.
    ///
    /// Source: seed 000, line 1433.
    struct RecoveredAdvance {
        /// The request.
        request_id?: String,
        /// The turn that the rounds follow from.
        root_id?: String,
        /// What they do; `unknown` is no completion.
        phase: RecoveredPhase,
        /// The number of the round.
        round?: u64,
        /// The greatest number of automatic rounds.
        limit?: u64,
        /// The turn of the round.
        turn_id?: String,
        /// Why they stopped; when they did.
        reason?: AdvanceStopReason,
    }
}

shape! {
    /// The answer of steer and abort. Public.
    struct TurnControlled {
        /// `true`.
        ok: True,
        /// The turn that runs.
        turn_id: String,
    }
}

shape! {
    /// The answer of retrying or waiving a setup. Public.
    struct SetupControlled {
        /// `true`.
        ok: True,
        /// The runtime.
        runtime_id: String,
        /// How its setup stands now.
        state: Value,
    }
}

shape! {
    /// The answer of `GET /api/health`.
    ///
    /// Source: seed 000, line 1085; the values of `storage` and `vector` are open.
    struct Health {
        /// How the server is.
        status: Value,
        /// Its version.
        version: String,
        /// Which start of the process it is.
        boot_id: String,
        /// Now: ISO 8601, UTC.
        timestamp: String,
        /// The store.
        storage: Value,
        /// The vector store; null when there is none.
        vector: Value,
        /// Whether an operator's token is asked for. Public.
        operator_token_required?: bool,
    }
}

shape! {
    /// The answer of `GET /api/sessions/:id/state`.
    ///
    /// Source: seed 000, line 1080.
    struct StateTables {
        /// Each table, by name.
        tables: Object,
    }
}
