//! The commit boundary: what an execution worked out counts only once this has written it.
//!
//! [`commit_execution`] looks whether the execution may be committed at all, lets the commit hooks
//! look at each proposal, writes everything in one transaction, and only then publishes what it
//! announces, one by one. A publish that fails undoes nothing.
//!
//! ```text
//! refused? ──> hooks and checks ──> one transaction ──> publish each ──> resync?
//!    └─────────────┴─────────────────────┴──> nothing written, nothing published
//! ```
//!
//! Source: seed 000, lines 36-76 and 773-780.

use serde_json::{Value, json};

use super::cancel::Cancel;
use super::emitter::{Emitter, FanOut};
use super::events::{Emission, changes, life};
use super::hooks::{self, HookCall, HookEvent, HookScope};
use super::ids::{MessageId, PluginId, TurnId};
use super::model::{ExecutionEnd, ExecutionRow, Message, Object, PluginDatum, Record, Role, Shelf};
use super::outcome::Failure;
use super::proposals::{PendingProposal, Proposal};
use super::suspensions::Settled;
use super::turn::{CommitPlan, Execution, PlannedRun, Refusal};
use crate::store::{Batch, Purpose, Store, StoreError, Write};

/// What clients read when the transaction failed; the cause goes to the log.
const NOT_SAVED: &str = "The turn could not be saved";

/// What a host hands over to commit an execution: the whole of it, unchanged.
pub struct CommitExecution<'a> {
    /// Where to write.
    pub store: &'a dyn Store,
    /// What `execute_turn` gave.
    pub execution: Execution,
    /// What is completed.
    pub completion: Completion,
    /// Tells what the commit announces.
    pub emitter: &'a Emitter,
    /// The stop signal: the last moment to stop is right before the transaction.
    pub cancel: &'a Cancel,
    /// The start row of the execution, whose end is written with the commit.
    pub row: ExecutionRow,
    /// What the host writes in the same transaction.
    pub extra_in_tx: Vec<Write>,
    /// Narrows the commit hooks to these plugins. Only filters.
    pub active_plugin_ids: Option<Vec<PluginId>>,
}

/// What a commit completes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Completion {
    /// A turn.
    Turn {
        /// `execution.result.turn_id`.
        turn_id: TurnId,
        /// `execution.result.duration_ms`.
        duration_ms: u64,
    },
}

/// What became of a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum CommitOutcome {
    /// Everything is stored.
    Committed {
        /// What became of the publishes.
        fan_out: FanOut,
    },
    /// Nothing is stored.
    Failed {
        /// Why.
        error: String,
        /// Who stopped the turn, when somebody did.
        abort_reason: Option<String>,
    },
}

impl CommitOutcome {
    /// `committed` exactly when the durable commit happened.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Committed { .. } => "committed",
            Self::Failed { .. } => "failed",
        }
    }

    /// Whether the durable commit happened.
    #[must_use]
    pub const fn is_committed(&self) -> bool {
        matches!(self, Self::Committed { .. })
    }

    fn failed(error: impl Into<String>) -> Self {
        Self::Failed {
            error: error.into(),
            abort_reason: None,
        }
    }

    fn refused(refusal: &Refusal) -> Self {
        Self::Failed {
            error: refusal.message(),
            abort_reason: refusal.abort_reason(),
        }
    }
}

/// Makes an execution count, or says why it does not.
pub async fn commit_execution(commit: CommitExecution<'_>) -> CommitOutcome {
    let plan = &commit.execution.commit;
    if let Some(refusal) = &plan.refusal {
        return CommitOutcome::refused(refusal);
    }
    let Completion::Turn { turn_id, .. } = &commit.completion;
    if *turn_id != commit.execution.result.turn_id {
        return CommitOutcome::failed(format!(
            "completion of turn {turn_id} for another execution"
        ));
    }
    let judged = judge(&commit).await;
    if let Some(error) = judged.fatal {
        return CommitOutcome::failed(error);
    }
    if let Some(cause) = commit.cancel.cause() {
        return CommitOutcome::refused(&Refusal::Cancelled(cause));
    }
    if let Err(error) = write(&commit, &judged.runs).await {
        tracing::warn!(session = %plan.session.id, turn = %plan.turn_id, %error, "a commit failed");
        return CommitOutcome::failed(NOT_SAVED);
    }
    let fan_out = commit
        .emitter
        .fan_out(announcements(plan, &judged.runs))
        .await;
    if judged.dropped > 0 {
        let told = changes::operation_failed(&plan.session.id, &plan.turn_id, judged.dropped);
        commit.emitter.emit(told).await;
    }
    for event in judged.failures {
        commit.emitter.emit(event).await;
    }
    CommitOutcome::Committed { fan_out }
}

