//! The life of executions and runtimes, and what went wrong.
//!
//! Source: seed 000, lines 158-214, 248-254, 628-633, 901-913 and 1424-1433.

use crate::covel::shape::{Ms, Object, True, payload, shape};
use crate::covel::vocabulary::{AdvancePhase, AdvanceStopReason, RuntimeStatus, Stage, StopReason};

shape! {
    /// What the payloads of a recovery carry besides: which turn it recovers, and how far.
    ///
    /// All members are absent outside a recovery. Source: seed 000, lines 903-913.
    #[derive(Default)]
    struct RecoveryScope {
        /// The turn that is recovered.
        source_turn_id?: String,
        /// The runtimes of this attempt.
        runtime_ids?: Vec<String>,
        /// The server has verified that the source is committed.
        source_committed?: True,
        /// The runtimes that are still failed, before this attempt or after its commit; may be empty.
        source_failed_runtime_ids?: Vec<String>,
    }
}

payload! {
    /// The execution of a turn starts.
    "execution.started" struct ExecutionStarted {
        /// How many runtimes it has.
        runtime_count: u64,
        /// `executing`. Public.
        status?: String,
        /// Which turn it recovers, if it does.
        #[serde(flatten)]
        recovery: RecoveryScope,
    }
}

payload! {
    /// One run of a runtime starts.
    ///
    /// Source: seed 000, lines 162-170.
    "runtime.started" struct RuntimeStarted {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The kind of its output.
        kind: String,
        /// The turn.
        turn_id: String,
        /// This run of it.
        run_id: String,
        /// What it is called in lists.
        label: String,
        /// When it runs within the turn; absent for runtimes without a stage.
        stage?: Stage,
        /// The run goes on from a suspension.
        resumed?: True,
        /// Which turn it recovers, if it does.
        #[serde(flatten)]
        recovery: RecoveryScope,
    }
}

payload! {
    /// A staged runtime was committed with its turn and goes on in the background.
    ///
    /// Source: seed 000, lines 163 and 210-214.
    "runtime.deferred" struct RuntimeDeferred {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// Its job.
        job_id: String,
        /// The turn that queued it.
        source_turn_id: String,
    }
}

payload! {
    /// One run of a runtime ends well, or suspends. The turn may still fail to commit.
    ///
    /// Source: seed 000, lines 164, 168 and 188.
    "runtime.completed" struct RuntimeCompleted {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The turn.
        turn_id: String,
        /// This run of it.
        run_id: String,
        /// How it ended.
        status: RuntimeStatus,
        /// How long it took.
        duration_ms: Ms,
        /// How its tool loop ended; absent for functions and guards.
        stop_reason?: StopReason,
        /// Which turn it recovers, if it does.
        #[serde(flatten)]
        recovery: RecoveryScope,
    }
}

payload! {
    /// One run of a runtime fails, or its writes were discarded at the commit.
    ///
    /// Source: seed 000, lines 165, 184-188 and 1274-1276.
    "runtime.failed" struct RuntimeFailed {
        /// The runtime.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The turn.
        turn_id: String,
        /// This run of it.
        run_id: String,
        /// How it ended.
        status: RuntimeStatus,
        /// How long it took.
        duration_ms: Ms,
        /// Why; fixed text when the runtime hides its content.
        error: String,
        /// The category of a model failure, an open set; `missing_key` and `unknown` are known.
        error_kind?: String,
        /// The model that failed, as the exception names it.
        failure_target?: FailureTarget,
        /// How its tool loop ended; absent for functions and guards.
        stop_reason?: StopReason,
        /// Which turn it recovers, if it does.
        #[serde(flatten)]
        recovery: RecoveryScope,
    }
}

shape! {
    /// The provider and model of a failed call; never a key or a setting.
    struct FailureTarget {
        /// The provider.
        provider: String,
        /// The model.
        model?: String,
    }
}

payload! {
    /// A runtime was skipped before it ran.
    ///
    /// Source: seed 000, lines 799 and 809; everything but `reason` is public.
    "runtime.skipped" struct RuntimeSkipped {
        /// Why, an open set; `setup-incomplete`, `upstream-failed` and `input-missing` are known.
        reason: String,
        /// The runtime.
        runtime_id?: String,
        /// Its plugin.
        plugin_id?: String,
        /// The turn.
        turn_id?: String,
        /// This run of it.
        run_id?: String,
        /// `skipped`.
        status?: String,
        /// How long it took.
        duration_ms?: Ms,
        /// Which turn it recovers, if it does.
        #[serde(flatten)]
        recovery: RecoveryScope,
    }
}

