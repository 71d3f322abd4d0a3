//! The closed sets of words of the protocol.
//!
//! A set that the sources leave open (`errorKind`, `abortReason`, skip reasons) is no enum here but a
//! text, with the known words as constants. Words of the catalogue, topics and reset reasons stand
//! beside the types that they belong to.

use crate::words::words;

/// The `abortReason` of a turn that the player stopped.
///
/// Source: seed 000, line 233.
pub const PLAYER_ABORT_REASON: &str = "aborted-by-player";

/// `errorKind` of a built-in provider without its key. Source: seed 000, line 184.
pub const ERROR_KIND_MISSING_KEY: &str = "missing_key";
/// `errorKind` of a model exception that is not classified. Source: seed 000, line 184.
pub const ERROR_KIND_UNKNOWN: &str = "unknown";

/// `reason` of `runtime.skipped`: the setup is not complete. Source: seed 000, line 799.
pub const SKIPPED_SETUP_INCOMPLETE: &str = "setup-incomplete";
/// `reason` of `runtime.skipped`: a runtime that it needs failed. Source: seed 000, line 799.
pub const SKIPPED_UPSTREAM_FAILED: &str = "upstream-failed";
/// `reason` of `runtime.skipped`: an input is missing. Source: seed 000, line 799.
pub const SKIPPED_INPUT_MISSING: &str = "input-missing";

words! {
    /// How the run of a runtime ended.
    ///
    /// Source: seed 000, lines 168 and 1272.
    "runtime status" enum RuntimeStatus {
        /// It ended well.
        Success = "success",
        /// It failed.
        Failed = "failed",
        /// It did not run.
        Skipped = "skipped",
        /// It waits for the player.
        Suspended = "suspended",
    }
}

words! {
    /// When a runtime runs within an execution.
    ///
    /// Source: seed 000, line 170.
    "stage" enum Stage {
        /// While the session is set up.
        Setup = "setup",
        /// Before the turn.
        PreTurn = "pre-turn",
        /// The story.
        Narrative = "narrative",
        /// After the turn.
        PostTurn = "post-turn",
        /// At the very end.
        Audit = "audit",
    }
}

words! {
    /// How the tool loop of an agent runtime ended.
    ///
    /// Source: seed 000, lines 194-204.
    "stop reason" enum StopReason {
        /// The model gave its final reply.
        Completed = "completed",
        /// A tool or a hook ended the loop as a success.
        ToolFinished = "tool-finished",
        /// The steps ran out.
        MaxSteps = "max-steps",
        /// The runtime's own deadline passed.
        Deadline = "deadline",
        /// The request does not fit, even when condensed.
        ContextOverflow = "context-overflow",
        /// The player, the parent or a hook stopped it.
        Cancelled = "cancelled",
        /// The model call failed for good.
        ModelError = "model-error",
        /// The output was rejected for good.
        InvalidOutput = "invalid-output",
        /// The model kept repeating one tool call.
        LoopDetected = "loop-detected",
        /// The runtime waits for the player.
        Suspended = "suspended",
    }
}

words! {
    /// Who cancelled a tool loop.
    ///
    /// Source: seed 000, line 200.
    "canceller" enum CancelledBy {
        /// The player stopped the turn.
        Player = "player",
        /// The enclosing execution was cancelled or timed out.
        Parent = "parent",
        /// A hook stopped it.
        Hook = "hook",
    }
}

words! {
    /// What the automatic rounds of a request do.
    ///
    /// Source: seed 000, line 1427.
    "phase of advancing" enum AdvancePhase {
        /// The next round has not begun.
        Waiting = "waiting",
        /// A round runs.
        Running = "running",
        /// No further round comes.
        Stopped = "stopped",
    }
}

words! {
    /// [`AdvancePhase`] in an answer for recovery, where it may be unknown.
    ///
    /// Source: seed 000, line 1433.
    "phase of advancing" enum RecoveredPhase {
        /// The next round has not begun.
        Waiting = "waiting",
        /// A round runs.
        Running = "running",
        /// No further round comes.
        Stopped = "stopped",
        /// The server cannot tell; this is no completion.
        Unknown = "unknown",
    }
}

