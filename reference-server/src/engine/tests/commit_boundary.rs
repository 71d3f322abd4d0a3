//! The seed's commit boundary, as a host meets it: `execute_turn` gives a result and a plan, and only
//! `commit_execution` makes them count.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use turnwire_spec::covel::vocabulary::Stage;

use crate::engine::agent::LoopPolicy;
use crate::engine::cancel::{Cancel, CancelCause};
use crate::engine::commit::{CommitExecution, CommitOutcome, Completion, commit_execution};
use crate::engine::emitter::Emitter;
use crate::engine::hooks::{BoundHook, Hook, HookCall, HookEvent, HookOutcome, HookScope};
use crate::engine::ids::PluginId;
use crate::engine::model::{ExecutionRow, Object, Origin, Session};
use crate::engine::outcome::Failure;
use crate::engine::plugins::{Function, FunctionCall, FunctionOutput, RuntimeBody, RuntimeSpec};
use crate::engine::proposals::Proposal;
use crate::engine::testing::Bench;
use crate::engine::turn::{
    Execution, ExecutionDeps, OPENING_PROMPT, Refusal, TurnInput, execute_turn,
};
use crate::store::Write;

/// A runtime that proposes one row under its own name, or fails.
struct Proposes {
    key: &'static str,
    namespace: &'static str,
    fails: bool,
}

#[async_trait]
impl Function for Proposes {
    async fn run(&self, _call: FunctionCall<'_>) -> Result<FunctionOutput, String> {
        if self.fails {
            return Err("broken".to_owned());
        }
        let row = Proposal::Datum {
            plugin_id: "codex".into(),
            namespace: self.namespace.to_owned(),
            key: self.key.to_owned(),
            value: json!(1),
        };
        Ok(FunctionOutput {
            output: json!({ "content": "for the reader" }),
            proposals: vec![row],
            ..FunctionOutput::default()
        })
    }
}

fn runtime(
    key: &'static str,
    namespace: &'static str,
    required: bool,
    fails: bool,
) -> Arc<RuntimeSpec> {
    Arc::new(RuntimeSpec {
        id: key.into(),
        plugin_id: "codex".into(),
        kind: "plugin".into(),
        stage: Some(Stage::PostTurn),
        required,
        concealed: false,
        body: RuntimeBody::Function(Arc::new(Proposes {
            key,
            namespace,
            fails,
        })),
    })
}

/// A hook of a plugin that does this on this event.
struct Does {
    on: HookEvent,
    outcome: HookOutcome,
    seen: std::sync::Mutex<Vec<Value>>,
}

#[async_trait]
impl Hook for Does {
    fn name(&self) -> &'static str {
        "does"
    }

    fn event(&self) -> HookEvent {
        self.on
    }

    async fn run(&self, call: HookCall<'_>) -> HookOutcome {
        self.seen.lock().unwrap().push(call.settings.clone());
        self.outcome.clone()
    }
}

fn hook(on: HookEvent, outcome: HookOutcome) -> Arc<Does> {
    Arc::new(Does {
        on,
        outcome,
        seen: std::sync::Mutex::default(),
    })
}

fn scope(plugin: &str, hook: &Arc<Does>) -> HookScope {
    let hook = Arc::clone(hook) as Arc<dyn Hook>;
    let plugin = PluginId::from(plugin);
    HookScope {
        hooks: vec![BoundHook {
            plugin_id: plugin.clone(),
            hook,
        }],
        settings: [(plugin, json!({ "volume": 3 }))].into(),
    }
}

/// A host that embeds the library: it holds the lock and owns store, publisher and session.
struct Host {
    bench: Bench,
    session: Session,
    emitter: Emitter,
    cancel: Cancel,
}

impl Host {
    async fn new() -> Self {
        let bench = Bench::new();
        let session = bench.session(&[]).await;
        let emitter = Emitter::of_turn(
            bench.engine.outlets(),
            session.key(),
            "tr-1".into(),
            "t-1".into(),
            None,
        );
        Self {
            bench,
            session,
            emitter,
            cancel: Cancel::new(),
        }
    }

    async fn execute(&self, runtimes: &[Arc<RuntimeSpec>], hooks: HookScope) -> Execution {
        self.execute_as("t-1", runtimes, hooks).await
    }

