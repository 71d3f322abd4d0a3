//! `turnwire mock` and `turnwire mock record`, as programs.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    servers::Served,
    support::{fails, turnwire},
};

const WIRES: [&str; 5] = [
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "gemini",
    "gemini-openai",
];

/// The address in a URL.
fn address(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split('/').next().unwrap()
}

fn send(url: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let address = address(url);
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// The whole answer.
fn ask(url: &str, path: &str, headers: &str, body: &str) -> String {
    let mut answer = String::new();
    send(url, path, headers, body)
        .read_to_string(&mut answer)
        .unwrap();
    answer
}

const CHAT: &str = "/v1/chat/completions";

fn chat(text: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#)
}

#[test]
fn the_mock_without_a_script_passes_as_a_provider_of_every_wire() {
    let mock = Served::start(&["mock"]);
    let url = format!("http://{}", address(&mock.url));
    for wire in WIRES {
        let ended = turnwire(&["provider", "--url", &url, "--wire", wire, "--quiet"]);
        assert_eq!(
            ended.code,
            Some(0),
            "{wire}: {}{}",
            ended.stdout,
            ended.stderr
        );
    }
}

#[test]
fn a_key_is_asked_for_in_the_words_of_each_service() {
    let mock = Served::start(&["mock", "--key", "right", "--key", "other"]);
    let contents = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    let messages = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    let input = r#"{"model":"m","input":"hi"}"#;
    let chat = chat("hi");
    let version = "anthropic-version: 2023-06-01\r\n";
    for (path, header, body, refused) in [
        (
            CHAT,
            "authorization: Bearer ",
            chat.as_str(),
            "invalid_api_key",
        ),
        (
            "/v1/responses",
            "authorization: Bearer ",
            input,
            "invalid_api_key",
        ),
        (
            "/v1/messages",
            "x-api-key: ",
            messages,
            "authentication_error",
        ),
        (
            "/v1beta/models/m:generateContent",
            "x-goog-api-key: ",
            contents,
            "API_KEY_INVALID",
        ),
        (
            "/v1beta/openai/chat/completions",
            "authorization: Bearer ",
            chat.as_str(),
            "API key not valid",
        ),
    ] {
        let extra = if path.contains("messages") {
            version
        } else {
            ""
        };
        let with = |key: &str| ask(&mock.url, path, &format!("{extra}{header}{key}\r\n"), body);
        for key in ["right", "other"] {
            let answer = with(key);
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        let answer = with("wrong");
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
        assert!(answer.contains(refused), "{path}: {answer}");
        let without = ask(&mock.url, path, extra, body);
        assert!(without.starts_with("HTTP/1.1 4"), "{path}: {without}");
    }
}

#[test]
fn what_breaks_the_rules_is_refused_or_noted_or_nothing() {
    // A temperature that no service takes.
    let body = r#"{"model":"m","temperature":9,"messages":[{"role":"user","content":"hi"}]}"#;
    let key = "authorization: Bearer k\r\n";
    for (verify, status, noted) in [
        ("strict", "HTTP/1.1 400", true),
        ("note", "HTTP/1.1 200", true),
        ("off", "HTTP/1.1 200", false),
    ] {
        let mock = Served::start(&["mock", "--reply", "Hello.", "--verify", verify]);
        let answer = ask(&mock.url, CHAT, key, body);
        assert!(answer.starts_with(status), "{verify}: {answer}");
        let mut journal = String::new();
        let mut stream = TcpStream::connect(address(&mock.url)).unwrap();
        stream
            .write_all(b"GET /_turnwire/journal HTTP/1.1\r\nhost: m\r\nconnection: close\r\n\r\n")
            .unwrap();
        stream.read_to_string(&mut journal).unwrap();
        assert_eq!(journal.contains("LLM-REQ-"), noted, "{verify}: {journal}");
    }
}

#[test]
fn the_list_of_models_can_be_said() {
    let mock = Served::start(&["mock", "--models", "small,large", "--models", "third"]);
    let answer = mock.request("GET", "/models", "");
    for name in ["small", "large", "third"] {
        assert!(answer.contains(&format!("\"{name}\"")), "{answer}");
    }
    assert!(!answer.contains("mock-model"), "{answer}");
}

#[test]
fn a_second_interrupt_ends_replies_that_still_run() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "rules: [{reply: {text: a b, faults: {stalls: [{after: {events: 1}, never: true}]}}}]";
    std::fs::write(folder.path().join("s.yaml"), script).unwrap();
    let mock = Served::start_in(folder, &["mock", "--script", "s.yaml"]);
    let body = chat("hi").replace("{\"model\"", "{\"stream\":true,\"model\"");
    let mut stream = send(&mock.url, CHAT, "authorization: Bearer k\r\n", &body);
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    mock.signal(Signal::INT);
    // The second counts once the first was heard: then nobody is let in any more.
    while TcpStream::connect(address(&mock.url)).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    mock.signal(Signal::INT);
    let (code, _, said, _) = mock.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("replies are still running"), "{said}");
    assert!(said.ends_with("ended at once\n"), "{said}");
}

