//! What browsers and curious clients ask besides: preflights, heads, and methods that a path does not take.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::json;
use support::{chat, exchange};
use turnwire_mock::{MockConfig, MockServer, Outcome, Unmatched};

const PAGE: (&str, &str) = ("origin", "https://page.test");
const ON_PURPOSE: (&str, &str) = ("anthropic-dangerous-direct-browser-access", "true");

/// The paths that generate, one a service.
const PATHS: [&str; 5] = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
    "/v1beta/openai/chat/completions",
];

async fn mock() -> MockServer {
    MockServer::start(MockConfig {
        unmatched: Unmatched::text("Hello."),
        ..MockConfig::default()
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_browser_is_told_that_its_page_may_send_whatever_headers_its_sdk_has() {
    let mock = mock().await;
    let wanted = "authorization,content-type,x-api-key,x-stainless-os,x-stainless-retry-count";
    let asks = [
        PAGE,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", wanted),
    ];
    for path in PATHS {
        let got = exchange(mock.addr(), "OPTIONS", path, &asks, "").await;
        assert_eq!((got.status, got.text().as_str()), (200, ""), "{path}");
        let origin = got.header("access-control-allow-origin");
        assert!(["*", PAGE.1].contains(&origin), "{path}: {origin}");
        assert_eq!(got.header("access-control-allow-headers"), wanted, "{path}");
        let methods = got.header("access-control-allow-methods");
        assert!(
            methods.split(", ").any(|it| it == "POST"),
            "{path}: {methods}"
        );
    }
    let nowhere = exchange(mock.addr(), "OPTIONS", "/v1/nowhere", &asks, "").await;
    assert_eq!(nowhere.status, 404);
}

#[tokio::test]
async fn a_page_may_read_what_it_is_answered_also_an_error() {
    let mock = mock().await;
    for (body, status) in [(chat("Hi", false), 200), (json!({"model": 7}), 400)] {
        let with = [PAGE, ("authorization", "Bearer k")];
        let path = PATHS[0];
        let got = exchange(mock.addr(), "POST", path, &with, &body.to_string()).await;
        assert_eq!(got.status, status);
        assert_eq!(got.header("access-control-allow-origin"), "*");
    }
    let got = exchange(
        mock.addr(),
        "POST",
        PATHS[0],
        &[],
        &chat("Hi", false).to_string(),
    )
    .await;
    assert_eq!(
        got.header("access-control-allow-origin"),
        "",
        "no page asked"
    );
}

#[tokio::test]
async fn anthropic_answers_a_page_that_says_that_it_means_it_and_no_other() {
    let mock = mock().await;
    let body =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    let key = [
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
        PAGE,
    ];
    let got = exchange(mock.addr(), "POST", PATHS[2], &key, &body.to_string()).await;
    assert_eq!(got.status, 401);
    assert_eq!(got.json()["error"]["type"], "authentication_error");
    assert_eq!(got.header("access-control-allow-origin"), "");
    let on_purpose = [key[0], key[1], PAGE, ON_PURPOSE];
    let got = exchange(
        mock.addr(),
        "POST",
        PATHS[2],
        &on_purpose,
        &body.to_string(),
    )
    .await;
    assert_eq!(got.status, 200);
    assert_eq!(got.header("access-control-allow-origin"), "*");
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let mock = mock().await;
    // The reader of the tests would wait for the body that is announced.
    let with = [("authorization", "Bearer k"), ("connection", "close")];
    let get = exchange(mock.addr(), "GET", "/v1/models", &with, "").await;
    let head = exchange(mock.addr(), "HEAD", "/v1/models", &with, "").await;
    assert_eq!((head.status, head.text().as_str()), (200, ""));
    for name in ["content-type", "content-length"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    let entries = mock.journal();
    assert!(
        entries
            .iter()
            .all(|entry| entry.outcome == Outcome::Complete)
    );
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_answered_with_those_that_it_takes() {
    let mock = mock().await;
    for path in PATHS {
        let got = exchange(mock.addr(), "PUT", path, &[], "").await;
        let path = path.split('?').next().unwrap();
        assert_eq!(got.status, 405, "{path}");
        let allow = got.header("allow");
        assert!(allow.split(", ").any(|it| it == "POST"), "{path}: {allow}");
    }
    let got = exchange(mock.addr(), "OPTIONS", "/v1/models", &[], "").await;
    assert_eq!(
        (got.status, got.header("allow")),
        (200, "GET, HEAD, OPTIONS")
    );
}
