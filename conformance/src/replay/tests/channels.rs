//! WebSockets and channels of lines are played, both sides.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::{SOON, fresh, reference};
use crate::{
    drivers::{
        http::{BaseUrl, HttpClient, HttpLimits},
        lines::{LineChannel, Open},
        model::ModelServer,
        target::reference::ReferenceTarget,
        websocket::{self, Seen, WebSocket},
    },
    profile::Profile,
    replay::{
        Timing,
        client::{self, Answered, Options},
        server::{ReplayOptions, ReplayServer},
    },
    stage::Stage,
    transcript::{
        Header, Transcript, WsFrame, diff,
        record::Recorder,
        text::{self, Template},
    },
};

const CHAT: &str = r#"
> GET /ws
>: upgrade: websocket
< 101
<: upgrade: websocket

@+1ms
<~ text {"type":"hello","id":"conn-1d6a8f75"}
@+4ms
>~ text {"type":"send","id":"m1","to":"conn-1d6a8f75","text":"what is it"}
@+1ms
<~ ping
@+0.1ms
>~ pong
@+5ms
<~ text {"type":"done","of":"m1","text":"it is late"}
@+1ms
>~ text {"type":"leave"}
@+1ms
<~ close 1000 bye
>~ close 1000
end complete
"#;

const LINES: &str = r#"
>$ {"kind":"request","request_id":"r-1","method":"open"}
@+2ms
<$ {"kind":"response","request_id":"r-1","result":{"session_id":"session-1d6a8f75"}}
@+2ms
>$ {"kind":"request","request_id":"r-2","method":"ask","params":{"session_id":"session-1d6a8f75"}}
@+300000ms
<$ {"kind":"event","method":"update","event":{"type":"said"}}
<$ {"kind":"response","request_id":"r-2","result":{}}
end complete
"#;

fn options(timing: Timing, strict: bool) -> ReplayOptions {
    ReplayOptions {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        timing,
        strict,
    }
}

async fn replay(text: &str, timing: Timing, strict: bool) -> ReplayServer {
    let transcript = text::parse(text).unwrap();
    let options = options(timing, strict);
    ReplayServer::start(&transcript, options).await.unwrap()
}

async fn socket(server: &ReplayServer) -> WebSocket {
    let base = BaseUrl::parse(&server.url()).unwrap();
    let recorder = Recorder::new(Header::default());
    let http = HttpClient::new(base, recorder, HttpLimits::default());
    let opened = websocket::open(&http, websocket::Open::at("/ws")).await;
    opened.unwrap().socket().unwrap()
}

async fn lines(server: &ReplayServer) -> LineChannel {
    let url = BaseUrl::parse(&server.url()).unwrap();
    let recorder = Recorder::new(Header::default());
    let limits = HttpLimits::default();
    LineChannel::open(&url, recorder, limits, Open::default())
        .await
        .unwrap()
}

fn send(to: &str, text: &str) -> Value {
    json!({ "type": "send", "id": "m1", "to": to, "text": text })
}

#[tokio::test]
async fn a_strict_socket_says_what_was_said_each_time_once_the_client_has_spoken() {
    let server = replay(CHAT, Timing::None, true).await;
    let mut socket = socket(&server).await;
    socket.need("hello", SOON).await.unwrap();
    assert!(
        socket
            .wait_for_kind("done", std::time::Duration::from_millis(100))
            .await
            .is_none()
    );
    socket
        .send(&send("conn-1d6a8f75", "what is it"))
        .await
        .unwrap();
    let done = socket.need("done", SOON).await.unwrap();
    assert_eq!(done.text("/text"), Some("it is late"));
    socket.send(&json!({ "type": "leave" })).await.unwrap();
    assert!(socket.wait_end(SOON).await);
    let last = socket.seen().pop().unwrap();
    assert_eq!(last.frame, WsFrame::Close(Some((1000, "bye".to_owned()))));
    tokio::time::timeout(SOON, server.finished()).await.unwrap();
    let report = server.report();
    assert!(report.complete(), "{report:?}");
    assert_eq!((report.messages, report.heard), (2, 2));
}

#[tokio::test]
async fn a_strict_socket_closes_on_another_message_and_names_the_one_that_came() {
    let server = replay(CHAT, Timing::None, true).await;
    let mut socket = socket(&server).await;
    socket
        .send(&send("conn-1d6a8f75", "what was it"))
        .await
        .unwrap();
    assert!(socket.wait_end(SOON).await);
    let last = socket.seen().pop().unwrap();
    let WsFrame::Close(Some((1008, reason))) = &last.frame else {
        panic!("{last:?}");
    };
    assert!(reason.contains("what was it"), "{reason}");
    let report = server.report();
    assert_eq!(report.heard, 0);
    assert!(
        report.unexpected[0].contains("next is") && report.unexpected[0].contains("what is it"),
        "{report:?}"
    );
    assert_eq!(report.missing.len(), 2, "{report:?}");
}

