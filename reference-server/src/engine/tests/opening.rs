//! How a session opens: at once, or by a setup turn and the handoff turn that follows it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use turnwire_spec::covel::vocabulary::Stage;

use crate::engine::actions::Action;
use crate::engine::model::{ExecutionState, Phase};
use crate::engine::plugins::{
    Function, FunctionCall, FunctionOutput, Manifest, Plugin, RuntimeBody, RuntimeSpec,
};
use crate::engine::proposals::Proposal;
use crate::engine::testing::{Bench, Say};

const OPEN: Action = Action::StartSession { lore: None };

/// A plugin whose one runtime sets the session up.
struct Setup(Manifest);

struct PrepareWorld {
    fails: bool,
}

#[async_trait]
impl Function for PrepareWorld {
    async fn run(&self, _call: FunctionCall<'_>) -> Result<FunctionOutput, String> {
        if self.fails {
            return Err("no world".to_owned());
        }
        let row = Proposal::Datum {
            plugin_id: "setup".into(),
            namespace: "world".into(),
            key: "name".into(),
            value: json!("Vale"),
        };
        Ok(FunctionOutput {
            output: json!("ready"),
            proposals: vec![row],
            ..FunctionOutput::default()
        })
    }
}

impl Setup {
    fn plugin(fails: bool) -> Arc<dyn Plugin> {
        let runtime = RuntimeSpec {
            id: "prepare".into(),
            plugin_id: "setup".into(),
            kind: "system".into(),
            stage: Some(Stage::Setup),
            required: true,
            concealed: false,
            body: RuntimeBody::Function(Arc::new(PrepareWorld { fails })),
        };
        Arc::new(Self(Manifest {
            id: "setup".into(),
            name: "Setup".into(),
            version: "1".into(),
            runtimes: vec![Arc::new(runtime)],
            hooks: vec![],
            tools: vec![],
        }))
    }
}

impl Plugin for Setup {
    fn manifest(&self) -> &Manifest {
        &self.0
    }
}

#[tokio::test]
async fn without_a_setup_the_opening_is_one_turn_that_does_not_count() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    assert_eq!(session.phase, Phase::Playing);
    bench.gateway.says([Say::Text(&["Once."])]);

    let sink = bench.play(&session, OPEN).await;

    assert_eq!(
        sink.kinds()
            .iter()
            .filter(|kind| **kind == "execution.started")
            .count(),
        1
    );
    assert_eq!(bench.messages(&session).await, ["Assistant: Once."]);
    assert!(bench.gateway.last_messages()[0].contains("Begin the story."));
    assert_eq!(
        bench
            .engine
            .session(&session.id)
            .await
            .unwrap()
            .completed_player_turns,
        0
    );
}

#[tokio::test]
async fn a_completed_setup_hands_over_to_one_turn_on_the_same_stream() {
    let bench = Bench::with([Setup::plugin(false)]);
    let session = bench.session(&["setup"]).await;
    assert_eq!(session.phase, Phase::Setup);
    bench.gateway.says([Say::Text(&["Once."])]);

    let sink = bench.play(&session, OPEN).await;

    let events = sink.events.lock().unwrap().clone();
    let started: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "execution.started")
        .collect();
    assert_eq!(started.len(), 2);
    assert_ne!(started[0].turn_id, started[1].turn_id);
    assert_eq!(
        events
            .iter()
            .filter(|event| event.kind == "execution.completed")
            .count(),
        1
    );
    let last = events.last().unwrap();
    assert_eq!(
        (last.kind, &last.turn_id),
        ("execution.completed", &started[1].turn_id)
    );
    assert!(events.iter().all(|event| event.trace_id == last.trace_id));
    let after = bench.engine.session(&session.id).await.unwrap();
    assert_eq!(after.phase, Phase::Playing);
    assert_eq!(after.completed_player_turns, 0);
    let world = bench
        .engine
        .plugin_data(&session.id, &"setup".into(), "world")
        .await
        .unwrap();
    assert_eq!(world.len(), 1);
}

#[tokio::test]
async fn a_failed_setup_ends_the_stream_without_a_handoff() {
    let bench = Bench::with([Setup::plugin(true)]);
    let session = bench.session(&["setup"]).await;

    let sink = bench.play(&session, OPEN).await;

    assert_eq!(
        sink.kinds()
            .iter()
            .filter(|kind| **kind == "execution.started")
            .count(),
        1
    );
    let end = sink.payload("execution.completed");
    assert_eq!(
        (&end["committed"], &end["error"]),
        (&json!(false), &json!("no world"))
    );
    let failed = sink.payload("runtime.failed");
    assert!(!failed.contains_key("stopReason"), "functions have none");
    assert_eq!(
        bench.engine.session(&session.id).await.unwrap().phase,
        Phase::Setup
    );
    assert!(bench.gateway.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_interrupted_handoff_is_taken_up_as_a_retried_turn_that_does_not_count() {
    let bench = Bench::with([Setup::plugin(false)]);
    let session = bench.session(&["setup"]).await;
    bench.play(&session, OPEN).await; // the model has nothing to say, so the handoff fails

    let status = bench.engine.execution_status(&session.id).await.unwrap();
    assert_eq!(status.state, ExecutionState::Failed);
    assert_eq!(status.retry.as_ref().unwrap().kind, "retry_turn");

    bench.gateway.says([Say::Text(&["Once."])]);
    let sink = std::sync::Arc::new(crate::engine::testing::RecordingSink::default());
    let mut request = crate::engine::testing::request(&session.id, Action::RetryTurn);
    request.recover_from = status.turn_id;
    bench
        .engine
        .begin(request, sink.clone())
        .await
        .unwrap()
        .finished()
        .await;

    assert_eq!(sink.payload("execution.completed")["committed"], true);
    assert_eq!(
        bench
            .engine
            .session(&session.id)
            .await
            .unwrap()
            .completed_player_turns,
        0
    );
}
