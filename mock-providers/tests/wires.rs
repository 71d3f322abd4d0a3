//! Every wire over real sockets: one answer, as each service would send it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::{Value, json};
use support::{Reply as Got, exchange};
use turnwire_mock::script::{Done, Escape, Failure, LineEnd, Part, RetryAfterForm};
use turnwire_mock::{
    Call, ErrorForm, ErrorReply, Finish, Framing, MockConfig, MockServer, Reasoning, Reply, Rule,
    Script, Usage, Variation, When, Wire,
};

async fn mock(script: impl Into<Script>) -> MockServer {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.load(script);
    mock
}

/// The path and the body of a request with one user message.
fn request(wire: Wire, text: &str, stream: bool) -> (&'static str, Value) {
    let messages = json!([{"role": "user", "content": text}]);
    match wire {
        Wire::OpenaiChat => (
            "/v1/chat/completions",
            json!({"model": "mock-model", "messages": messages, "stream": stream}),
        ),
        Wire::GeminiOpenai => (
            "/v1beta/openai/chat/completions",
            json!({"model": "gemini-3-pro", "messages": messages, "stream": stream}),
        ),
        Wire::OpenaiResponses => (
            "/v1/responses",
            json!({"model": "mock-model", "input": text, "stream": stream}),
        ),
        Wire::AnthropicMessages => (
            "/v1/messages",
            json!({"model": "mock-model", "max_tokens": 99, "messages": messages, "stream": stream}),
        ),
        Wire::Gemini => (
            if stream {
                "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
            } else {
                "/v1/models/gemini-3-pro:generateContent"
            },
            json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        ),
    }
}

const ANTHROPIC: &[(&str, &str)] = &[("anthropic-version", "2023-06-01"), ("x-api-key", "k")];
const GOOGLE: &[(&str, &str)] = &[("x-goog-api-key", "k")];
const BEARER: &[(&str, &str)] = &[("authorization", "Bearer k")];

const fn headers(wire: Wire) -> &'static [(&'static str, &'static str)] {
    match wire {
        Wire::AnthropicMessages => ANTHROPIC,
        Wire::Gemini => GOOGLE,
        _ => BEARER,
    }
}

async fn ask(mock: &MockServer, wire: Wire, text: &str, stream: bool) -> Got {
    let (path, body) = request(wire, text, stream);
    exchange(mock.addr(), "POST", path, headers(wire), &body.to_string()).await
}

/// Thinking, text, two calls and numbers.
fn rich() -> Reply {
    let usage = Usage {
        input: 30,
        output: 20,
        cached: 8,
        cache_write: 4,
        reasoning: 5,
        total: None,
    };
    Reply::new()
        .reasoning("Two tools.")
        .say("Let me see.")
        .interleaved_calls([
            Call::new("weather", json!({"city": "Zürich"})).pieces(["{\"city\":", "\"Zürich\"}"]),
            Call::new("now", json!({})),
        ])
        .usage(usage)
}

#[tokio::test]
async fn every_wire_streams_the_same_answer_in_its_own_form() {
    let mock = mock(Rule::new("rich").reply(rich())).await;
    for wire in Wire::ALL {
        let got = ask(&mock, wire, "go", true).await;
        assert_eq!(got.status, 200, "{wire}");
        assert!(
            got.header("content-type").starts_with("text/event-stream"),
            "{wire}"
        );
        insta::assert_snapshot!(format!("stream_{wire}"), got.text().replace('\r', "␍"));
    }
}

#[tokio::test]
async fn every_wire_answers_the_same_in_one_object() {
    let mock = mock(Rule::new("rich").reply(rich())).await;
    for wire in Wire::ALL {
        let got = ask(&mock, wire, "go", false).await;
        assert_eq!(got.status, 200, "{wire}");
        assert_eq!(got.header("content-type"), "application/json");
        insta::assert_json_snapshot!(format!("plain_{wire}"), got.json());
    }
}