#[tokio::test]
async fn a_lenient_socket_takes_any_message_of_the_kind_and_answers_in_its_words() {
    let server = replay(CHAT, Timing::None, false).await;
    let mut socket = socket(&server).await;
    let mut message = send("somebody", "what was it");
    message["id"] = "message-7".into();
    socket.send(&message).await.unwrap();
    let done = socket.need("done", SOON).await.unwrap();
    assert_eq!(done.text("/of"), Some("message-7"));
    socket.send(&message).await.unwrap();
    socket.send(&json!({ "type": "sing" })).await.unwrap();
    socket.send(&json!({ "type": "leave" })).await.unwrap();
    assert!(socket.wait_end(SOON).await);
    let report = server.report();
    assert_eq!((report.messages, report.heard), (2, 2));
    assert_eq!(report.unexpected.len(), 1, "{report:?}");
    assert!(report.unexpected[0].contains("sing"), "{report:?}");
}

#[tokio::test]
async fn a_channel_of_lines_is_played_with_the_ids_and_the_times_that_were_asked_for() {
    for (timing, least, most) in [
        (Timing::Scaled(0.005), 1_000, 200_000),
        (Timing::None, 0, 200_000),
    ] {
        let server = replay(LINES, timing, false).await;
        assert!(server.url().starts_with("tcp://"));
        let mut channel = lines(&server).await;
        let request = |id: &str, method: &str| json!({ "kind": "request", "request_id": id, "method": method });
        channel.send(&request("a", "open")).await.unwrap();
        let is = |id: &'static str| move |line: &Value| line["request_id"] == id;
        let opened = channel.wait(SOON, is("a")).await.unwrap();
        assert_eq!(opened["result"]["session_id"], "session-1d6a8f75");
        let begun = std::time::Instant::now();
        channel.send(&request("b", "ask")).await.unwrap();
        channel.wait(SOON, is("b")).await.unwrap();
        let took = begun.elapsed().as_millis();
        assert!((least..most).contains(&took), "{timing:?}: {took} ms");
        channel.close().await;
        tokio::time::timeout(SOON, server.finished()).await.unwrap();
        assert!(server.report().complete(), "{:?}", server.report());
    }
}

#[tokio::test]
async fn a_program_is_stood_in_for_on_its_standard_input_and_output() {
    let transcript = text::parse(LINES).unwrap();
    let server = ReplayServer::unheard(&transcript, options(Timing::None, true));
    let (ours, theirs) = duplex(4096);
    let (from, to) = tokio::io::split(theirs);
    let asked: Vec<&str> = LINES
        .lines()
        .filter_map(|line| line.strip_prefix(">$ "))
        .collect();
    let (mut heard, mut said) = tokio::io::split(ours);
    let talk = async {
        // Everything at once, and the end of the input before the answers.
        said.write_all(format!("{}\n", asked.join("\n")).as_bytes())
            .await
            .unwrap();
        said.shutdown().await.unwrap();
        let mut answers = String::new();
        heard.read_to_string(&mut answers).await.unwrap();
        answers
    };
    let (spoke, answers) = tokio::join!(server.speak_lines(from, to), talk);
    assert!(spoke);
    let expected: Vec<&str> = LINES
        .lines()
        .filter_map(|line| line.strip_prefix("<$ "))
        .collect();
    assert_eq!(answers.lines().collect::<Vec<_>>(), expected);
    assert!(server.report().complete(), "{:?}", server.report());
    assert!(
        !server.speak_lines(&b""[..], Vec::new()).await,
        "there is one channel"
    );
}