    async fn execute_as(
        &self,
        logical: &str,
        runtimes: &[Arc<RuntimeSpec>],
        hooks: HookScope,
    ) -> Execution {
        let input = TurnInput {
            session: self.session.clone(),
            turn_id: "t-1".into(),
            logical_turn_id: logical.into(),
            counts_turn: true,
            player: None,
            prompt: OPENING_PROMPT,
            lore: None,
            model: None,
            resumed: None,
        };
        let policy = LoopPolicy {
            retries: 0,
            backoff: std::time::Duration::ZERO,
            max_wait: std::time::Duration::ZERO,
            finalizer_min: std::time::Duration::ZERO,
            repairs: 0,
        };
        let deps = ExecutionDeps {
            store: self.bench.store.as_ref(),
            gateway: self.bench.gateway.as_ref(),
            emitter: &self.emitter,
            ids: self.bench.engine.ids().as_ref(),
            tools: &[],
            hooks,
            cancel: &self.cancel,
            steering: None,
            policy,
            engine: None,
        };
        execute_turn(input, runtimes, deps).await
    }

    fn commit(&self, execution: Execution) -> CommitExecution<'_> {
        let completion = Completion::Turn {
            turn_id: execution.result.turn_id.clone(),
            duration_ms: execution.result.duration_ms,
        };
        CommitExecution {
            store: self.bench.store.as_ref(),
            completion,
            emitter: &self.emitter,
            cancel: &self.cancel,
            row: ExecutionRow {
                session_id: self.session.id.clone(),
                turn_id: execution.result.turn_id.clone(),
                logical_turn_id: execution.commit.logical_turn_id.clone(),
                request_id: "rq-1".into(),
                trace_id: "tr-1".into(),
                origin: Origin::Player,
                retry: None,
                input_message_id: None,
                started_at: self.emitter.now(),
                end: None,
            },
            extra_in_tx: vec![],
            active_plugin_ids: None,
            execution,
        }
    }

    async fn keys(&self) -> Vec<String> {
        let rows = self
            .bench
            .store
            .plugin_data(&self.session.id, &"codex".into(), "n")
            .await
            .unwrap();
        rows.into_iter().map(|row| row.key).collect()
    }

    async fn turns(&self) -> u64 {
        self.bench
            .engine
            .session(&self.session.id)
            .await
            .unwrap()
            .completed_player_turns
    }
}

fn failure(outcome: &CommitOutcome) -> (&str, Option<&str>) {
    match outcome {
        CommitOutcome::Failed {
            error,
            abort_reason,
        } => (error, abort_reason.as_deref()),
        CommitOutcome::Committed { .. } => panic!("committed"),
    }
}

const COMMITTED: [&str; 0] = [];

/// COV-HOST-001, COV-HOST-008, COV-HOST-012, COV-HOST-024.
#[tokio::test]
async fn an_execution_counts_only_once_it_is_committed() {
    let host = Host::new().await;
    let runtimes = [
        runtime("a", "n", true, false),
        runtime("b", "n", false, false),
    ];

    let execution = host.execute(&runtimes, HookScope::default()).await;
    assert_eq!(host.keys().await, COMMITTED);
    assert_eq!(host.turns().await, 0);
    assert_eq!(host.bench.publisher.committed(), COMMITTED);

    let outcome = commit_execution(host.commit(execution)).await;
    assert_eq!(outcome.status(), "committed");
    assert_eq!(host.keys().await, ["a", "b"]);
    assert_eq!(host.turns().await, 1);
    assert_eq!(
        host.bench.publisher.committed(),
        ["plugin-data.changed", "plugin-data.changed"]
    );
}

/// COV-HOST-002, COV-HOST-048: the host's own writes are part of the one transaction.
#[tokio::test]
async fn a_failing_write_leaves_the_session_as_it_was() {
    let host = Host::new().await;
    let execution = host
        .execute(&[runtime("a", "n", true, false)], HookScope::default())
        .await;

    let mut commit = host.commit(execution);
    commit.extra_in_tx = vec![Write::AdoptMessage {
        id: "nowhere".into(),
        turn: "t-1".into(),
    }];
    let outcome = commit_execution(commit).await;

    assert_eq!(outcome.status(), "failed");
    assert_eq!(host.keys().await, COMMITTED);
    assert_eq!(host.turns().await, 0);
    assert_eq!(host.bench.publisher.committed(), COMMITTED);
}

