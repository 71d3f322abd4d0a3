use std::time::Duration;

use serde_json::{Value, json};
use turnwire_reference::Config;
use turnwire_spec::covel::SUBSCRIPTION_TOPICS;

use crate::support::{Client, Frame, Piece, fast, rig};

async fn put(client: &Client, session: &str, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        client.put_datum(session, "n", json!(number)).await;
    }
}

fn number(frame: &Frame) -> u64 {
    frame.json()["payload"]["changes"][0]["value"]
        .as_u64()
        .unwrap()
}

#[tokio::test]
async fn the_first_frame_is_connected_with_the_newest_id() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut stream = rig.client.subscribe(&format!("sessionId={session}")).await;
    let connected = stream.next().await.unwrap();
    assert_eq!(connected.event(), "system.connected");
    assert_eq!(connected.line("id"), None);
    let data = connected.json();
    assert!(data["cursor"].as_str().unwrap().ends_with(":0"));
    assert_eq!(
        (&data["sessionId"], &data["topics"]),
        (&json!(session), &json!("all"))
    );

    put(&rig.client, &session, 1..=1).await;
    let event = stream.news().await.unwrap();
    let mut second = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=game"))
        .await;
    assert_eq!(second.next().await.unwrap().json()["cursor"], event.id());
}

#[tokio::test]
async fn an_event_has_the_lines_event_data_id_and_nothing_else() {
    let rig = fast().await;
    let record = rig.client.session().await;
    let session = record["id"].as_str().unwrap();
    let mut stream = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=plugin"))
        .await;
    stream.next().await.unwrap();
    put(&rig.client, session, 7..=7).await;

    let frame = stream.news().await.unwrap();

    let names: Vec<_> = frame
        .0
        .lines()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(names, ["event", "data", "id", ""]);
    let data = frame.json();
    assert_eq!(data["type"], frame.event());
    assert_eq!(data["id"], frame.id());
    assert_eq!(data["sessionIncarnation"], record["incarnation"]);
    assert_eq!(number(&frame), 7);
    for absent in ["requestId", "traceId", "flowId", "seq"] {
        assert_eq!(data.get(absent), None);
    }
}

#[tokio::test]
async fn heartbeats_keep_their_period_beside_events() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    // The first period begins after this, and before the client learns of it.
    let begin = std::time::Instant::now();
    let mut stream = rig.client.subscribe(&format!("sessionId={session}")).await;
    let client = rig.client;
    let busy = tokio::spawn(async move { put(&client, &session, 1..=40).await });

    for _ in 0..3 {
        let heartbeat = stream.until("system.heartbeat").await;
        assert_eq!(heartbeat.line("id"), None);
    }

    assert!(
        begin.elapsed() >= Duration::from_millis(850),
        "{:?}",
        begin.elapsed()
    );
    busy.await.unwrap();
}

#[tokio::test]
async fn a_cursor_is_continued_from_query_or_header_and_the_query_wins() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut live = rig.client.subscribe(&format!("sessionId={session}")).await;
    live.next().await.unwrap();
    put(&rig.client, &session, 1..=4).await;
    let mut ids = Vec::new();
    let mut frames = Vec::new();
    for _ in 0..4 {
        let frame = live.news().await.unwrap();
        ids.push(frame.id().to_owned());
        frames.push(frame);
    }

    let replays = async |query: &str, header: Option<&str>, expected: &[Frame]| {
        let headers: Vec<_> = header.into_iter().map(|id| ("Last-Event-ID", id)).collect();
        let path = format!("/api/events/stream?sessionId={session}{query}");
        let mut stream = rig.client.open("GET", &path, &headers, None).await;
        assert_eq!(stream.next().await.unwrap().event(), "system.connected");
        for frame in expected {
            assert_eq!(
                stream.news().await.as_ref(),
                Some(frame),
                "{query} {header:?}"
            );
        }
        assert!(stream.is_quiet().await, "{query} {header:?}");
    };

    replays(&format!("&lastEventId={}", ids[1]), None, &frames[2..]).await;
    replays("", Some(&ids[0]), &frames[1..]).await;
    replays(
        &format!("&lastEventId={}", ids[0]),
        Some(&ids[3]),
        &frames[1..],
    )
    .await;
    replays(&format!("&lastEventId={}", ids[3]), Some(&ids[0]), &[]).await;
    replays("", None, &[]).await;
}

