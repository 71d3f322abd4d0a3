//! Servers that misbehave on purpose, and what the client makes of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::{Instant, sleep},
};

use super::*;
use crate::transcript::{Header, Transcript};

const SOON: Duration = Duration::from_millis(400);
/// What any single exchange of these tests may take, on a busy machine.
const AT_LAST: Duration = Duration::from_secs(10);

fn limits() -> HttpLimits {
    HttpLimits {
        connect: Duration::from_secs(2),
        head: SOON,
        idle: SOON,
        total: Duration::from_millis(1500),
        max_head: 16 << 10,
        max_body: 1 << 20,
    }
}

/// A server that does the same with every connection.
async fn server<F, W>(serve: F) -> BaseUrl
where
    F: Fn(TcpStream) -> W + Send + Sync + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket));
        }
    });
    base
}

/// A server that reads a request, says `text` and closes.
async fn saying(text: &'static str) -> BaseUrl {
    server(move |mut socket| async move {
        read_request(&mut socket).await;
        let _ = socket.write_all(text.as_bytes()).await;
    })
    .await
}

/// Reads up to the end of a request head.
async fn read_request(socket: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while !seen.windows(4).any(|four| four == b"\r\n\r\n") {
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
        }
    }
    true
}

/// Writes zeros, never a line end, until the other side has had enough; says how many went out.
async fn pour(socket: &mut TcpStream, total: usize) -> usize {
    let piece = vec![b'0'; 64 << 10];
    let mut poured = 0;
    while poured < total && socket.write_all(&piece).await.is_ok() {
        poured += piece.len();
    }
    poured
}

fn client(base: BaseUrl) -> HttpClient {
    HttpClient::new(base, Recorder::new(Header::default()), limits())
}

fn transcript(client: &HttpClient) -> Transcript {
    client.inner.recorder.transcript()
}

fn end(client: &HttpClient) -> End {
    let facts = transcript(client).entries;
    let ends: Vec<_> = facts
        .iter()
        .filter(|entry| matches!(entry.fact, Fact::End { .. }))
        .collect();
    assert_eq!(ends.len(), 1, "every exchange ends once: {facts:?}");
    match &ends[0].fact {
        Fact::End { how, .. } => how.clone(),
        _ => unreachable!(),
    }
}

async fn get(client: &HttpClient) -> Result<Reply, DriveError> {
    let begun = Instant::now();
    let reply = client.send(Call::get("/x")).await;
    assert!(begun.elapsed() < AT_LAST, "took {:?}", begun.elapsed());
    reply
}

#[tokio::test]
async fn a_target_that_is_down_is_not_connected() {
    let base = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap()
    };
    let client = client(base.clone());
    let error = get(&client).await.unwrap_err();
    assert!(
        matches!(&error, DriveError::NotConnected { url, .. } if *url == base.to_string()),
        "{error}"
    );
    assert!(matches!(end(&client), End::NotConnected(why) if why.contains("refused")));
}

#[tokio::test]
async fn a_target_that_speaks_another_protocol_is_not_http() {
    let client = client(saying("SSH-2.0-OpenSSH_9.6\r\n").await);
    let error = get(&client).await.unwrap_err();
    assert!(matches!(error, DriveError::NotHttp { .. }), "{error}");
    assert!(matches!(end(&client), End::NotHttp(_)));
}