/// What is left of a plan after the commit hooks and checks.
#[derive(Default)]
struct Judged {
    runs: Vec<PlannedRun>,
    /// `proposal.failed` for each that was rejected, `runtime.failed` for each run discarded with it.
    failures: Vec<Emission>,
    /// Operations beside the story whose writes were refused. Nobody is told more than their number.
    dropped: u64,
    /// Why nothing may be written: a required run's proposal was rejected.
    fatal: Option<String>,
}

async fn judge(commit: &CommitExecution<'_>) -> Judged {
    let plan = &commit.execution.commit;
    let scope = match &commit.active_plugin_ids {
        None => plan.hooks.clone(),
        Some(active) => plan.hooks.narrowed(active),
    };
    let mut judged = Judged::default();
    for run in &plan.runs {
        let mut kept = Vec::new();
        let mut rejected = None;
        for pending in &run.proposals {
            match judge_proposal(commit, &scope, pending).await {
                Ok(pending) => kept.push(pending),
                Err(error) => {
                    judged
                        .failures
                        .push(changes::proposal_failed(pending, &error));
                    rejected.get_or_insert(error);
                }
            }
        }
        match rejected {
            None => {
                for operation in &run.operations {
                    match judge_operation(commit, &scope, operation).await {
                        Some(writes) => kept.extend(writes),
                        None => judged.dropped += 1,
                    }
                }
                judged.runs.push(PlannedRun {
                    proposals: kept,
                    ..run.clone()
                });
            }
            Some(error) if run.required => {
                judged.fatal.get_or_insert(error);
            }
            Some(error) => judged.failures.push(discarded(run, &error)),
        }
    }
    judged
}

/// The writes of an operation, all of them or, when one is refused, none.
async fn judge_operation(
    commit: &CommitExecution<'_>,
    scope: &HookScope,
    operation: &[PendingProposal],
) -> Option<Vec<PendingProposal>> {
    let mut kept = Vec::new();
    for pending in operation {
        kept.push(judge_proposal(commit, scope, pending).await.ok()?);
    }
    Some(kept)
}

/// An optional run whose writes are dropped although the turn commits: this overrides its earlier
/// `runtime.completed` (seed 000, lines 1274-1276).
fn discarded(run: &PlannedRun, error: &str) -> Emission {
    let stop = run.stop.map(|stop| stop.reason);
    life::runtime_failed(&run.run, run.duration_ms, &Failure::new(error), stop)
}

async fn judge_proposal(
    commit: &CommitExecution<'_>,
    scope: &HookScope,
    pending: &PendingProposal,
) -> Result<PendingProposal, String> {
    let plan = &commit.execution.commit;
    let target = json!(pending.proposal);
    let about = HookCall {
        session_id: &plan.session.id,
        turn_id: &plan.turn_id,
        runtime_id: Some(&pending.runtime_id),
        target: &target,
        settings: &Value::Null,
    };
    let piped = hooks::run(scope, HookEvent::PreStateCommit, about).await;
    for report in &piped.reports {
        let runtime = Some(&pending.runtime_id);
        for event in changes::hook(HookEvent::PreStateCommit, runtime, Some(pending), report) {
            commit.emitter.emit(event).await;
        }
    }
    if let Some(reason) = piped.aborted {
        return Err(reason);
    }
    let proposal: Proposal = serde_json::from_value(piped.target)
        .map_err(|error| format!("a hook left no valid proposal: {error}"))?;
    proposal.check()?;
    Ok(PendingProposal {
        proposal,
        ..pending.clone()
    })
}

