//! What every wire can say, plain and streamed.

use super::*;
use turnwire_mock::script::ReasoningField;
use turnwire_mock::{Call, Finish, Reasoning, Usage, Variation};

fn thinks(wire: Wire) -> ModelRequest {
    let thinking = (wire != Wire::OpenaiChat).then(|| Thinking {
        budget_tokens: (wire != Wire::OpenaiResponses).then_some(2_048),
        ..Thinking::default()
    });
    ModelRequest {
        options: CallOptions {
            thinking,
            ..CallOptions::default()
        },
        ..request()
    }
}

/// An answer that thinks where each wire has a place for it.
fn thinking_reply(wire: Wire) -> Reply {
    let field = match wire {
        Wire::OpenaiChat => ReasoningField::ReasoningContent,
        Wire::GeminiOpenai => ReasoningField::ThoughtTags,
        _ => ReasoningField::None,
    };
    Reply::new().variation(Variation {
        reasoning_field: field,
        ..Variation::default()
    })
}

async fn on_every_wire(
    reply: impl Fn(Wire) -> Reply,
    request: impl Fn(Wire) -> ModelRequest,
    check: impl Fn(Wire, &str, &Outcome, &ModelReply),
) {
    for wire in Wire::ALL {
        for streaming in [true, false] {
            let mock = mock([reply(wire)]).await;
            let request = ModelRequest {
                streaming,
                ..request(wire)
            };
            let outcome = client(&mock, wire).ask(request).await;
            let about = format!("{wire}, streaming {streaming}");
            let reply = outcome
                .result
                .as_ref()
                .unwrap_or_else(|error| panic!("{about}: {error:?}"));
            check(wire, &about, &outcome, reply);
            bodies(&mock);
        }
    }
}

