use serde_json::json;
use turnwire_reference::{Config, StoreChoice, Tier};

use crate::support::{Rig, rig};

async fn server(tier: Tier, production: bool, store: StoreChoice) -> Rig {
    rig(Config {
        tier,
        production,
        store,
        time_scale: 0.01,
        ..Config::default()
    })
    .await
}

fn file() -> (tempfile::TempDir, StoreChoice) {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreChoice::Sqlite(folder.path().join("store.db"));
    (folder, store)
}

/// The status of a subscription without a token.
async fn stranger(rig: &Rig) -> u16 {
    let session = rig.client.session_id().await;
    let path = format!("/api/events/stream?sessionId={session}");
    rig.client.open("GET", &path, &[], None).await.status
}

#[tokio::test]
async fn owners_are_asked_for_where_strangers_share_a_server() {
    let (_folder, file_a) = file();
    let (_folder_b, file_b) = file();
    for (tier, production, store, expected) in [
        (Tier::Demo, false, StoreChoice::Memory, 401),
        (Tier::Commercial, false, StoreChoice::Memory, 401),
        (Tier::Demo, false, file_a, 401),
        (Tier::SelfHosted, false, StoreChoice::Memory, 200),
        (Tier::SelfHosted, true, StoreChoice::Memory, 401),
        (Tier::SelfHosted, true, file_b, 200),
    ] {
        let case = format!("{tier:?} {production} {store:?}");
        assert_eq!(
            stranger(&server(tier, production, store).await).await,
            expected,
            "{case}"
        );
    }
}

#[tokio::test]
async fn the_owner_shows_its_token_in_a_header_or_in_the_query() {
    let rig = server(Tier::Demo, false, StoreChoice::Memory).await;
    let record = rig.client.session().await;
    let (id, token) = (
        record["id"].as_str().unwrap(),
        record["ownerToken"].as_str().unwrap(),
    );
    let path = format!("/api/events/stream?sessionId={id}");
    let bearer = format!("Bearer {token}");

    for headers in [
        [("X-Session-Token", token)],
        [("Authorization", bearer.as_str())],
    ] {
        let mut stream = rig.client.open("GET", &path, &headers, None).await;
        assert_eq!(stream.next().await.unwrap().event(), "system.connected");
    }
    let in_query = format!("{path}&session_token={token}");
    assert_eq!(
        rig.client.open("GET", &in_query, &[], None).await.status,
        200
    );
}

#[tokio::test]
async fn a_stranger_is_answered_401_everywhere_and_sees_no_stream() {
    let rig = server(Tier::Commercial, false, StoreChoice::Memory).await;
    let record = rig.client.session().await;
    let other = rig.client.session().await;
    let id = record["id"].as_str().unwrap();
    let wrong = [
        "nonsense",
        other["ownerToken"].as_str().unwrap(),
        record["incarnation"].as_str().unwrap(),
    ];
    let of = format!("/api/sessions/{id}");
    for path in [
        format!("/api/events/stream?sessionId={id}"),
        of.clone(),
        format!("{of}/view"),
        format!("{of}/messages"),
        format!("{of}/execution"),
        format!("/api/traces/{id}"),
    ] {
        for token in wrong {
            let headers = [("X-Session-Token", token)];
            let answer = rig.client.ask("GET", &path, &headers, None).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (401, "session_owner_required")
            );
            assert!(!answer.body.contains("event:"));
        }
        assert_eq!(rig.client.get(&path).await.status, 401, "{path}");
    }
    let action = crate::support::action(id, "r", "retry_turn", json!({}));
    assert_eq!(rig.client.post("/api/actions", action).await.status, 401);
    assert_eq!(
        rig.client.get("/api/sessions").await.json(),
        json!({ "items": [] })
    );
}

#[tokio::test]
async fn refused_requests_push_out_no_replay_state() {
    let rig = server(Tier::Demo, false, StoreChoice::Memory).await;
    let record = rig.client.session().await;
    let (id, token) = (
        record["id"].as_str().unwrap(),
        record["ownerToken"].as_str().unwrap(),
    );
    let path = format!("/api/events/stream?sessionId={id}&session_token={token}");
    let connected = rig
        .client
        .open("GET", &path, &[], None)
        .await
        .next()
        .await
        .unwrap()
        .json();
    let cursor = connected["cursor"].as_str().unwrap();
    for _ in 0..300 {
        let other = rig.client.session_id().await;
        let refused = rig
            .client
            .get(&format!("/api/events/stream?sessionId={other}"))
            .await;
        assert_eq!(refused.status, 401);
    }

    let path = format!("{path}&lastEventId={cursor}");
    let mut stream = rig.client.open("GET", &path, &[], None).await;
    stream.next().await.unwrap();
    assert!(stream.is_quiet().await, "continued without a reset");
}

#[tokio::test]
async fn rates_are_kept_where_they_are_on() {
    let rig = rig(Config {
        rate_limits: true,
        ..Config::default()
    })
    .await;
    let session = rig.client.session_id().await;
    let abort = format!("/api/sessions/{session}/abort");
    for _ in 0..30 {
        assert_eq!(rig.client.post(&abort, json!({})).await.status, 409);
    }

    let refused = rig.client.post(&abort, json!({})).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "rate_limit_exceeded")
    );
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
}

#[tokio::test]
async fn production_tells_no_details_and_injects_nothing() {
    let rig = rig(Config {
        production: true,
        debug_emit: false,
        ..Config::default()
    })
    .await;
    let body = json!({ "topic": "x", "sessionId": "s" });
    let answer = rig.client.post("/api/events/emit", body).await;

    assert_eq!(
        (answer.status, answer.code().as_str()),
        (403, "debug_disabled")
    );
}
