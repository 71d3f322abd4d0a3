//! The control API says what is wrong with a request to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::json;
use support::{Reply, ask_text, exchange};
use turnwire_mock::{MockConfig, MockServer};

async fn call(mock: &MockServer, method: &str, path: &str, body: &str) -> Reply {
    ask_text(mock, method, path, body).await
}

#[tokio::test]
async fn a_script_above_the_limit_is_too_large_and_loads_nothing() {
    let config = MockConfig {
        max_body: 200,
        ..MockConfig::default()
    };
    let mock = MockServer::start(config).await.unwrap();
    let script = format!("rules: [{{reply: {{text: {}}}}}]", "a".repeat(300));
    let got = call(&mock, "POST", "/_turnwire/scripts", &script).await;
    assert_eq!(got.status, 413);
    let told = got.json()["error"].as_str().unwrap().to_owned();
    assert!(told.contains("larger than 200 bytes"), "{told}");
    assert!(mock.scripts().is_empty());
}

#[tokio::test]
async fn a_script_that_lost_its_lines_on_the_way_is_told_how_to_keep_them() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let load = async |kind: &str, script: &str| {
        let headers = [("content-type", kind)];
        let path = "/_turnwire/scripts";
        let got = exchange(mock.addr(), "POST", path, &headers, script).await;
        (got.status, got.text())
    };
    let (form, script) = (
        "application/x-www-form-urlencoded",
        "name: a\nrules:\n  - reply: {text: Hello.}\n",
    );
    let (status, told) = load(form, &script.replace('\n', "")).await;
    assert_eq!(status, 400);
    assert!(told.contains("use --data-binary"), "{told}");
    // What keeps its lines is right whatever its type, and what is wrong in itself says so alone.
    assert_eq!(load(form, script).await.0, 201);
    let (status, told) = load(form, "name: a\nrule: b\n").await;
    assert_eq!(status, 400);
    assert!(!told.contains("--data-binary"), "{told}");
    let (_, told) = load("application/yaml", "name: a rules: b").await;
    assert!(!told.contains("--data-binary"), "{told}");
}

#[tokio::test]
async fn another_method_is_told_which_there_are() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    for (method, path, allow) in [
        ("DELETE", "/_turnwire/health", "GET"),
        ("PUT", "/_turnwire/scripts", "GET, POST"),
        ("GET", "/_turnwire/scripts/3", "DELETE"),
        ("POST", "/_turnwire/journal", "GET, DELETE"),
        ("GET", "/_turnwire/gates/go", "POST, DELETE"),
        ("GET", "/_turnwire/reset", "POST"),
    ] {
        let got = call(&mock, method, path, "").await;
        assert_eq!(
            (got.status, got.header("allow")),
            (405, allow),
            "{method} {path}"
        );
        assert!(got.json()["error"].as_str().unwrap().contains(method));
    }
    for path in [
        "/_turnwire/nothing",
        "/_turnwire/gates",
        "/_turnwire/health/x",
    ] {
        assert_eq!(call(&mock, "GET", path, "").await.status, 404, "{path}");
    }
    assert!(
        mock.journal().is_empty(),
        "none of these is a request to a wire"
    );
}

#[tokio::test]
async fn a_number_that_is_none_is_told_so() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    for since in ["abc", "-1", "1.5", ""] {
        let path = format!("/_turnwire/journal?since={since}");
        let got = call(&mock, "GET", &path, "").await;
        assert_eq!(got.status, 400, "{since}");
    }
    let got = call(&mock, "GET", "/_turnwire/journal?since=0", "").await;
    assert_eq!((got.status, got.json()), (200, json!([])));
}

#[tokio::test]
async fn the_root_lists_the_paths_with_and_without_a_slash() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    for path in ["/_turnwire", "/_turnwire/"] {
        let got = call(&mock, "GET", path, "").await;
        assert_eq!(got.status, 200);
        assert_eq!(
            got.json()["paths"]["/_turnwire/gates/{name}"],
            "POST, DELETE"
        );
        assert_eq!(got.json()["paths"]["/_turnwire"], "GET");
    }
    assert!(mock.journal().is_empty());
    assert_eq!(call(&mock, "GET", "/_turnwirex", "").await.status, 404);
    assert_eq!(mock.journal().len(), 1, "that is another path");
}