#[tokio::test]
async fn gemini_streams_an_array_without_alt_sse() {
    let mock = mock(Rule::new("r").reply(Reply::text("Hi there.").without_usage())).await;
    let (_, body) = request(Wire::Gemini, "go", true);
    let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";
    let got = exchange(mock.addr(), "POST", path, GOOGLE, &body.to_string()).await;
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.json().as_array().map(Vec::len), Some(3));
    assert!(got.text().contains("}\n,\r\n{"), "{}", got.text());
}

#[tokio::test]
async fn thinking_is_signed_encrypted_or_open() {
    let reasoning = Reasoning {
        text: vec!["One.".into(), "Two.".into()],
        encrypted: Some("c2VjcmV0".into()),
        ..Reasoning::default()
    };
    let open = Reasoning {
        open: true,
        ..Reasoning::from("Open.")
    };
    let omitted = Reasoning {
        omitted: true,
        ..Reasoning::from("Hidden.")
    };
    let reply = Reply::new()
        .reasoning(reasoning)
        .reasoning(open)
        .reasoning(omitted)
        .say("Done.");
    let mock = mock(Rule::new("r").reply(reply.without_usage())).await;
    for wire in [Wire::OpenaiResponses, Wire::AnthropicMessages] {
        let got = ask(&mock, wire, "go", true).await;
        insta::assert_snapshot!(format!("thinking_{wire}"), got.text());
    }
}

#[tokio::test]
async fn every_finish_has_its_word_on_every_wire() {
    let finishes = [
        Finish::Stop,
        Finish::Length,
        Finish::Calls,
        Finish::Filter,
        Finish::Refusal,
        Finish::StopSequence("END".into()),
        Finish::Pause,
        Finish::Context,
        Finish::PromptBlocked("SAFETY".into()),
        Finish::Word("sparkle".into()),
        Finish::Absent,
    ];
    let mut rule = Rule::new("finish");
    for finish in &finishes {
        rule = rule.reply(Reply::text("x").finish(finish.clone()));
    }
    let mut table = String::new();
    for wire in Wire::ALL {
        let mock = mock(rule.clone()).await;
        for finish in &finishes {
            let body = ask(&mock, wire, "go", false).await.json();
            let said = match wire {
                Wire::OpenaiChat | Wire::GeminiOpenai => &body["choices"][0]["finish_reason"],
                Wire::OpenaiResponses => match &body["incomplete_details"]["reason"] {
                    Value::Null => &body["status"],
                    reason => reason,
                },
                Wire::AnthropicMessages => &body["stop_reason"],
                Wire::Gemini if body["promptFeedback"].is_object() => {
                    &body["promptFeedback"]["blockReason"]
                }
                Wire::Gemini => &body["candidates"][0]["finishReason"],
            };
            table.push_str(&format!("{wire}: {finish:?} -> {said}\n"));
        }
    }
    insta::assert_snapshot!("finishes", table);
}

#[tokio::test]
async fn a_refusal_is_said_in_the_wires_own_way() {
    let mock = mock(Rule::new("r").reply(Reply::new().refusal("I can't.").without_usage())).await;
    let mut all = String::new();
    for wire in Wire::ALL {
        all.push_str(&format!(
            "{wire}: {}\n",
            ask(&mock, wire, "go", false).await.text()
        ));
    }
    insta::assert_snapshot!("refusals", all);
}

#[tokio::test]
async fn every_status_has_the_services_error() {
    let statuses = [
        400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529,
    ];
    let mut table = String::new();
    for wire in Wire::ALL {
        let mock = MockServer::start(MockConfig::default()).await.unwrap();
        let mut rule = Rule::new("errors");
        for status in statuses {
            rule = rule.reply(ErrorReply::new(status).retry_after(2.5));
        }
        mock.push(rule);
        for status in statuses {
            let got = ask(&mock, wire, "go", true).await;
            assert_eq!(got.status, status);
            let retry = got.header("retry-after").to_owned();
            table.push_str(&format!("{wire} {status} [{retry}] {}\n", got.text()));
        }
    }
    insta::assert_snapshot!("errors", table);
}

