//! What compatible services do otherwise, one switch at a time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::{Value, json};
use support::{ask, chat, exchange};
use turnwire_mock::script::{
    ContentForm, ExtraFields, FinishPlace, ReasoningField, RolePlace, Service, SignaturePlace,
    ToolArgs, ToolId, ToolIndex, UsagePlace,
};
use turnwire_mock::{
    Call, Edit, Finish, MockConfig, MockServer, RawEvent, Reply, Rule, Usage, Variation,
};

const PATH: &str = "/v1/chat/completions";

/// Thinking, text and two calls.
fn rich() -> Reply {
    Reply::new()
        .reasoning("Hm.")
        .say("Hi.")
        .calls([
            Call::new("f", "").pieces(["{\"a\":", "1}"]).id("call_a"),
            Call::new("g", json!({})).id("call_b"),
        ])
        .usage(Usage {
            input: 7,
            output: 5,
            ..Usage::default()
        })
}

async fn events(reply: Reply) -> Vec<Value> {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(Rule::new("r").reply(reply));
    ask(&mock, PATH, &chat("go", true)).await.events()
}

/// Only what a switch can change: deltas, finish, usage.
async fn shown(variation: Variation) -> String {
    shown_reply(rich().variation(variation)).await
}

async fn shown_reply(reply: Reply) -> String {
    let mut text = String::new();
    for event in events(reply).await {
        let choice = &event["choices"][0];
        let mut line = match choice {
            Value::Null => event.to_string(),
            choice => format!("{} {}", choice["delta"], choice["finish_reason"]),
        };
        for place in [&event["usage"], &choice["usage"], &event["x_groq"]] {
            if !place.is_null() && !choice.is_null() {
                line.push_str(&format!(" + {}", place["total_tokens"].clone()));
            }
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

macro_rules! switches {
    ($name:ident, $field:ident, $kind:ident: $($value:ident),+) => {
        #[tokio::test]
        async fn $name() {
            let mut all = String::new();
            $(
                let variation = Variation { $field: $kind::$value, ..Variation::default() };
                all.push_str(concat!("== ", stringify!($value), "\n"));
                all.push_str(&shown(variation).await);
            )+
            insta::assert_snapshot!(stringify!($name), all);
        }
    };
}

switches!(thinking_has_many_places, reasoning_field, ReasoningField:
    None, ReasoningContent, Reasoning, Both, Details, ThinkTags, ContentArray);
switches!(usage_has_many_places, usage, UsagePlace:
    WhenAsked, Absent, EmptyChoices, LastChunk, EveryChunk, InChoice, XGroq, ThenNull);
switches!(the_index_of_a_call_may_be_wrong, tool_index, ToolIndex: Right, Missing, Null, Zero, FromOne);
switches!(the_id_of_a_call_may_be_odd, tool_id, ToolId: Once, EveryDelta, EmptyLater, Absent);
switches!(arguments_have_many_forms, tool_args, ToolArgs: Split, Whole, Both, Object, Null, Absent);
switches!(the_finish_has_many_places, finish, FinishPlace:
    LastChunk, WithContent, Null, Empty, Absent, Twice);
switches!(the_role_has_many_places, role, RolePlace: First, Every, Empty, Absent);
switches!(content_has_many_forms, content, ContentForm: String, Null, Absent, Array);

#[tokio::test]
async fn long_ids_and_unknown_members_are_there_when_asked_for() {
    let variation = Variation {
        tool_id: ToolId::Long,
        extra_fields: ExtraFields::Random,
        ..Variation::default()
    };
    let reply = Reply::call("f", json!({})).variation(variation);
    let events = events(reply).await;
    let id = events[1]["choices"][0]["delta"]["tool_calls"][0]["id"]
        .as_str()
        .unwrap();
    assert!(id.starts_with("chatcmpl-tool-") && id.len() > 64, "{id}");
    assert!(events[0]["x_turnwire"]["list"][1].is_object());
}

#[tokio::test]
async fn services_set_their_switches() {
    let mut all = String::new();
    for service in [
        Service::Deepseek,
        Service::Dashscope,
        Service::Groq,
        Service::Openrouter,
        Service::Vllm,
        Service::Ollama,
        Service::Mistral,
        Service::Moonshot,
        Service::Minimax,
    ] {
        all.push_str(&format!("== {service:?}\n"));
        all.push_str(&shown_reply(rich().service(service)).await);
    }
    insta::assert_snapshot!("services", all);
}

#[tokio::test]
async fn a_plain_answer_has_the_same_switches() {
    let mut all = String::new();
    for variation in [
        Variation {
            reasoning_field: ReasoningField::Both,
            ..Variation::default()
        },
        Variation {
            reasoning_field: ReasoningField::Details,
            ..Variation::default()
        },
        Variation {
            reasoning_field: ReasoningField::ThinkTags,
            ..Variation::default()
        },
        Variation {
            reasoning_field: ReasoningField::ContentArray,
            ..Variation::default()
        },
        Variation {
            tool_args: ToolArgs::Object,
            tool_id: ToolId::Absent,
            ..Variation::default()
        },
        Variation {
            finish: FinishPlace::Null,
            usage: UsagePlace::Absent,
            ..Variation::default()
        },
    ] {
        let mock = MockServer::start(MockConfig::default()).await.unwrap();
        mock.push(Rule::new("r").reply(rich().variation(variation)));
        let body = ask(&mock, PATH, &chat("go", false)).await.json();
        all.push_str(&format!(
            "{} {}\n",
            body["choices"][0], body["usage"]["total_tokens"]
        ));
    }
    insta::assert_snapshot!("plain_variations", all);
}

#[tokio::test]
async fn several_choices_come_in_turns() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(Rule::new("r").reply("Hi."));
    let mut request = chat("go", true);
    request["n"] = json!(2);
    let order: Vec<_> = ask(&mock, PATH, &request).await.events()[..4]
        .iter()
        .map(|event| event["choices"][0]["index"].as_u64())
        .collect();
    assert_eq!(order, [Some(0), Some(1), Some(0), Some(1)]);
}

#[tokio::test]
async fn single_events_can_be_edited_on_every_wire() {
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    let reply = Reply::text("Hi.")
        .edit(Edit::on("message_delta").remove("/usage"))
        .edit(
            Edit::on("message_start").after(RawEvent::named("sparkle", json!({"type": "sparkle"}))),
        )
        .edit(Edit::on("response.completed").set("/response/output", json!([])));
    mock.push(Rule::new("r").reply(reply));
    let body = json!({"model": "m", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "x"}]});
    let headers = [("anthropic-version", "2023-06-01"), ("x-api-key", "k")];
    let got = exchange(
        mock.addr(),
        "POST",
        "/v1/messages",
        &headers,
        &body.to_string(),
    )
    .await;
    let events = got.events();
    assert_eq!(events[1]["type"], "sparkle");
    let last = events
        .iter()
        .find(|event| event["type"] == "message_delta")
        .unwrap();
    assert!(last["usage"].is_null() && last["delta"]["stop_reason"] == "end_turn");
    let body = json!({"model": "m", "input": "x", "stream": true});
    let got = exchange(mock.addr(), "POST", "/v1/responses", &[], &body.to_string()).await;
    let last = got.events().pop().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["output"]),
        (&json!("response.completed"), &json!([]))
    );
}

