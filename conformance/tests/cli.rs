//! The real program: what it prints where, and how it ends.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test may panic as the test may"
)]

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A place of its own for a command: its folder, and its state.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnwire"));
        command
            .args(args)
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env_remove("TURNWIRE_LLM_BASE_URL")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended {
            code: status.code(),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }
}

fn turnwire(args: &[&str]) -> Ended {
    Place::new().run(args)
}

/// The command failed with this code and one line on standard error, which is given back.
#[track_caller]
fn fails(args: &[&str], code: i32) -> String {
    let ended = turnwire(args);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(code), ""),
        "{args:?}: {}",
        ended.stderr
    );
    let line = ended
        .stderr
        .strip_suffix('\n')
        .unwrap_or(&ended.stderr)
        .to_owned();
    assert!(!line.contains('\n'), "more than one line: {line}");
    line
}

#[test]
fn wrong_usage_is_one_line_with_the_nearest_name_and_ends_with_2() {
    let lines = [
        &["sever"][..],
        &[],
        &["server", "--sute", "covel-sse"],
        &["server", "--frobnicate"],
        &[
            "server",
            "--suite",
            "covel-see",
            "--url",
            "http://127.0.0.1:9",
        ],
        &["server", "--suite", "zzz", "--url", "http://127.0.0.1:9"],
        &[
            "server",
            "--suite",
            "chat-ws",
            "--url",
            "http://127.0.0.1:9",
        ],
        &[
            "server",
            "--requirement",
            "COV-SBU",
            "--url",
            "http://127.0.0.1:9",
        ],
        &[
            "server",
            "--requirement",
            "CWS-001",
            "--url",
            "http://127.0.0.1:9",
        ],
        &[
            "server",
            "--require",
            "COV-SBU-102",
            "--url",
            "http://127.0.0.1:9",
        ],
        &[
            "server",
            "--scenario",
            "tunr",
            "--url",
            "http://127.0.0.1:9",
        ],
        &["server", "--binds", "sever", "--url", "http://127.0.0.1:9"],
        &["server", "--time-scale", "0", "--url", "http://127.0.0.1:9"],
        &["server", "--jobs", "none", "--url", "http://127.0.0.1:9"],
        &["server", "--timeout", "-1", "--url", "http://127.0.0.1:9"],
        &["server", "--format", "jason", "--url", "http://127.0.0.1:9"],
        &[
            "server",
            "--url",
            "http://127.0.0.1:9",
            "--profile",
            "turnwire.toml",
        ],
        &["server", "--url", "ftp://127.0.0.1"],
        &["server", "--url", "127.0.0.1:9"],
        &["server"],
        &["server", "--profile", "nowhere.toml"],
        &["explain", "COV-SUB-1020"],
        &["explain", "COV-SUB"],
        &["explain"],
        &["list", "scenario"],
        &["list", "--suite", "sse"],
        &["serve", "--store", "postgres"],
        &["serve", "--tier", "free"],
        &["mock", "--script", "nowhere.yaml"],
        &["mock", "--port", "70000"],
        &["completions", "shell"],
    ];
    let mut said = String::new();
    for line in lines {
        said.push_str(&format!(
            "$ turnwire {}\n{}\n",
            line.join(" "),
            fails(line, 2)
        ));
    }
    insta::assert_snapshot!(said);
}

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

