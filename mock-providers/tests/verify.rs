//! Every rule about requests: a conversation that the service accepts, and the smallest change that it
//! refuses.
//!
//! The changes are the `rewrite`s of the catalogue, so each requirement is shown to be able to fail, and
//! to fail alone but for the neighbours that the catalogue names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::{Value, json};
use support::exchange;
use turnwire_mock::script::Echo;
use turnwire_mock::verify::{SAME_BODY, rules};
use turnwire_mock::{
    Call, ErrorReply, MockConfig, MockServer, Reasoning, Reply, Rule, Unmatched, Verify, Wire,
};
use turnwire_spec::catalogue::rewrite::{JsonEdit, RequestRewrite};
use turnwire_spec::catalogue::{Catalogue, Entry, Rewrite};

const KEY: &str = "key-of-the-test";

/// Requirements that need a service, a history or a size of their own, below.
const OF_THEIR_OWN: [&str; 3] = ["LLM-REQ-033", "LLM-REQ-062", "LLM-REQ-157"];

/// A mock that accepts one key, answers everything, and thinks before it calls two functions.
async fn mock() -> MockServer {
    let config = MockConfig {
        keys: vec![KEY.to_owned()],
        unmatched: Unmatched::text("A cat."),
        ..MockConfig::default()
    };
    let mock = MockServer::start(config).await.unwrap();
    let hidden = Reasoning {
        encrypted: Some("aGlkZGVu".to_owned()),
        ..Reasoning::default()
    };
    let calls = [call("look", 1, "id_a"), call("look", 2, "id_b")];
    mock.push(
        Rule::on("first turn").reply(
            Reply::new()
                .reasoning("Two looks.")
                .reasoning(hidden)
                .say("Let me see.")
                .calls(calls),
        ),
    );
    let calls = [call("look", 1, "id_a"), call("look", 2, "id_b")];
    mock.push(Rule::on("turn without text").reply(Reply::new().reasoning("Hm.").calls(calls)));
    mock
}

fn call(name: &str, at: u64, id: &str) -> Call {
    Call::new(name, json!({"at": at})).id(id)
}

/// A request that the service accepts.
#[derive(Clone)]
struct Request {
    path: &'static str,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Request {
    async fn send(&self, mock: &MockServer) -> support::Reply {
        let named = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> = named.chain([("x-from", "test")]).collect();
        exchange(
            mock.addr(),
            "POST",
            self.path,
            &headers,
            &self.body.to_string(),
        )
        .await
    }
}

const PNG: &str = "data:image/png;base64,AAAA";

fn schema() -> Value {
    json!({"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"],
        "additionalProperties": false})
}

fn bearer() -> Vec<(String, String)> {
    vec![("authorization".into(), format!("Bearer {KEY}"))]
}

fn chat_calls() -> Value {
    json!([
        {"id": "id_a", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
        {"id": "id_b", "type": "function", "function": {"name": "look", "arguments": "{\"at\":2}"}}
    ])
}

fn chat_messages(calls: &Value) -> Value {
    json!([
        {"role": "system", "content": "Answer in JSON."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": PNG}}]},
        {"role": "assistant", "content": null, "tool_calls": calls},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "a cat"},
        {"role": "tool", "tool_call_id": calls[1]["id"], "content": "a dog"},
        {"role": "assistant", "content": "A cat and a dog."},
        {"role": "user", "content": "Thanks."}])
}

fn openai_chat() -> Request {
    let body = json!({
        "model": "gpt-5.2", "stream": true, "stream_options": {"include_usage": true},
        "messages": chat_messages(&chat_calls()),
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.",
            "strict": true, "parameters": schema()}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "parallel_tool_calls": true, "max_completion_tokens": 100, "reasoning_effort": "low",
        "response_format": {"type": "json_schema",
            "json_schema": {"name": "answer", "strict": true, "schema": schema()}}});
    Request {
        path: "/v1/chat/completions",
        headers: bearer(),
        body,
    }
}