async fn write(commit: &CommitExecution<'_>, runs: &[PlannedRun]) -> Result<(), StoreError> {
    let plan = &commit.execution.commit;
    let now = commit.emitter.now();
    let end = ExecutionEnd {
        committed: true,
        error: None,
        abort_reason: None,
        ended_at: now,
    };
    let row = ExecutionRow {
        end: Some(end),
        ..commit.row.clone()
    };
    let settled = Settled::of(commit.store, plan).await?;
    let counts = plan.counts_turn && !settled.waits;
    let mut writes = domain_writes(plan, runs, counts, now);
    writes.extend(settled.writes);
    writes.extend(commit.extra_in_tx.iter().cloned());
    writes.push(Write::Execution(row));
    commit
        .store
        .commit(Batch {
            session: plan.session.clone(),
            purpose: Purpose::Execution,
            writes,
        })
        .await
}

/// What a commit of these runs writes, in order: the player's input, then run by run its
/// conversation and its proposals, then the turn count.
fn domain_writes(
    plan: &CommitPlan,
    runs: &[PlannedRun],
    counts: bool,
    now: jiff::Timestamp,
) -> Vec<Write> {
    let adopt = plan.input.iter().map(|id| Write::AdoptMessage {
        id: id.clone(),
        turn: plan.turn_id.clone(),
    });
    let mut writes: Vec<Write> = adopt.collect();
    let interjections = plan.interjections.iter().cloned();
    writes.extend(interjections.map(Write::InsertMessage));
    for run in runs {
        writes.extend(run.journal.iter().cloned().map(Write::InsertMessage));
        let proposals = run.proposals.iter();
        writes.extend(proposals.filter_map(|pending| written(plan, pending, now)));
    }
    if counts {
        writes.push(Write::CountTurn(plan.logical_turn_id.clone()));
    }
    writes
}

/// The write of one proposal; an event of the game writes nothing.
fn written(plan: &CommitPlan, pending: &PendingProposal, now: jiff::Timestamp) -> Option<Write> {
    let record = |shelf, id: &str, doc: &Object| {
        Write::PutRecord(Record {
            shelf,
            id: id.to_owned(),
            doc: Value::Object(doc.clone()),
        })
    };
    match &pending.proposal {
        Proposal::Event { .. } => None,
        Proposal::Datum {
            plugin_id,
            namespace,
            key,
            value,
        } => Some(Write::PutDatum(PluginDatum {
            plugin_id: plugin_id.clone(),
            namespace: namespace.clone(),
            key: key.clone(),
            value: value.clone(),
            updated_at: now,
        })),
        Proposal::Ask { block } | Proposal::Render { block, .. } => Some(Write::InsertMessage(
            block_message(plan, pending, block, now),
        )),
        Proposal::Character { character } => {
            let id = character.get("id").and_then(Value::as_str);
            Some(record(Shelf::Character, id.unwrap_or_default(), character))
        }
        Proposal::CharacterSchema { schema } => {
            Some(record(Shelf::CharacterSchema, "schema", schema))
        }
    }
}

/// The message that shows a block. Its id is that of the proposal, which is made once.
fn block_message(
    plan: &CommitPlan,
    pending: &PendingProposal,
    block: &Object,
    now: jiff::Timestamp,
) -> Message {
    Message {
        id: MessageId::from(pending.id.as_str()),
        session_id: plan.session.id.clone(),
        role: Role::Assistant,
        content: String::new(),
        turn_id: Some(plan.turn_id.clone()),
        runtime_id: Some(pending.runtime_id.clone()),
        kind: Some("plugin".to_owned()),
        block: Some(Value::Object(block.clone())),
        actions: None,
        segments: None,
        created_at: now,
    }
}

/// What is told once these runs are stored, in the order of their writes.
fn announcements(plan: &CommitPlan, runs: &[PlannedRun]) -> Vec<Emission> {
    let of_run = |run: &PlannedRun| {
        let messages = run
            .journal
            .iter()
            .map(|message| life::narrative_completed(&run.run, &run.kind, message));
        messages
            .chain(changes::of_proposals(&plan.turn_id, &run.proposals))
            .collect::<Vec<_>>()
    };
    let waiting = plan.suspensions.iter().map(changes::turn_suspended);
    runs.iter().flat_map(of_run).chain(waiting).collect()
}
