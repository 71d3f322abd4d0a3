//! Ctrl-C: what was seen is reported.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStderr, Stdio},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;

use crate::{servers::Served, support::Place};

/// A run that is watched.
struct Watched {
    child: Child,
    said: BufReader<ChildStderr>,
    /// What it has said so far.
    heard: String,
    /// What it prints, which may be more than a pipe holds.
    printed: JoinHandle<String>,
    _place: Place,
}

impl Watched {
    fn start(args: &[&str]) -> Self {
        let place = Place::new();
        let mut child = place
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let printed = std::thread::spawn(move || {
            let mut printed = String::new();
            stdout.read_to_string(&mut printed).unwrap();
            printed
        });
        Self {
            printed,
            said: BufReader::new(child.stderr.take().unwrap()),
            child,
            heard: String::new(),
            _place: place,
        }
    }

    /// Reads what it says up to a line with these words, and gives that line.
    #[track_caller]
    fn says(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).unwrap();
            assert!(read > 0, "it never says {words:?}: {}", self.heard);
            self.heard.push_str(&line);
            if line.contains(words) {
                return line.trim_end().to_owned();
            }
        }
    }

    fn interrupt(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    }

    /// Waits for the end: exit code, standard output, and everything that it said.
    fn end(mut self) -> (Option<i32>, String, String) {
        self.said.read_to_string(&mut self.heard).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, self.printed.join().unwrap(), self.heard)
    }
}

/// Requirements in this state.
fn in_state(report: &Value, wanted: &str) -> usize {
    let requirements = report["requirements"].as_array().unwrap().iter();
    requirements.filter(|one| one["state"] == wanted).count()
}

/// Asks for a stream as a client does that a person points there, and reads it to its end.
fn visit(line: &str) {
    let (_, url) = line.split_once("connect to http://").unwrap();
    let (host, path) = url.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!(
        "GET /{path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\ncache-control: no-store\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    // The server may leave the connection open behind the answer.
    let patience = Some(Duration::from_secs(5));
    stream.set_read_timeout(patience).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_run_that_is_interrupted_at_once_reports_that_nothing_was_seen() {
    let mut run = Watched::start(&["demo", "--format", "json"]);
    run.says("target up");
    run.interrupt();
    let (code, printed, heard) = run.end();
    assert_eq!(code, Some(3), "{heard}");
    assert!(heard.contains("once more stops at once"), "{heard}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["outcome"], "interrupted");
}

#[test]
fn an_interrupted_check_of_a_server_reports_what_was_seen() {
    let served = Served::start(&["serve", "--store", "memory"]);
    let mut run = Watched::start(&[
        "server",
        "--suite",
        "covel-sse",
        "--url",
        &served.url,
        "--jobs",
        "1",
        "--format",
        "json",
        "--scenario",
        "connect-fresh",
        "--scenario",
        "heartbeat-idle",
    ]);
    // The heartbeats are waited for for more than a minute.
    run.says("connect-fresh: ");
    let (report, printed) = interrupted(run);
    assert!(in_state(&report, "pass") > 0, "{report}");
    let scenarios = report["scenarios"].as_array().unwrap();
    let mut names = scenarios.iter().map(|one| (&one["name"], &one["leftOut"]));
    assert!(
        names.any(|(name, left_out)| name == "heartbeat-idle" && left_out == true),
        "{scenarios:?}"
    );
    assert!(printed.contains("the run was interrupted"), "{printed}");
}

/// Interrupts a run, and gives its report, read and as it was printed.
fn interrupted(run: Watched) -> (Value, String) {
    run.interrupt();
    let (code, printed, heard) = run.end();
    assert_eq!(code, Some(3), "{heard}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["outcome"], "interrupted");
    (report, printed)
}

#[test]
fn a_person_is_told_how_much_is_still_to_come_and_an_interruption_reports_what_was_seen() {
    let mut run = Watched::start(&[
        "client",
        "--suite",
        "sse",
        "--listen",
        "127.0.0.1:0",
        "--format",
        "json",
        "--scenario",
        "connect",
        "--scenario",
        "redirects",
    ]);
    run.says("7 conversations in 2 scenarios");
    let line = run.says("connect to http://");
    assert!(
        line.starts_with("1 of 7: connect (1 of 2): let your client "),
        "{line}"
    );
    // The stream, and once more when it is over.
    visit(&line);
    visit(&line);
    run.says("2 of 7: connect (2 of 2): ");
    let (report, printed) = interrupted(run);
    // The requests were seen; redirects were not.
    assert!(in_state(&report, "pass") > 0, "{report}");
    assert_eq!(in_state(&report, "fail"), 0, "{report}");
    assert!(in_state(&report, "not-exercised") > 0, "{report}");
    assert!(printed.contains("the run was interrupted"), "{printed}");
}

#[test]
fn the_page_about_clients_shows_what_a_person_is_told() {
    let mut run = Watched::start(&[
        "client",
        "--suite",
        "sse",
        "--scenario",
        "redirects",
        "--listen",
        "127.0.0.1:0",
    ]);
    let line = run.says("connect to http://");
    let heard = run.heard.clone();
    run.interrupt();
    run.end();
    let (_, rest) = line.split_once("127.0.0.1:").unwrap();
    let (port, _) = rest.split_once('/').unwrap();
    let told = heard.replace(&format!(":{port}/"), ":8090/");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/testee.md");
    let page = std::fs::read_to_string(page).unwrap();
    // What a person is to do and how the run goes are told by two, in whatever order.
    for line in told.lines() {
        assert!(page.contains(line), "the page does not say: {line}");
    }
}
