//! What hooks did, what a commit changed or refused, and where background jobs stand.
//!
//! Source: seed 000, lines 146, 303-318, 348-399, 628-633, 778 and 1235-1237.

use serde_json::{Value, json};
use turnwire_spec::covel::payloads::data::{DataChange, PluginDataChanged};
use turnwire_spec::covel::payloads::execution::{OperationFailed, ProposalFailed};
use turnwire_spec::covel::payloads::hooks::{HookAborted, HookFired, HookRewrote};
use turnwire_spec::covel::payloads::internals::CommitFanoutFailed;
use turnwire_spec::covel::payloads::jobs::{ControlData, JobStatusUpdated};
use turnwire_spec::covel::payloads::narrative::{
    InteractionBlock, InteractionRequested, UiRendered,
};
use turnwire_spec::covel::payloads::state::{
    CharacterSchemaChanged, CharacterUpserted, EventEmitted, SessionForked, StateSnapshotCreated,
    TurnResumed, TurnSuspended,
};
use turnwire_spec::covel::vocabulary::{DataOperation, JobState, JobStatus};
use turnwire_spec::time::format_ms;

use super::Emission;
use crate::engine::hooks::{HookEffect, HookEvent, HookReport};
use crate::engine::ids::{PluginId, RuntimeId, SessionId, TurnId};
use crate::engine::model::{Job, Object};
use crate::engine::proposals::{PendingProposal, Proposal};
use crate::engine::snapshots::Snapshot;
use crate::engine::suspensions::Suspension;

/// What one hook did: `hook.fired`, then what came of it.
pub(in crate::engine) fn hook(
    event: HookEvent,
    runtime: Option<&RuntimeId>,
    proposal: Option<&PendingProposal>,
    report: &HookReport,
) -> Vec<Emission> {
    let (event_name, hook_name) = (event.name().to_owned(), report.hook.clone());
    let plugin_id = report.plugin_id.to_string();
    let runtime_id = runtime.map(RuntimeId::to_string);
    let target_id = proposal.map(|proposal| proposal.id.clone());
    let proposal_type = proposal.map(|proposal| proposal.proposal.kind().to_owned());
    let fired = Emission::new(&HookFired {
        event: event_name.clone(),
        hook_name: hook_name.clone(),
        plugin_id: plugin_id.clone(),
        runtime_id: runtime_id.clone(),
        target_id: target_id.clone(),
        target_type: event.target_type().to_owned(),
        proposal_type: proposal_type.clone(),
    });
    match report.effect.clone() {
        HookEffect::Fired => vec![fired],
        HookEffect::Rewrote { diff } => {
            let rewrote = HookRewrote {
                event: event_name,
                hook_name,
                plugin_id,
                runtime_id,
                target_id,
                diff: Some(diff),
                proposal_type,
            };
            vec![fired, Emission::new(&rewrote)]
        }
        HookEffect::Aborted { reason } => {
            let aborted = HookAborted {
                event: event_name,
                hook_name,
                plugin_id,
                runtime_id,
                target_id,
                reason,
                proposal_type,
            };
            vec![fired, Emission::new(&aborted)]
        }
    }
}

pub(in crate::engine) fn proposal_failed(pending: &PendingProposal, error: &str) -> Emission {
    Emission::of(
        &pending.plugin_id,
        &pending.runtime_id,
        &ProposalFailed {
            proposal_id: pending.id.clone(),
            proposal_type: pending.proposal.kind().to_owned(),
            runtime_id: pending.runtime_id.to_string(),
            plugin_id: pending.plugin_id.to_string(),
            error: error.to_owned(),
        },
    )
}

fn event_emitted(plugin: &PluginId, topic: &str, data: &Object) -> Emission {
    Emission::new(&EventEmitted {
        topic: Some(topic.to_owned()),
        r#type: None,
        event_type: None,
        data: Some(Value::Object(data.clone())),
        plugin_id: Some(plugin.to_string()),
    })
}

/// A row that was set, or removed when there is no value.
pub(in crate::engine) fn change(namespace: &str, key: &str, value: Option<&Value>) -> DataChange {
    DataChange {
        namespace: namespace.to_owned(),
        key: key.to_owned(),
        value: value.cloned().unwrap_or_default(),
        operation: if value.is_some() {
            DataOperation::Set
        } else {
            DataOperation::Delete
        },
    }
}

pub(in crate::engine) fn plugin_data_changed(
    plugin: &PluginId,
    changes: Vec<DataChange>,
) -> Emission {
    Emission::new(&PluginDataChanged {
        plugin_id: plugin.to_string(),
        changes,
    })
}