#[test]
fn a_run_leaves_its_result_in_every_form() {
    let place = Place::new();
    let args = ["demo", "--requirement", "COV-SUB-001", "--format", "json"];
    let files = [
        "--json",
        "a.json",
        "--junit",
        "a.xml",
        "--transcripts",
        "kept",
    ];
    let ended = place.run(&[&args[..], &files].concat());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&report["outcome"], &report["requirements"][0]["state"]),
        (&"conformant".into(), &"pass".into())
    );
    let kept = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&kept("a.json")).unwrap(),
        report
    );
    assert_eq!(
        serde_json::from_str::<Value>(&kept("kept/report.json")).unwrap(),
        report
    );
    assert!(
        kept("a.xml").contains("<testsuite name=\"covel-subscription\" tests=\"1\""),
        "{}",
        kept("a.xml")
    );
    for scenario in report["scenarios"].as_array().unwrap() {
        let text = kept(&format!(
            "kept/{}.twire",
            scenario["name"].as_str().unwrap()
        ));
        let transcript = turnwire::transcript::text::parse(&text).unwrap();
        assert_eq!(transcript.header.suite, "covel-sse");
        assert_eq!(turnwire::transcript::text::write(&transcript), text);
    }
    let explained = place.run(&["explain", "COV-SUB-001"]).stdout;
    assert!(explained.contains("pass on reference"), "{explained}");
}