/// Plays the client side of a text to a server.
async fn played(text: &str, url: &str) -> Answered {
    let options = Options {
        upstream: BaseUrl::parse(url).unwrap(),
        timing: Timing::None,
        patience: SOON,
        given: Vec::new(),
    };
    client::play(&Template::parse(text).unwrap(), &options)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_ping_that_the_server_does_not_wait_for_is_no_remark() {
    let talk = "> GET /ws\n>: upgrade: websocket\n>: sec-websocket-version: 13\n< 101\n<: upgrade: websocket\n\
                @+700ms\n>~ ping x\n<~ close 1002\n>~ close 1002\nend complete\n";
    let server = replay(talk, Timing::None, true).await;
    let options = Options {
        upstream: BaseUrl::parse(&server.url()).unwrap(),
        timing: Timing::Scaled(1.0),
        patience: SOON,
        given: Vec::new(),
    };
    let template = Template::parse(talk).unwrap();
    let answered = client::play(&template, &options).await.unwrap();
    assert_eq!(answered.remarks, Vec::<String>::new());
    assert!(answered.diff.same, "{:#?}", answered.diff.differences);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_of_a_golden_transcript_played_to_each_other_say_what_it_says() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
    let (mut count, mut messages) = (0, 0);
    for suite in ["chat-ws", "session-update"] {
        for file in std::fs::read_dir(golden.join(suite)).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let server = replay(&text, Timing::None, true).await;
            let answered = played(&text, &server.url()).await;
            let name = path.display();
            assert!(
                answered.remarks.is_empty(),
                "{name}: {:#?}",
                answered.remarks
            );
            let found = &answered.diff.differences;
            assert!(answered.diff.same, "{name}: {found:#?}");
            // The last word of the client may still be on its way.
            let _ = tokio::time::timeout(SOON, server.finished()).await;
            let report = server.report();
            assert!(report.complete(), "{name}: {report:#?}");
            messages += report.messages;
            count += 1;
        }
    }
    assert!(
        count >= 10 && messages >= count,
        "{count} files, {messages} messages"
    );
}

/// Waits for the last word of a turn.
async fn rests(socket: &mut WebSocket) {
    let is_last = |seen: &Seen| {
        seen.kind() == Some("chat:active")
            && seen.pointer("/payload/running") == Some(&false.into())
    };
    socket
        .need_that("the end of a turn", SOON, is_last)
        .await
        .unwrap();
}

/// A chat: two turns, and the transcript of it.
async fn chat(model: &ModelServer) -> Transcript {
    let recorder = Recorder::new(Header::default());
    let (stage, _) = reference(&recorder, model).await;
    let mut socket = stage.chat().await.unwrap();
    let project = stage.profile().chat.project.clone();
    socket.chat_send(&project, None, "look").await.unwrap();
    let active = socket.need("chat:active", SOON).await.unwrap();
    let session = active.text("/payload/sessionId").unwrap().to_owned();
    rests(&mut socket).await;
    socket
        .chat_send(&project, Some(&session), "look again")
        .await
        .unwrap();
    rests(&mut socket).await;
    socket.close(1000, SOON).await;
    stage.finish().await;
    recorder.transcript()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_played_to_a_fresh_server_gets_the_same_answers_and_an_edited_one_does_not() {
    let model = ModelServer::start().await.unwrap();
    let text = text::write(&chat(&model).await);
    let (_stage, base) = reference(&Recorder::new(Header::default()), &model).await;
    let answered = played(&text, &base.to_string()).await;
    assert!(answered.remarks.is_empty(), "{:?}", answered.remarks);
    assert!(answered.diff.same, "{:#?}", answered.diff.differences);
    assert!(!answered.diff.ids.is_empty());
    let edited = text.replacen("chat:complete", "chat:ended", 1);
    let answers = Template::of(&answered.transcript);
    let diff = diff::templates(&Template::parse(&edited).unwrap(), &answers);
    assert!(!diff.same);
    assert!(
        diff.differences
            .iter()
            .any(|found| found.what.starts_with("WebSocket text")),
        "{diff:#?}"
    );
}

async fn line_server(recorder: &Recorder, model: &ModelServer) -> (Stage, BaseUrl) {
    let profile = Profile::reference();
    let target = ReferenceTarget {
        time_scale: profile.time_scale,
        lines: true,
    };
    fresh(profile, std::sync::Arc::new(target), recorder, model).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_lines_played_to_a_fresh_server_gets_the_same_answers() {
    let model = ModelServer::start().await.unwrap();
    let recorder = Recorder::new(Header::default());
    let (stage, _) = line_server(&recorder, &model).await;
    let mut talk = stage.lines().await.unwrap();
    let session = talk.session().await.unwrap();
    talk.turn(&session, "look").await.unwrap().unwrap();
    talk.stored(&session).await.unwrap().unwrap();
    talk.close().await;
    stage.finish().await;
    let text = text::write(&recorder.transcript());
    let (_stage, base) = line_server(&Recorder::new(Header::default()), &model).await;
    let answered = played(&text, &base.to_string()).await;
    assert!(answered.remarks.is_empty(), "{:?}", answered.remarks);
    assert!(answered.diff.same, "{:#?}", answered.diff.differences);
    assert!(answered.diff.alike >= 10, "{:?}", answered.diff);
}
