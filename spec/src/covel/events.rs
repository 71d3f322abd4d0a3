//! Every event of the protocol, in one table.
//!
//! The rows stand in the order of the seed's chapters: narrative, execution, state, then the
//! diagnostics, then the rows that occur in stored traces only. Everything else that needs to know
//! about an event (what is forwarded, which topics exist, what a schema is called) is derived from
//! here.
//!
//! Source: seed 000, lines 108-633, 790-836, 1213-1248, 1306-1320 and 1352-1433.

use super::meta::{ActionStream, EventMeta, Source::Public, Source::Seed, Topic};
use super::payloads::{
    agents, data, execution, hooks, internals, jobs, models, narrative, plugins, state, tools,
};

/// Every event, narrative first, diagnostics last.
pub const EVENTS: &[EventMeta] = &[
    // Narrative and interaction.
    EventMeta::new::<narrative::NarrativeDelta>(
        "narrative.delta",
        Seed(127, 133),
        "A streamed piece of narrative text.",
    )
    .direct(),
    EventMeta::new::<narrative::NarrativeCompleted>(
        "narrative.completed",
        Seed(128, 136),
        "The complete, reviewed narrative message.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<narrative::InteractionRequested>(
        "interaction.requested",
        Seed(141, 141),
        "Asks the player for input: form, choice or confirmation.",
    )
    .direct()
    .stated(Topic::State),
    EventMeta::new::<narrative::InteractionSubmitted>(
        "interaction.submitted",
        Seed(161, 161),
        "An interaction's answer is saved and the next turn has begun.",
    )
    .direct()
    .ours(Topic::State),
    EventMeta::new::<narrative::UiRendered>(
        "ui.rendered",
        Seed(1234, 1234),
        "A rendered block was committed.",
    )
    .forwarded()
    .stated(Topic::State),
    // Executions.
    EventMeta::new::<execution::ExecutionStarted>(
        "execution.started",
        Seed(160, 160),
        "The execution of a turn starts.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::RuntimeStarted>(
        "runtime.started",
        Seed(162, 170),
        "One runtime starts.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::RuntimeDeferred>(
        "runtime.deferred",
        Seed(163, 214),
        "A staged runtime was committed with its turn and moved to the background.",
    )
    .direct()
    .stated(Topic::Runtime),
    EventMeta::new::<execution::RuntimeCompleted>(
        "runtime.completed",
        Seed(164, 164),
        "One runtime completes.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::RuntimeFailed>(
        "runtime.failed",
        Seed(165, 188),
        "One runtime fails, or its writes were discarded.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::RuntimeSkipped>(
        "runtime.skipped",
        Seed(799, 809),
        "A runtime was skipped before it ran.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::ExecutionCompleted>(
        "execution.completed",
        Seed(166, 182),
        "The one terminal event of an action request.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::ExecutionRoundCompleted>(
        "execution.round.completed",
        Seed(1426, 1429),
        "One execution within an action request has ended.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::ExecutionAdvance>(
        "execution.advance",
        Seed(1427, 1433),
        "The automatic rounds of a request wait, run or have stopped.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::ErrorOccurred>(
        "error.occurred",
        Seed(251, 254),
        "An action was refused or its execution failed.",
    )
    .direct(),
    EventMeta::new::<execution::ProposalFailed>(
        "proposal.failed",
        Seed(628, 633),
        "A proposal could not be committed.",
    )
    .direct()
    .ours(Topic::Runtime),
    EventMeta::new::<execution::OperationFailed>(
        "operation.failed",
        Seed(629, 633),
        "Operations of a committed turn did not take effect.",
    )
    .direct()
    .ours(Topic::Runtime),
    // State, data, jobs and assets.
    EventMeta::new::<state::EventEmitted>(
        "event.emitted",
        Seed(146, 146),
        "A committed business event of the game.",
    )
    .direct()
    .ours(Topic::Game),
    EventMeta::new::<state::DomainEventPreviewed>(
        "domain-event.previewed",
        Seed(147, 157),
        "A preview of a validated business event; nothing is saved.",
    )
    .forwarded()
    .ours(Topic::Trace),
    EventMeta::new::<state::WorldDimensionsChanged>(
        "world.dimensions.changed",
        Seed(268, 270),
        "The author's declaration of dimensions changed.",
    )
    .forwarded()
    .ours(Topic::Game),
    EventMeta::new::<state::DimensionsChanged>(
        "dimensions.changed",
        Seed(275, 289),
        "Values or definitions of session dimensions were committed.",
    )
    .forwarded()
    .ours(Topic::State),
    EventMeta::new::<state::DimensionsSettlementChanged>(
        "dimensions.settlement.changed",
        Seed(276, 289),
        "A dimension settlement is pending, failed or ended without a value change.",
    )
    .forwarded()
    .ours(Topic::State),
    EventMeta::new::<data::PluginDataChanged>(
        "plugin-data.changed",
        Seed(303, 326),
        "Persisted data of a plugin changed.",
    )
    .forwarded()
    .stated(Topic::Plugin),
    EventMeta::new::<jobs::JobStatusUpdated>(
        "job-status.updated",
        Seed(348, 399),
        "Progress of a long-running job.",
    )
    .forwarded()
    .stated(Topic::Job),
    EventMeta::new::<data::AssetProgress>(
        "asset.progress",
        Seed(494, 494),
        "Progress of the generation of an asset.",
    )
    .forwarded()
    .ours(Topic::Game),
    EventMeta::new::<data::AssetGenerated>(
        "asset.generated",
        Seed(495, 495),
        "An asset is complete and committed.",
    )
    .direct()
    .ours(Topic::Game),
    EventMeta::new::<state::CharacterSchemaChanged>(
        "character-schema.changed",
        Seed(605, 623),
        "The field definitions of characters were committed.",
    )
    .forwarded()
    .ours(Topic::State),
    EventMeta::new::<state::CharacterUpserted>(
        "character.upserted",
        Seed(606, 624),
        "A character was committed.",
    )
    .forwarded()
    .ours(Topic::State),
    EventMeta::new::<state::UiSlotChanged>(
        "ui.slot.changed",
        Seed(1356, 1363),
        "Committed interface state changed.",
    )
    .forwarded()
    .ours(Topic::State),
    EventMeta::new::<state::UiSlotPreview>(
        "ui.slot.preview",
        Seed(1357, 1363),
        "Covers the display for one turn without a committed change.",
    )
    .forwarded()
    .ours(Topic::State),
    EventMeta::new::<state::UiSlotCleared>(
        "ui.slot.cleared",
        Seed(1358, 1363),
        "Removes the previews of one turn.",
    )
    .forwarded()
    .ours(Topic::State),
    EventMeta::new::<state::TurnSuspended>(
        "turn.suspended",
        Seed(573, 573),
        "A runtime suspended; its record is committed.",
    )
    .forwarded()
    .ours(Topic::Runtime),
    EventMeta::new::<state::TurnResumed>(
        "turn.resumed",
        Seed(574, 576),
        "A suspension was resumed with success.",
    )
    .forwarded()
    .ours(Topic::Runtime),
    EventMeta::new::<state::StateSnapshotCreated>(
        "state.snapshot.created",
        Seed(583, 590),
        "A snapshot was written.",
    )
    .stated(Topic::Session),
    EventMeta::new::<state::SessionForked>(
        "session.forked",
        Seed(584, 590),
        "A child session was made from a snapshot.",
    )
    .stated(Topic::Session),
    EventMeta::new::<plugins::PluginFaultLatched>(
        "plugin.fault.latched",
        Seed(338, 343),
        "A plugin is paused after three faults in a row.",
    )
    .forwarded()
    .ours(Topic::Plugin),
    EventMeta::new::<plugins::PluginFaultCleared>(
        "plugin.fault.cleared",
        Seed(339, 343),
        "A paused plugin runs again.",
    )
    .forwarded()
    .ours(Topic::Plugin),
    // Diagnostics that are forwarded to the action stream.
    EventMeta::new::<tools::ToolCalling>(
        "tool.calling",
        Seed(1223, 1242),
        "A tool is about to be called.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<tools::ToolCompleted>(
        "tool.completed",
        Seed(1224, 1242),
        "A tool's result was accepted.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<tools::ToolFailed>(
        "tool.failed",
        Seed(1225, 1242),
        "A tool call failed or was skipped.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<models::LlmCalling>(
        "llm.calling",
        Seed(1227, 1304),
        "A model is being called.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<models::LlmResponded>(
        "llm.responded",
        Seed(1228, 1228),
        "A model call ended.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<models::StepStarted>(
        "step.started",
        Seed(1229, 1229),
        "A step of a tool loop is about to call the model.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<models::StepCompleted>(
        "step.completed",
        Seed(1230, 1230),
        "A step of a tool loop ended.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<tools::MessageCompleted>(
        "message.completed",
        Seed(1232, 1244),
        "The saved text of a runtime, and how many deltas made it.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<tools::BlockEmitted>(
        "block.emitted",
        Seed(1233, 1233),
        "A runtime emitted a block.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<models::GatewayCalling>(
        "gateway.calling",
        Seed(807, 807),
        "A plugin calls a provider through the gateway.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<models::GatewayResponded>(
        "gateway.responded",
        Seed(1231, 1231),
        "A plugin's provider call succeeded.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<models::GatewayFailed>(
        "gateway.failed",
        Seed(807, 807),
        "A plugin's provider call failed.",
    )
    .forwarded()
    .stated(Topic::Trace),
    EventMeta::new::<hooks::HookFired>("hook.fired", Seed(1235, 1235), "A hook ran.")
        .forwarded()
        .one_of(HOOK_TOPICS),
    EventMeta::new::<hooks::HookAborted>(
        "hook.aborted",
        Seed(1237, 1237),
        "A hook aborted what it was asked about.",
    )
    .forwarded()
    .one_of(HOOK_TOPICS),
    // Diagnostics for the trace only.
    EventMeta::new::<hooks::HookRewrote>(
        "hook.rewrote",
        Seed(1236, 1236),
        "A hook rewrote content.",
    )
    .trace_only()
    .one_of(HOOK_TOPICS),
    EventMeta::new::<internals::FunctionExecuting>(
        "function.executing",
        Seed(819, 819),
        "The handler of a function runtime starts.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::FunctionCompleted>(
        "function.completed",
        Seed(819, 819),
        "The handler of a function runtime ended.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::UtilsFetchCalling>(
        "utils.fetch.calling",
        Seed(820, 820),
        "A plugin's own wire calls a provider.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::UtilsFetchResponded>(
        "utils.fetch.responded",
        Seed(820, 820),
        "A plugin's own wire was answered.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::UtilsFetchFailed>(
        "utils.fetch.failed",
        Seed(820, 820),
        "A plugin's own wire failed.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::ContextPruned>(
        "context.pruned",
        Seed(821, 821),
        "Messages were left out of a prompt.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::ContextCompactionFailed>(
        "context.compaction.failed",
        Seed(822, 828),
        "The history could not be compacted.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::CommitFanoutFailed>(
        "commit.fanout.failed",
        Seed(778, 823),
        "Events of a committed turn could not be published.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::RecursiveCalling>(
        "recursive.calling",
        Seed(620, 620),
        "A runtime calls a child runtime.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::RecursiveCompleted>(
        "recursive.completed",
        Seed(620, 620),
        "A child runtime ended.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::RecursiveFailed>(
        "recursive.failed",
        Seed(620, 620),
        "A child runtime failed or was dropped.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<agents::SubagentStarted>(
        "subagent.started",
        Seed(1312, 1312),
        "A sub-agent was found and starts.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<agents::SubagentCompleted>(
        "subagent.completed",
        Seed(1313, 1313),
        "A sub-agent ended.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<agents::SubagentFailed>(
        "subagent.failed",
        Seed(1314, 1314),
        "A sub-agent failed or was refused.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<agents::SubagentWritesDropped>(
        "subagent.writes-dropped",
        Seed(1315, 1315),
        "Writes of a sub-agent were dropped.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::CommandInvoked>(
        "command.invoked",
        Seed(1238, 1248),
        "A plugin command was invoked.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::CommandCompleted>(
        "command.completed",
        Seed(1239, 1248),
        "A plugin command ended.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::CommandFailed>(
        "command.failed",
        Seed(1240, 1248),
        "A plugin command failed.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<internals::PluginServiceCompleted>(
        "plugin.service.completed",
        Seed(1395, 1401),
        "One plugin called a service of another.",
    )
    .trace_only()
    .stated(Topic::Trace),
    EventMeta::new::<plugins::PluginFaultCounted>(
        "plugin.fault.counted",
        Seed(337, 337),
        "A plugin's own fault was counted.",
    )
    .trace_only()
    .stated(Topic::Trace),
    // Rows of the stored trace that are no members of the union.
    EventMeta::new::<internals::ContextCompacted>(
        "context.compacted",
        Seed(619, 630),
        "A summary of the history was saved.",
    )
    .stored_row(),
    EventMeta::new::<execution::TurnStarted>(
        "turn.started",
        Public,
        "A turn starts; recovery reads its recorded input.",
    )
    .stored_row(),
    EventMeta::new::<execution::TurnCompleted>("turn.completed", Public, "A turn ended.")
        .stored_row(),
    EventMeta::new::<execution::TurnFailed>("turn.failed", Public, "A turn failed.").stored_row(),
];

/// The seed calls `hooks` the topic of the hook pipeline, and `trace` that of the turn emitter, which
/// emits these events.
const HOOK_TOPICS: &[Topic] = &[Topic::Hooks, Topic::Trace];

/// The row of the event `name`.
#[must_use]
pub fn event(name: &str) -> Option<&'static EventMeta> {
    EVENTS.iter().find(|meta| meta.name == name)
}

/// The members of the event union, in the order of the table.
pub fn members() -> impl Iterator<Item = &'static EventMeta> {
    EVENTS.iter().filter(|meta| meta.member)
}

/// The members that the bus forwards to the action stream.
///
/// Source: seed 000, lines 794-795.
pub fn forwarded() -> impl Iterator<Item = &'static EventMeta> {
    members().filter(|meta| meta.action_stream == ActionStream::Forwarded)
}

#[cfg(test)]
mod tests;