#[tokio::test]
async fn a_wait_is_said_in_every_form() {
    let forms = [
        RetryAfterForm::DateIn(3),
        RetryAfterForm::Millis(1500),
        RetryAfterForm::Literal("soon".into()),
    ];
    let mut rule = Rule::new("wait");
    for form in forms {
        rule = rule.reply(ErrorReply::new(429).retry_after_as(form));
    }
    let mock = mock(rule).await;
    let date = ask(&mock, Wire::OpenaiChat, "go", false).await;
    assert!(date.header("retry-after").ends_with(" GMT"));
    assert_eq!(date.header("x-ratelimit-remaining-requests"), "0");
    let millis = ask(&mock, Wire::AnthropicMessages, "go", false).await;
    assert_eq!(
        (
            millis.header("retry-after-ms"),
            millis.header("retry-after")
        ),
        ("1500", "")
    );
    assert_eq!(
        millis.header("anthropic-ratelimit-requests-reset"),
        "2026-01-01T00:01:00Z"
    );
    assert_eq!(
        ask(&mock, Wire::Gemini, "go", false)
            .await
            .header("retry-after"),
        "soon"
    );
}

#[tokio::test]
async fn errors_come_in_foreign_forms_too() {
    let forms = [
        ErrorForm::Object,
        ErrorForm::String,
        ErrorForm::NumericCode,
        ErrorForm::Vllm,
        ErrorForm::OpenRouter,
        ErrorForm::Google,
        ErrorForm::GoogleArray,
        ErrorForm::Typed,
        ErrorForm::Flat,
        ErrorForm::Detail,
        ErrorForm::Message,
        ErrorForm::BaseResp,
        ErrorForm::Html,
        ErrorForm::Empty,
    ];
    let mut rule = Rule::new("forms");
    for form in forms {
        rule = rule.reply(ErrorReply::new(503).message("Too busy.").form(form));
    }
    let mock = mock(rule).await;
    let mut table = String::new();
    for form in forms {
        let got = ask(&mock, Wire::OpenaiChat, "go", false).await;
        table.push_str(&format!(
            "{form:?} {} {}\n",
            got.header("content-type"),
            got.text()
        ));
    }
    insta::assert_snapshot!("error_forms", table);
}

#[tokio::test]
async fn an_error_in_the_middle_ends_the_stream_in_the_wires_own_way() {
    let reply = Reply::text("Hi")
        .then_error(ErrorReply::new(529))
        .say("never");
    let mut all = String::new();
    for wire in Wire::ALL {
        let mock = mock(Rule::new("r").reply(reply.clone().without_usage())).await;
        let got = ask(&mock, wire, "go", true).await;
        assert!(got.complete && !got.text().contains("never"), "{wire}");
        let last: Vec<_> = got
            .text()
            .lines()
            .rev()
            .take(9)
            .map(str::to_owned)
            .collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        all.push_str(&format!("== {wire}\n{}\n", last.join("\n")));
        let plain = ask(&mock, wire, "go", false).await;
        assert_eq!(
            plain.status, 529,
            "{wire}: plain, the error takes the answer's place"
        );
    }
    insta::assert_snapshot!("errors_in_streams", all);
}

#[tokio::test]
async fn a_responses_stream_fails_in_three_ways() {
    let reply = |failure| {
        let variation = Variation {
            failure,
            ..Variation::default()
        };
        Reply::text("Hi")
            .then_error(ErrorReply::new(429))
            .variation(variation)
    };
    let mock = mock(
        Rule::new("r")
            .reply(reply(Failure::Both))
            .reply(reply(Failure::ErrorOnly))
            .reply(reply(Failure::FailedOnly)),
    )
    .await;
    for expected in [
        &["error", "response.failed"][..],
        &["error"],
        &["response.failed"],
    ] {
        let got = ask(&mock, Wire::OpenaiResponses, "go", true).await;
        let kinds: Vec<String> = got
            .events()
            .iter()
            .filter_map(|event| event["type"].as_str())
            .filter(|kind| ["error", "response.failed"].contains(kind))
            .map(str::to_owned)
            .collect();
        assert_eq!(kinds, expected);
        let numbers: Vec<_> = got
            .events()
            .iter()
            .map(|event| event["sequence_number"].as_u64())
            .collect();
        let expected: Vec<_> = (0..numbers.len() as u64).map(Some).collect();
        assert_eq!(numbers, expected, "numbers have no gaps");
    }
}

