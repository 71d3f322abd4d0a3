//! The commands that serve until they are told to stop.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// A running command. Dropping it kills it.
pub(crate) struct Served {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) url: String,
    folder: TempDir,
}

impl Served {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), args)
    }

    pub(crate) fn start_in(folder: TempDir, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_turnwire"))
            .args(args)
            .current_dir(folder.path())
            .env_remove("TURNWIRE_LLM_BASE_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        Self {
            child,
            stdout,
            url: url.trim_end().to_owned(),
            folder,
        }
    }

    /// Its standard error, once.
    pub(crate) fn said(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }

    /// Sends a request and gives the whole answer.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> String {
        let (address, base) = self.url.strip_prefix("http://").unwrap().split_at(
            self.url
                .strip_prefix("http://")
                .unwrap()
                .find('/')
                .unwrap_or(self.url.len() - "http://".len()),
        );
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let head = format!(
            "{method} {base}{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits for the end: exit code, rest of standard output, standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String, TempDir) {
        let until = Instant::now() + Duration::from_secs(20);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        let (mut rest, mut said) = (String::new(), String::new());
        self.stdout.read_to_string(&mut rest).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        (status.code(), rest, said, folder)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn serve_prints_its_url_answers_and_stops_on_sigterm() {
    let served = Served::start(&["serve"]);
    assert!(
        served.url.starts_with("http://127.0.0.1:"),
        "{:?}",
        served.url
    );
    let answer = served.request("GET", "/api/health", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    served.signal(rustix::process::Signal::TERM);
    let (code, rest, said, folder) = served.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""), "{said}");
    assert!(
        said.contains("sessions in turnwire.db, a mock model"),
        "{said}"
    );
    assert!(folder.path().join("turnwire.db").exists());
}

#[test]
fn serve_keeps_its_sessions_over_a_restart() {
    let served = Served::start(&["serve", "--store", "sqlite:chat.db"]);
    let created = served.request("POST", "/api/sessions", r#"{"id":"kept"}"#);
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let (_, body) = created.split_once("\r\n\r\n").unwrap();
    served.signal(rustix::process::Signal::INT);
    let (code, _, said, folder) = served.end();
    assert_eq!(code, Some(0), "{said}");

    let token = body
        .split_once("\"ownerToken\":\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(token, _)| token);
    let path = format!(
        "/api/sessions/kept?session_token={}",
        token.unwrap_or_default()
    );
    let served = Served::start_in(folder, &["serve", "--store", "sqlite:chat.db"]);
    let found = served.request("GET", &path, "");
    assert!(found.starts_with("HTTP/1.1 200"), "{found}");
}

#[test]
fn serve_in_memory_leaves_no_file() {
    let served = Served::start(&[
        "serve",
        "--store",
        "memory",
        "--time-scale",
        "0.01",
        "--tier",
        "demo",
    ]);
    served.signal(rustix::process::Signal::TERM);
    let (code, _, said, folder) = served.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn mock_says_what_its_script_says() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "name: greeting\nrules:\n  - when: {last_user: hello}\n    reply: {text: Good morning.}\n";
    std::fs::write(folder.path().join("script.yaml"), script).unwrap();
    let served = Served::start_in(
        folder,
        &["mock", "--script", "script.yaml", "--reply", "Pardon?"],
    );
    let ask = |text: &str| {
        let body = format!(
            r#"{{"model":"mock-model","messages":[{{"role":"user","content":"{text}"}}]}}"#
        );
        served.request("POST", "/chat/completions", &body)
    };
    assert!(ask("hello").contains("Good morning."), "{}", ask("hello"));
    assert!(ask("what").contains("Pardon?"), "{}", ask("what"));
    served.signal(rustix::process::Signal::INT);
    let (code, _, said, _) = served.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for command in ["serve", "mock"] {
        let served = Served::start(&[command, "--port", &port]);
        let (code, _, said, _) = served.end();
        assert_eq!(code, Some(3), "{said}");
        assert!(
            said.starts_with(&format!("turnwire: cannot listen on 127.0.0.1:{port}")),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