#[tokio::test]
async fn text_thinking_usage_and_finish_are_the_same_on_every_wire() {
    let usage = Usage {
        input: 100,
        output: 50,
        cached: 40,
        reasoning: 30,
        ..Usage::default()
    };
    on_every_wire(
        |wire| {
            let reply = thinking_reply(wire).reasoning(Reasoning::from("R-thought"));
            reply.pieces(["T-", "ans", "wer é你"]).usage(usage)
        },
        thinks,
        |wire, about, outcome, reply| {
            assert_eq!(reply.text, "T-answer é你", "{about}");
            assert_eq!(reply.reasoning, "R-thought", "{about}");
            assert_eq!(
                texts(outcome),
                (reply.text.clone(), reply.reasoning.clone()),
                "{about}"
            );
            assert_eq!(reply.finish, FinishReason::Stop, "{about}");
            assert_eq!(reply.usage.input_tokens, Some(100), "{about}");
            assert_eq!(reply.usage.output_tokens, Some(50), "{about}");
            // The compatible endpoint says nothing about its cache.
            let cached = (wire != Wire::GeminiOpenai).then_some(40);
            assert_eq!(reply.usage.cached_input_tokens, cached, "{about}");
            assert_eq!(
                reply.target.model.as_deref(),
                Some(model_of(wire)),
                "{about}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn an_answer_without_thinking_has_none() {
    on_every_wire(
        |_| Reply::text("hi"),
        |_| request(),
        |_, about, outcome, reply| {
            assert_eq!(reply.reasoning, "", "{about}");
            let thinks = |event: &ModelEvent| matches!(event, ModelEvent::Reasoning(_));
            assert!(!outcome.events.iter().any(thinks), "{about}");
        },
    )
    .await;
}

#[tokio::test]
async fn parallel_and_interleaved_calls_are_whole_on_every_wire() {
    on_every_wire(
        |_| {
            Reply::new().say("Looking.").interleaved_calls([
                Call::new("look", json!({ "a": 1 })).pieces(["{\"a\"", ":1}"]),
                Call::new("take", json!({})),
            ])
        },
        |_| request(),
        |_, about, outcome, reply| {
            let calls: Vec<_> = reply
                .tool_calls
                .iter()
                .map(|call| (call.name.as_str(), call.parsed().unwrap()))
                .collect();
            assert_eq!(
                calls,
                [("look", json!({ "a": 1 })), ("take", json!({}))],
                "{about}"
            );
            assert_ne!(reply.tool_calls[0].id, reply.tool_calls[1].id, "{about}");
            assert_eq!(reply.finish, FinishReason::ToolCalls, "{about}");
            assert_eq!(reply.text, "Looking.", "{about}");
            let is_call = |event: &&ModelEvent| matches!(event, ModelEvent::ToolCall(_));
            assert!(
                outcome.events.iter().filter(is_call).count() >= 2,
                "{about}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn the_results_of_calls_satisfy_every_service() {
    for wire in Wire::ALL {
        let calls = [
            Call::new("look", json!({ "a": 1 })),
            Call::new("take", json!({ "a": 2 })),
        ];
        let first = thinking_reply(wire)
            .reasoning(Reasoning::from("hm"))
            .calls(calls);
        let mock = mock([first, Reply::text("Done.")]).await;
        let client = client(&mock, wire);
        let request = thinks(wire);

        let reply = client.ask(request.clone()).await.result.unwrap();
        let done = client.ask(after(&request, &reply)).await.result;

        assert_eq!(
            done.map(|reply| reply.text),
            Ok("Done.".to_owned()),
            "{wire}"
        );
        assert_eq!(bodies(&mock).len(), 2);
    }
}

#[tokio::test]
async fn history_from_elsewhere_satisfies_every_service() {
    for wire in Wire::ALL {
        let mock = mock([Reply::text("Done.")]).await;
        let mut request = request();
        let call = |id: &str, arguments: &str| ToolRequest {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: arguments.to_owned(),
        };
        let result = |id: &str, text: &str| ChatMessage::Tool {
            tool_call_id: id.to_owned(),
            content: text.into(),
        };
        let long = "functions.look:0".repeat(6);
        request.messages.extend([
            ChatMessage::Assistant {
                content: Content::Null,
                tool_calls: vec![call("call_1", "{oops"), call(&long, "{\"a\":1}")],
                continuation: None,
            },
            result(&long, "{\"seen\":true}"),
            result("call_1", "nothing"),
            user("and now?"),
            ChatMessage::Assistant {
                content: "Nothing.".into(),
                tool_calls: Vec::new(),
                continuation: Some(Continuation(json!({ "x": "opaque-1" }))),
            },
            user("go on"),
        ]);

        let done = client(&mock, wire).ask(request).await.result;

        assert_eq!(
            done.map(|reply| reply.text),
            Ok("Done.".to_owned()),
            "{wire}"
        );
        let text = bodies(&mock)[0].to_string();
        assert!(
            !text.contains("opaque-1") && !text.contains("\"null\""),
            "{text}"
        );
    }
}

#[tokio::test]
async fn an_object_is_asked_for_in_each_wires_form_and_validated() {
    let schema = json!({ "type": "object", "required": ["name"], "additionalProperties": false,
        "properties": { "name": { "type": "string" } } });
    let with_schema = ModelRequest {
        tools: Vec::new(),
        options: CallOptions {
            response_schema: Some(schema.clone()),
            ..CallOptions::default()
        },
        ..request()
    };
    for wire in Wire::ALL {
        let mock = mock([
            Reply::json(&json!({ "name": "Ann" })),
            Reply::json(&json!({})),
        ])
        .await;
        let client = client(&mock, wire);

        let good = client.ask(with_schema.clone()).await.result.unwrap();
        let bad = client.ask(with_schema.clone()).await;

        assert_eq!(good.object, Some(json!({ "name": "Ann" })), "{wire}");
        assert_eq!(kind_of(&bad), Some(ErrorKind::InvalidOutput), "{wire}");
        let body = &bodies(&mock)[0];
        let place = match wire {
            Wire::OpenaiChat | Wire::GeminiOpenai => "/response_format/json_schema/schema",
            Wire::OpenaiResponses => "/text/format/schema",
            Wire::AnthropicMessages => "/output_config/format/schema",
            Wire::Gemini => "/generationConfig/responseJsonSchema",
        };
        assert_eq!(body.pointer(place), Some(&schema), "{wire}");
    }
}

#[tokio::test]
async fn every_finish_has_its_meaning_on_every_wire() {
    for (finish, expected) in [
        (Finish::Stop, FinishReason::Stop),
        (Finish::Length, FinishReason::Length),
        (Finish::Filter, FinishReason::ContentFilter),
    ] {
        on_every_wire(
            |_| Reply::text("some").finish(finish.clone()),
            |_| request(),
            |_, about, _, reply| assert_eq!(reply.finish, expected, "{about}"),
        )
        .await;
    }
}

#[tokio::test]
async fn a_refusal_is_no_answer() {
    for wire in [
        Wire::OpenaiChat,
        Wire::OpenaiResponses,
        Wire::AnthropicMessages,
    ] {
        for streaming in [true, false] {
            let mock = mock([Reply::new().refusal("I won't.").finish(Finish::Refusal)]).await;
            let request = ModelRequest {
                streaming,
                ..request()
            };
            let reply = client(&mock, wire).ask(request).await.result.unwrap();
            assert_eq!(
                reply.finish,
                FinishReason::ContentFilter,
                "{wire} {streaming}"
            );
            assert_eq!(reply.text, "", "{wire} {streaming}");
            assert!(reply.refusal.is_some(), "{wire} {streaming}");
        }
    }
}

#[tokio::test]
async fn a_blocked_prompt_is_no_empty_success() {
    let blocked = Reply::new().finish(Finish::PromptBlocked("SAFETY".into()));
    let mock = mock([blocked]).await;
    let reply = client(&mock, Wire::Gemini)
        .ask(request())
        .await
        .result
        .unwrap();
    assert_eq!(reply.finish, FinishReason::ContentFilter);
    assert!(reply.refusal.is_some_and(|why| why.contains("SAFETY")));
}

#[tokio::test]
async fn without_usage_the_cost_is_unknown_and_not_zero() {
    on_every_wire(
        |_| Reply::text("hi").without_usage(),
        |_| request(),
        |_, about, _, reply| assert_eq!(reply.usage.output_tokens, None, "{about}"),
    )
    .await;
}

#[tokio::test]
async fn gemini_is_called_by_its_methods_and_asks_for_nothing_else() {
    let mock = mock([Reply::text("hi")]).await;
    let client = client(&mock, Wire::Gemini);
    for streaming in [true, false] {
        let request = ModelRequest {
            streaming,
            ..request()
        };
        client.ask(request).await.result.unwrap();
    }
    let paths: Vec<_> = mock.journal().into_iter().map(|entry| entry.path).collect();
    assert_eq!(
        paths,
        [
            "/v1beta/models/gemini-3-pro:streamGenerateContent",
            "/v1beta/models/gemini-3-pro:generateContent"
        ]
    );
    let body = &bodies(&mock)[0];
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert!(!body.to_string().contains("responseModalities"));
}

#[tokio::test]
async fn azure_is_given_the_key_in_its_own_header_and_the_version_with_every_request() {
    for wire in [Wire::OpenaiChat, Wire::OpenaiResponses] {
        let mock = mock([Reply::text("hi")]).await;
        let url = format!("http://{}/openai?api-version=2024-10-21", mock.addr());
        let target = TargetConfig::new(wire, &url, "gpt-5.2").key("sk-test");
        let client = Client::new(config(target)).unwrap();
        client.ask(request()).await.result.unwrap();

        let entry = &mock.journal()[0];
        assert_eq!(entry.query.as_deref(), Some("api-version=2024-10-21"));
        let names = entry.headers.iter().map(|(name, _)| name.as_str());
        let keys: Vec<_> = names
            .filter(|name| ["api-key", "authorization"].contains(name))
            .collect();
        assert_eq!(keys, ["api-key"], "{wire}");
    }
}

#[tokio::test]
async fn options_of_google_reach_the_native_request() {
    let mock = mock([Reply::text("hi")]).await;
    let mut asked = request();
    asked.messages.remove(0);
    let google = json!({ "thinkingConfig": { "thinkingBudget": 7 }, "cachedContent": "cachedContents/x1",
        "seed": 99 });
    asked
        .options
        .provider_options
        .insert("google".to_owned(), google);

    client(&mock, Wire::Gemini).ask(asked).await.result.unwrap();

    let body = &bodies(&mock)[0];
    assert_eq!(
        body["generationConfig"]["thinkingConfig"],
        json!({ "thinkingBudget": 7 })
    );
    assert_eq!(body["generationConfig"]["seed"], 99);
    assert_eq!(body["cachedContent"], "cachedContents/x1");
}

#[tokio::test]
async fn an_answer_that_is_to_be_continued_goes_on_in_another_request() {
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    let token = turnwire_mock::Edit::all()
        .nth(-1)
        .set("/candidates/0/continuationToken", "more-1");
    let first = Reply::text("one, ")
        .usage(usage)
        .finish(Finish::Word("CONTINUATION".into()))
        .edit(token);
    let mock = mock([first, Reply::text("two").usage(usage)]).await;

    let reply = client(&mock, Wire::Gemini)
        .ask(request())
        .await
        .result
        .unwrap();

    assert_eq!(reply.text, "one, two");
    assert_eq!(reply.usage.output_tokens, Some(10));
    assert_eq!(bodies(&mock)[1]["continuationToken"], "more-1");
}

#[tokio::test]
async fn responses_go_on_from_one_history_only() {
    let mock = mock([Reply::text("one"), Reply::text("two")]).await;
    let client = client(&mock, Wire::OpenaiResponses);
    let first = client.ask(request()).await.result.unwrap();
    let mut next = ModelRequest {
        messages: vec![user("Go on.")],
        ..request()
    };
    let openai = json!({ "previousResponseId": first.stored, "conversation": "conv_1" });
    next.options
        .provider_options
        .insert("openai".to_owned(), openai);

    let second = client.ask(next).await.result.unwrap();

    let body = &bodies(&mock)[1];
    assert!(body["previous_response_id"].is_string(), "{body}");
    assert_eq!(json!(first.stored), body["previous_response_id"]);
    assert!(body["conversation"].is_null(), "{body}");
    assert_ne!(second.stored, first.stored);
}
