//! What goes back to a service of its own answers.

use super::*;
use turnwire_mock::script::ReasoningField;
use turnwire_mock::{Call, Reasoning, Variation};

fn chat_reply(field: ReasoningField, thinking: &str) -> Reply {
    Reply::new()
        .reasoning(Reasoning::from(thinking))
        .say("Calling")
        .calls([Call::new("look", json!({}))])
        .variation(Variation {
            reasoning_field: field,
            ..Variation::default()
        })
}

fn signed(wire: Wire) -> Reply {
    let thinking = Reasoning {
        signature: (wire != Wire::OpenaiResponses).then(|| "SIG-1".to_owned()),
        encrypted: (wire == Wire::OpenaiResponses).then(|| "ENC-2".to_owned()),
        ..Reasoning::from("hm")
    };
    let call = |name: &str| Call {
        signature: (name == "look").then(|| "SIG-1".to_owned()),
        ..Call::new(name, json!({}))
    };
    Reply::new()
        .reasoning(thinking)
        .say("Calling")
        .calls([call("look"), call("take")])
}

fn thinking() -> ModelRequest {
    ModelRequest {
        options: CallOptions {
            thinking: Some(Thinking::default()),
            ..CallOptions::default()
        },
        ..request()
    }
}

/// The assistant entries of a Chat request.
fn assistants(body: &Value) -> Vec<&Value> {
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .collect()
}

#[tokio::test]
async fn thinking_goes_back_in_the_field_in_which_it_came() {
    for (field, own, other) in [
        (ReasoningField::Reasoning, "reasoning", "reasoning_content"),
        (
            ReasoningField::ReasoningContent,
            "reasoning_content",
            "reasoning",
        ),
    ] {
        let mock = mock([
            chat_reply(field, "r1"),
            chat_reply(field, "r2"),
            Reply::text("Done."),
        ])
        .await;
        let client = client(&mock, Wire::OpenaiChat);
        let first = request();
        let one = client.ask(first.clone()).await.result.unwrap();
        let second = after(&first, &one);
        let two = client.ask(second.clone()).await.result.unwrap();
        client.ask(after(&second, &two)).await.result.unwrap();

        let bodies = bodies(&mock);
        let entries = assistants(&bodies[2]);
        let sent: Vec<_> = entries.iter().map(|entry| &entry[own]).collect();
        assert_eq!(sent, ["r1", "r2"]);
        assert!(entries.iter().all(|entry| entry[other].is_null()));
    }
}

#[tokio::test]
async fn another_model_or_address_gets_thinking_in_the_generic_field() {
    let first_mock = mock([chat_reply(ReasoningField::Reasoning, "r1")]).await;
    let other_mock = mock([Reply::text("Done.")]).await;
    let asked = request();
    let reply = client(&first_mock, Wire::OpenaiChat)
        .ask(asked.clone())
        .await
        .result
        .unwrap();
    let next = after(&asked, &reply);

    let other_model = TargetConfig {
        model: "gpt-5-mini".to_owned(),
        ..target(&first_mock, Wire::OpenaiChat)
    };
    Client::new(config(other_model))
        .unwrap()
        .ask(next.clone())
        .await
        .result
        .unwrap();
    client(&other_mock, Wire::OpenaiChat)
        .ask(next)
        .await
        .result
        .unwrap();

    for body in [&bodies(&first_mock)[1], &bodies(&other_mock)[0]] {
        let entry = assistants(body)[0];
        assert_eq!(entry["reasoning_content"], "r1");
        assert!(entry["reasoning"].is_null());
    }
}

#[tokio::test]
async fn thinking_in_tags_is_taken_out_and_never_sent_back() {
    for wire in [Wire::OpenaiChat, Wire::OpenaiResponses] {
        for streaming in [true, false] {
            let tagged = Reply::new()
                .pieces(["<th", "ink>pl", "an</thi", "nk>Call", "ing"])
                .calls([Call::new("look", json!({}))]);
            let mock = mock([tagged, Reply::text("Done.")]).await;
            let client = client(&mock, wire);
            let asked = ModelRequest {
                streaming,
                ..request()
            };
            let outcome = client.ask(asked.clone()).await;
            let reply = outcome.result.clone().unwrap();
            assert_eq!(
                texts(&outcome),
                ("Calling".to_owned(), "plan".to_owned()),
                "{wire}"
            );
            assert_eq!(
                (reply.text.as_str(), reply.reasoning.as_str()),
                ("Calling", "plan")
            );
            assert_eq!(reply.continuation.clone().unwrap().0["source"], "think");

            client.ask(after(&asked, &reply)).await.result.unwrap();
            let body = bodies(&mock).remove(1).to_string();
            assert!(body.contains("Calling"), "{body}");
            assert!(!body.contains("plan") && !body.contains("think>"), "{body}");
            assert!(!body.contains("reasoning"), "{body}");
        }
    }
}