payload! {
    /// The one event that ends an action request which began to execute.
    ///
    /// Source: seed 000, lines 166 and 172-182.
    "execution.completed" struct ExecutionCompleted {
        /// How many runtimes the execution had.
        runtime_count: u64,
        /// How many results it gave.
        result_count: u64,
        /// How long it took.
        duration_ms: Ms,
        /// Whether the final execution is saved.
        committed: bool,
        /// Why it is not.
        error?: String,
        /// Why it was stopped; `aborted-by-player` when the player did.
        abort_reason?: String,
        /// Something is saved whose events could not be published: read the saved state.
        resync?: True,
        /// Which turn it recovers, if it does.
        #[serde(flatten)]
        recovery: RecoveryScope,
    }
}

payload! {
    /// One execution of an action request has ended; the request goes on.
    ///
    /// Source: seed 000, lines 1426-1429.
    "execution.round.completed" struct ExecutionRoundCompleted {
        /// The request.
        request_id: String,
        /// The turn that the rounds follow from.
        root_id: String,
        /// The turn of this round.
        turn_id: String,
        /// Its number; the first automatic round is 1.
        round: u64,
        /// The greatest number of automatic rounds.
        limit: u64,
        /// How many runtimes it had.
        runtime_count: u64,
        /// How many results it gave.
        result_count: u64,
        /// How long it took.
        duration_ms: Ms,
        /// Whether it is saved.
        committed: bool,
        /// Why it is not.
        error?: String,
        /// Why it was stopped.
        abort_reason?: String,
        /// It is saved, but its events could not be published.
        resync_required?: bool,
    }
}

payload! {
    /// How the automatic rounds of a request stand.
    ///
    /// Source: seed 000, lines 1427-1433.
    #[schemars(extend("if" = {
        "properties": { "phase": { "const": "stopped" } },
    }, "then" = { "required": ["reason"] }))]
    "execution.advance" struct ExecutionAdvance {
        /// The request.
        request_id: String,
        /// The turn that the rounds follow from.
        root_id: String,
        /// What they do.
        phase: AdvancePhase,
        /// The number of the round.
        round: u64,
        /// The greatest number of automatic rounds.
        limit: u64,
        /// The turn of the round.
        turn_id?: String,
        /// Why they stopped; when they did.
        reason?: AdvanceStopReason,
    }
}

payload! {
    /// An action was refused, or the infrastructure failed.
    ///
    /// Source: seed 000, lines 251-254 and 947-957.
    #[schemars(extend(
        "if" = { "required": ["details"] },
        "then" = { "properties": { "code": { "const": "form_rejected" } }, "required": ["code"] },
    ))]
    "error.occurred" struct ErrorOccurred {
        /// What to tell the player.
        message: String,
        /// A stable code, an open set.
        code?: String,
        /// The reasons by field; only with the code `form_rejected`.
        details?: FormRejection,
    }
}

shape! {
    /// Why a form was rejected.
    struct FormRejection {
        /// Each reason.
        issues: Vec<FormIssue>,
    }
}

shape! {
    /// One reason why a form was rejected.
    struct FormIssue {
        /// The field; absent when the reason belongs to the whole form.
        field?: String,
        /// The reason, for the player.
        message: String,
    }
}

payload! {
    /// A proposal could not be committed.
    "proposal.failed" struct ProposalFailed {
        /// The proposal.
        proposal_id: String,
        /// Its type.
        proposal_type: String,
        /// The runtime that made it.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// Why.
        error: String,
    }
}

payload! {
    /// Operations did not take effect in a turn that was committed.
    ///
    /// Source: seed 000, lines 629-633.
    "operation.failed" struct OperationFailed {
        /// The session.
        session_id: String,
        /// The turn.
        turn_id: String,
        /// How many.
        count: u64,
    }
}

payload! {
    /// A turn begins; recovery reads its recorded input. A row of the stored trace. Public.
    "turn.started" struct TurnStarted {
        /// How many runtimes it has.
        runtime_count?: u64,
        /// The request.
        request_id?: String,
        /// What started it.
        origin?: String,
        /// How it can be tried again.
        recovery_action?: Object,
    }
}

payload! {
    /// A turn ended. A row of the stored trace. Public.
    "turn.completed" struct TurnCompleted {
        /// How long it took.
        duration_ms?: Ms,
        /// How many results it gave.
        result_count?: u64,
        /// Whether it is saved.
        committed?: bool,
        /// Why it was stopped.
        abort_reason?: String,
    }
}

payload! {
    /// A turn failed before it ended. A row of the stored trace. Public.
    "turn.failed" struct TurnFailed {
        /// Why.
        error?: String,
        /// The request.
        request_id?: String,
    }
}