/// The events that a commit of these proposals announces, in order; changes of one plugin's data
/// that stand together are one event.
pub(in crate::engine) fn of_proposals<'a>(
    turn: &TurnId,
    proposals: impl IntoIterator<Item = &'a PendingProposal>,
) -> Vec<Emission> {
    let mut events = Vec::new();
    let mut changed: Option<(&PluginId, Vec<DataChange>)> = None;
    for pending in proposals {
        let goes_on = match (&pending.proposal, &changed) {
            (Proposal::Datum { plugin_id, .. }, Some((plugin, _))) => *plugin == plugin_id,
            _ => false,
        };
        if !goes_on {
            events.extend(
                changed
                    .take()
                    .map(|(plugin, changes)| plugin_data_changed(plugin, changes)),
            );
        }
        match &pending.proposal {
            Proposal::Event {
                plugin_id,
                topic,
                data,
            } => events.push(event_emitted(plugin_id, topic, data)),
            Proposal::Datum {
                plugin_id,
                namespace,
                key,
                value,
            } => {
                let changes = &mut changed.get_or_insert_with(|| (plugin_id, Vec::new())).1;
                changes.push(change(namespace, key, Some(value)));
            }
            Proposal::Ask { .. }
            | Proposal::Render { .. }
            | Proposal::Character { .. }
            | Proposal::CharacterSchema { .. } => events.extend(shown(pending, turn)),
        }
    }
    events.extend(changed.map(|(plugin, changes)| plugin_data_changed(plugin, changes)));
    events
}

/// What a committed block or character tells.
fn shown(pending: &PendingProposal, turn: &TurnId) -> Option<Emission> {
    let (plugin, runtime) = (&pending.plugin_id, &pending.runtime_id);
    let (plugin_id, runtime_id) = (plugin.to_string(), runtime.to_string());
    let (by_plugin, by_runtime) = (Some(plugin_id.clone()), Some(runtime_id.clone()));
    Some(match &pending.proposal {
        Proposal::Ask { block } => {
            let member = |name: &str| block.get(name).cloned().unwrap_or_default();
            let text = |name: &str| member(name).as_str().unwrap_or_default().to_owned();
            let block = InteractionBlock {
                id: text("id"),
                r#type: text("type"),
                data: member("data"),
                meta: member("meta"),
            };
            let asked = InteractionRequested {
                block,
                runtime_id,
                plugin_id,
                turn_id: Some(turn.to_string()),
                proposal_id: Some(pending.id.clone()),
            };
            Emission::of(plugin, runtime, &asked)
        }
        Proposal::Render {
            block,
            source,
            render,
        } => {
            let rendered = UiRendered {
                runtime_id,
                plugin_id,
                proposal_id: pending.id.clone(),
                source: source.clone(),
                render: render.clone(),
                block: block.clone(),
                turn_id: Some(turn.to_string()),
            };
            Emission::of(plugin, runtime, &rendered)
        }
        Proposal::Character { character } => {
            let upserted = CharacterUpserted {
                character: character.clone(),
                runtime_id: by_runtime,
                plugin_id: by_plugin,
            };
            Emission::of(plugin, runtime, &upserted)
        }
        Proposal::CharacterSchema { schema } => {
            let changed = CharacterSchemaChanged {
                schema: schema.clone(),
                runtime_id: by_runtime,
                plugin_id: by_plugin,
            };
            Emission::of(plugin, runtime, &changed)
        }
        Proposal::Event { .. } | Proposal::Datum { .. } => return None,
    })
}

/// Operations of a committed turn did not take effect, this many.
pub(in crate::engine) fn operation_failed(
    session: &SessionId,
    turn: &TurnId,
    count: u64,
) -> Emission {
    Emission::new(&OperationFailed {
        session_id: session.to_string(),
        turn_id: turn.to_string(),
        count,
    })
}

/// A runtime suspended, and its record is committed.
pub(in crate::engine) fn turn_suspended(suspension: &Suspension) -> Emission {
    Emission::of(
        &suspension.plugin_id,
        &suspension.runtime_id,
        &TurnSuspended {
            session_id: suspension.session_id.to_string(),
            turn_id: suspension.turn_id.to_string(),
            suspension_id: suspension.id.clone(),
            plugin_id: suspension.plugin_id.to_string(),
            runtime_id: suspension.runtime_id.to_string(),
            suspended_at: format_ms(suspension.suspended_at.as_millisecond()),
            reason: suspension.reason.clone(),
            resume_schema: suspension.resume_schema.clone(),
        },
    )
}

/// A suspension was resumed with success.
pub(in crate::engine) fn turn_resumed(suspension: &Suspension) -> Emission {
    Emission::of(
        &suspension.plugin_id,
        &suspension.runtime_id,
        &TurnResumed {
            session_id: suspension.session_id.to_string(),
            turn_id: suspension.turn_id.to_string(),
            suspension_id: suspension.id.clone(),
        },
    )
}

