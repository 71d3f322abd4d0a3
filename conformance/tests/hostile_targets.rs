//! Targets that are down, hang, or answer nonsense: one clear line, exit code 3, in time.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// A server that does the same with every connection, once it has read something.
fn server(serve: impl Fn(&mut TcpStream) + Send + Sync + Copy + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            thread::spawn(move || {
                let _ = socket.read(&mut [0; 4096]);
                serve(&mut socket);
            });
        }
    });
    url
}

/// A hundred megabytes without a line end, or until the other side has had enough.
fn pour(socket: &mut TcpStream) {
    let piece = vec![b'0'; 1 << 20];
    for _ in 0..100 {
        if socket.write_all(&piece).is_err() {
            return;
        }
    }
}

/// Checks the server at `url`; what is printed on standard error.
fn refused(url: &str) -> String {
    let begun = Instant::now();
    let args = [
        "server",
        "--suite",
        "covel-sse",
        "--quiet",
        "--timeout",
        "1",
        "--url",
        url,
    ];
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_turnwire");
    let output = Command::new(program)
        .args(args)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "took {:?}",
        begun.elapsed()
    );
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty(), "{:?}", output.stdout);
    said
}

#[test]
fn a_target_that_is_down() {
    let said = refused("http://127.0.0.1:9");
    assert!(
        said.contains("cannot connect to http://127.0.0.1:9"),
        "{said}"
    );
}

#[test]
fn a_target_that_hangs() {
    let said = refused(&server(|_| thread::sleep(Duration::from_secs(60))));
    assert!(said.contains("no response head within 1s"), "{said}");
}

#[test]
fn a_target_that_speaks_no_http() {
    let said = refused(&server(|socket| {
        let _ = socket.write_all(b"-ERR unknown command\r\n");
    }));
    assert!(said.contains("not HTTP"), "{said}");
}

#[test]
fn a_target_that_closes_in_the_middle_of_the_head() {
    let said = refused(&server(|socket| {
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-ty");
    }));
    assert!(said.contains("ended before the response head"), "{said}");
}

#[test]
fn a_target_that_is_a_web_site() {
    let said = refused(&server(|socket| {
        let _ = socket.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<h1>",
        );
    }));
    assert!(said.contains("is this the base URL of the API?"), "{said}");
}

#[test]
fn a_target_whose_head_has_no_end() {
    let said = refused(&server(|socket| {
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nx: ");
        pour(socket);
    }));
    assert!(said.contains("too large"), "{said}");
}

#[test]
fn a_target_whose_body_has_no_end() {
    let said = refused(&server(|socket| {
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
        pour(socket);
    }));
    assert!(
        said.contains("expected a whole answer") && said.contains("TooLarge"),
        "{said}"
    );
}
