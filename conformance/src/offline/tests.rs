//! Files judged offline, the good and the edited.

use std::{fs, path::Path};

use serde_json::json;
use turnwire_spec::catalogue;

use super::{Checked, Source, check, detect, detect::keep_only, file::read, load};
use crate::{
    profile::Profile,
    report::{Outcome, Report, State},
    suites,
};

fn source(name: &str, bytes: &[u8]) -> Source {
    read(name, bytes).unwrap()
}

fn checked(sources: Vec<Source>, required: &[&str]) -> Report {
    let suite = suites::find("covel-sse").unwrap();
    let asked = Checked {
        suite,
        requirements: suite.entries(None).collect(),
        required: required.to_vec(),
        profile: &Profile::reference(),
        rerun: "turnwire check --requirement {id}".to_owned(),
        revision: None,
        strict: false,
    };
    check(&asked, sources)
}

fn stream(frames: &str) -> Vec<u8> {
    json!({ "log": { "entries": [
        {
            "startedDateTime": "2026-07-26T12:00:00Z", "time": 1,
            "request": { "method": "GET", "url": "http://localhost/logo.png", "headers": [] },
            "response": { "status": 200, "headers": [], "content": { "mimeType": "image/png" } },
        },
        {
            "startedDateTime": "2026-07-26T12:00:01Z", "time": 5,
            "request": { "method": "GET", "url": "http://localhost/api/events/stream?sessionId=s1", "headers": [] },
            "response": {
                "status": 200,
                "headers": [{ "name": "content-type", "value": "text/event-stream" }],
                "content": { "mimeType": "text/event-stream", "text": frames },
            },
        },
    ] } })
    .to_string()
    .into_bytes()
}

const GOOD: &str = "event: system.connected\ndata: {\"sessionId\":\"s1\",\"topics\":\"all\",\"cursor\":\"e2:4\",\"timestamp\":\"2026-07-26T12:00:01.000Z\"}\n\nevent: system.heartbeat\ndata: {\"timestamp\":\"2026-07-26T12:00:31.000Z\"}\n\n";

#[test]
fn an_edited_frame_of_a_har_file_fails_and_is_named() {
    let report = checked(vec![source("capture.har", &stream(GOOD))], &[]);
    assert_eq!(
        report.outcome,
        Outcome::Conformant,
        "{:?}",
        report.requirements
    );
    let edited = GOOD.replace("heartbeat\n", "heartbeat\nid: e2:9\n");
    let report = checked(vec![source("capture.har", &stream(&edited))], &[]);
    assert_eq!(report.outcome, Outcome::NotConformant);
    let failed: Vec<_> = report
        .requirements
        .iter()
        .filter(|requirement| requirement.state == State::Fail)
        .collect();
    assert!(!failed.is_empty());
    for requirement in failed {
        let evidence = &requirement.evidence[0];
        assert_eq!(evidence.scenario, "capture.har", "{}", requirement.id);
        assert_eq!(evidence.exchange, Some(2), "{}", requirement.id);
        assert_eq!(evidence.frame, Some(1), "{}", requirement.id);
    }
}

#[test]
fn a_report_shows_no_secret_that_the_file_has_elsewhere() {
    let text = "> GET /api/events/stream?sessionId=s1&session_token=of-the-query-1\n< 200\n\
                < event: of-the-query-1\n< data: {}\n<\nend broken of-the-query-1\n";
    let report = checked(vec![source("capture.twire", text.as_bytes())], &[]);
    assert_eq!(report.outcome, Outcome::NotConformant);
    let json = serde_json::to_string(&report).unwrap();
    assert!(!json.contains("of-the-query-1"), "{json}");
    assert!(json.contains("{{secret-1}}"), "{json}");
}

#[test]
fn what_does_not_belong_to_the_protocol_is_left_out_of_a_har_file() {
    let mut source = source("capture.har", &stream(GOOD));
    assert_eq!(detect(&source.transcript), Some(catalogue::Suite::CovelSse));
    let left_out = keep_only(catalogue::Suite::CovelSse, &mut source.transcript);
    assert_eq!(left_out, 1);
    assert_eq!(detect(&source.transcript), Some(catalogue::Suite::CovelSse));
}