async fn openai_responses(mock: &MockServer) -> Request {
    let user = json!({"role": "user", "content": [
        {"type": "input_text", "text": "turn without text"},
        {"type": "input_image", "image_url": PNG, "detail": "auto"}]});
    let mut request = Request {
        path: "/v1/responses",
        headers: bearer(),
        body: json!({
            "model": "gpt-5.2", "store": false, "stream": false, "input": [user],
            "include": ["reasoning.encrypted_content"], "max_output_tokens": 100,
            "reasoning": {"effort": "low", "summary": "auto"},
            "tools": [{"type": "function", "name": "look", "parameters": schema(), "strict": true}],
            "tool_choice": "auto", "parallel_tool_calls": true,
            "text": {"format": {"type": "json_schema", "name": "answer", "strict": true,
                "schema": schema()}}}),
    };
    let answer = request.send(mock).await.json();
    let input = request.body["input"].as_array_mut().unwrap();
    input.extend(answer["output"].as_array().unwrap().clone());
    for id in ["id_a", "id_b"] {
        input.push(json!({"type": "function_call_output", "call_id": id, "output": "a cat"}));
    }
    input.push(
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "A cat.", "annotations": []}]}),
    );
    input.push(json!({"role": "user", "content": "Thanks."}));
    request
}

async fn anthropic_messages(mock: &MockServer) -> Request {
    let user = json!({"role": "user", "content": [
        {"type": "text", "text": "first turn"},
        {"type": "image",
         "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]});
    let mut request = Request {
        path: "/v1/messages",
        headers: vec![
            ("x-api-key".into(), KEY.into()),
            ("anthropic-version".into(), "2026-10-21".into()),
        ],
        body: json!({
            "model": "claude-opus-4-8", "max_tokens": 4096, "system": "Be brief.",
            "messages": [user], "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "look", "description": "Looks.", "input_schema": schema()}],
            "tool_choice": {"type": "auto"}}),
    };
    let answer = request.send(mock).await.json();
    let messages = request.body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": answer["content"]}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "id_a", "content": "a cat"},
        {"type": "tool_result", "tool_use_id": "id_b", "content": "a dog", "is_error": false},
        {"type": "text", "text": "Go on."}]}));
    request
}

async fn gemini(mock: &MockServer) -> Request {
    let user = json!({"role": "user", "parts": [
        {"text": "turn without text"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]});
    let parameters = json!({"type": "OBJECT", "properties": {"at": {"type": "INTEGER"}}});
    let mut request = Request {
        path: "/v1beta/models/gemini-3-pro:generateContent",
        headers: vec![("x-goog-api-key".into(), KEY.into())],
        body: json!({
            "contents": [user], "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [{"functionDeclarations": [{"name": "look", "parameters": parameters}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
            "generationConfig": {"maxOutputTokens": 100, "responseMimeType": "application/json",
                "responseSchema": parameters, "thinkingConfig": {"include_thoughts": true}}}),
    };
    let answer = request.send(mock).await.json();
    let contents = request.body["contents"].as_array_mut().unwrap();
    contents.push(answer["candidates"][0]["content"].clone());
    let response = |id: &str| json!({"functionResponse": {"id": id, "name": "look", "response": {"result": "a cat"}}});
    contents.push(json!({"role": "user", "parts": [response("id_a"), response("id_b")]}));
    request
}

async fn gemini_openai(mock: &MockServer) -> Request {
    let mut request = Request {
        path: "/v1beta/openai/chat/completions",
        headers: bearer(),
        body: json!({
            "model": "gemini-3-pro", "stream": false, "reasoning_effort": "low",
            "messages": [{"role": "user", "content": "turn without text"}],
            "tools": [{"type": "function",
                "function": {"name": "look", "description": "Looks.", "parameters": schema()}}]}),
    };
    let answer = request.send(mock).await.json();
    let calls = &answer["choices"][0]["message"]["tool_calls"];
    let mut messages = chat_messages(calls);
    // The turn is still running: what follows the results is not there yet.
    messages.as_array_mut().unwrap().truncate(5);
    messages
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "assistant", "content": "Hm."}));
    request.body["messages"] = messages;
    request
}

async fn accepted(wire: Wire, mock: &MockServer) -> Request {
    match wire {
        Wire::OpenaiChat => openai_chat(),
        Wire::OpenaiResponses => openai_responses(mock).await,
        Wire::AnthropicMessages => anthropic_messages(mock).await,
        Wire::Gemini => gemini(mock).await,
        Wire::GeminiOpenai => gemini_openai(mock).await,
    }
}