/// COV-HOST-003, COV-HOST-027, COV-HOST-099, COV-HOST-100: the result is plain data without commands.
#[tokio::test]
async fn the_result_holds_the_content_and_no_commands() {
    let host = Host::new().await;

    let execution = host
        .execute(&[runtime("a", "n", true, false)], HookScope::default())
        .await;

    let result = serde_json::to_value(&execution.result).unwrap();
    assert_eq!(
        result["runtimes"][0]["output"],
        json!({ "content": "for the reader" })
    );
    assert!(!result.to_string().contains("proposal"), "{result}");
    assert_eq!(execution.commit.runs[0].proposals.len(), 1);
}

/// COV-HOST-020.
#[tokio::test]
async fn a_completion_of_another_turn_commits_nothing() {
    let host = Host::new().await;
    let execution = host
        .execute(&[runtime("a", "n", true, false)], HookScope::default())
        .await;

    let mut commit = host.commit(execution);
    commit.completion = Completion::Turn {
        turn_id: "t-2".into(),
        duration_ms: 0,
    };

    assert!(!commit_execution(commit).await.is_committed());
    assert_eq!(host.keys().await, COMMITTED);
}

/// COV-HOST-036, COV-HOST-037.
#[tokio::test]
async fn one_logical_turn_is_counted_once_however_often_it_is_committed() {
    let host = Host::new().await;
    for key in ["a", "b"] {
        let execution = host
            .execute_as(
                "logical-1",
                &[runtime(key, "n", true, false)],
                HookScope::default(),
            )
            .await;
        assert!(
            commit_execution(host.commit(execution))
                .await
                .is_committed()
        );
    }

    assert_eq!(host.keys().await, ["a", "b"]);
    assert_eq!(host.turns().await, 1);
}

/// COV-HOST-043, COV-HOST-045, COV-HOST-047, COV-HOST-049.
#[tokio::test]
async fn a_vetoed_turn_runs_nothing_and_commits_nothing() {
    let host = Host::new().await;
    let veto = hook(
        HookEvent::TurnStart,
        HookOutcome::Abort("not tonight".into()),
    );

    let execution = host
        .execute(&[runtime("a", "n", true, false)], scope("guard", &veto))
        .await;
    assert_eq!(
        execution.commit.refusal,
        Some(Refusal::Veto("not tonight".into()))
    );
    assert!(execution.result.runtimes.is_empty());

    let mut commit = host.commit(execution);
    commit.extra_in_tx = vec![Write::CountTurn("extra".into())];
    let outcome = commit_execution(commit).await;
    assert_eq!(failure(&outcome), ("not tonight", Some("not tonight")));
    assert_eq!(
        host.turns().await,
        0,
        "the host's writes did not run either"
    );
    assert!(host.bench.publisher.kinds().contains(&"hook.aborted"));
}

/// COV-HOST-044, COV-HOST-046: the plan remembers, whatever signal the commit is given.
#[tokio::test]
async fn a_cancellation_that_was_seen_forbids_the_commit_for_good() {
    let mut host = Host::new().await;
    host.cancel.cancel(CancelCause::Player);
    let execution = host
        .execute(&[runtime("a", "n", true, false)], HookScope::default())
        .await;
    host.cancel = Cancel::new();

    let outcome = commit_execution(host.commit(execution)).await;

    assert_eq!(failure(&outcome).1, Some("aborted-by-player"));
    assert_eq!(host.keys().await, COMMITTED);
}

/// COV-CTL-034, COV-CTL-035.
#[tokio::test]
async fn a_stop_before_the_transaction_commits_nothing() {
    let host = Host::new().await;
    let execution = host
        .execute(&[runtime("a", "n", true, false)], HookScope::default())
        .await;

    host.cancel.cancel(CancelCause::Player);
    let outcome = commit_execution(host.commit(execution)).await;

    assert_eq!(failure(&outcome).1, Some("aborted-by-player"));
    assert_eq!(host.keys().await, COMMITTED);
}

/// COV-HOST-011, COV-HOST-040, COV-HOST-041, COV-HOST-042.
#[tokio::test]
async fn commit_hooks_run_with_recorded_settings_and_the_list_only_narrows_them() {
    for (active, runs) in [
        (None, 1),
        (Some(vec!["codex"]), 0),
        (Some(vec!["guard", "new"]), 1),
    ] {
        let host = Host::new().await;
        let watch = hook(HookEvent::PreStateCommit, HookOutcome::Continue);
        let execution = host
            .execute(&[runtime("a", "n", true, false)], scope("guard", &watch))
            .await;

        let mut commit = host.commit(execution);
        commit.active_plugin_ids = active.map(|ids| ids.into_iter().map(PluginId::from).collect());
        assert!(commit_execution(commit).await.is_committed());

        assert_eq!(
            *watch.seen.lock().unwrap(),
            vec![json!({ "volume": 3 }); runs]
        );
    }
}