#[tokio::test]
async fn framing_and_gzip_change_nothing_but_the_bytes() {
    let framing = Framing {
        line_end: Some(LineEnd::CrLf),
        bom: true,
        escape: Escape::SplitSurrogates,
        done: Some(Done::Absent),
        ..Framing::default()
    };
    let reply = Reply::text("a🚀b")
        .framing(framing)
        .part(Part::Pause(Default::default()));
    let mock = mock(Rule::new("r").reply(reply)).await;
    let mut all = String::new();
    for wire in Wire::ALL {
        let text = ask(&mock, wire, "go", true).await.text();
        assert!(
            text.starts_with('\u{feff}') && text.contains("\r\n"),
            "{wire}"
        );
        assert!(
            text.contains("a\\ud83d\"") && text.contains("\"\\ude80b\""),
            "{wire}"
        );
        all.push_str(&text);
    }
    assert!(!all.contains("[DONE]") && !all.contains("message_stop"));
    assert!(!all.contains("response.completed"));
}

#[tokio::test]
async fn tokens_are_counted() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let post = async |path: &str, wire, body: Value| {
        exchange(mock.addr(), "POST", path, headers(wire), &body.to_string())
            .await
            .json()
    };
    let messages = json!([{"role": "user", "content": "12345678"}]);
    let body = json!({"model": "m", "messages": messages});
    let count = post("/v1/messages/count_tokens", Wire::AnthropicMessages, body).await;
    assert_eq!(count, json!({"input_tokens": 2}));
    let body = json!({"model": "m", "input": "12345678"});
    let count = post("/v1/responses/input_tokens", Wire::OpenaiResponses, body).await;
    assert_eq!(count["input_tokens"], 2);
    let contents = json!([{"role": "user", "parts": [{"text": "12345678"}]}]);
    let wrapped = json!({"generateContentRequest": {"contents": contents}});
    for body in [json!({"contents": contents}), wrapped] {
        let count = post("/v1beta/models/m:countTokens", Wire::Gemini, body).await;
        assert_eq!(count["totalTokens"], 2);
    }
}

#[tokio::test]
async fn models_are_listed_in_three_forms_and_paged() {
    let models = ["a", "b", "c"].map(str::to_owned).to_vec();
    let config = MockConfig {
        models,
        ..MockConfig::default()
    };
    let mock = MockServer::start(config).await.unwrap();
    let get = async |path: &str, wire| {
        exchange(mock.addr(), "GET", path, headers(wire), "")
            .await
            .json()
    };
    let ids = |list: &Value, member: &str| -> Vec<String> {
        let list = list.as_array().unwrap();
        list.iter()
            .map(|model| model[member].as_str().unwrap().to_owned())
            .collect()
    };
    let list = get("/v1/models", Wire::OpenaiChat).await;
    assert_eq!(ids(&list["data"], "id"), ["a", "b", "c"]);
    let list = get("/v1beta/openai/models", Wire::GeminiOpenai).await;
    assert_eq!(
        ids(&list["data"], "id"),
        ["models/a", "models/b", "models/c"]
    );
    let page = get("/v1/models?limit=2", Wire::AnthropicMessages).await;
    assert_eq!(
        (ids(&page["data"], "id"), &page["has_more"]),
        (vec!["a".into(), "b".into()], &json!(true))
    );
    let page = get("/v1/models?limit=2&after_id=b", Wire::AnthropicMessages).await;
    assert_eq!(
        (ids(&page["data"], "id"), &page["has_more"]),
        (vec!["c".into()], &json!(false))
    );
    let page = get("/v1beta/models?pageSize=2", Wire::Gemini).await;
    assert_eq!(ids(&page["models"], "name"), ["models/a", "models/b"]);
    let next = format!(
        "/v1beta/models?pageSize=2&pageToken={}",
        page["nextPageToken"].as_str().unwrap()
    );
    assert_eq!(
        ids(&get(&next, Wire::Gemini).await["models"], "name"),
        ["models/c"]
    );
    assert_eq!(
        get("/v1beta/models/b", Wire::Gemini).await["name"],
        "models/b"
    );
    assert_eq!(
        get("/v1/models/x", Wire::AnthropicMessages).await["error"]["type"],
        "not_found_error"
    );
}

