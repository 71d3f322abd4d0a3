//! Sessions and their data outside any turn, and who may touch them.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::engine::EngineError;
use crate::engine::hooks::{Hook, HookCall, HookEvent, HookOutcome};
use crate::engine::model::{Object, SessionStatus};
use crate::engine::plugins::{ActionCall, ActionError, Manifest, Plugin};
use crate::engine::ports::Invalidation;
use crate::engine::sessions::{NewSession, is_owner};
use crate::engine::testing::{Bench, Say};

/// A plugin with one action, `echo`, and a hook that adds to the context of each turn.
struct Echo(Manifest);

struct AddsContext;

#[async_trait]
impl Hook for AddsContext {
    fn name(&self) -> &'static str {
        "adds-context"
    }

    fn event(&self) -> HookEvent {
        HookEvent::TurnStart
    }

    async fn run(&self, call: HookCall<'_>) -> HookOutcome {
        let mut target = call.target.clone();
        target["context"]["season"] = json!("autumn");
        HookOutcome::Rewrite(target)
    }
}

impl Echo {
    fn plugin() -> Arc<dyn Plugin> {
        Arc::new(Self(Manifest {
            id: "echo".into(),
            name: "Echo".into(),
            version: "1".into(),
            runtimes: vec![],
            hooks: vec![Arc::new(AddsContext)],
            tools: vec![],
        }))
    }
}

#[async_trait]
impl Plugin for Echo {
    fn manifest(&self) -> &Manifest {
        &self.0
    }

    async fn action(&self, call: ActionCall<'_>) -> Result<Value, ActionError> {
        match (call.action, call.payload) {
            ("echo", Value::Null) => Err(ActionError::Payload("nothing to echo".to_owned())),
            ("echo", payload) => Ok(payload),
            (other, _) => Err(ActionError::Unknown(other.to_owned())),
        }
    }
}

#[tokio::test]
async fn a_new_session_has_the_story_and_an_owner_whose_token_is_not_stored() {
    let bench = Bench::new();

    let created = bench
        .engine
        .create_session(NewSession::default())
        .await
        .unwrap();

    let session = created.session;
    assert_eq!(session.active_plugins, ["story".into()]);
    assert!(
        session.id.as_str().starts_with("session-"),
        "{}",
        session.id
    );
    assert_eq!(session.incarnation.as_str().len(), 64);
    assert!(is_owner(&session, &created.owner_token));
    assert!(!is_owner(&session, "") && !is_owner(&session, "guess"));
    let stored = serde_json::to_string(&session).unwrap();
    assert!(!stored.contains(&created.owner_token));
}

#[tokio::test]
async fn a_session_made_again_under_its_id_is_another_one() {
    let bench = Bench::new();
    let new = NewSession {
        id: Some("s-1".into()),
        ..NewSession::default()
    };
    let first = bench.engine.create_session(new.clone()).await.unwrap();
    let taken = bench.engine.create_session(new.clone()).await.unwrap_err();
    assert_eq!(taken, EngineError::SessionExists("s-1".into()));

    bench.engine.delete_session(&"s-1".into()).await.unwrap();
    let second = bench.engine.create_session(new).await.unwrap();

    assert_eq!(
        *bench.publisher.invalidations.lock().unwrap(),
        [Invalidation::Deleted]
    );
    assert_ne!(first.session.incarnation, second.session.incarnation);
    assert!(!is_owner(&second.session, &first.owner_token));
}