#[test]
fn a_service_is_recorded_into_a_script_without_secrets_and_played_back() {
    const KEY: &str = "sk-live-0123456789abcdef";
    let service = Served::start(&["mock", "--reply", "Hello from the service."]);
    let upstream = format!("http://{}", address(&service.url));
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "mock",
        "record",
        "--upstream",
        &upstream,
        "--out",
        "kept.yaml",
    ];
    let recorder = Served::start_in(folder, &args);
    let key = format!("authorization: Bearer {KEY}\r\n");
    let first = ask(
        &recorder.url,
        CHAT,
        &key,
        &chat(&format!("my key is {KEY}")),
    );
    assert!(first.contains("Hello from the service."), "{first}");
    recorder.signal(Signal::INT);
    let (code, _, said, folder) = recorder.end();
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "POST /v1/chat/completions: 200, ",
        "kept.yaml: 1 rules, 1 replies",
        "left out or replaced, 2 times: header authorization",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let script = folder.path().join("kept.yaml");
    let text = std::fs::read_to_string(&script).unwrap();
    assert!(!text.contains(KEY) && text.contains("rules:"), "{text}");

    let again = fails(
        &[
            "mock",
            "record",
            "--upstream",
            &upstream,
            "--out",
            script.to_str().unwrap(),
        ],
        2,
    );
    assert!(again.contains("--overwrite"), "{again}");

    let player = Served::start_in(folder, &["mock", "--script", "kept.yaml"]);
    let played = ask(
        &player.url,
        CHAT,
        "authorization: Bearer other\r\n",
        &chat("my key is another"),
    );
    assert!(played.contains("Hello from the service."), "{played}");
}

#[test]
fn a_script_with_nothing_in_it_is_refused_without_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("empty.yaml");
    std::fs::write(&script, "# later\n").unwrap();
    let told = fails(&["mock", "--script", script.to_str().unwrap()], 2);
    assert!(
        told.ends_with("empty.yaml: there is nothing in it; a script has `rules`"),
        "{told}"
    );
}

#[test]
fn a_recorder_that_cannot_start_says_why_in_one_line() {
    let base = ["mock", "record", "--out", "never.yaml", "--upstream"];
    let with = |more: &[&'static str]| fails(&[&base[..], more].concat(), 2);
    assert!(with(&["ftp://x"]).contains("no http or https URL"));
    assert!(with(&["https://h", "--tls", "none.pem"]).contains("cannot read none.pem"));
}

#[test]
fn the_help_names_the_first_script_and_how_to_record() {
    let help = turnwire(&["mock", "--help"]).stdout;
    assert!(
        help.contains("mock-providers/examples/weather.yaml"),
        "{help}"
    );
    assert!(help.contains("turnwire mock record --upstream"), "{help}");
    let help = turnwire(&["mock", "record", "--help"]).stdout;
    assert!(
        help.contains("--overwrite") && help.contains("Example:"),
        "{help}"
    );
}