/// The catalogue's entries about requests, with the wire whose rules they are.
fn entries() -> Vec<(Wire, &'static Entry)> {
    let wire_of = |id: &str| {
        Wire::ALL
            .into_iter()
            .find(|wire| rules(*wire).iter().any(|rule| rule.id == id))
    };
    let area = Catalogue::embedded()
        .areas()
        .iter()
        .find(|area| area.name == "llm-requests");
    let entries = area.unwrap().entries.iter();
    entries
        .filter_map(|entry| Some((wire_of(&entry.id)?, entry)))
        .collect()
}

fn request_rewrite(entry: &Entry) -> &RequestRewrite {
    match entry.rewrite.as_ref() {
        Some(Rewrite::Request(rewrite)) => rewrite,
        other => panic!("{}: {other:?} is no rewrite of a request", entry.id),
    }
}

fn sabotaged(request: &Request, rewrite: &RequestRewrite) -> Request {
    let mut request = request.clone();
    request.headers.retain(|(name, _)| {
        !rewrite.drop_header.contains(name) && !rewrite.set_header.contains_key(name)
    });
    for (name, value) in &rewrite.set_header {
        request.headers.push((name.clone(), value.clone()));
    }
    for edit in &rewrite.json {
        apply(edit, &mut request.body);
    }
    request
}

fn apply(edit: &JsonEdit, body: &mut Value) {
    match edit {
        JsonEdit::Set(pointer, value) => set(body, pointer, value.clone()),
        JsonEdit::Remove(pointer) => drop(take(body, pointer)),
        JsonEdit::Copy(from, to) => {
            let value = body.pointer(from).unwrap().clone();
            set(body, to, value);
        }
        JsonEdit::Rename(pointer, name) => {
            let value = take(body, pointer).unwrap();
            let parent = pointer.rsplit_once('/').unwrap().0;
            set(body, &format!("{parent}/{name}"), value);
        }
        JsonEdit::Stringify(pointer) => {
            let value = body.pointer_mut(pointer).unwrap();
            *value = value.to_string().into();
        }
        JsonEdit::Reverse(pointer) => {
            body.pointer_mut(pointer)
                .unwrap()
                .as_array_mut()
                .unwrap()
                .reverse();
        }
        other => panic!("{other:?} is not used for requests"),
    }
}

fn set(body: &mut Value, pointer: &str, value: Value) {
    if let Some((before, after)) = pointer.split_once("/*") {
        let count = body.pointer(before).unwrap().as_array().unwrap().len();
        for at in 0..count {
            set(body, &format!("{before}/{at}{after}"), value.clone());
        }
        return;
    }
    let mut place = body;
    for step in pointer.split('/').skip(1) {
        if let Value::Array(items) = place {
            let at = if step == "-" {
                items.len()
            } else {
                step.parse().unwrap()
            };
            if at == items.len() {
                items.push(Value::Null);
            }
            place = &mut items[at];
        } else {
            place = &mut place[step];
        }
    }
    *place = value;
}

fn take(body: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(parent)? {
        Value::Object(members) => members.shift_remove(last),
        Value::Array(items) => Some(items.remove(last.parse().unwrap())),
        _ => None,
    }
}

/// The ids that the journal's last entry names.
fn violations(mock: &MockServer) -> Vec<String> {
    let entry = mock.journal().pop().unwrap();
    let mut ids: Vec<String> = entry.violations.into_iter().map(|one| one.id).collect();
    ids.dedup();
    ids
}

#[tokio::test]
async fn the_conversations_are_accepted_as_they_are() {
    let mock = mock().await;
    for wire in Wire::ALL {
        let request = accepted(wire, &mock).await;
        let got = request.send(&mock).await;
        assert_eq!(got.status, 200, "{wire}: {}", got.text());
        assert!(
            mock.journal()
                .iter()
                .all(|entry| entry.violations.is_empty()),
            "{wire}"
        );
    }
}

