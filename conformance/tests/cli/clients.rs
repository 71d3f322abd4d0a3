//! Clients under test: programs in any language, and nobody at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use turnwire_spec::catalogue::Catalogue;

use crate::support::{Ended, Place};

/// Python with this program, whose `HERE` says where the harness is.
fn python(program: &str) -> Vec<String> {
    let before = "import os, urllib.request\nHERE = os.environ['TURNWIRE_URL']\n";
    ["python3", "-c", &format!("{before}{program}")]
        .map(str::to_owned)
        .to_vec()
}

/// Checks this command as a client, with these options.
fn client(options: &[&str], command: &[String]) -> Ended {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    Place::new().run(&[&["client"], options, &["--quiet", "--"], &command].concat())
}

#[test]
fn a_run_in_which_nothing_was_exercised_is_not_conformant() {
    // It is there, and does nothing that its suite is about.
    let silent = vec!["true".to_owned()];
    let runs: [(&[&str], &Vec<String>); 2] = [
        (&["--suite", "sse", "--scenario", "redirects"], &silent),
        (
            &["--suite", "covel-sse", "--scenario", "client-slots"],
            &silent,
        ),
    ];
    for (options, command) in runs {
        let ended = client(options, command);
        assert_eq!(ended.code, Some(4), "{options:?} {ended:?}");
        assert!(
            ended
                .stdout
                .contains("nothing exercised, which says nothing about the target"),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn a_request_that_the_protocol_does_not_know_is_told_of_the_client_and_not_of_the_harness() {
    let asks = python(
        "session = os.environ.get('TURNWIRE_SESSION', '')
for path in ['/api/nonsense', f'/api/sessions/{session}/opinion']:
    try: urllib.request.urlopen(HERE + path)
    except urllib.error.HTTPError as error: assert error.code == 404
view = urllib.request.urlopen(f'{HERE}/api/sessions/{session}/view').read()
urllib.request.urlopen(f'{HERE}/api/events/stream?sessionId={session}').read()",
    );
    let options = ["--suite", "covel-sse", "--scenario", "client-subscription"];
    let ended = client(&options, &asks);
    // It is a poor client, but the run is about it.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for line in [
        "observation: request GET /api/nonsense: the protocol has no such endpoint",
        "observation: request GET /api/sessions/:session/opinion: the protocol has no such endpoint",
    ] {
        assert!(ended.stderr.contains(line), "{}", ended.stderr);
    }
    assert!(!ended.stdout.contains("ERROR"), "{}", ended.stdout);
}

/// The block of Python in a page of the book.
fn block(page: &str) -> String {
    let path = format!("{}/../docs/src/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (_, code) = text.split_once("```python\n").unwrap();
    code.split_once("```").unwrap().0.to_owned()
}

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
}

/// Ids in this state.
fn in_state(report: &Value, state: &str) -> BTreeSet<String> {
    let requirements = report["requirements"].as_array().unwrap().iter();
    requirements
        .filter(|one| one["state"] == state)
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_client_of_the_quick_start_gets_a_report() {
    let code = block("quick-start.md");
    assert!(code.lines().count() <= 20, "{code}");
    let command = ["python3", "-c", &code].map(str::to_owned).to_vec();
    let options = [
        "--suite",
        "covel-sse",
        "--scenario",
        "client-subscription",
        "--format",
        "json",
    ];
    let report = report(&client(&options, &command));
    let (passes, fails) = (in_state(&report, "pass"), in_state(&report, "fail"));
    // What the page says about it.
    assert!(passes.contains("COV-SUB-077"), "{passes:?}");
    for id in ["COV-SUB-105", "COV-SUB-054"] {
        assert!(fails.contains(id), "{fails:?}");
    }
}

#[test]
fn a_client_that_is_started_by_hand_gets_a_report() {
    let place = Place::new();
    let args = [
        "client",
        "--suite",
        "sse",
        "--scenario",
        "connect",
        "--listen",
        "127.0.0.1:0",
        "--format",
        "json",
        "--quiet",
    ];
    let mut harness = place
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for line in BufReader::new(harness.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, url)) = line.split_once("connect to http://") {
            by_hand(url);
        }
    }
    let mut stdout = String::new();
    harness
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let code = harness.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 1)), "{code:?} {stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let passes = in_state(&report, "pass");
    assert!(passes.contains("SSE-048"), "{passes:?}");
}

/// What a person does: asks for the stream, and once more when it is over.
fn by_hand(url: &str) {
    let (host, path) = url.split_once('/').unwrap();
    for _ in 0..2 {
        let Ok(mut stream) = TcpStream::connect(host) else {
            return;
        };
        let request = format!(
            "GET /{path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\ncache-control: no-store\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        // The second one is not always asked for.
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
}

/// Where the examples are, from the folder of a test.
fn example(name: &str) -> String {
    format!("{}/testees/covel/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Plays one area to an example client; all of it is for `cargo xtask testees --measure`.
fn played_to(program: &str, file: &str) -> Value {
    let command = [program.to_owned(), example(file)].to_vec();
    let options = [
        "--suite",
        "covel-sse",
        "--scenario",
        "client-ends",
        "--time-scale",
        "0.1",
        "--format",
        "json",
    ];
    report(&client(&options, &command))
}

#[test]
fn the_example_clients_pass_and_are_short() {
    for (program, file) in [("node", "testee.mjs"), ("python3", "client.py")] {
        let report = played_to(program, file);
        assert_eq!(
            report["outcome"],
            "conformant",
            "{file}: {:?}",
            in_state(&report, "fail")
        );
        assert!(in_state(&report, "pass").len() > 10, "{report}");
    }
    let files = std::fs::read_dir(example(""))
        .unwrap()
        .map(|file| file.unwrap().path());
    let code = files.filter(|path| path.extension().is_some_and(|it| it == "mjs" || it == "py"));
    let mut known = 0;
    for path in code {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(str::trim);
        let count = lines
            .filter(|line| !(line.is_empty() || line.starts_with("//") || line.starts_with('#')))
            .count();
        assert!(count < 300, "{} has {count} lines of code", path.display());
        known += 1;
    }
    assert!(known > 10, "{known} files");
}

#[test]
fn the_naive_clients_fail_where_the_book_says() {
    for (program, file, results) in [
        ("node", "naive/client.mjs", "naive/javascript.json"),
        ("python3", "naive/client.py", "naive/python.json"),
    ] {
        let text = std::fs::read_to_string(example(results)).unwrap();
        let told: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
        let fails = in_state(&played_to(program, file), "fail");
        let untold: Vec<_> = fails.iter().filter(|id| !told.contains_key(*id)).collect();
        assert!(untold.is_empty(), "{file}: {untold:?} is not in {results}");
        let only_here = |id: &&String| {
            let entry = Catalogue::embedded().get(id);
            entry.is_some_and(|entry| entry.scenario == ["client-ends"])
        };
        let missing: Vec<_> = told
            .keys()
            .filter(only_here)
            .filter(|id| !fails.contains(*id))
            .collect();
        assert!(
            missing.is_empty(),
            "{file}: {missing:?} of {results} does not fail"
        );
    }
}
