//! Thinking: what the engine does with it, and what it carries along for the service.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_mock::script::ReasoningField;
use turnwire_mock::{
    Call, MockConfig, MockServer, Reasoning, Reply, Rule, Script, Variation, Wire,
};

use crate::engine::plugins::{AgentSpec, Manifest, Plugin, Registry, RuntimeBody, RuntimeSpec};
use crate::engine::ports::{RandomIds, SystemClock, TurnSink};
use crate::engine::sessions::NewSession;
use crate::engine::story::Story;
use crate::engine::testing::{Bench, RecordingPublisher, RecordingSink, Say, request, say};
use crate::engine::{Engine, EngineConfig, Parts};
use crate::gateway::{ChatMessage, Client, ClientConfig, Continuation, TargetConfig};
use crate::store::memory::MemoryStore;
use turnwire_spec::covel::vocabulary::Stage;

/// Plays one turn with the story of a model behind this mock; gives what the player's stream got.
async fn play(mock: &MockServer, wire: Wire) -> Arc<RecordingSink> {
    let model = match wire {
        Wire::AnthropicMessages => "claude-opus-4-6",
        _ => "m",
    };
    let target = TargetConfig::new(wire, &mock.base_url_of(wire), model).key("sk-test");
    let engine = Engine::new(Parts {
        store: Arc::new(MemoryStore::new()),
        publisher: Arc::new(RecordingPublisher::default()),
        gateway: Arc::new(Client::new(ClientConfig::new(target)).unwrap()),
        registry: Registry::new().with(Arc::new(Story::new()) as Arc<dyn Plugin>),
        ids: Arc::new(RandomIds),
        clock: Arc::new(SystemClock),
        config: EngineConfig::default(),
    });
    let session = engine
        .create_session(NewSession::default())
        .await
        .unwrap()
        .session;
    let sink = Arc::new(RecordingSink::default());
    let handle = engine
        .begin(
            request(&session.id, say("ring the bell")),
            sink.clone() as Arc<dyn TurnSink>,
        )
        .await
        .unwrap();
    handle.finished().await;
    sink
}

async fn mock(replies: impl IntoIterator<Item = Reply>) -> MockServer {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let rule = replies.into_iter().fold(Rule::new("all"), Rule::reply);
    mock.load(Script::new("test").rule(rule));
    mock
}

/// The payloads of all events of a kind.
fn payloads(sink: &RecordingSink, kind: &str) -> Vec<Value> {
    let events = sink.events.lock().unwrap();
    let of_kind = events.iter().filter(|event| event.kind == kind);
    of_kind.map(|event| json!(event.payload)).collect()
}

#[tokio::test]
async fn thinking_of_the_provider_is_no_narrative() {
    let reply = Reply::new()
        .reasoning("R-ONLY")
        .say("It rings.")
        .variation(Variation {
            reasoning_field: ReasoningField::ReasoningContent,
            ..Variation::default()
        });
    let mock = mock([reply]).await;

    let sink = play(&mock, Wire::OpenaiChat).await;

    for event in sink.events.lock().unwrap().iter() {
        let told = json!(event.payload).to_string();
        let narrative = event.kind.starts_with("narrative.");
        assert!(!narrative || !told.contains("R-ONLY"), "{told}");
    }
    assert_eq!(sink.shown(), "It rings.");
    let responded = &payloads(&sink, "llm.responded")[0];
    assert_eq!(responded["reasoningContent"], "R-ONLY");
}

#[tokio::test]
async fn the_trace_of_a_signed_answer_holds_no_signature() {
    let thinking = Reasoning {
        signature: Some("SIG-1".to_owned()),
        ..Reasoning::from("hm")
    };
    let bell = Call::new("emit-event", json!({ "topic": "bell", "data": {} }));
    let signed = Reply::new().reasoning(thinking).calls([bell]);
    let mock = mock([signed, Reply::text("It rings.")]).await;

    let sink = play(&mock, Wire::AnthropicMessages).await;

    assert_eq!(sink.shown(), "It rings.");
    let responded = &payloads(&sink, "llm.responded")[0];
    assert_eq!(responded["reasoningContent"], "hm");
    assert!(responded["providerContinuation"].is_null());
    assert!(!responded.to_string().contains("SIG-1"), "{responded}");

    // What was sent is told as it was sent, with the entries that went back.
    let calling = payloads(&sink, "llm.calling");
    assert!(!calling[1]["messages"].to_string().contains("SIG-1"));
    let sent = &calling[1]["providerRequests"][0];
    assert_eq!(sent["body"], mock.journal()[1].body);
    assert!(sent["body"].to_string().contains("SIG-1"));
    assert_eq!(
        (&sent["complete"], &sent["protocol"]),
        (&json!(true), &json!("anthropic-messages"))
    );
    assert_eq!(
        (&sent["statusCode"], &sent["transportAttempt"]),
        (&json!(200), &json!(0))
    );
}

#[tokio::test]
async fn the_continuation_of_a_tool_call_comes_back_unchanged() {
    let bench = Bench::new();
    let session = bench.session(&[]).await;
    let bell = ("emit-event", r#"{"topic":"bell","data":{}}"#);
    bench
        .gateway
        .says([Say::Calls("", vec![bell]), Say::Text(&["A bell."])]);

    bench.say(&session, "listen").await;

    let requests = bench.gateway.requests.lock().unwrap();
    let carried = requests[1]
        .messages
        .iter()
        .find_map(|message| match message {
            ChatMessage::Assistant { continuation, .. } => continuation.clone(),
            _ => None,
        });
    assert_eq!(carried, Some(Continuation(json!({ "x": "opaque-1" }))));
}

/// A plugin whose runtime has one second.
struct Hasty(Manifest);

impl Plugin for Hasty {
    fn manifest(&self) -> &Manifest {
        &self.0
    }
}

fn hasty() -> Arc<dyn Plugin> {
    let runtime = RuntimeSpec {
        id: "hasty".into(),
        plugin_id: "hasty".into(),
        kind: "story".to_owned(),
        stage: Some(Stage::Narrative),
        required: true,
        concealed: false,
        body: RuntimeBody::Agent(AgentSpec {
            slot: "story".to_owned(),
            instructions: "Be quick.".to_owned(),
            max_steps: 1,
            streams: true,
            segmented: false,
            deadline: Some(Duration::from_secs(1)),
        }),
    };
    Arc::new(Hasty(Manifest {
        id: "hasty".into(),
        name: "Hasty".to_owned(),
        version: "1.0.0".to_owned(),
        runtimes: vec![Arc::new(runtime)],
        hooks: Vec::new(),
        tools: Vec::new(),
    }))
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_model_that_never_stops_writing() {
    let bench = Bench::with([hasty()]);
    let new = NewSession {
        plugins: Some(vec!["hasty".into()]),
        ..NewSession::default()
    };
    let session = bench.engine.create_session(new).await.unwrap().session;
    bench
        .gateway
        .says([Say::Thinks(Duration::from_millis(100))]);
    let begun = Instant::now();

    let sink = bench.say(&session, "hurry").await;

    assert_eq!(sink.payload("runtime.failed")["stopReason"], "deadline");
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(1) && took < Duration::from_secs(2),
        "{took:?}"
    );
}