#[tokio::test]
async fn a_script_answers_for_paths_without_a_model_when_it_names_them() {
    let mock = mock(
        Rule::new("down")
            .when(When::new().path("/v1/models"))
            .reply(ErrorReply::new(503))
            .once(),
    )
    .await;
    let get = async || {
        exchange(mock.addr(), "GET", "/v1/models", BEARER, "")
            .await
            .status
    };
    assert_eq!((get().await, get().await), (503, 200));
}

#[tokio::test]
async fn responses_are_stored_and_continued() {
    let mock = mock(
        Script::new("s")
            .rule(
                Rule::new("second")
                    .when(When::new().turn(1))
                    .reply("Second."),
            )
            .rule(Rule::new("first").reply("First.")),
    )
    .await;
    let send = async |method: &str, path: &str, body: Value| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        exchange(mock.addr(), method, path, BEARER, &body).await
    };
    let text = |got: &Got| got.json()["output"][0]["content"][0]["text"].clone();
    let first = send("POST", "/v1/responses", json!({"model": "m", "input": "a"})).await;
    assert_eq!(text(&first), "First.");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let next = json!({"model": "m", "input": "b", "previous_response_id": id});
    let second = send("POST", "/v1/responses", next.clone()).await;
    assert_eq!(text(&second), "Second.");
    let path = format!("/v1/responses/{id}");
    assert_eq!(send("GET", &path, Value::Null).await.json(), first.json());
    let items = send("GET", &format!("{path}/input_items"), Value::Null)
        .await
        .json();
    assert_eq!(items["data"][0]["content"][0]["text"], "a");
    assert_eq!(
        send("DELETE", &path, Value::Null).await.json()["deleted"],
        true
    );
    assert_eq!(send("GET", &path, Value::Null).await.status, 404);
    let reference = json!({"type": "item_reference", "id": second.json()["output"][0]["id"]});
    let user = json!({"role": "user", "content": "c"});
    let by_id = json!({"model": "m", "input": [user, reference, user]});
    assert_eq!(text(&send("POST", "/v1/responses", by_id).await), "Second.");
    let nowhere = json!({"model": "m", "input": [{"type": "item_reference", "id": "msg_no"}]});
    assert_eq!(send("POST", "/v1/responses", nowhere).await.status, 404);
    let gone = send("POST", "/v1/responses", next).await;
    assert_eq!(gone.json()["error"]["code"], "previous_response_not_found");
}

#[tokio::test]
async fn a_background_stream_is_resumed_after_a_number() {
    let mock = mock(Rule::new("r").reply("One two three.")).await;
    let body = json!({"model": "m", "input": "a", "stream": true, "background": true});
    let whole = exchange(
        mock.addr(),
        "POST",
        "/v1/responses",
        BEARER,
        &body.to_string(),
    )
    .await;
    let events = whole.events();
    let id = events[0]["response"]["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}?stream=true&starting_after=4");
    let rest = exchange(mock.addr(), "GET", &path, BEARER, "").await;
    assert_eq!(rest.events(), &events[5..]);
    assert!(rest.text().starts_with("event: response."));
}

#[tokio::test]
async fn unknown_paths_are_refused_in_the_wires_form() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let got = exchange(mock.addr(), "POST", "/v1/messages/batches", ANTHROPIC, "{}").await;
    assert_eq!((got.status, &got.json()["type"]), (404, &json!("error")));
    let got = exchange(
        mock.addr(),
        "POST",
        "/v1beta/models/m:embedContent",
        GOOGLE,
        "{}",
    )
    .await;
    assert_eq!(
        (got.status, &got.json()["error"]["status"]),
        (404, &json!("NOT_FOUND"))
    );
}