#[tokio::test]
async fn native_entries_go_back_in_order_with_their_signatures() {
    for (wire, entries, kinds) in [
        (
            Wire::AnthropicMessages,
            "/messages/1/content",
            json!(["thinking", "text", "tool_use", "tool_use"]),
        ),
        (
            Wire::OpenaiResponses,
            "/input",
            json!(["reasoning", "message", "function_call", "function_call"]),
        ),
    ] {
        for streaming in [true, false] {
            let mock = mock([signed(wire), Reply::text("Done.")]).await;
            let client = client(&mock, wire);
            let asked = ModelRequest {
                streaming,
                ..thinking()
            };
            let reply = client.ask(asked.clone()).await.result.unwrap();
            client.ask(after(&asked, &reply)).await.result.unwrap();

            let body = &bodies(&mock)[1];
            let list = body.pointer(entries).unwrap().as_array().unwrap();
            let sent: Vec<_> = list
                .iter()
                .filter(|entry| kinds.as_array().unwrap().contains(&entry["type"]))
                .map(|entry| entry["type"].clone())
                .collect();
            assert_eq!(json!(sent), kinds, "{wire}");
            let secret = if wire == Wire::AnthropicMessages {
                "SIG-1"
            } else {
                "ENC-2"
            };
            assert!(body.to_string().contains(secret), "{body}");
        }
    }
}

#[tokio::test]
async fn redacted_thinking_goes_back_and_is_never_shown() {
    let redacted = Reasoning {
        text: Vec::new(),
        encrypted: Some("ENC-1".to_owned()),
        ..Reasoning::default()
    };
    for wire in [Wire::AnthropicMessages, Wire::OpenaiResponses] {
        let reply = Reply::new()
            .reasoning(redacted.clone())
            .calls([Call::new("look", json!({}))]);
        let mock = mock([reply, Reply::text("Done.")]).await;
        let client = client(&mock, wire);
        let asked = thinking();
        let outcome = client.ask(asked.clone()).await;
        let reply = outcome.result.clone().unwrap();
        assert_eq!(texts(&outcome), (String::new(), String::new()), "{wire}");
        assert_eq!(
            (reply.text.as_str(), reply.reasoning.as_str()),
            ("", ""),
            "{wire}"
        );

        client.ask(after(&asked, &reply)).await.result.unwrap();
        assert!(bodies(&mock)[1].to_string().contains("ENC-1"), "{wire}");
    }
}

#[tokio::test]
async fn native_entries_stay_with_their_model_address_and_protocol() {
    for wire in [Wire::AnthropicMessages, Wire::OpenaiResponses] {
        let first = mock([signed(wire)]).await;
        let asked = thinking();
        let reply = client(&first, wire)
            .ask(asked.clone())
            .await
            .result
            .unwrap();
        let next = after(&asked, &reply);

        let elsewhere = mock([Reply::text("Done.")]).await;
        let other_model = TargetConfig {
            model: "claude-sonnet-4-6".to_owned(),
            ..target(&first, wire)
        };
        first.load(
            Script::new("then").rule(Rule::new("then").priority(1).reply(Reply::text("Done."))),
        );
        for other in [
            other_model,
            target(&elsewhere, wire),
            target(&elsewhere, Wire::OpenaiChat),
            target(&elsewhere, Wire::Gemini),
        ] {
            Client::new(config(other))
                .unwrap()
                .ask(next.clone())
                .await
                .result
                .unwrap();
        }
        let mut sent = bodies(&first).split_off(1);
        sent.extend(bodies(&elsewhere));
        assert_eq!(sent.len(), 4);
        for body in sent {
            let body = body.to_string();
            assert!(!body.contains("SIG-1") && !body.contains("ENC-2"), "{body}");
            assert!(body.contains("look is done"), "{body}");
        }
    }
}

