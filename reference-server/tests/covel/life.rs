use std::time::Duration;

use serde_json::json;
use turnwire_mock::{MockConfig, MockServer, Reply, Rule, Script, Wire};
use turnwire_reference::{Config, LlmTarget, Server, StoreChoice};

use crate::support::{Client, Piece, fast, rig};

fn on_file(folder: &tempfile::TempDir) -> Config {
    let store = StoreChoice::Sqlite(folder.path().join("store.db"));
    Config {
        store,
        time_scale: 0.01,
        ..Config::default()
    }
}

#[tokio::test]
async fn a_shutdown_stops_turns_and_ends_every_stream_in_good_order() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    rig.model
        .will_say([Piece::Text("Wait"), Piece::Pause(Duration::from_secs(60))]);
    let mut subscription = rig.client.subscribe(&format!("sessionId={session}")).await;
    let mut turn = rig.client.say(&session, "Hello").await;
    while turn.next().await.unwrap().json()["type"] != "narrative.delta" {}

    let (_, frames, events) = tokio::join!(rig.server.shutdown(), turn.rest(), subscription.rest());

    let last = frames.last().unwrap().json();
    assert_eq!(last["type"], "execution.completed");
    assert_eq!(last["payload"]["committed"], false);
    assert_ne!(last["payload"]["abortReason"], "aborted-by-player");
    assert!(!events.is_empty());
    assert!(
        tokio::net::TcpStream::connect(rig.client.addr)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_killed_server_leaves_committed_turns_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let first = rig(on_file(&folder)).await;
    let session = first.client.session_id().await;
    first.client.turn(&session, "Hello").await;
    let mut subscription = first
        .client
        .subscribe(&format!("sessionId={session}"))
        .await;
    let cursor = subscription.next().await.unwrap().json()["cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    first
        .model
        .will_say([Piece::Text("Never"), Piece::Pause(Duration::from_secs(60))]);
    let mut turn = first.client.say(&session, "And then?").await;
    while turn.next().await.unwrap().json()["type"] != "narrative.delta" {}
    first.server.kill().await;
    assert_eq!(turn.next().await, None);

    let second = rig(on_file(&folder)).await;
    let view = second
        .client
        .get(&format!("/api/sessions/{session}/view"))
        .await
        .json();
    assert!(view["messages"].to_string().contains("Rain falls."));
    assert!(!view["messages"].to_string().contains("Never"));
    assert_eq!(view["execution"]["state"], "interrupted");
    let query = format!("sessionId={session}&lastEventId={cursor}");
    let mut stream = second.client.subscribe(&query).await;
    stream.next().await.unwrap();
    let reset = stream.news().await.unwrap().json();
    assert_eq!(reset["reason"], "epoch-change");
    assert_eq!(
        (&reset["oldestSeq"], &reset["latestSeq"]),
        (&json!(0), &json!(0))
    );
}

#[tokio::test]
async fn a_session_keeps_its_incarnation_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = rig(on_file(&folder)).await;
    let record = first.client.session().await;
    let path = format!("/api/sessions/{}", record["id"].as_str().unwrap());
    first.server.shutdown().await;

    let second = rig(on_file(&folder)).await;
    let again = second.client.get(&path).await.json();
    assert_eq!(again["incarnation"], record["incarnation"]);
    assert_eq!(again.get("ownerToken"), None);
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_their_turn() {
    let rig = rig(Config {
        max_connections: 2,
        ..Config::default()
    })
    .await;
    let session = rig.client.session_id().await;
    let first = rig.client.subscribe(&format!("sessionId={session}")).await;
    let _second = rig.client.subscribe(&format!("sessionId={session}")).await;
    let client: Client = rig.client;
    let mut third = tokio::spawn(async move { client.get("/api/health").await.status });

    assert!(
        tokio::time::timeout(Duration::from_millis(300), &mut third)
            .await
            .is_err()
    );
    drop(first);
    assert_eq!(third.await.unwrap(), 200);
}

#[tokio::test]
async fn a_turn_is_what_the_provider_says_over_any_wire() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let rule = Rule::on("Who is there?").reply(Reply::text("A stranger, in the rain."));
    mock.load(Script::new("stranger").rule(rule));
    for wire in Wire::ALL {
        let llm = LlmTarget {
            wire,
            base_url: mock.base_url_of(wire),
            api_key: Some("key".into()),
            model: "any".into(),
        };
        let server = Server::start(Config {
            llm,
            time_scale: 0.01,
            ..Config::default()
        })
        .await
        .unwrap();
        let client = Client {
            addr: server.addr(),
        };
        let session = client.session_id().await;

        let frames = client.turn(&session, "Who is there?").await;

        let told = frames
            .iter()
            .find(|frame| frame["type"] == "narrative.completed")
            .unwrap();
        assert_eq!(
            told["payload"]["content"], "A stranger, in the rain.",
            "{wire}"
        );
        assert_eq!(
            frames.last().unwrap()["payload"]["committed"],
            true,
            "{wire}"
        );
        server.shutdown().await;
    }
    let asked: Vec<_> = mock.journal().iter().map(|entry| entry.wire).collect();
    assert_eq!(asked, Wire::ALL.map(Some));
    mock.shutdown().await;
}

#[tokio::test]
async fn a_dropped_server_is_gone() {
    let rig = fast().await;
    let addr = rig.client.addr;
    drop(rig);

    for _ in 0..100 {
        if tokio::net::TcpStream::connect(addr).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the port is still open");
}