#[tokio::test]
async fn what_cannot_be_continued_is_reset_and_goes_on_live() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut live = rig.client.subscribe(&format!("sessionId={session}")).await;
    live.next().await.unwrap();
    put(&rig.client, &session, 1..=3).await;
    let newest = loop {
        let frame = live.news().await.unwrap();
        if number(&frame) == 3 {
            break frame.id().to_owned();
        }
    };
    let epoch = newest.rsplit_once(':').unwrap().0;

    for (cursor, reason) in [
        ("never-issued:7".to_owned(), "epoch-change"),
        ("never-issued:99999".to_owned(), "epoch-change"),
        ("17".to_owned(), "epoch-change"),
        ("evt-17".to_owned(), "epoch-change"),
        (format!("{epoch}:1003"), "gap"),
    ] {
        let query = format!("sessionId={session}&lastEventId={cursor}");
        let mut stream = rig.client.subscribe(&query).await;
        stream.next().await.unwrap();
        let reset = stream.news().await.unwrap();
        assert_eq!((reset.event(), reset.line("id")), ("system.reset", None));
        let data = reset.json();
        assert_eq!(data["reason"], reason, "{cursor}");
        assert_eq!(data["oldestSeq"], json!(1));
        assert_eq!(data["epoch"], json!(epoch));
        assert_eq!(
            data["cursor"],
            json!(format!("{epoch}:{}", data["latestSeq"]))
        );

        put(&rig.client, &session, 9..=9).await;
        let next = stream.news().await.unwrap();
        assert_eq!(json!(next.seq()), data["latestSeq"].as_u64().unwrap() + 1);
    }
}

#[tokio::test]
async fn a_cursor_that_the_ring_has_passed_is_a_gap() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut live = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=plugin"))
        .await;
    live.next().await.unwrap();
    rig.client
        .rpc(&session, "burst", json!({ "count": 1100 }))
        .await;
    let mut ids = Vec::new();
    while ids.len() < 1100 {
        ids.push(live.news().await.unwrap().id().to_owned());
    }

    let query = format!("sessionId={session}&lastEventId={}", ids[0]);
    let mut old = rig.client.subscribe(&query).await;
    old.next().await.unwrap();
    let reset = old.news().await.unwrap().json();
    assert_eq!(reset["reason"], "gap");

    let oldest = reset["oldestSeq"].as_u64().unwrap();
    let epoch = reset["epoch"].as_str().unwrap();
    let query = format!("sessionId={session}&lastEventId={epoch}:{}", oldest - 1);
    let mut edge = rig.client.subscribe(&query).await;
    edge.next().await.unwrap();
    for expected in oldest..=1100 {
        assert_eq!(edge.news().await.unwrap().seq(), expected);
    }
    assert!(edge.is_quiet().await);
}

#[tokio::test]
async fn a_reconnect_during_a_burst_loses_and_doubles_nothing() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut live = rig.client.subscribe(&format!("sessionId={session}")).await;
    let start = live.next().await.unwrap().json()["cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let client = rig.client;
    let of = session.clone();
    let burst =
        tokio::spawn(async move { client.rpc(&of, "burst", json!({ "count": 900 })).await });
    for _ in 0..300 {
        live.news().await.unwrap();
    }

    let query = format!("sessionId={session}&lastEventId={start}");
    let mut late = rig.client.subscribe(&query).await;
    late.next().await.unwrap();
    for expected in 1..=900 {
        assert_eq!(late.news().await.unwrap().seq(), expected);
    }
    burst.await.unwrap();
    assert!(late.is_quiet().await);
}