#[tokio::test]
async fn a_hook_can_rewrite_what_is_written() {
    let host = Host::new().await;
    let other = Proposal::Datum {
        plugin_id: "codex".into(),
        namespace: "n".into(),
        key: "rewritten".into(),
        value: json!(2),
    };
    let rewrite = hook(
        HookEvent::PreStateCommit,
        HookOutcome::Rewrite(json!(other)),
    );
    let execution = host
        .execute(&[runtime("a", "n", true, false)], scope("guard", &rewrite))
        .await;

    assert!(
        commit_execution(host.commit(execution))
            .await
            .is_committed()
    );

    assert_eq!(host.keys().await, ["rewritten"]);
    assert!(host.bench.publisher.kinds().contains(&"hook.rewrote"));
}

/// Seed 000, lines 628-633 and 1274.
#[tokio::test]
async fn an_optional_runtime_loses_its_writes_alone_and_is_told_as_failed() {
    let host = Host::new().await;
    let runtimes = [
        runtime("a", "n", true, false),
        runtime("b", "_reserved", false, false),
    ];
    let execution = host.execute(&runtimes, HookScope::default()).await;

    assert!(
        commit_execution(host.commit(execution))
            .await
            .is_committed()
    );

    assert_eq!(host.keys().await, ["a"]);
    let kinds = host.bench.publisher.kinds();
    let tail = &kinds[kinds.len() - 3..];
    assert_eq!(
        tail,
        ["plugin-data.changed", "proposal.failed", "runtime.failed"]
    );
}

#[tokio::test]
async fn a_rejected_proposal_of_a_required_runtime_fails_the_whole_commit() {
    let host = Host::new().await;
    let runtimes = [
        runtime("a", "n", false, false),
        runtime("b", "_reserved", true, false),
    ];
    let execution = host.execute(&runtimes, HookScope::default()).await;

    let outcome = commit_execution(host.commit(execution)).await;

    assert_eq!(failure(&outcome).0, "namespace \"_reserved\" is reserved");
    assert_eq!(host.keys().await, COMMITTED);
}

#[tokio::test]
async fn a_required_runtime_that_fails_skips_those_after_it_and_forbids_the_commit() {
    let host = Host::new().await;
    let runtimes = [
        runtime("optional", "n", false, true),
        runtime("a", "n", true, true),
        runtime("b", "n", false, false),
    ];

    let execution = host.execute(&runtimes, HookScope::default()).await;

    assert_eq!(execution.result.runtime_count, 3);
    assert_eq!(execution.result.runtimes.len(), 2);
    assert_eq!(
        execution.result.runtimes[1].failure,
        Some(Failure::new("broken"))
    );
    let events = host.bench.publisher.events.lock().unwrap().clone();
    let skipped = events
        .iter()
        .find(|(event, _)| event.kind == "runtime.skipped")
        .unwrap();
    assert_eq!(skipped.0.payload["reason"], "upstream-failed");
    let outcome = commit_execution(host.commit(execution)).await;
    assert_eq!(failure(&outcome), ("broken", None));
}

/// COV-SUB-153, COV-SUB-154, COV-SUB-155.
#[tokio::test]
async fn publishes_run_in_order_and_a_failed_one_stops_nothing() {
    let host = Host::new().await;
    host.bench.publisher.refuses.lock().unwrap().extend([1, 2]);
    let bell = Proposal::Event {
        plugin_id: "codex".into(),
        topic: "bell".into(),
        data: Object::new(),
    };
    let mut execution = host
        .execute(&[runtime("a", "n", true, false)], HookScope::default())
        .await;
    let first = execution.commit.runs[0].proposals[0].clone();
    for _ in 0..2 {
        let event = crate::engine::proposals::PendingProposal {
            proposal: bell.clone(),
            ..first.clone()
        };
        execution.commit.runs[0].proposals.push(event);
    }

    let outcome = commit_execution(host.commit(execution)).await;

    let CommitOutcome::Committed { fan_out } = outcome else {
        panic!("not committed")
    };
    assert_eq!((fan_out.errors.len(), fan_out.total), (2, 3));
    assert_eq!(host.bench.publisher.committed(), ["event.emitted"]);
    assert_eq!(host.keys().await, ["a"]);
}