words! {
    /// Why automatic rounds stopped.
    ///
    /// Source: seed 000, line 1431.
    "advance stop reason" enum AdvanceStopReason {
        /// It is the player's move.
        YieldedToPlayer = "yielded-to-player",
        /// No story runtime can go on.
        NoEligibleStory = "no-eligible-story",
        /// More than one story runtime could go on.
        AmbiguousStory = "ambiguous-story",
        /// The greatest number of rounds is reached.
        Limit = "limit",
        /// Automatic rounds are off.
        Disabled = "disabled",
        /// The player stopped.
        PlayerStop = "player-stop",
        /// The player sent something new.
        NewInput = "new-input",
        /// An interaction waits for its answer.
        PendingInput = "pending-input",
        /// The session is no longer there.
        SessionUnavailable = "session-unavailable",
        /// A round failed.
        ExecutionFailed = "execution-failed",
        /// Something that a round needs is missing.
        PrerequisiteUnavailable = "prerequisite-unavailable",
    }
}

words! {
    /// The codes of `error.occurred` that the seed names; the set is open.
    ///
    /// Source: seed 000, lines 253 and 954-958.
    "rejection code" enum RejectionCode {
        /// The session's lock was not free in time.
        SessionBusy = "session_busy",
        /// The values of a form did not pass.
        FormRejected = "form_rejected",
        /// The interaction has its answer already.
        InteractionAlreadySubmitted = "interaction_already_submitted",
        /// The plugin's validator threw.
        FormValidatorFailed = "form_validator_failed",
        /// The answer names no interaction, or has the wrong type or shape. Public.
        InvalidInteractionSubmission = "invalid_interaction_submission",
    }
}

words! {
    /// How an obligation to settle dimensions stands.
    ///
    /// Source: seed 000, line 283.
    "settlement status" enum SettlementStatus {
        /// Not settled yet; with an `error` when an attempt failed.
        PendingSettlement = "pending-settlement",
        /// Settled with changed values.
        Settled = "settled",
        /// Settled without a change.
        NoChange = "no-change",
        /// Settled by hand.
        Manual = "manual",
        /// Skipped by hand.
        Skipped = "skipped",
    }
}

words! {
    /// What happened to a row of plugin data.
    ///
    /// Source: seed 000, line 314.
    "operation" enum DataOperation {
        /// It was written.
        Set = "set",
        /// It was removed.
        Delete = "delete",
    }
}

words! {
    /// The public state of a job.
    ///
    /// Source: seed 000, line 358.
    "job state" enum JobState {
        /// It waits for a worker.
        Queued = "queued",
        /// A worker has it.
        Running = "running",
        /// It tells how far it is.
        Progress = "progress",
        /// It waits for the player.
        WaitingInput = "waiting-input",
        /// It ended well.
        Succeeded = "succeeded",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// Whether a job in this state is over.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

words! {
    /// The durable status of a background job.
    ///
    /// Source: seed 000, lines 417-426.
    "job status" enum JobStatus {
        /// Committed, waiting for a worker.
        Queued = "queued",
        /// A worker has the lease.
        Claimed = "claimed",
        /// A worker runs it.
        Running = "running",
        /// Its result is being committed.
        Committing = "committing",
        /// Its result is committed.
        Succeeded = "succeeded",
        /// The execution, a guard or the commit failed.
        Failed = "failed",
        /// It waited or ran too long.
        TimedOut = "timed_out",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// The session or the plugin changed; the commit barrier refused the result.
        Stale = "stale",
        /// Its worker stopped renewing the lease.
        Orphaned = "orphaned",
    }
}

impl JobStatus {
    /// The state that the public sees.
    ///
    /// Source: seed 000, lines 379-385.
    #[must_use]
    pub const fn state(self) -> JobState {
        match self {
            Self::Queued => JobState::Queued,
            Self::Claimed | Self::Running => JobState::Running,
            Self::Committing => JobState::Progress,
            Self::Succeeded => JobState::Succeeded,
            Self::Cancelled => JobState::Cancelled,
            Self::Failed | Self::TimedOut | Self::Stale | Self::Orphaned => JobState::Failed,
        }
    }

    /// The `progress` number that goes with the status. Public.
    #[must_use]
    pub const fn progress(self) -> u8 {
        match self {
            Self::Queued => 0,
            Self::Claimed => 5,
            Self::Running => 10,
            Self::Committing => 95,
            _ => 100,
        }
    }

    /// Whether a job of this status is over.
    #[must_use]
    pub const fn is_final(self) -> bool {
        self.state().is_final()
    }

    /// Whether a job of this status can be cancelled. Source: seed 000, line 472.
    #[must_use]
    pub const fn is_cancellable(self) -> bool {
        matches!(self, Self::Queued | Self::Claimed | Self::Running)
    }

    /// Whether a job of this status is of a failure type. Source: seed 000, line 473; a cancelled job
    /// is none, in our reading.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::TimedOut | Self::Stale | Self::Orphaned
        )
    }
}