#[tokio::test]
async fn a_target_that_talks_before_it_is_asked_is_not_http() {
    let base = server(|mut socket| async move {
        let _ = socket.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await;
        sleep(AT_LAST).await;
    })
    .await;
    for _ in 0..10 {
        let error = get(&client(base.clone())).await.unwrap_err();
        assert!(matches!(error, DriveError::NotHttp { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_target_that_hangs_is_silent() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        sleep(AT_LAST).await;
    })
    .await;
    let client = client(base);
    let error = get(&client).await.unwrap_err();
    assert_eq!(
        error,
        DriveError::Silent {
            request: "GET /x".to_owned(),
            waited: SOON
        }
    );
    assert_eq!(end(&client), End::TimedOut);
}

#[tokio::test]
async fn a_target_that_closes_in_the_middle_of_the_head_gives_no_response() {
    let client = client(saying("HTTP/1.1 200 OK\r\ncontent-type: text/ev").await);
    let error = get(&client).await.unwrap_err();
    assert!(matches!(error, DriveError::NoResponse { .. }), "{error}");
    assert!(matches!(end(&client), End::Broken(_)));
}

#[tokio::test]
async fn a_head_without_an_end_is_refused_at_its_bound() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        pour(&mut socket, 100 << 20).await;
    })
    .await;
    let client = client(base);
    let error = get(&client).await.unwrap_err();
    assert!(
        matches!(&error, DriveError::NotHttp { why, .. } if why.contains("too large")),
        "{error}"
    );
}

/// Each byte is a chunk of its own, with a place of its own in the transcript.
#[tokio::test]
async fn a_body_that_comes_byte_by_byte_is_cut_before_its_pieces_take_more_than_it_may() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let _ = socket.write_all(head.as_bytes()).await;
        let chunks = b"1\r\nx\r\n".repeat(1_000);
        while socket.write_all(&chunks).await.is_ok() {}
    })
    .await;
    let limits = HttpLimits {
        max_body: 32 << 10,
        total: AT_LAST,
        ..limits()
    };
    let client = HttpClient::new(base, Recorder::new(Header::default()), limits);
    let reply = client.send(Call::get("/x")).await.unwrap();
    assert_eq!(reply.end, End::TooLarge);
    assert!(reply.body.len() <= 1 << 10, "{}", reply.body.len());
}

#[tokio::test]
async fn a_hundred_megabytes_without_a_line_end_are_cut_at_the_bound() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
        let _ = socket.write_all(head.as_bytes()).await;
        pour(&mut socket, 100 << 20).await;
    })
    .await;
    let client = client(base);
    let mut stream = client.open(Call::get("/x")).await.unwrap();
    let begun = Instant::now();
    let frames = stream.read_to_end(AT_LAST).await;
    assert!(begun.elapsed() < AT_LAST);
    assert_eq!(stream.ended(), Some(End::TooLarge));
    assert_eq!(end(&client), End::TooLarge);
    assert_eq!(
        frames.len(),
        1,
        "what was cut off is a frame that does not end"
    );
    let kept: usize = transcript(&client)
        .entries
        .iter()
        .map(|entry| {
            if let Fact::Chunk { bytes, .. } = &entry.fact {
                bytes.len()
            } else {
                0
            }
        })
        .sum();
    assert_eq!(kept, limits().max_body);
}

#[tokio::test]
async fn an_html_page_is_an_answer_that_the_scenario_cannot_use() {
    let page =
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 15\r\n\r\n<h1>Welcome</h1";
    let client = client(saying(page).await);
    let reply = get(&client).await.unwrap();
    assert_eq!((reply.status, reply.json()), (200, None));
    insta::assert_snapshot!(
        reply.need_string("/id").unwrap_err(),
        @r#"GET /x: expected a success status and a string at /id, got 200 (text/html) "<h1>Welcome</h1""#
    );
}

#[tokio::test]
async fn a_body_that_breaks_off_is_kept_as_far_as_it_came() {
    let client = client(saying("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nshort").await);
    let reply = get(&client).await.unwrap();
    assert_eq!(&reply.body[..], b"short");
    assert!(matches!(reply.end, End::Broken(_)), "{:?}", reply.end);
}

#[tokio::test]
async fn chunks_that_are_none_break_the_body_off() {
    let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nNOT A SIZE\r\n";
    let client = client(saying(text).await);
    let reply = get(&client).await.unwrap();
    assert_eq!(&reply.body[..], b"ok");
    assert!(matches!(reply.end, End::Broken(_)), "{:?}", reply.end);
}