#[tokio::test]
async fn gemini_has_switches_of_its_own() {
    let call = |name: &str| Call::new(name, json!({"x": 1}));
    let reply = |variation| {
        Reply::new()
            .calls([call("f"), call("g")])
            .variation(variation)
    };
    let mut all = String::new();
    for variation in [
        Variation::default(),
        Variation {
            calls_together: true,
            call_ids: true,
            ..Variation::default()
        },
        Variation {
            signature: SignaturePlace::EmptyText,
            ..Variation::default()
        },
        Variation {
            signature: SignaturePlace::Absent,
            tool_args: ToolArgs::Absent,
            finish: FinishPlace::WithContent,
            ..Variation::default()
        },
    ] {
        let mock = MockServer::start(MockConfig::default()).await.unwrap();
        mock.push(Rule::new("r").reply(reply(variation)));
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}).to_string();
        let path = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
        let got = exchange(mock.addr(), "POST", path, &[("x-goog-api-key", "k")], &body).await;
        for event in got.events() {
            let candidate = &event["candidates"][0];
            let parts = &candidate["content"]["parts"];
            all.push_str(&format!("{parts} {}\n", candidate["finishReason"]));
        }
        all.push('\n');
    }
    insta::assert_snapshot!("gemini_variations", all);
}

#[tokio::test]
async fn a_broken_call_is_said_as_each_wire_says_it() {
    let reply = Reply::call("f", "{\"a\":");
    let mock = MockServer::start(MockConfig::default()).await.unwrap();
    mock.push(
        Rule::new("r")
            .reply(reply.clone())
            .reply(reply.finish(Finish::Length)),
    );
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}).to_string();
    let path = "/v1beta/models/gemini-2.5-pro:generateContent";
    let got = exchange(mock.addr(), "POST", path, &[("x-goog-api-key", "k")], &body)
        .await
        .json();
    assert_eq!(
        got["candidates"][0]["finishReason"],
        "MALFORMED_FUNCTION_CALL"
    );
    let got = exchange(mock.addr(), "POST", path, &[("x-goog-api-key", "k")], &body)
        .await
        .json();
    assert_eq!(got["candidates"][0]["finishReason"], "MAX_TOKENS");
    let got = ask(&mock, PATH, &chat("x", false)).await.json();
    let arguments = &got["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(arguments, "{\"a\":");
}