/// A snapshot was written.
pub(in crate::engine) fn snapshot_created(snapshot: &Snapshot) -> Emission {
    Emission::new(&StateSnapshotCreated {
        turn_id: snapshot.turn_id.to_string(),
        snapshot_id: snapshot.id.clone(),
        kind: snapshot.kind,
        parent_snapshot_id: snapshot.parent_id.clone(),
    })
}

/// A child session was made from a snapshot; `fork` is the snapshot that this wrote.
pub(in crate::engine) fn session_forked(
    parent: &SessionId,
    child: &SessionId,
    from: &str,
    fork: &str,
) -> Emission {
    Emission::new(&SessionForked {
        parent_session_id: parent.to_string(),
        child_session_id: child.to_string(),
        from_snapshot_id: from.to_owned(),
        fork_snapshot_id: fork.to_owned(),
    })
}

pub(in crate::engine) fn commit_fanout_failed(errors: &[String], total: usize) -> Emission {
    Emission::new(&CommitFanoutFailed {
        failed_count: errors.len() as u64,
        total_count: total as u64,
        errors: errors.iter().map(|error| json!(error)).collect(),
    })
}

/// Where a job stands; `created_at` is when that was recorded.
pub(in crate::engine) fn job_status_updated(job: &Job, created_at: &str) -> Emission {
    Emission::of(
        &job.plugin_id,
        &job.runtime_id,
        &JobStatusUpdated {
            session_id: job.session_id.to_string(),
            progress_scope_id: job.id.to_string(),
            plugin_id: job.plugin_id.to_string(),
            runtime_id: job.runtime_id.to_string(),
            job_id: job.id.to_string(),
            state: public_state(job),
            progress: job.progress,
            message: job.message.clone(),
            data: Some(control_data(job)),
            sequence: job.sequence,
            created_at: created_at.to_owned(),
        },
    )
}

/// What is told besides: all of [`ControlData`] for a job of a turn, else the status and the error.
fn control_data(job: &Job) -> Value {
    match &job.source_turn_id {
        Some(turn) => json!(ControlData {
            origin_turn_id: turn.to_string(),
            durable_status: job.status,
            reason: None,
            error: job.error.clone(),
        }),
        None => match &job.error {
            None => json!({ "durableStatus": job.status }),
            Some(error) => json!({ "durableStatus": job.status, "error": error }),
        },
    }
}

/// The state that clients see: a running job that has reported is in progress.
fn public_state(job: &Job) -> JobState {
    match job.status {
        JobStatus::Running if job.progress.is_some() => JobState::Progress,
        status => status.state(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datum(plugin: &str, key: &str) -> PendingProposal {
        pending(Proposal::Datum {
            plugin_id: plugin.into(),
            namespace: "n".into(),
            key: key.into(),
            value: json!(1),
        })
    }

    fn pending(proposal: Proposal) -> PendingProposal {
        PendingProposal {
            id: "p".into(),
            plugin_id: "story".into(),
            runtime_id: "story".into(),
            proposal,
        }
    }

    #[test]
    fn changes_of_one_plugin_that_stand_together_are_one_event() {
        let bell = Proposal::Event {
            plugin_id: "story".into(),
            topic: "bell".into(),
            data: Object::new(),
        };
        let proposals = [
            datum("a", "1"),
            datum("a", "2"),
            datum("b", "3"),
            pending(bell),
            datum("b", "4"),
        ];

        let events = of_proposals(&"t-1".into(), &proposals);

        let data = "plugin-data.changed";
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [data, data, "event.emitted", data]);
        assert_eq!(events[0].payload["changes"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_removed_row_is_told_with_a_null_value() {
        let event = plugin_data_changed(&"codex".into(), vec![change("n", "k", None)]);

        let expected =
            json!([{ "namespace": "n", "key": "k", "value": null, "operation": "delete" }]);
        assert_eq!(event.payload["changes"], expected);
    }

    #[test]
    fn a_hook_that_aborts_is_told_by_two_events() {
        let report = HookReport {
            plugin_id: "guard".into(),
            hook: "veto".into(),
            effect: HookEffect::Aborted {
                reason: "no".into(),
            },
        };

        let events = hook(HookEvent::TurnStart, None, None, &report);

        assert_eq!(events[0].kind, "hook.fired");
        assert_eq!(events[0].payload["targetType"], "turn");
        assert_eq!(events[1].kind, "hook.aborted");
        assert_eq!(events[1].payload["reason"], "no");
    }
}