#[test]
fn a_proof_is_kept_for_coverage_and_explain() {
    let place = Place::new();
    let ended = place.run(&[
        "prove",
        "--requirement",
        "COV-SUB-001",
        "--format",
        "json",
        "--json",
        "proof.json",
    ]);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let expected = serde_json::json!({"suites": {"covel-sse": {
        "requirements": 1, "observable": 1, "checked": 1, "proven": 1, "waived": 0, "open": [],
    }}});
    assert_eq!(
        serde_json::from_str::<Value>(&ended.stdout).unwrap(),
        expected
    );
    let ended = place.run(&[
        "coverage",
        "--requirement",
        "COV-SUB-001",
        "--format",
        "json",
    ]);
    assert_eq!(
        serde_json::from_str::<Value>(&ended.stdout).unwrap(),
        expected
    );
    let explained = place.run(&["explain", "COV-SUB-001"]).stdout;
    assert!(
        explained.contains("proven: green on a conformant peer, red on its saboteur"),
        "{explained}"
    );
    let details = std::fs::read_to_string(place.path().join("proof.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&details).unwrap()["requirements"][0]["proof"],
        "proven"
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_ends_soon_and_says_so() {
    let place = Place::new();
    let mut child = place
        .command(&["demo"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let begun = Instant::now();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "it took {:?}",
        begun.elapsed()
    );
    assert_eq!(
        (ended.status.code(), ended.stdout.len()),
        (Some(3), 0),
        "{rest}"
    );
    assert!(rest.ends_with("turnwire: interrupted\n"), "{rest}");
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

#[test]
fn a_malformed_profile_is_named_with_file_line_and_column() {
    let place = Place::new();
    let cases = [
        ("name = \"a\"\n[target\n", "turnwire.toml:2:"),
        (
            "[target]\nurl = \"http://127.0.0.1:9\"\ncomand = [\"x\"]\n",
            "turnwire.toml:3:1: unknown key",
        ),
        (
            "time_scale = \"fast\"\n[target]\nurl = \"http://127.0.0.1:9\"\n",
            "turnwire.toml:1:",
        ),
    ];
    for (text, start) in cases {
        std::fs::write(place.path().join("turnwire.toml"), text).unwrap();
        // Without a flag the profile of the folder counts.
        for args in [&["server"][..], &["server", "--profile", "turnwire.toml"]] {
            let ended = place.run(args);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
            assert!(
                ended.stderr.starts_with(&format!("turnwire: {start}")),
                "{}",
                ended.stderr
            );
        }
    }
}

#[test]
fn a_malformed_script_is_named_with_file_line_and_column() {
    let place = Place::new();
    std::fs::write(
        place.path().join("script.yaml"),
        "name: a\nrules:\n  - whne: {}\n",
    )
    .unwrap();
    let ended = place.run(&["mock", "--script", "script.yaml"]);
    assert_eq!(
        (ended.code, ended.stderr.lines().count()),
        (Some(2), 1),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.starts_with("turnwire: script.yaml:3:"),
        "{}",
        ended.stderr
    );
}

#[test]
fn files_that_cannot_be_written_are_known_before_the_run() {
    let line = fails(&["demo", "--json", "no/such/folder/report.json"], 2);
    assert!(
        line.starts_with("turnwire: cannot write no/such/folder/report.json"),
        "{line}"
    );
}

#[test]
fn help_goes_to_standard_output() {
    for command in [
        "",
        "demo",
        "server",
        "prove",
        "list",
        "explain",
        "coverage",
        "serve",
        "mock",
        "completions",
    ] {
        let args: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        let ended = turnwire(&args);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let name = if command.is_empty() { "help" } else { command };
        insta::assert_snapshot!(format!("help_{name}"), ended.stdout);
    }
}

#[test]
fn the_version_is_one_line() {
    let ended = turnwire(&["--version"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.stdout,
        format!("turnwire {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn lists_can_be_narrowed_and_read_by_machines() {
    let ended = turnwire(&["list", "--requirement", "COV-SUB-102", "--format", "json"]);
    let list: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(list["requirements"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["requirements"][0]["id"], "COV-SUB-102");
    let ended = turnwire(&["list", "suites", "--format", "json"]);
    let list: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(
        list["suites"]
            .as_array()
            .is_some_and(|suites| suites.iter().any(|suite| suite["name"] == "chat-ws"))
    );
    for what in ["scenarios", "areas", "requirements", "suites"] {
        let ended = turnwire(&["list", what, "--suite", "covel-sse"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.lines().count() > 1, "{}", ended.stdout);
    }
}

#[test]
fn an_explanation_quotes_its_source() {
    let ended = turnwire(&["explain", "COV-SUB-001"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    for words in [
        "Action frames hold data lines only",
        "  637 | ",
        "How it is checked",
        "never run here",
    ] {
        assert!(
            ended.stdout.contains(words),
            "{words} is missing:\n{}",
            ended.stdout
        );
    }
    let ended = turnwire(&["explain", "COV-SUB-001", "--format", "json"]);
    let explained: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(explained["quote"][0]["line"], 637);
}

#[test]
fn coverage_adds_up() {
    let ended = turnwire(&["coverage", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let coverage: Value = serde_json::from_str(&ended.stdout).unwrap();
    let suites = coverage["suites"].as_object().unwrap();
    assert!(suites.contains_key("covel-sse") && suites.contains_key("gemini"));
    for (name, counts) in suites {
        let count = |key: &str| counts[key].as_u64().unwrap();
        let open = counts["open"].as_array().unwrap().len() as u64;
        assert_eq!(
            count("proven") + count("waived") + open,
            count("requirements"),
            "{name}"
        );
        assert_eq!(count("proven"), 0, "nothing was proven in this place");
    }
    assert!(
        ended.stderr.contains("never proven here"),
        "{}",
        ended.stderr
    );
    let keys: Vec<&String> = suites["covel-sse"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "requirements",
            "observable",
            "checked",
            "proven",
            "waived",
            "open"
        ]
    );
}

#[test]
fn every_json_has_a_schema() {
    for command in ["demo", "server", "prove", "list", "coverage", "explain X"] {
        let args: Vec<&str> = command.split(' ').chain(["--schema"]).collect();
        let ended = turnwire(&args);
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), ""),
            "{command}"
        );
        let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{command}");
    }
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = turnwire(&["completions", shell]);
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.contains("coverage"), "{shell}");
    }
}

#[test]
fn a_closed_output_is_no_panic() {
    let place = Place::new();
    let mut child = place
        .command(&["list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn pipes_and_no_color_get_no_colours() {
    let place = Place::new();
    let ended = place
        .command(&["explain", "COV-SUB-001"])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(!ended.stdout.contains(&0x1b) && !ended.stderr.contains(&0x1b));
    assert!(
        !turnwire(&["explain", "COV-SUB-001"])
            .stdout
            .contains('\u{1b}')
    );
}
