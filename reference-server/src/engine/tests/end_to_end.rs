//! The engine with its real neighbours: a store in a file, and a model behind a socket.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use turnwire_mock::{Call, MockConfig, MockServer, Reply, Rule, Script, Wire};

use crate::engine::model::{ExecutionState, Session};
use crate::engine::plugins::{Plugin, Registry};
use crate::engine::ports::{RandomIds, SystemClock, TurnSink};
use crate::engine::sessions::NewSession;
use crate::engine::story::Story;
use crate::engine::testing::{RecordingPublisher, RecordingSink, request, say};
use crate::engine::{Engine, EngineConfig, Parts};
use crate::gateway::{Client, ClientConfig, TargetConfig};
use crate::store::sqlite::SqliteStore;

async fn engine(file: &Path, mock: &MockServer) -> Engine {
    let target = TargetConfig::new(Wire::OpenaiChat, &mock.base_url(), "mock-model").key("sk-test");
    let gateway = Client::new(ClientConfig::new(target)).unwrap();
    Engine::new(Parts {
        store: Arc::new(SqliteStore::open(file).await.unwrap()),
        publisher: Arc::new(RecordingPublisher::default()),
        gateway: Arc::new(gateway),
        registry: Registry::new().with(Arc::new(Story::new()) as Arc<dyn Plugin>),
        ids: Arc::new(RandomIds),
        clock: Arc::new(SystemClock),
        config: EngineConfig::default(),
    })
}

async fn play(engine: &Engine, session: &Session, text: &str) -> Arc<RecordingSink> {
    let sink = Arc::new(RecordingSink::default());
    let handle = engine
        .begin(
            request(&session.id, say(text)),
            sink.clone() as Arc<dyn TurnSink>,
        )
        .await
        .unwrap();
    handle.finished().await;
    sink
}

#[tokio::test]
async fn a_turn_with_tools_over_real_sockets_satisfies_the_provider() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let set = Call::new(
        "plugin_data_set",
        json!({ "namespace": "n", "key": "k", "value": 1 }),
    );
    let rule = Rule::on("ring")
        .reply(Reply::new().say("Wait. ").calls([set]))
        .reply(Reply::text("It rings."));
    mock.load(Script::new("test").rule(rule));
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder.path().join("db"), &mock).await;
    let session = engine
        .create_session(NewSession::default())
        .await
        .unwrap()
        .session;

    let sink = play(&engine, &session, "ring the bell").await;

    assert_eq!(sink.payload("execution.completed")["committed"], true);
    assert_eq!(sink.shown(), "It rings.");
    let rows = engine
        .plugin_data(&session.id, &"story".into(), "n")
        .await
        .unwrap();
    assert_eq!(rows[0].value, json!(1));
    for entry in mock.journal() {
        assert!(entry.violations.is_empty(), "{:?}", entry.violations);
    }
}

#[tokio::test]
async fn after_an_abrupt_end_committed_turns_are_there_and_uncommitted_ones_are_not() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let held = Rule::on("second").reply(Reply::new().say("Half a ").gate("never").say("word."));
    mock.load(
        Script::new("test")
            .rule(Rule::on("first").reply(Reply::text("One.")))
            .rule(held),
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let before = engine(&file, &mock).await;
    let session = before
        .create_session(NewSession::default())
        .await
        .unwrap()
        .session;
    play(&before, &session, "first").await;
    let sink = Arc::new(RecordingSink::default());
    let second = request(&session.id, say("second"));
    let _handle = before
        .begin(second, sink.clone() as Arc<dyn TurnSink>)
        .await
        .unwrap();
    sink.until("narrative.delta").await;

    before.kill().await;
    let after = engine(&file, &mock).await;
    after.resume().await.unwrap();

    let view = after.view(&session.id).await.unwrap();
    let texts: Vec<_> = view
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!(texts, ["first", "One.", "second"]);
    assert_eq!(
        view.messages[2].turn_id, None,
        "stored, but of no committed turn"
    );
    assert_eq!(view.execution.state, ExecutionState::Interrupted);
    assert_eq!(view.session.completed_player_turns, 1);
    assert_eq!(view.session.incarnation, session.incarnation);
}