#[tokio::test]
async fn an_unknown_plugin_makes_no_session() {
    let bench = Bench::new();
    let new = NewSession {
        plugins: Some(vec!["story".into(), "nope".into()]),
        ..NewSession::default()
    };

    let refused = bench.engine.create_session(new).await.unwrap_err();

    assert_eq!(refused, EngineError::UnknownPlugin("nope".into()));
    assert!(bench.engine.sessions(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_ended_session_stays_ended() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    for status in [
        SessionStatus::Paused,
        SessionStatus::Active,
        SessionStatus::Ended,
    ] {
        assert_eq!(
            bench
                .engine
                .set_status(&session.id, status)
                .await
                .unwrap()
                .status,
            status
        );
    }

    let refused = bench
        .engine
        .set_status(&session.id, SessionStatus::Active)
        .await;

    assert_eq!(refused, Err(EngineError::SessionEnded(session.id)));
}

#[tokio::test]
async fn a_change_of_plugin_data_is_a_commit_of_its_own_and_is_announced() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let (engine, plugin) = (&bench.engine, "codex".into());

    engine
        .put_plugin_data(&session.id, &plugin, "n", "k", json!({ "a": 1 }))
        .await
        .unwrap();
    engine
        .delete_plugin_data(&session.id, &plugin, "n", "k")
        .await
        .unwrap();

    assert!(
        engine
            .plugin_data(&session.id, &plugin, "n")
            .await
            .unwrap()
            .is_empty()
    );
    let events = bench.publisher.events.lock().unwrap();
    let changes: Vec<_> = events
        .iter()
        .map(|(event, _)| &event.payload["changes"][0])
        .collect();
    assert_eq!(changes[0]["operation"], "set");
    assert_eq!(
        changes[1],
        &json!({ "namespace": "n", "key": "k", "value": null, "operation": "delete" })
    );
    assert!(events.iter().all(|(event, _)| event.turn_id.is_none()));
}

#[tokio::test]
async fn reserved_namespaces_and_large_values_are_refused() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let plugin = "codex".into();
    for (namespace, value) in [
        ("_runtime_jobs", json!(1)),
        ("n", json!("x".repeat(70_000))),
    ] {
        let refused = bench
            .engine
            .put_plugin_data(&session.id, &plugin, namespace, "k", value)
            .await;
        assert!(
            matches!(refused, Err(EngineError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert!(bench.publisher.kinds().is_empty());
}

#[tokio::test]
async fn an_action_reaches_the_active_plugin_that_has_it() {
    let bench = Bench::with([Echo::plugin()]);
    let session = bench.session(&["echo"]).await;
    let without = bench.session(&[]).await;
    let plugin = "echo".into();
    let call = |id, action, payload| bench.engine.plugin_action(id, &plugin, action, payload);

    assert_eq!(call(&session.id, "echo", json!(5)).await, Ok(json!(5)));
    let nothing = call(&session.id, "echo", Value::Null).await;
    assert_eq!(nothing, Err(EngineError::Invalid("nothing to echo".into())));
    let unknown = EngineError::UnknownAction {
        plugin: plugin.clone(),
        action: "dance".into(),
    };
    assert_eq!(call(&session.id, "dance", Value::Null).await, Err(unknown));
    let inactive = call(&without.id, "echo", json!(5)).await;
    assert_eq!(inactive, Err(EngineError::PluginNotActive(plugin.clone())));
}

#[tokio::test]
async fn a_hook_that_rewrites_is_traced_and_only_its_firing_is_forwarded() {
    let bench = Bench::with([Echo::plugin()]);
    let session = bench.session(&["echo"]).await;
    bench.gateway.says([Say::Text(&["Rain."])]);

    let sink = bench.say(&session, "look").await;

    assert!(sink.kinds().contains(&"hook.fired"));
    assert!(!sink.kinds().contains(&"hook.rewrote"));
    assert!(bench.publisher.kinds().contains(&"hook.rewrote"));
    let request = bench.gateway.requests.lock().unwrap().pop().unwrap();
    assert!(format!("{:?}", request.messages[0]).contains("autumn"));
    let traces = bench.engine.traces(&session.id, None).await.unwrap().items;
    let rewrote = traces
        .iter()
        .find(|event| event.kind == "hook.rewrote")
        .unwrap();
    assert_eq!(
        rewrote.payload["diff"]["after"]["context"]["season"],
        "autumn"
    );
}

#[tokio::test]
async fn only_events_of_the_table_can_be_injected() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;

    bench
        .engine
        .debug_emit(&session.id, "plugin-data.changed", Object::new())
        .await
        .unwrap();
    for kind in [
        "session.invalidated",
        "nope",
        "turn.started",
        "narrative.delta",
    ] {
        let refused = bench
            .engine
            .debug_emit(&session.id, kind, Object::new())
            .await;
        assert!(matches!(refused, Err(EngineError::Invalid(_))), "{kind}");
    }

    assert_eq!(bench.publisher.kinds(), ["plugin-data.changed"]);
}

#[tokio::test]
async fn traces_are_read_in_pages_whose_turns_join() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    for _ in 0..3 {
        bench.gateway.says([Say::Text(&["Rain."])]);
        bench.say(&session, "look").await;
    }
    let all = bench.engine.traces(&session.id, None).await.unwrap();
    assert_eq!(all.next, None);

    let mut cursor = None;
    let mut joined = Vec::new();
    loop {
        let page = bench
            .engine
            .trace_turns(&session.id, cursor.as_deref(), 5)
            .await
            .unwrap();
        let events: Vec<_> = page
            .items
            .into_iter()
            .flat_map(|turn| turn.events)
            .collect();
        joined.splice(0..0, events);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }

    assert_eq!(joined, all.items);
    let bad = bench
        .engine
        .traces(&session.id, Some("zzz"))
        .await
        .unwrap_err();
    assert_eq!(bad, EngineError::InvalidCursor("zzz".into()));
}