#[tokio::test]
async fn diagnostics_have_rising_ids_and_are_not_replayed() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let data = json!({ "topic": "door.opened", "data": {} });
    rig.model.will_say([Piece::Tool("emit-event", data)]);
    let mut all = rig.client.subscribe(&format!("sessionId={session}")).await;
    let start = all.next().await.unwrap().json()["cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    rig.client.turn(&session, "Open the door").await;
    put(&rig.client, &session, 1..=1).await;
    let mut frames = Vec::new();
    while frames.last().map(Frame::event) != Some("plugin-data.changed") {
        frames.push(all.news().await.unwrap());
    }

    let topic = |frame: &Frame| frame.json()["topic"].as_str().unwrap().to_owned();
    let is_diagnostic = |frame: &Frame| ["trace", "hooks"].contains(&topic(frame).as_str());
    assert!(frames.iter().map(Frame::seq).is_sorted_by(|a, b| a < b));
    for kind in [
        "llm.calling",
        "tool.calling",
        "tool.completed",
        "step.started",
        "hook.fired",
    ] {
        assert!(
            frames
                .iter()
                .any(|frame| frame.event() == kind && is_diagnostic(frame)),
            "{kind}"
        );
    }

    let query = format!("sessionId={session}&lastEventId={start}");
    let mut late = rig.client.subscribe(&query).await;
    let connected = late.next().await.unwrap().json();
    assert_eq!(connected["cursor"], frames.last().unwrap().id());
    for expected in frames.iter().filter(|frame| !is_diagnostic(frame)) {
        assert_eq!(late.news().await.as_ref(), Some(expected));
    }
}

#[tokio::test]
async fn the_view_joins_the_subscription() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    rig.client.turn(&session, "Hello").await;
    let view = rig
        .client
        .get(&format!("/api/sessions/{session}/view"))
        .await
        .json();
    put(&rig.client, &session, 1..=2).await;

    let cursor = view["eventCursor"].as_str().unwrap();
    let query = format!("sessionId={session}&lastEventId={cursor}");
    let mut stream = rig.client.subscribe(&query).await;
    stream.next().await.unwrap();

    assert_eq!(number(&stream.news().await.unwrap()), 1);
    assert_eq!(number(&stream.news().await.unwrap()), 2);
    assert!(stream.is_quiet().await);
}

#[tokio::test]
async fn the_ninth_subscription_of_a_session_is_refused_until_a_place_is_free() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(rig.client.subscribe(&format!("sessionId={session}")).await);
    }
    let path = format!("/api/events/stream?sessionId={session}");
    let ninth = rig.client.get(&path).await;
    assert_eq!(
        (ninth.status, ninth.code().as_str()),
        (429, "connection_limit_exceeded")
    );
    let other = rig.client.session_id().await;
    rig.client.subscribe(&format!("sessionId={other}")).await;

    drop(open.pop());
    for _ in 0..100 {
        if rig.client.open("GET", &path, &[], None).await.status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the place of a closed connection stays taken");
}

/// COV-SUB-174.
#[tokio::test]
async fn every_topic_of_the_table_can_be_subscribed_to_alone_and_no_other() {
    let rig = fast().await;
    for topic in SUBSCRIPTION_TOPICS {
        let session = rig.client.session_id().await;
        let query = format!("sessionId={session}&topics={topic}");
        let connected = rig.client.subscribe(&query).await.next().await.unwrap();
        assert_eq!(connected.json()["topics"], json!([topic]));
    }
    let session = rig.client.session_id().await;
    for other in ["Runtime", "narrative", "all", "*"] {
        let path = format!("/api/events/stream?sessionId={session}&topics={other}");
        assert_eq!(
            rig.client.get(&path).await.code(),
            "unknown_topic",
            "{other}"
        );
    }
}

#[tokio::test]
async fn a_subscription_that_asks_for_nonsense_is_refused() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let topics = format!("/api/events/stream?sessionId={session}&topics=job,everything");
    for (path, status, code) in [
        ("/api/events/stream".to_owned(), 400, "session_id_required"),
        (
            "/api/events/stream?sessionId=nobody".to_owned(),
            404,
            "session_not_found",
        ),
        (topics, 400, "unknown_topic"),
    ] {
        let answer = rig.client.get(&path).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{path}"
        );
    }
    let path = format!("/api/events/stream?sessionId={session}");
    assert_eq!(rig.client.ask("POST", &path, &[], None).await.status, 405);
}