#[tokio::test]
async fn every_requirement_turns_red_under_its_own_sabotage() {
    let mock = mock().await;
    let mut red = Vec::new();
    for (wire, entry) in entries() {
        if OF_THEIR_OWN.contains(&entry.id.as_str()) {
            continue;
        }
        let request = sabotaged(&accepted(wire, &mock).await, request_rewrite(entry));
        let got = request.send(&mock).await;
        let mut expected = vec![entry.id.clone()];
        expected.extend(entry.also.iter().cloned());
        expected.sort();
        let mut found = violations(&mock);
        found.sort();
        let rule = rules(wire).iter().find(|rule| rule.id == entry.id).unwrap();
        let refused = got.status >= 400;
        if found != expected || refused != (rule.refused || !entry.also.is_empty()) {
            red.push(format!(
                "{}: {found:?}, not {expected:?}; {}",
                entry.id,
                got.text()
            ));
        }
    }
    assert!(red.is_empty(), "{}", red.join("\n"));
}

#[tokio::test]
async fn every_refusal_is_the_services_own_error() {
    let mock = mock().await;
    let mut table = String::new();
    for (wire, entry) in entries() {
        if OF_THEIR_OWN.contains(&entry.id.as_str()) {
            continue;
        }
        let request = sabotaged(&accepted(wire, &mock).await, request_rewrite(entry));
        let got = request.send(&mock).await;
        if got.status == 200 {
            table.push_str(&format!("{} (noted)\n", entry.id));
            continue;
        }
        let body = got.json();
        let error = match &body[0]["error"] {
            Value::Null => &body["error"],
            in_array => in_array,
        };
        table.push_str(&format!("{} {} {error}\n", entry.id, got.status));
    }
    insta::with_settings!({filters => vec![(r"(rs|fc)_[0-9A-Za-z]{48}", "${1}_ID")]}, {
        insta::assert_snapshot!("refusals_of_requests", table);
    });
}

#[test]
fn the_catalogue_and_the_rules_name_the_same_requirements() {
    let area = Catalogue::embedded()
        .areas()
        .iter()
        .find(|area| area.name == "llm-requests");
    let mut listed: Vec<&str> = area
        .unwrap()
        .entries
        .iter()
        .map(|entry| entry.id.as_str())
        .collect();
    let mut checked: Vec<&str> = Wire::ALL
        .into_iter()
        .flat_map(rules)
        .map(|rule| rule.id)
        .chain([SAME_BODY])
        .collect();
    listed.sort_unstable();
    checked.sort_unstable();
    assert_eq!(listed, checked);
}

#[tokio::test]
async fn a_service_may_want_thinking_back_or_refuse_it() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(
        Rule::new("wants it")
            .echo(Echo::Required)
            .reply("ok")
            .once(),
    );
    let entries = entries();
    let (_, entry) = entries
        .iter()
        .find(|(_, entry)| entry.id == "LLM-REQ-033")
        .unwrap();
    let mut with = openai_chat();
    with.body["messages"][2]["reasoning_content"] = json!("Hm.");
    let without = sabotaged(&with, request_rewrite(entry));
    assert_eq!(without.send(&mock).await.status, 400);
    assert_eq!(violations(&mock), ["LLM-REQ-033"]);
    assert_eq!(with.send(&mock).await.status, 200);
    mock.push(Rule::new("refuses it").echo(Echo::Refused).reply("ok"));
    assert_eq!(with.send(&mock).await.status, 400);
    assert_eq!(without.send(&mock).await.status, 200);
}

#[tokio::test]
async fn a_stored_history_excludes_a_conversation() {
    let mock = mock().await;
    let mut request = openai_responses(&mock).await;
    request.body["input"] = json!("first turn");
    request.body["store"] = json!(true);
    let answer = request.send(&mock).await.json();
    request.body["previous_response_id"] = answer["id"].clone();
    request.body["input"] =
        json!(["id_a", "id_b"].map(|id| {
            json!({"type": "function_call_output", "call_id": id, "output": "a cat"})
        }));
    assert_eq!(
        request.send(&mock).await.status,
        200,
        "the calls are in the stored history"
    );
    let entries = entries();
    let (_, entry) = entries
        .iter()
        .find(|(_, entry)| entry.id == "LLM-REQ-062")
        .unwrap();
    let got = sabotaged(&request, request_rewrite(entry))
        .send(&mock)
        .await;
    assert_eq!(got.json()["error"]["code"], "mutually_exclusive_parameters");
    assert_eq!(violations(&mock), ["LLM-REQ-062"]);
}

