//! A transcript is played to a client and to a server.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    Timing,
    client::{self, Options},
    server::{ReplayOptions, ReplayServer},
};
use crate::{
    drivers::{
        http::{BaseUrl, Call, HttpClient, HttpLimits},
        model::ModelServer,
        target::{DEFAULT_VARIANT, Instance, Launch},
    },
    profile::Profile,
    stage::{Setting, Stage, Subscribe},
    transcript::{
        End, Header, Transcript, diff,
        record::Recorder,
        text::{self, Template},
    },
};

mod channels;

const SOON: Duration = Duration::from_secs(30);

const TALK: &str = r#"
> POST /api/sessions
> {"plugins":["story"],"requestId":"rq-recorded"}
< 201
< {"id":"session-1d6a8f75","ownerToken":"{{secret-1}}","requestId":"rq-recorded"}
end complete

@+5ms
>2 GET /api/events/stream?sessionId=session-1d6a8f75
>2: authorization: Bearer {{secret-1}}
@+5ms
<2 200
<2: content-type: text/event-stream
<2 event: system.connected
<2 data: {}
<2
@+3000ms
<2 event: late
<2 data: {"n":1}
<2
@+20ms
end 2 broken connection reset
"#;

async fn replay(text: &str, timing: Timing, strict: bool) -> (ReplayServer, HttpClient) {
    let transcript = text::parse(text).unwrap();
    let options = ReplayOptions {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        timing,
        strict,
    };
    let server = ReplayServer::start(&transcript, options).await.unwrap();
    let base = BaseUrl::parse(&server.url()).unwrap();
    let client = HttpClient::new(
        base,
        Recorder::new(Header::default()),
        HttpLimits::default(),
    );
    (server, client)
}

fn create(request_id: &str) -> Call {
    Call::post("/api/sessions").json(&json!({ "requestId": request_id, "plugins": ["story"] }))
}

#[tokio::test]
async fn a_strict_replay_serves_what_was_recorded_and_breaks_where_it_broke() {
    let (server, client) = replay(TALK, Timing::None, true).await;
    let made = client.send(create("rq-recorded")).await.unwrap();
    assert_eq!(
        (made.status, made.string("/id").as_deref()),
        (201, Some("session-1d6a8f75"))
    );
    let events = Call::get("/api/events/stream?sessionId=session-1d6a8f75");
    let mut stream = client.open(events).await.unwrap();
    let frames = stream.read_to_end(SOON).await;
    assert_eq!(frames.len(), 2);
    assert!(
        matches!(stream.ended(), Some(End::Broken(_))),
        "{:?}",
        stream.ended()
    );
    tokio::time::timeout(SOON, server.finished()).await.unwrap();
    assert!(server.report().complete(), "{:?}", server.report());
}

#[tokio::test]
async fn a_strict_replay_refuses_another_request_and_names_the_nearest() {
    let (server, client) = replay(TALK, Timing::None, true).await;
    let other = client.send(create("rq-of-the-client")).await.unwrap();
    assert_eq!(other.status, 501);
    let report = server.report();
    assert_eq!((report.served, report.missing.len()), (0, 2));
    let nearest = "nearest is POST /api/sessions, whose body has /requestId: \"rq-recorded\" and not \"rq-of-the-client\"";
    assert!(report.unexpected[0].ends_with(nearest), "{report:?}");
}

