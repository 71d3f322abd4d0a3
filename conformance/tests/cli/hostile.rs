//! Targets that are down, hang, or speak something else.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

use crate::support::fails;

#[test]
fn a_target_that_is_down_ends_with_3_and_one_clear_line() {
    let line = fails(
        &[
            "server",
            "--suite",
            "covel-sse",
            "--url",
            "http://127.0.0.1:9",
            "--quiet",
        ],
        3,
    );
    assert!(line.starts_with("turnwire: "), "{line}");
    assert!(
        line.contains("http://127.0.0.1:9") && line.contains("is the server running"),
        "{line}"
    );
}

/// A target that answers each connection with these bytes and then does nothing more.
fn target(answer: &'static [u8], repeat: usize, hold: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer_one(stream, answer, repeat, hold));
        }
    });
    url
}

fn answer_one(mut stream: TcpStream, answer: &[u8], repeat: usize, hold: bool) {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request);
    for _ in 0..repeat {
        if stream.write_all(answer).is_err() {
            return;
        }
    }
    if hold {
        // Until the other end gives up.
        while matches!(stream.read(&mut request), Ok(1..)) {}
    }
}

/// Ends with 3 or gives a verdict, within the time, and prints one line that says what it met.
#[track_caller]
fn meets(url: &str, words: &str) {
    let begun = Instant::now();
    let line = fails(&["server", "--url", url, "--timeout", "1", "--quiet"], 3);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it took {:?}",
        begun.elapsed()
    );
    assert!(line.contains(words), "{line}");
}

#[test]
fn a_target_that_speaks_no_http_is_named_as_such() {
    meets(
        &target(b"220 mail.example.org ESMTP\r\n", 1, false),
        "not HTTP",
    );
}

#[test]
fn a_target_that_hangs_is_given_up() {
    meets(&target(b"", 0, true), "no response head within");
}

#[test]
fn a_target_that_closes_amid_its_headers_is_named_as_such() {
    meets(
        &target(b"HTTP/1.1 200 OK\r\ncontent-ty", 1, false),
        "before the response head",
    );
}

#[test]
fn a_web_site_is_no_api() {
    let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    meets(&target(page, 1, false), "is this the base URL of the API?");
}

#[test]
fn a_target_that_sends_without_end_and_without_a_line_feed_is_cut_off() {
    static MEGABYTE: [u8; 1 << 20] = [b'x'; 1 << 20];
    meets(&target(&MEGABYTE, 100, false), "not HTTP");
}

#[test]
fn a_command_that_does_not_start_says_why() {
    let line = fails(
        &["server", "--quiet", "--", "turnwire-has-no-such-program"],
        3,
    );
    assert!(line.contains("turnwire-has-no-such-program"), "{line}");
}