#[tokio::test]
async fn a_retry_with_another_body_is_noted() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(Rule::new("r").reply(ErrorReply::new(500)).reply("ok"));
    let mut request = openai_chat();
    let attempt = |request: &mut Request, number: &str| {
        request
            .headers
            .retain(|(name, _)| name != "x-stainless-retry-count");
        request
            .headers
            .push(("x-stainless-retry-count".into(), number.into()));
    };
    attempt(&mut request, "0");
    assert_eq!(request.send(&mock).await.status, 500);
    attempt(&mut request, "1");
    assert_eq!(request.send(&mock).await.status, 200);
    assert!(violations(&mock).is_empty());
    request.body["metadata"] = json!({"attempt": "2"});
    attempt(&mut request, "2");
    assert_eq!(request.send(&mock).await.status, 200);
    assert_eq!(violations(&mock), [SAME_BODY]);
}

#[tokio::test]
async fn a_lenient_rule_answers_and_a_lenient_mock_notes() {
    let mut request = openai_chat();
    request.body["enable_thinking"] = json!(true);
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(Rule::new("r").reply("ok").lenient());
    assert_eq!(request.send(&mock).await.status, 200);
    assert_eq!(violations(&mock), ["LLM-REQ-007"]);
    for (verify, expected) in [(Verify::Note, 1), (Verify::Off, 0)] {
        let config = MockConfig {
            verify,
            ..MockConfig::default()
        };
        let mock = MockServer::start(config).await.unwrap();
        mock.push(Rule::new("r").reply("ok"));
        assert_eq!(request.send(&mock).await.status, 200);
        assert_eq!(violations(&mock).len(), expected);
    }
}

#[tokio::test]
async fn a_refused_request_uses_up_no_reply() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(Rule::new("r").reply("first").reply("second"));
    let mut bad = openai_chat();
    bad.body["messages"][6]["role"] = json!("human");
    assert_eq!(bad.send(&mock).await.status, 400);
    let good = openai_chat().send(&mock).await;
    assert!(good.text().contains("first"));
}

#[tokio::test]
async fn counting_tokens_is_judged_like_answering() {
    let mock = mock().await;
    let mut request = anthropic_messages(&mock).await;
    request.path = "/v1/messages/count_tokens";
    request.body.as_object_mut().unwrap().remove("max_tokens");
    request.body.as_object_mut().unwrap().remove("thinking");
    let got = request.send(&mock).await;
    assert_eq!(got.status, 200, "{}", got.text());
    request.body["messages"].as_array_mut().unwrap().pop();
    let got = request.send(&mock).await;
    assert_eq!(
        (got.status, violations(&mock).first().cloned()),
        (400, Some("LLM-REQ-084".into()))
    );
}

#[tokio::test]
async fn a_body_above_the_limit_of_anthropic_is_too_large() {
    let mock = mock().await;
    let mut request = anthropic_messages(&mock).await;
    request.body["system"] = "x".repeat(33 << 20).into();
    let got = request.send(&mock).await;
    let id = got.header("request-id").to_owned();
    assert_eq!(got.status, 413);
    assert_eq!(got.json()["error"]["type"], "request_too_large");
    assert_eq!(got.json()["request_id"], id, "one request has one id");
    assert_eq!(violations(&mock), ["LLM-REQ-157"]);
}

#[tokio::test]
async fn two_refused_requests_have_two_ids() {
    let mock = mock().await;
    let mut request = anthropic_messages(&mock).await;
    request.body.as_object_mut().unwrap().remove("max_tokens");
    let first = request.send(&mock).await;
    let second = request.send(&mock).await;
    assert_eq!((first.status, second.status), (400, 400));
    assert_ne!(first.header("request-id"), second.header("request-id"));
}

#[tokio::test]
async fn a_key_may_stand_in_the_header_of_azure_where_the_query_has_its_version() {
    let mock = mock().await;
    let body = support::chat("Hi", false).to_string();
    for (path, header, status) in [
        (
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ("api-key", KEY),
            200,
        ),
        (
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ("api-key", "other"),
            401,
        ),
        (
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ("x-none", ""),
            401,
        ),
        ("/v1/chat/completions", ("api-key", KEY), 401),
    ] {
        let got = exchange(mock.addr(), "POST", path, &[header], &body).await;
        assert_eq!(got.status, status, "{path} {header:?}: {}", got.text());
    }
}