#[tokio::test]
async fn the_answer_to_head_announces_the_recorded_length_and_no_content_has_none() {
    let talk =
        "> HEAD /a\n< 200\n<: content-length: 500\nend complete\n\n> GET /b\n< 204\nend complete\n";
    let (server, _) = replay(talk, Timing::None, true).await;
    let address = server.url()["http://".len()..].to_owned();
    let answered = async |request: &str| {
        let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let head = answered("HEAD /a").await;
    assert!(head.contains("content-length: 500\r\n"), "{head}");
    let none = answered("GET /b").await;
    assert!(!none.contains("content-length"), "{none}");
}

#[tokio::test]
async fn a_body_that_a_browser_has_unpacked_is_not_said_to_be_packed() {
    let talk = "# imported from a HAR file\n\n> GET /a\n< 200\n<: content-encoding: br\n< plain\nend complete\n";
    let (_server, client) = replay(talk, Timing::None, true).await;
    let reply = client.send(Call::get("/a")).await.unwrap();
    assert_eq!(reply.header("content-encoding"), None);
    assert_eq!(&reply.body[..], b"plain");
}

#[tokio::test]
async fn a_placeholder_that_is_sent_as_it_stands_is_remarked() {
    let talk =
        "> POST /a?token={{secret-1}}\n> {\"password\":\"{{secret-2}}\"}\n< 200\nend complete\n";
    let (server, _) = replay(talk, Timing::None, false).await;
    let options = Options {
        upstream: BaseUrl::parse(&server.url()).unwrap(),
        timing: Timing::None,
        patience: SOON,
        given: vec![("secret-2".to_owned(), "abc".to_owned())],
    };
    let template = Template::parse(talk).unwrap();
    let answered = client::play(&template, &options).await.unwrap();
    let remarks =
        ["exchange 1: nothing is known to stand for a placeholder of its target; see --set"];
    assert_eq!(answered.remarks, remarks);
}

#[tokio::test]
async fn a_lenient_replay_answers_with_the_ids_that_the_client_made_up() {
    let (_server, client) = replay(TALK, Timing::None, false).await;
    let made = client.send(create("rq-of-the-client")).await.unwrap();
    assert_eq!(
        made.string("/requestId").as_deref(),
        Some("rq-of-the-client")
    );
    let again = client.send(create("rq-again")).await.unwrap();
    assert_eq!(again.status, 201);
}

#[tokio::test]
async fn pieces_come_when_they_came_or_as_fast_as_was_asked() {
    for (timing, least, most) in [
        (Timing::Scaled(0.5), 1_000, 60_000),
        (Timing::Scaled(0.1), 100, 2_500),
        (Timing::None, 0, 2_500),
    ] {
        let (_server, client) = replay(TALK, timing, true).await;
        client.send(create("rq-recorded")).await.unwrap();
        let events = Call::get("/api/events/stream?sessionId=session-1d6a8f75");
        let mut stream = client.open(events).await.unwrap();
        let begun = std::time::Instant::now();
        stream.read_until("late", SOON).await.unwrap();
        let took = begun.elapsed().as_millis();
        assert!((least..most).contains(&took), "{timing:?}: {took} ms");
    }
}

#[tokio::test]
async fn what_followed_a_request_waits_for_it() {
    let text = "\n>1 GET /api/events/stream?sessionId=s\n<1 200\n<1 event: first\n<1\n\n>2 POST /api/events/emit\n>2 {}\n<2 200\nend 2 complete\n@+1ms\n<1 event: effect\n<1\n";
    let (_server, client) = replay(text, Timing::None, true).await;
    let mut stream = client
        .open(Call::get("/api/events/stream?sessionId=s"))
        .await
        .unwrap();
    stream.read_until("first", SOON).await.unwrap();
    assert!(
        stream
            .next_frame(Duration::from_millis(100))
            .await
            .is_none()
    );
    client
        .send(Call::post("/api/events/emit").json(&json!({})))
        .await
        .unwrap();
    stream.read_until("effect", SOON).await.unwrap();
}

async fn reference(recorder: &Recorder, model: &ModelServer) -> (Stage, BaseUrl) {
    let profile = Profile::reference().with_time_scale(1.0);
    let launch = profile.launcher();
    fresh(profile, launch, recorder, model).await
}

/// A stage in front of a server that nobody has spoken to, and its address.
async fn fresh(
    profile: Profile,
    launch: Arc<dyn Launch>,
    recorder: &Recorder,
    model: &ModelServer,
) -> (Stage, BaseUrl) {
    let url = Some(model.base_url());
    let instance = Instance::start(launch, DEFAULT_VARIANT, url, None)
        .await
        .unwrap();
    let base = instance.url().await.unwrap();
    let setting = Setting {
        scenario: "replay".to_owned(),
        seed: 0,
        recorder: recorder.clone(),
        instance: Arc::new(instance),
        model: Some(model.model()),
        profile: Arc::new(profile),
    };
    (Stage::new(setting).await.unwrap(), base)
}

/// A session, a subscription, a turn, and an event.
async fn record(model: &ModelServer) -> Transcript {
    let recorder = Recorder::new(Header::default());
    let (stage, _) = reference(&recorder, model).await;
    let session = stage.session().await.unwrap();
    let watcher = stage
        .subscribe(&Subscribe::to(&session))
        .await
        .unwrap()
        .keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    stage
        .say(&session, "look")
        .await
        .unwrap()
        .read_to_end(SOON)
        .await;
    watcher.wait_for("execution.completed", SOON).await;
    stage.publish_one(&session).await.unwrap();
    watcher.wait_for("plugin-data.changed", SOON).await;
    stage.view(&session).await.unwrap();
    watcher.close().await;
    stage.finish().await;
    recorder.transcript()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_played_to_a_fresh_server_gets_the_same_answers_and_an_edited_one_does_not() {
    let model = ModelServer::start().await.unwrap();
    let recorded = record(&model).await;
    let text = text::write(&recorded);
    let (_stage, base) = reference(&Recorder::new(Header::default()), &model).await;
    let options = Options {
        upstream: base,
        timing: Timing::None,
        patience: SOON,
        given: Vec::new(),
    };
    let answered = client::play(&Template::parse(&text).unwrap(), &options)
        .await
        .unwrap();
    assert!(answered.remarks.is_empty(), "{:?}", answered.remarks);
    assert!(answered.diff.same, "{:#?}", answered.diff.differences);
    assert!(answered.diff.exchanges >= 5);
    let edited = text.replace("\"status\":\"active\"", "\"status\":\"asleep\"");
    let diff = diff::templates(
        &Template::parse(&edited).unwrap(),
        &Template::of(&answered.transcript),
    );
    assert!(!diff.same);
}