words! {
    /// What queued a background job.
    ///
    /// Source: seed 000, lines 408-411.
    "job activation" enum JobActivation {
        /// A staged runtime that completes detached.
        Stage = "stage",
        /// A plugin RPC or a manual call.
        Manual = "manual",
        /// A follower in a chain of events.
        Event = "event",
    }
}

words! {
    /// Why a plugin's fault was counted.
    ///
    /// Source: seed 000, line 341.
    "fault reason" enum FaultReason {
        /// Its runtime failed by itself.
        Runtime = "runtime",
        /// Its hook threw.
        Hook = "hook",
        /// Its proposal was rejected.
        ProposalRejected = "proposal-rejected",
        /// It used up its own time.
        Timeout = "timeout",
        /// Its service failed.
        Service = "service",
    }
}

words! {
    /// What ended the pause of a plugin.
    ///
    /// Source: seed 000, line 339.
    "end of a pause" enum FaultClearedBy {
        /// It ran without a fault.
        CleanRun = "clean-run",
        /// The player resumed it.
        Player = "player",
    }
}

words! {
    /// Why a snapshot was made.
    ///
    /// Source: seed 000, line 583.
    "snapshot kind" enum SnapshotKind {
        /// After a commit.
        Auto = "auto",
        /// On request.
        Manual = "manual",
        /// For a fork.
        Fork = "fork",
    }
}

words! {
    /// Why a tool call failed.
    ///
    /// Source: seed 000, line 1225.
    "tool error code" enum ToolErrorCode {
        /// The arguments do not fit.
        InvalidInput = "invalid-input",
        /// What is asked for is not there.
        NotFound = "not-found",
        /// More than one thing fits.
        Ambiguous = "ambiguous",
        /// The tool declines.
        Refused = "refused",
        /// The tool cannot be used now.
        Unavailable = "unavailable",
        /// The call took too long.
        Timeout = "timeout",
        /// Something changed meanwhile.
        Conflict = "conflict",
        /// The call was cancelled.
        Cancelled = "cancelled",
        /// The tool has a defect.
        Internal = "internal",
    }
}

words! {
    /// Why a tool call never ran.
    ///
    /// Source: seed 000, line 1242.
    "skip reason" enum ToolSkipReason {
        /// A hook aborted it.
        HookAborted = "hook-aborted",
        /// The loop suspended first.
        Suspended = "suspended",
        /// The loop ended first.
        Terminated = "terminated",
        /// The turn was stopped first.
        Aborted = "aborted",
    }
}

