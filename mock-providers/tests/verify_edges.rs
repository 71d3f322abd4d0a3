//! Where the rules about requests begin and end: what a service just refuses, and what it still takes.
//!
//! A body is the smallest that the service takes, and one member that is changed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::{Value, json};
use support::exchange;
use turnwire_mock::script::Finish;
use turnwire_mock::{MockConfig, MockServer, Reply, Rule, Unmatched, Wire};

async fn mock() -> MockServer {
    let config = MockConfig {
        unmatched: Unmatched::text("A cat."),
        models: ["a", "b", "c"].map(str::to_owned).to_vec(),
        ..MockConfig::default()
    };
    MockServer::start(config).await.unwrap()
}

/// The smallest body of a wire.
fn least(wire: Wire) -> Value {
    let messages = json!([{"role": "user", "content": "Hello."}]);
    match wire {
        Wire::OpenaiResponses => json!({"model": "mock-model", "input": "Hello."}),
        Wire::AnthropicMessages => {
            json!({"model": "claude-opus-4-6", "max_tokens": 100, "messages": messages})
        }
        Wire::Gemini => json!({"contents": [{"parts": [{"text": "Hello."}]}]}),
        Wire::OpenaiChat | Wire::GeminiOpenai => {
            json!({"model": "mock-model", "messages": messages})
        }
    }
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat => "/v1/chat/completions",
        Wire::OpenaiResponses => "/v1/responses",
        Wire::AnthropicMessages => "/v1/messages",
        Wire::Gemini => "/v1beta/models/gemini-2.5-flash:generateContent",
        Wire::GeminiOpenai => "/v1beta/openai/chat/completions",
    }
}

/// The least body with these members; null takes one away.
fn with(wire: Wire, members: &Value) -> Value {
    let mut body = least(wire);
    for (name, value) in members.as_object().unwrap() {
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(name)),
            value => body[name] = value.clone(),
        }
    }
    body
}

async fn post(mock: &MockServer, path: &str, beta: &str, body: &Value) -> support::Reply {
    let mut headers = vec![("anthropic-version", "2023-06-01")];
    if !beta.is_empty() {
        headers.push(("anthropic-beta", beta));
    }
    exchange(mock.addr(), "POST", path, &headers, &body.to_string()).await
}