#[tokio::test]
async fn gemini_parts_go_back_signed_to_their_model_and_address_only() {
    let first = mock([signed(Wire::Gemini), Reply::text("Done.")]).await;
    let own = client(&first, Wire::Gemini);
    let asked = thinking();
    let reply = own.ask(asked.clone()).await.result.unwrap();
    let next = after(&asked, &reply);
    own.ask(next.clone()).await.result.unwrap();
    let body = &bodies(&first)[1];
    let parts = body["contents"][1]["parts"].as_array().unwrap();
    assert_eq!(parts[0], json!({ "text": "hm", "thought": true }));
    let call = parts
        .iter()
        .find(|part| part["functionCall"]["name"] == "look")
        .unwrap();
    assert_eq!(call["thoughtSignature"], "SIG-1");

    let elsewhere = mock([Reply::text("Done.")]).await;
    let other_model = TargetConfig {
        model: "gemini-3-flash".to_owned(),
        ..target(&first, Wire::Gemini)
    };
    for other in [other_model, target(&elsewhere, Wire::Gemini)] {
        let refused = Client::new(config(other)).unwrap().ask(next.clone()).await;
        let error = refused.result.unwrap_err();
        assert_eq!(
            (error.kind, error.code.as_deref()),
            (ErrorKind::Config, Some(CONFIG_ERROR))
        );
        assert!(refused.sent.is_empty(), "nothing was sent");
    }
    for other in [
        Wire::OpenaiChat,
        Wire::AnthropicMessages,
        Wire::GeminiOpenai,
    ] {
        client(&elsewhere, other)
            .ask(next.clone())
            .await
            .result
            .unwrap();
    }
    for body in bodies(&elsewhere) {
        let body = body.to_string();
        assert!(
            !body.contains("SIG-1") && !body.contains("thoughtSignature"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn an_unsigned_gemini_turn_survives_a_change_of_model() {
    let place = Variation {
        signature: turnwire_mock::script::SignaturePlace::Absent,
        ..Variation::default()
    };
    let unsigned = Reply::new()
        .calls([Call::new("look", json!({}))])
        .variation(place);
    let mock = mock([unsigned, Reply::text("Done.")]).await;
    let old = |model: &str| TargetConfig {
        model: model.to_owned(),
        ..target(&mock, Wire::Gemini)
    };
    let asked = request();
    let first = Client::new(config(old("gemini-2.5-flash"))).unwrap();
    let reply = first.ask(asked.clone()).await.result.unwrap();
    let second = Client::new(config(old("gemini-2.5-pro"))).unwrap();

    let done = second.ask(after(&asked, &reply)).await.result.unwrap();

    assert_eq!(done.text, "Done.");
    assert!(bodies(&mock)[1].to_string().contains("look is done"));
}

#[tokio::test]
async fn signatures_of_the_compatible_endpoint_go_back_on_their_call() {
    let mock = mock([signed(Wire::GeminiOpenai), Reply::text("Done.")]).await;
    let client = client(&mock, Wire::GeminiOpenai);
    let asked = request();
    let reply = client.ask(asked.clone()).await.result.unwrap();
    client.ask(after(&asked, &reply)).await.result.unwrap();

    let bodies = bodies(&mock);
    let call = &assistants(&bodies[1])[0]["tool_calls"][0];
    assert_eq!(
        call["extra_content"]["google"]["thought_signature"],
        "SIG-1"
    );
}

#[tokio::test]
async fn signatures_are_never_shown() {
    for wire in [
        Wire::AnthropicMessages,
        Wire::Gemini,
        Wire::OpenaiResponses,
        Wire::GeminiOpenai,
    ] {
        let mock = mock([signed(wire)]).await;
        let outcome = client(&mock, wire).ask(thinking()).await;
        let reply = outcome.result.clone().unwrap();
        let shown = format!("{:?} {} {}", outcome.events, reply.text, reply.reasoning);
        assert!(
            !shown.contains("SIG-1") && !shown.contains("ENC-2"),
            "{wire} {shown}"
        );
    }
}

#[test]
fn a_kept_conversation_holds_the_continuation_unchanged() {
    let value = json!({ "x": "opaque-1", "deep": [{ "y": null }] });
    let message = ChatMessage::Assistant {
        content: Content::Null,
        tool_calls: Vec::new(),
        continuation: Some(Continuation(value.clone())),
    };
    let kept = serde_json::to_string(&message).unwrap();
    let resumed: ChatMessage = serde_json::from_str(&kept).unwrap();
    assert_eq!(resumed, message);
    assert!(
        !serde_json::to_string(&message.logical())
            .unwrap()
            .contains("opaque-1")
    );
}