words! {
    /// What is noted about a step of a tool loop.
    ///
    /// Source: seed 000, line 1230.
    "step note" enum StepNoteKind {
        /// The output was repaired.
        OutputRepair = "output-repair",
        /// The review rejected a draft.
        ReviewRejected = "review-rejected",
        /// The model was told to use a tool.
        NoToolCorrection = "no-tool-correction",
        /// The model was told to say that it is done.
        RuntimeDoneCorrection = "runtime-done-correction",
        /// The model was told that it repeats itself.
        LoopPerturbation = "loop-perturbation",
        /// The story is asked for without tools.
        StoryWithoutTools = "story-without-tools",
        /// The player interjected late.
        LateSteering = "late-steering",
        /// A deferred tool was activated.
        ToolActivated = "tool-activated",
        /// The tools were narrowed.
        ToolNarrowed = "tool-narrowed",
    }
}

words! {
    /// Where a plugin command was entered.
    ///
    /// Source: seed 000, line 1012.
    "command source" enum CommandSource {
        /// The input box.
        Composer = "composer",
        /// The plugin's interface.
        PluginUi = "plugin-ui",
    }
}

words! {
    /// Why a service call failed.
    ///
    /// Source: seed 000, line 1398.
    "service error code" enum ServiceErrorCode {
        /// The options of the call do not fit.
        InvalidOptions = "invalid-options",
        /// The calls go in a circle or too deep.
        CycleOrDepthLimit = "cycle-or-depth-limit",
        /// The call was not admitted.
        AdmissionError = "admission-error",
        /// The service is not there, or its plugin is paused.
        Unavailable = "unavailable",
        /// The provider rejected the input.
        InputValidation = "input-validation",
        /// The provider threw.
        InvocationError = "invocation-error",
        /// The output does not fit.
        OutputValidation = "output-validation",
        /// The call took too long.
        Timeout = "timeout",
        /// The call was cancelled.
        Cancelled = "cancelled",
    }
}

words! {
    /// How severe a trace event is.
    ///
    /// Source: seed 000, line 1262.
    "severity" enum Severity {
        /// As it should be.
        Info = "info",
        /// A success that was slow.
        Warning = "warning",
        /// A failure.
        Error = "error",
    }
}

words! {
    /// How far a session is.
    ///
    /// Source: seed 000, line 246.
    "phase" enum SessionPhase {
        /// Its setup runs.
        Setup = "setup",
        /// It is played.
        Playing = "playing",
    }
}

words! {
    /// Whether a session can be played. Public.
    "session status" enum SessionStatus {
        /// It can.
        Active = "active",
        /// Not now.
        Paused = "paused",
        /// Never again.
        Ended = "ended",
    }
}

words! {
    /// How the newest execution of a session stands. Public.
    "execution state" enum ExecutionState {
        /// There was none.
        Idle = "idle",
        /// It runs.
        Running = "running",
        /// It was committed.
        Completed = "completed",
        /// It was not committed.
        Failed = "failed",
        /// It left no end behind.
        Interrupted = "interrupted",
    }
}

words! {
    /// What started an execution. Public.
    "execution origin" enum ExecutionOrigin {
        /// An action of the player.
        Player = "player",
        /// The opening after the setup.
        Continuation = "continuation",
    }
}

words! {
    /// What a player decides about an approval.
    ///
    /// Source: seed 000, line 1061.
    "decision" enum Decision {
        /// It may run.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
    }
}

words! {
    /// How long an approval holds.
    ///
    /// Source: seed 000, line 1062.
    "approval scope" enum ApprovalScope {
        /// For one call within 60 seconds.
        Once = "once",
        /// For the rest of the session.
        Session = "session",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_durable_status_has_its_public_state() {
        // Source: seed 000, lines 379-385.
        let table = JobStatus::ALL
            .iter()
            .map(|status| format!("{status}={}", status.state()));
        assert_eq!(
            table.collect::<Vec<_>>().join(" "),
            "queued=queued claimed=running running=running committing=progress \
             succeeded=succeeded failed=failed timed_out=failed cancelled=cancelled stale=failed \
             orphaned=failed"
        );
    }

    #[test]
    fn a_failure_type_is_final_and_not_cancellable() {
        for status in JobStatus::ALL.iter().filter(|status| status.is_failure()) {
            assert!(status.is_final() && !status.is_cancellable(), "{status}");
        }
    }
}