/// Sends every request, and compares the ids of the rules that it breaks.
async fn compare(wire: Wire, cases: &[(Value, &str)]) {
    let mock = mock().await;
    let mut wrong = String::new();
    for (members, expected) in cases {
        let got = post(&mock, path(wire), "", &with(wire, members)).await;
        let breaks = mock.journal().pop().unwrap().violations;
        let found: Vec<&str> = breaks.iter().map(|one| one.id.as_str()).collect();
        let expected: Vec<&str> = expected.split_whitespace().collect();
        if found != expected || (got.status == 200) != expected.is_empty() {
            wrong.push_str(&format!("{members}: {found:?}: {}\n", got.text()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

fn pairs(count: usize) -> Value {
    (0..count)
        .map(|at| (format!("k{at}"), json!("v")))
        .collect()
}

#[tokio::test]
async fn chat_settings_have_edges() {
    let many =
        |count: usize| -> Vec<Value> { (0..count).map(|at| tool(&format!("t{at}"))).collect() };
    let cases = [
        (json!({"stream": "yes"}), "LLM-REQ-140"),
        (json!({"stream": false, "store": true}), ""),
        (json!({"tools": many(128)}), ""),
        (json!({"tools": many(129)}), "LLM-REQ-141"),
        (json!({"tools": []}), "LLM-REQ-141"),
        (json!({"verbosity": "low"}), ""),
        (json!({"verbosity": "x"}), "LLM-REQ-143"),
        (json!({"logprobs": true, "top_logprobs": 20}), ""),
        (json!({"logprobs": true, "top_logprobs": 21}), "LLM-REQ-144"),
        (json!({"top_logprobs": 5}), "LLM-REQ-144"),
        (json!({"metadata": pairs(16)}), ""),
        (json!({"metadata": pairs(17)}), "LLM-REQ-146"),
        (json!({"metadata": {"k": "x".repeat(512)}}), ""),
        (json!({"metadata": {"k": "x".repeat(513)}}), "LLM-REQ-146"),
        (json!({"logit_bias": {"1": 100, "2": -100}}), ""),
        (json!({"logit_bias": {"1": 200}}), "LLM-REQ-147"),
        (json!({"model": "o3", "temperature": 1}), ""),
        (json!({"model": "o3", "temperature": 0.3}), "LLM-REQ-148"),
        (json!({"model": "gpt-5.2", "temperature": 0.3}), ""),
        (json!({"model": "gpt-4o", "temperature": 0.3}), ""),
        (
            json!({"model": "gpt-4o", "reasoning_effort": "low"}),
            "LLM-REQ-149",
        ),
        (json!({"model": "gpt-5.2", "reasoning_effort": "low"}), ""),
        (
            json!({"messages": [{"role": "user", "content": [], "tool_calls": []}]}),
            "",
        ),
    ];
    compare(Wire::OpenaiChat, &cases).await;
}

#[tokio::test]
async fn responses_settings_have_edges() {
    let json_mode = json!({"format": {"type": "json_object"}});
    let cases = [
        (json!({"input": null, "prompt": {"id": "pmpt_1"}}), ""),
        (
            json!({"input": null, "model": null, "prompt": {"id": "pmpt_1"}}),
            "",
        ),
        (json!({"input": null, "conversation": "conv_1"}), ""),
        (json!({"input": [], "prompt": {"id": "pmpt_1"}}), ""),
        (json!({"input": null}), "LLM-REQ-038"),
        (json!({"input": []}), "LLM-REQ-038"),
        (json!({"input": ""}), "LLM-REQ-038"),
        (
            json!({"input": {}, "prompt": {"id": "pmpt_1"}}),
            "LLM-REQ-038",
        ),
        (json!({"max_output_tokens": 16}), ""),
        (json!({"max_output_tokens": 15}), "LLM-REQ-150"),
        (json!({"max_output_tokens": "many"}), "LLM-REQ-150"),
        (json!({"top_logprobs": 20}), ""),
        (json!({"top_logprobs": 21}), "LLM-REQ-151"),
        (json!({"text": json_mode, "input": "As JSON."}), ""),
        (
            json!({"text": json_mode, "instructions": "As JSON."}),
            "LLM-REQ-152",
        ),
        (json!({"metadata": {"k": "x".repeat(513)}}), "LLM-REQ-153"),
        (json!({"model": "o3", "temperature": 0.3}), "LLM-REQ-154"),
        (json!({"background": true, "store": false}), ""),
        (json!({"background": "yes"}), "LLM-REQ-155"),
        (json!({"tools": [], "presence_penalty": 0.5}), ""),
        (
            json!({"image": {}, "background_options": {}, "access_programs": {}}),
            "",
        ),
    ];
    compare(Wire::OpenaiResponses, &cases).await;
}

#[tokio::test]
async fn anthropic_settings_have_edges() {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let cases = [
        (json!({"metadata": {"user_id": "u"}}), ""),
        (json!({"metadata": {"x": 1}}), "LLM-REQ-158"),
        (json!({"mcp_servers": []}), "LLM-REQ-159"),
        (json!({"temperature": 1}), ""),
        (json!({"temperature": 2}), "LLM-REQ-160"),
        (
            json!({"temperature": 2, "model": "claude-opus-4-8"}),
            "LLM-REQ-093",
        ),
        (json!({"tool_choice": {"type": "auto"}}), ""),
        (json!({"tool_choice": {"type": "none"}}), ""),
        (json!({"tool_choice": {"type": "any"}}), "LLM-REQ-161"),
        (json!({"tools": [tool("a"), tool("b")]}), ""),
        (json!({"tools": [tool("a"), tool("a")]}), "LLM-REQ-162"),
        (json!({"tools": [{"type": "browser_toolset_20260801"}]}), ""),
        (json!({"system": "Be brief."}), ""),
        (json!({"system": text("")}), "LLM-REQ-077"),
        (json!({"system": ""}), "LLM-REQ-077"),
        (json!({"system": text(" \n")}), "LLM-REQ-163"),
        (
            json!({"messages": [{"role": "user", "content": text("\t")}]}),
            "LLM-REQ-163",
        ),
        (
            json!({"messages": [{"role": "user", "content": " "}]}),
            "LLM-REQ-163",
        ),
        (json!({"stop_sequences": ["a b", "."]}), ""),
        (json!({"stop_sequences": ["\n"]}), "LLM-REQ-164"),
    ];
    compare(Wire::AnthropicMessages, &cases).await;
}

#[tokio::test]
async fn a_beta_opens_the_members_of_anthropic_that_it_names() {
    let mock = mock().await;
    let servers = json!([{"type": "url", "url": "https://example.com/mcp", "name": "a"}]);
    let body = with(Wire::AnthropicMessages, &json!({"mcp_servers": servers}));
    for (beta, status) in [
        ("mcp-client-2025-11-20", 200),
        ("a,mcp-client-2026", 200),
        ("other", 400),
    ] {
        assert_eq!(
            post(&mock, "/v1/messages", beta, &body).await.status,
            status,
            "{beta}"
        );
    }
}

#[tokio::test]
async fn counting_takes_nothing_that_only_an_answer_needs() {
    let mock = mock().await;
    let path = "/v1/messages/count_tokens";
    let body = with(Wire::AnthropicMessages, &json!({"max_tokens": null}));
    assert_eq!(post(&mock, path, "", &body).await.status, 200);
    let got = post(&mock, path, "", &least(Wire::AnthropicMessages)).await;
    assert_eq!(got.status, 400);
    assert_eq!(
        got.json()["error"]["message"],
        "max_tokens: Extra inputs are not permitted"
    );
    let path = "/v1beta/models/m:countTokens";
    let got = post(&mock, path, "", &json!({})).await;
    assert_eq!(got.json()["error"]["status"], "INVALID_ARGUMENT");
    assert_eq!(
        post(&mock, path, "", &least(Wire::Gemini)).await.status,
        200
    );
}

#[tokio::test]
async fn gemini_settings_have_edges() {
    let config = |config: Value| json!({"generationConfig": config});
    let stops = |count: usize| config(json!({"stopSequences": vec!["a"; count]}));
    let file = |uri: &str| json!({"contents": [{"parts": [{"fileData": {"fileUri": uri}}]}]});
    let safety = |category: &str| json!({"safetySettings": [{"category": category}]});
    let cases = [
        (file("https://x/y"), ""),
        (
            file("https://bucket.s3.amazonaws.com/a.pdf?X-Amz-Signature=1"),
            "",
        ),
        (file("https://www.youtube.com/watch?v=1"), ""),
        (file("gs://bucket/a.pdf"), ""),
        (file("data:image/png;base64,AAAA"), "LLM-REQ-108"),
        (file("/tmp/a.png"), "LLM-REQ-108"),
        (config(json!({"temperature": 2})), ""),
        (config(json!({"temperature": 3})), "LLM-REQ-165"),
        (stops(5), ""),
        (stops(6), "LLM-REQ-165"),
        (config(json!({"topK": 40, "top_p": "0.5"})), ""),
        (config(json!({"topK": "a"})), "LLM-REQ-166"),
        (config(json!({"thinkingConfig": {"thinkingBudget": 0}})), ""),
        (
            config(json!({"thinkingConfig": {"thinking_budget": 0, "thinkingLevel": "LOW"}})),
            "LLM-REQ-167",
        ),
        (safety("HARM_CATEGORY_HARASSMENT"), ""),
        (safety("HARM_CATEGORY_NOISE"), "LLM-REQ-168"),
    ];
    compare(Wire::Gemini, &cases).await;
}

#[tokio::test]
async fn a_page_of_models_that_cannot_be_is_refused() {
    let mock = mock().await;
    let get = async |path: &str, version: &str| {
        let headers: Vec<(&str, &str)> = match version {
            "" => vec![("x-goog-api-key", "k")],
            version => vec![("anthropic-version", version)],
        };
        exchange(mock.addr(), "GET", path, &headers, "").await
    };
    for limit in ["abc", "0", "-1", "1001"] {
        let got = get(&format!("/v1/models?limit={limit}"), "2023-06-01").await;
        assert_eq!(got.status, 400, "{limit}");
        assert_eq!(got.json()["error"]["type"], "invalid_request_error");
        assert_eq!(got.json()["request_id"], got.header("request-id"));
    }
    let got = get("/v1/models?limit=1000", "2023-06-01").await;
    assert_eq!(got.status, 200);
    for query in [
        "pageToken=bad",
        "pageToken=0",
        "pageToken=3",
        "pageSize=a",
        "pageSize=-1",
    ] {
        let got = get(&format!("/v1beta/models?{query}"), "").await;
        assert_eq!(got.json()["error"]["status"], "INVALID_ARGUMENT", "{query}");
    }
    for query in ["pageToken=2", "pageSize=0", "pageSize=5000"] {
        assert_eq!(
            get(&format!("/v1beta/models?{query}"), "").await.status,
            200,
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_message_that_was_cut_is_incomplete() {
    let mock = mock().await;
    mock.push(Rule::new("cut").reply(Reply::text("It rai").finish(Finish::Length)));
    let plain = post(
        &mock,
        path(Wire::OpenaiResponses),
        "",
        &least(Wire::OpenaiResponses),
    )
    .await;
    assert_eq!(plain.json()["status"], "incomplete");
    assert_eq!(plain.json()["output"][0]["status"], "incomplete");
    let body = with(Wire::OpenaiResponses, &json!({"stream": true}));
    let events = post(&mock, path(Wire::OpenaiResponses), "", &body)
        .await
        .events();
    let done = events
        .iter()
        .find(|event| event["type"] == "response.output_item.done");
    assert_eq!(done.unwrap()["item"]["status"], "incomplete");
}

#[tokio::test]
async fn a_refusal_of_a_gemini_model_is_a_filtered_answer() {
    let mock = mock().await;
    mock.push(Rule::new("no").reply(Reply::new().refusal("I will not.")));
    let plain = post(
        &mock,
        path(Wire::GeminiOpenai),
        "",
        &least(Wire::GeminiOpenai),
    )
    .await;
    let choice = &plain.json()["choices"][0];
    assert_eq!(choice["finish_reason"], "content_filter");
    let body = with(Wire::GeminiOpenai, &json!({"stream": true}));
    let events = post(&mock, path(Wire::GeminiOpenai), "", &body)
        .await
        .events();
    assert!(
        events
            .iter()
            .all(|event| event["choices"][0]["delta"]["refusal"].is_null())
    );
    let words: Vec<&str> = events
        .iter()
        .filter_map(|event| event["choices"][0]["finish_reason"].as_str())
        .collect();
    assert_eq!(words, ["content_filter"]);
}