#[tokio::test]
async fn deleting_a_session_closes_its_subscriptions_whatever_their_topics() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let other = rig.client.session_id().await;
    let mut first = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=job"))
        .await;
    let mut second = rig.client.subscribe(&format!("sessionId={session}")).await;
    let mut spared = rig.client.subscribe(&format!("sessionId={other}")).await;
    let path = format!("/api/sessions/{session}");
    assert_eq!(
        rig.client.ask("DELETE", &path, &[], None).await.json()["deleted"],
        true
    );

    for stream in [&mut first, &mut second] {
        let frames = stream.rest().await;
        assert!(
            frames
                .iter()
                .all(|frame| frame.event().starts_with("system.")),
            "{frames:?}"
        );
    }
    spared.next().await.unwrap();
    put(&rig.client, &other, 1..=1).await;
    assert_eq!(number(&spared.news().await.unwrap()), 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_broken_off_and_disturbs_nobody() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut reader = rig
        .client
        .subscribe(&format!("sessionId={session}&topics=plugin"))
        .await;
    reader.next().await.unwrap();
    let path = format!("/api/events/stream?sessionId={session}&topics=plugin");
    let mut stalled = rig.client.open_narrow(&path).await;
    assert_eq!(stalled.status, 200);

    let client = rig.client;
    let of = session.clone();
    let burst = tokio::spawn(async move {
        client
            .rpc(&of, "burst", json!({ "count": 400, "bytes": 40_000 }))
            .await
    });
    for expected in 1..=400 {
        assert_eq!(reader.news().await.unwrap().seq(), expected);
    }
    burst.await.unwrap();
    // Many times as long as a write may take.
    tokio::time::sleep(Duration::from_secs(5)).await;

    let received: Vec<_> = stalled
        .rest()
        .await
        .iter()
        .filter(|frame| frame.line("id").is_some())
        .map(Frame::seq)
        .collect();
    assert!(received.len() < 400, "{}", received.len());
    assert_eq!(received, (1..=received.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_model_relay_says_ready_and_keeps_the_connection_with_comments() {
    let rig = fast().await;
    let headers = [("X-Model-Relay", "page-1")];
    let mut stream = rig
        .client
        .open("GET", "/api/model-relay/stream", &headers, None)
        .await;
    assert_eq!(stream.next().await.unwrap().event(), "ready");
    assert!(stream.next().await.unwrap().0.starts_with(": "));

    let other = [("X-Model-Relay", "page-2")];
    let mut newer = rig
        .client
        .open("GET", "/api/model-relay/stream", &other, None)
        .await;
    newer.next().await.unwrap();

    let session = rig.client.session_id().await;
    let called = rig
        .client
        .rpc(
            &session,
            "relay-call",
            json!({ "cancel": true, "channel": "page-1" }),
        )
        .await;
    let id = called.json()["result"]["requestId"].clone();
    let request = stream.until("request").await.json();
    assert_eq!(request["requestId"], id);
    assert_eq!(stream.until("cancel").await.json()["requestId"], id);

    let open = rig.client.rpc(&session, "relay-call", Value::Null).await;
    let id = open.json()["result"]["requestId"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/model-relay/requests/{id}/chunk");
    assert_eq!(
        rig.client
            .ask("POST", &path, &[], Some("bytes"))
            .await
            .status,
        204
    );
    let path = format!("/api/model-relay/requests/{id}/end");
    assert_eq!(rig.client.ask("POST", &path, &[], None).await.status, 204);
    assert_eq!(rig.client.ask("POST", &path, &[], None).await.status, 404);
    assert_eq!(rig.client.get("/api/model-relay/stream").await.status, 400);
}

#[tokio::test]
async fn a_reset_does_not_need_a_fast_clock() {
    let rig = rig(Config::default()).await;
    let session = rig.client.session_id().await;
    let mut stream = rig
        .client
        .subscribe(&format!("sessionId={session}&lastEventId=x:1"))
        .await;
    stream.next().await.unwrap();

    assert_eq!(stream.next().await.unwrap().event(), "system.reset");
}