#[test]
fn nothing_that_needs_the_times_is_judged_where_they_are_lost() {
    let report = checked(vec![source("capture.har", &stream(GOOD))], &["COV-SUB-018"]);
    let heartbeat = report.requirement("COV-SUB-018").unwrap();
    assert_eq!(heartbeat.state, State::NotExercised);
    assert!(heartbeat.red);
    let why = heartbeat.why.as_deref().unwrap_or_default();
    assert!(why.contains("when the pieces"), "{why}");
}

#[test]
fn a_file_that_shows_nothing_is_not_conformant() {
    let report = checked(
        vec![source("empty.twire", b"twire 1\nsuite: covel-sse\n")],
        &[],
    );
    assert_eq!(report.outcome, Outcome::NothingExercised);
    assert_eq!(report.totals.pass, 0);
}

#[test]
fn suites_are_told_by_paths_and_messages() {
    let suite = |text: &str| detect(&source("a.twire", text.as_bytes()).transcript);
    assert_eq!(
        suite("> GET /api/health\n"),
        Some(catalogue::Suite::CovelSse)
    );
    assert_eq!(
        suite("> POST /v1/chat/completions\n"),
        Some(catalogue::Suite::OpenaiChat)
    );
    assert_eq!(
        suite("> POST /v1/messages\n"),
        Some(catalogue::Suite::AnthropicMessages)
    );
    assert_eq!(
        suite("> POST /v1/responses\n"),
        Some(catalogue::Suite::OpenaiResponses)
    );
    assert_eq!(
        suite("> POST /v1beta/models/m:streamGenerateContent?alt=sse\n"),
        Some(catalogue::Suite::Gemini)
    );
    assert_eq!(
        suite(">1$ {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n"),
        Some(catalogue::Suite::SessionUpdate)
    );
    assert_eq!(
        suite(">1$ {\"kind\":\"request\",\"request_id\":\"r-1\",\"method\":\"ping\"}\n"),
        Some(catalogue::Suite::SessionUpdate)
    );
    assert_eq!(
        suite("suite: gemini\n\n> GET /api/health\n"),
        Some(catalogue::Suite::Gemini)
    );
    assert_eq!(suite("> GET /\n"), None);
}

#[test]
fn a_bad_file_is_told_with_its_place() {
    let error = |bytes: &[u8]| read("x", bytes).unwrap_err().to_string();
    assert_eq!(
        error(b"twire 1\nlabel a\nlable b\n")
            .split(':')
            .take(3)
            .collect::<Vec<_>>(),
        ["x", "3", "1"]
    );
    assert_eq!(
        error(b"twire 1\n\xff"),
        "x:2: expected text in UTF-8, got the byte 0xff"
    );
    assert!(
        error(b"{\"log\": 1}").starts_with("x: log: expected an object"),
        "{}",
        error(b"{\"log\": 1}")
    );
}

#[test]
fn every_golden_file_can_be_checked() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../golden/covel-sse");
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        sources.push(super::load(&path).unwrap());
    }
    let report = checked(sources, &[]);
    let failed: Vec<_> = report
        .requirements
        .iter()
        .filter(|r| r.state == State::Fail)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(report.totals.pass >= 30);
}

#[test]
fn a_recording_of_a_client_is_not_judged_as_if_the_scripted_server_were_under_test() {
    let suite = suites::find("chat-ws").unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/chat-ws");
    let recorded = load(&folder.join("client-screen.twire")).unwrap();
    let checked = |source: Source| {
        let asked = Checked {
            suite,
            requirements: suite.entries(None).collect(),
            required: Vec::new(),
            profile: &Profile::reference(),
            rerun: String::new(),
            revision: None,
            strict: false,
        };
        check(&asked, vec![source]).outcome
    };
    assert_eq!(checked(recorded.clone()), Outcome::Conformant);
    // Without the scenario's name nobody knows who was under test.
    let mut unnamed = recorded;
    unnamed.transcript.header.scenario.clear();
    assert_eq!(checked(unnamed), Outcome::NotConformant);
}