#[tokio::test]
async fn a_body_that_stops_coming_times_out() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        let _ = socket
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
            .await;
        sleep(AT_LAST).await;
    })
    .await;
    let client = client(base);
    let reply = get(&client).await.unwrap();
    assert_eq!((&reply.body[..], reply.end), (&b"half"[..], End::TimedOut));
}

#[tokio::test]
async fn a_body_that_drips_for_ever_times_out_as_a_whole() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while socket.write_all(b".").await.is_ok() {
            sleep(SOON / 8).await;
        }
    })
    .await;
    assert_eq!(get(&client(base)).await.unwrap().end, End::TimedOut);
}

#[tokio::test]
async fn plain_requests_share_a_connection() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&accepted);
    let base = server(move |mut socket| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            while read_request(&mut socket).await {
                let _ = socket
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await;
            }
        }
    })
    .await;
    let client = client(base);
    for _ in 0..50 {
        assert_eq!(&get(&client).await.unwrap().body[..], b"ok");
    }
    assert!(
        accepted.load(Ordering::SeqCst) < 5,
        "{accepted:?} connections"
    );
}

#[tokio::test]
async fn a_target_that_closes_after_each_answer_gets_a_new_connection() {
    let client = client(saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await);
    for _ in 0..5 {
        assert_eq!(&get(&client).await.unwrap().body[..], b"ok");
        sleep(Duration::from_millis(20)).await;
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

#[tokio::test]
async fn frames_are_read_one_by_one_whatever_the_pieces_are() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        for piece in [
            STREAM,
            "event: a\nda",
            "ta: {\"n\":1}\n",
            "\n: hm\n\nevent: b\ndata\n\nrest",
        ] {
            let _ = socket.write_all(piece.as_bytes()).await;
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let client = client(base);
    let mut stream = client.open(Call::get("/x")).await.unwrap();
    let first = stream.next_frame(AT_LAST).await.unwrap();
    assert_eq!(
        (
            first.event_type(),
            first.pointer("/n").and_then(|n| n.as_u64())
        ),
        ("a", Some(1))
    );
    assert_eq!(stream.read_until("b", AT_LAST).await.unwrap().index, 2);
    assert!(stream.read_until("c", AT_LAST).await.is_none());
    assert_eq!(stream.ended(), Some(End::Complete));
}

#[tokio::test]
async fn a_stream_that_does_not_end_in_time_is_closed_and_timed_out() {
    let (closed, told) = oneshot::channel();
    let closed = std::sync::Mutex::new(Some(closed));
    let base = server(move |mut socket| {
        let closed = closed.lock().unwrap().take();
        async move {
            read_request(&mut socket).await;
            let _ = socket.write_all(STREAM.as_bytes()).await;
            let _ = socket.read(&mut [0; 1]).await;
            let _ = closed.unwrap().send(());
        }
    })
    .await;
    let client = client(base);
    let mut stream = client.open(Call::get("/x")).await.unwrap();
    assert!(stream.read_to_end(SOON).await.is_empty());
    assert_eq!(end(&client), End::TimedOut);
    tokio::time::timeout(AT_LAST, told)
        .await
        .expect("the connection is closed")
        .unwrap();
}

#[tokio::test]
async fn a_stream_that_is_dropped_was_closed_by_the_harness() {
    let base = server(|mut socket| async move {
        read_request(&mut socket).await;
        let _ = socket.write_all(STREAM.as_bytes()).await;
        sleep(AT_LAST).await;
    })
    .await;
    let client = client(base);
    drop(client.open(Call::get("/x")).await.unwrap());
    assert_eq!(end(&client), End::ClosedByHarness);
}

/// Sends an event every few milliseconds, for ever.
async fn ticking() -> BaseUrl {
    server(|mut socket| async move {
        read_request(&mut socket).await;
        let _ = socket.write_all(STREAM.as_bytes()).await;
        while socket.write_all(b"event: tick\ndata: {}\n\n").await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn streams_are_recorded_side_by_side_in_the_background() {
    let client = client(ticking().await);
    let mut readings = Vec::new();
    for _ in 0..4 {
        readings.push(client.open(Call::get("/x")).await.unwrap().keep_reading());
    }
    for reading in &readings {
        assert!(reading.wait_count("tick", 3, AT_LAST).await);
        assert!(
            reading
                .wait_for("tock", Duration::from_millis(20))
                .await
                .is_none()
        );
    }
    let mark = readings[0].mark();
    let later = readings[0].wait_after(mark, "tick", AT_LAST).await.unwrap();
    assert!(later.index >= mark);
    client.finish().await;
    drop(readings);
    let ends = transcript(&client).entries.into_iter().filter(
        |entry| matches!(&entry.fact, Fact::End { how, .. } if *how == End::ClosedByHarness),
    );
    assert_eq!(ends.count(), 4);
}

#[tokio::test]
async fn reading_up_to_a_frame_that_never_comes_ends_although_others_come() {
    let client = client(ticking().await);
    let mut stream = client.open(Call::get("/x")).await.unwrap();
    let begun = Instant::now();
    let frames = stream
        .read_up_to(SOON, |frame| frame.event_type() == "tock")
        .await;
    assert!(frames.len() > 5 && begun.elapsed() < AT_LAST);
    let one = stream
        .read_up_to(AT_LAST, |frame| frame.event_type() == "tick")
        .await;
    assert_eq!(one.len(), 1);
}

#[tokio::test]
async fn frames_carry_the_time_of_their_arrival_also_when_nobody_waits_for_them() {
    let client = client(ticking().await);
    let mut stream = client.open(Call::get("/x")).await.unwrap();
    stream.stall(Duration::from_millis(300)).await;
    let frames = stream.read_for(Duration::from_millis(1)).await;
    let span = frames.last().unwrap().at - frames[0].at;
    assert!(
        span > Duration::from_millis(150),
        "{} frames in {span:?}",
        frames.len()
    );
}

#[tokio::test]
async fn nothing_is_recorded_after_the_end_of_an_exchange() {
    let client = client(ticking().await);
    for _ in 0..20 {
        let mut stream = client.open(Call::get("/x")).await.unwrap();
        stream.next_frame(AT_LAST).await.unwrap();
        stream.close();
    }
    sleep(Duration::from_millis(50)).await;
    let mut ended = std::collections::BTreeSet::new();
    for entry in transcript(&client).entries {
        match entry.fact {
            Fact::Chunk { exchange, .. } => assert!(!ended.contains(&exchange), "{exchange:?}"),
            Fact::End { exchange, .. } => {
                assert!(ended.insert(exchange), "{exchange:?} ends twice")
            }
            _ => {}
        }
    }
    assert_eq!(ended.len(), 20);
}

#[tokio::test]
async fn a_stream_goes_back_from_the_background_to_the_hand() {
    let client = client(ticking().await);
    let reading = client.open(Call::get("/x")).await.unwrap().keep_reading();
    assert!(reading.wait_count("tick", 2, AT_LAST).await);
    let mut stream = reading.stop().await.unwrap();
    assert!(stream.next_frame(AT_LAST).await.unwrap().index >= 2);
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_the_target_up() {
    let poured = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&poured);
    let base = server(move |mut socket| {
        let counter = Arc::clone(&counter);
        async move {
            read_request(&mut socket).await;
            let _ = socket.write_all(STREAM.as_bytes()).await;
            while counter.fetch_add(pour(&mut socket, 1).await, Ordering::SeqCst) < 64 << 20 {}
        }
    })
    .await;
    let client = client(base);
    let mut stream = client
        .open(Call::get("/x").receive_buffer(2048))
        .await
        .unwrap();
    stream.stall(Duration::from_millis(300)).await;
    let before = poured.load(Ordering::SeqCst);
    stream.stall(Duration::from_millis(300)).await;
    assert_eq!(
        poured.load(Ordering::SeqCst),
        before,
        "it waits for the reader"
    );
    assert!(before < 16 << 20, "{before} bytes went out");
}
