//! Text and the members around it: what is there, what is not, and what nobody knows.

use serde_json::{Value, json};
use turnwire_mock::script::{
    Chunking, ContentForm, ExtraFields, Finish, FinishPlace, Keepalive, Part, RolePlace, Variation,
};
use turnwire_mock::{Edit, RawEvent, Reply};
use turnwire_spec::llm::Wire;

use super::{COST, Case, Group, TEXT, answer, raw, truth, truth::Truth};

fn case(id: &str, about: &'static str, reply: Reply) -> Case {
    Case::new(Group::Text, id, about, reply).truth(truth())
}

/// A case with a finish, or a text, of its own.
fn other(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Text, id, about, reply.usage(COST)).truth(truth)
}

/// Events that contain this text.
fn holding(text: &str) -> Edit {
    let mut edit = Edit::all();
    edit.on.contains = Some(text.to_owned());
    edit
}

/// The cases of this group.
pub fn cases(wire: Wire) -> Vec<Case> {
    let own = match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => chat(),
        Wire::OpenaiResponses => responses(),
        Wire::AnthropicMessages => anthropic(),
        Wire::Gemini => gemini(),
    };
    [
        shared(wire),
        repeated(),
        odd_json(wire),
        finishes(wire),
        own,
    ]
    .concat()
}

/// Deltas that look as if they were cumulative, or sent twice.
fn repeated() -> Vec<Case> {
    let pieces = |id: &str, about, pieces: &[&str]| {
        let reply = Reply::new().pieces(pieces.iter().copied());
        let truth = Truth::text(pieces.concat());
        other(id, about, reply, truth.finish("stop").usage(COST))
    };
    vec![
        pieces(
            "repeated-text/same",
            "three deltas with the same text",
            &["ha", "ha", "ha"],
        ),
        pieces(
            "repeated-text/growing",
            "deltas of which each begins with all text so far",
            &["ha", "haha", "hahahaha, so"],
        ),
    ]
}

/// JSON that is valid and that few services write.
fn odd_json(wire: Wire) -> Vec<Case> {
    let odd = |id: &str, about, edit: Edit| {
        case(id, about, answer().edit(edit))
            .truth(Truth::bad())
            .truth(Truth::cut())
    };
    // An event that says nothing, with two names twice and a number with an exponent.
    let twice = match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => RawEvent::new(
            r#"{"id":"a","id":"b","object":"chat.completion.chunk","created":1e0,"choices":[],"choices":[]}"#,
        ),
        Wire::OpenaiResponses => RawEvent::named(
            "response.sparkle",
            r#"{"type":"response.sparkle","type":"response.sparkle","x":1,"x":1e0}"#,
        ),
        Wire::AnthropicMessages => {
            RawEvent::named("ping", r#"{"type":"ping","type":"ping","x":1,"x":1e0}"#)
        }
        Wire::Gemini => RawEvent::new(r#"{"candidates":[],"candidates":[],"x":1,"x":1e0}"#),
    };
    let deep = (0..DEEP).fold(Value::Null, |inner, _| json!([inner]));
    vec![
        odd(
            "json-forms/twice",
            "names that stand twice in an object",
            Edit::all().nth(1).before(twice),
        ),
        odd(
            "json-forms/deep",
            "a member that is nested very deeply",
            Edit::all().nth(1).set("/x_deep", deep),
        ),
    ]
}

/// Nested lists: more than some parsers follow, and few enough for any stack.
const DEEP: usize = 300;

/// What every wire has.
fn shared(wire: Wire) -> Vec<Case> {
    let exactly = |id: &str, about, text: &str| {
        let reply = Reply::text(text).chunk(Chunking::Whole);
        other(
            id,
            about,
            reply,
            Truth::text(text).finish("stop").usage(COST),
        )
    };
    let pieces = ["", "Hé", "", "", "llo", ""];
    let with_empty = Reply::new().pieces(pieces);
    let alive = || Part::Keepalive(Keepalive::Ping);
    let (first, second) = TEXT.split_at(10);
    let kept = Reply::new()
        .part(alive())
        .say(first)
        .part(alive())
        .part(alive())
        .say(second);
    let unknown = Edit::all().set(
        "/x_unknown",
        json!({ "list": [1, "two", null], "deep": { "er": true } }),
    );
    // The end marker of Chat Completions is no JSON and stays as it is.
    let extra = Variation {
        extra_fields: ExtraFields::Random,
        ..Variation::default()
    };
    let members = match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => answer().variation(extra),
        _ => answer().edit(unknown),
    };
    vec![
        case(
            "small-deltas",
            "one character a delta",
            answer().chunk(Chunking::Chars(1)),
        ),
        case(
            "one-delta",
            "the whole text in one delta",
            answer().chunk(Chunking::Whole),
        ),
        other(
            "empty-deltas",
            "deltas without any text",
            with_empty,
            Truth::text("Héllo").finish("stop").usage(COST),
        ),
        exactly("white-space/newline", "an answer that is one newline", "\n"),
        exactly(
            "white-space/around",
            "blanks at both ends of an answer",
            "  two blanks \n\n",
        ),
        case(
            "keep-alives",
            "signs of life before and between the deltas",
            kept.usage(COST),
        ),
        case(
            "unknown-members",
            "members that nobody knows, in every event",
            members,
        ),
        other(
            "empty-answer",
            "an answer with nothing in it",
            Reply::new(),
            Truth::text("").finish("stop").usage(COST),
        ),
    ]
}

/// Why an answer ends.
fn finishes(wire: Wire) -> Vec<Case> {
    let whole = || Truth::text(TEXT).usage(COST);
    let ended = |finish| answer().finish(finish);
    let mut cases = vec![
        other(
            "finish-length",
            "the token limit was reached",
            ended(Finish::Length),
            whole().finish("length"),
        ),
        other(
            "finish-filter",
            "the service's filter stopped the answer",
            ended(Finish::Filter),
            Truth::default().finish("content-filter").finish("refusal"),
        )
        .truth(Truth::error(&["content-filter"])),
    ];
    if wire != Wire::OpenaiResponses {
        let word = if wire == Wire::Gemini {
            "SPARKLE"
        } else {
            "sparkle"
        };
        let unknown = other(
            "finish-unknown",
            "a reason to finish that nobody knows",
            ended(Finish::Word(word.to_owned())),
            whole()
                .finish("other")
                .finish("unknown")
                .finish(word)
                .finish("sparkle"),
        );
        cases.push(unknown);
    }
    if wire == Wire::AnthropicMessages {
        let stopped = ended(Finish::StopSequence("END".to_owned()));
        cases.push(other(
            "finish-stop-sequence",
            "a stop sequence came up",
            stopped,
            whole().finish("stop"),
        ));
    }
    if matches!(
        wire,
        Wire::OpenaiChat | Wire::GeminiOpenai | Wire::OpenaiResponses
    ) {
        let refused = Truth::text("")
            .finish("content-filter")
            .finish("refusal")
            .finish("stop")
            .finish("other");
        cases.push(
            other(
                "refusal",
                "a refusal in place of text",
                Reply::new().refusal("I will not."),
                refused,
            )
            .truth(Truth::error(&["content-filter"])),
        );
    }
    cases
}

fn chat() -> Vec<Case> {
    let varied = |variation| answer().variation(variation);
    let form = Variation::default;
    let role = |role| varied(Variation { role, ..form() });
    let content = |content| varied(Variation { content, ..form() });
    let finish = |finish| varied(Variation { finish, ..form() });
    let extra = |choices: Value| {
        let mut event = raw::chunk(&json!({}), Value::Null);
        event["choices"] = choices;
        RawEvent::new(event)
    };
    let around = |choices: Value| {
        answer()
            .edit(holding("\"wörld,").before(extra(choices.clone())))
            .edit(Edit::all().nth(0).before(extra(choices)))
    };
    let mut no_choices = raw::chunk(&json!({}), Value::Null);
    if let Some(members) = no_choices.as_object_mut() {
        members.remove("choices");
    }
    let without = answer().edit(Edit::all().nth(0).before(RawEvent::new(no_choices)));
    let second = |delta: Value, finish: Value| {
        let mut chunk = raw::chunk(&delta, finish);
        chunk["choices"][0]["index"] = 1.into();
        RawEvent::new(chunk)
    };
    let opened = second(
        json!({ "role": "assistant", "content": "Other " }),
        Value::Null,
    );
    let ended = second(json!({ "content": "words" }), json!("length"));
    let two = answer()
        .edit(Edit::all().nth(2).before(opened))
        .edit(Edit::all().nth(4).before(ended));
    vec![
        case(
            "role-forms/absent",
            "no role in any delta",
            role(RolePlace::Absent),
        ),
        case(
            "role-forms/empty",
            "an empty role in every delta",
            role(RolePlace::Empty),
        ),
        case(
            "role-forms/every",
            "the role in every delta",
            role(RolePlace::Every),
        ),
        case(
            "content-forms/null",
            "null content where there is no text",
            content(ContentForm::Null),
        ),
        case(
            "content-forms/absent",
            "no content where there is no text",
            content(ContentForm::Absent),
        ),
        case(
            "content-forms/list",
            "content as a list of parts",
            content(ContentForm::Array),
        ),
        case(
            "odd-choices/empty-delta",
            "choices with an empty delta",
            around(json!([{ "index": 0, "delta": {}, "finish_reason": null }])),
        ),
        case(
            "odd-choices/null-delta",
            "choices with a null delta",
            around(json!([{ "index": 0, "delta": null, "finish_reason": null }])),
        ),
        case(
            "odd-choices/no-delta",
            "choices without a delta",
            around(json!([{ "index": 0, "finish_reason": null }])),
        ),
        case(
            "empty-choices/list",
            "chunks whose choices are an empty list",
            around(json!([])),
        ),
        case(
            "empty-choices/null",
            "chunks whose choices are null",
            around(Value::Null),
        ),
        case("empty-choices/absent", "a chunk without choices", without),
        case("two-choices", "chunks of another choice in between", two),
        case(
            "choice-index/absent",
            "choices without an index",
            answer().edit(Edit::all().remove("/choices/0/index")),
        ),
        case(
            "choice-index/one",
            "the only choice has index 1",
            answer().edit(holding("\"delta\"").set("/choices/0/index", 1)),
        ),
        case(
            "finish-forms/with-content",
            "the finish in the last delta",
            finish(FinishPlace::WithContent),
        ),
        case(
            "finish-forms/empty",
            "an empty finish in every chunk but the last",
            finish(FinishPlace::Empty),
        ),
        case(
            "finish-forms/twice",
            "the finish in two chunks",
            finish(FinishPlace::Twice),
        ),
    ]
}

fn responses() -> Vec<Case> {
    let without = |kinds: &[&str]| {
        kinds
            .iter()
            .fold(answer(), |reply, kind| reply.edit(Edit::on(*kind).drop()))
    };
    let sparkle = json!({ "type": "response.sparkle.delta", "sequence_number": 3, "delta": "✨" });
    vec![
        case(
            "unknown-events",
            "events of a type that nobody knows",
            answer().edit(
                Edit::on("response.output_text.delta")
                    .nth(1)
                    .before(RawEvent::named("response.sparkle.delta", sparkle)),
            ),
        ),
        case(
            "missing-events/created",
            "no response.created",
            without(&["response.created"]),
        ),
        case(
            "missing-events/part-added",
            "no response.content_part.added",
            without(&["response.content_part.added"]),
        ),
        case(
            "missing-events/item-added",
            "neither item nor part is announced",
            without(&["response.output_item.added", "response.content_part.added"]),
        ),
        case(
            "text-without-deltas/done",
            "the text comes in output_text.done and later only",
            without(&["response.output_text.delta"]),
        ),
        case(
            "text-without-deltas/item",
            "the text comes in output_item.done and later only",
            without(&[
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
            ]),
        ),
        case(
            "empty-output",
            "the last event repeats nothing of the output",
            answer().edit(Edit::on("response.completed").set("/response/output", json!([]))),
        ),
        case(
            "sequence-numbers/absent",
            "no sequence numbers",
            answer().edit(Edit::all().remove("/sequence_number")),
        ),
        case(
            "sequence-numbers/constant",
            "the same sequence number in every event",
            answer().edit(Edit::all().set("/sequence_number", 4)),
        ),
        case(
            "item-ids",
            "the item has another id when it is done",
            answer().edit(Edit::on("response.output_item.done").set("/item/id", "msg_other")),
        ),
    ]
}

fn anthropic() -> Vec<Case> {
    let named =
        |value: Value| RawEvent::named(value["type"].as_str().unwrap_or_default(), value.clone());
    let before_end = |events: Vec<Value>| {
        let edit = events
            .into_iter()
            .fold(Edit::on("message_delta"), |edit, event| {
                edit.before(named(event))
            });
        answer().edit(edit)
    };
    let block = json!({ "type": "content_block_start", "index": 9, "content_block": { "type": "sparkle", "glitter": 3 } });
    let delta = json!({ "type": "content_block_delta", "index": 9, "delta": { "type": "sparkle_delta", "glitter": "✨" } });
    let stop = json!({ "type": "content_block_stop", "index": 9 });
    let odd_delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "sparkle_delta", "glitter": "✨" } });
    let ghost = json!({ "type": "content_block_delta", "index": 7, "delta": { "type": "text_delta", "text": "ghost" } });
    let again = json!({
        "type": "message_delta", "delta": { "stop_reason": null, "stop_sequence": null },
        "usage": { "output_tokens": 7 },
    });
    vec![
        case(
            "unknown-events",
            "an event of a type that nobody knows",
            answer().edit(
                Edit::on("content_block_delta")
                    .nth(1)
                    .before(named(json!({ "type": "sparkle", "glitter": 1 }))),
            ),
        ),
        case(
            "unknown-blocks",
            "a block of a type that nobody knows",
            before_end(vec![block, delta, stop]),
        ),
        case(
            "unknown-deltas",
            "a delta of a type that nobody knows",
            answer().edit(Edit::on("content_block_start").after(named(odd_delta))),
        ),
        case(
            "delta-without-start",
            "a delta of a block that was never opened",
            before_end(vec![ghost]),
        )
        .truth(Truth::bad()),
        case(
            "text-in-start",
            "the block opens with text",
            answer().edit(Edit::on("content_block_start").set("/content_block/text", "So: ")),
        )
        .only(
            Truth::text(format!("So: {TEXT}"))
                .finish("stop")
                .usage(COST),
        ),
        case(
            "second-start",
            "message_start comes twice",
            answer().edit(Edit::on("message_start").twice()),
        ),
        case(
            "second-message-delta",
            "a second message_delta has no stop reason",
            answer().edit(Edit::on("message_delta").after(named(again))),
        ),
        Case::new(
            Group::Text,
            "refusal",
            "the model refuses after some text",
            answer().finish(Finish::Refusal),
        )
        .truth(Truth::default().finish("content-filter").finish("refusal"))
        .truth(Truth::error(&["content-filter"])),
    ]
}

fn gemini() -> Vec<Case> {
    let before_last =
        |value: Value| answer().edit(Edit::all().nth(-1).before(RawEvent::new(value)));
    let blocked = Reply::new().finish(Finish::PromptBlocked("SAFETY".to_owned()));
    vec![
        case(
            "empty-candidates/no-content",
            "a candidate without content",
            before_last(json!({ "candidates": [{ "index": 0 }] })),
        ),
        case(
            "empty-candidates/no-parts",
            "a content without parts",
            before_last(json!({ "candidates": [{ "index": 0, "content": { "role": "model" } }] })),
        ),
        case(
            "empty-candidates/empty-parts",
            "an empty list of parts",
            before_last(
                json!({ "candidates": [{ "index": 0, "content": { "role": "model", "parts": [] } }] }),
            ),
        ),
        case(
            "empty-candidates/none",
            "an empty list of candidates",
            before_last(json!({ "candidates": [] })),
        ),
        case(
            "unknown-parts",
            "a part of a kind that nobody knows",
            before_last(json!({
                "candidates": [{ "index": 0, "content": { "role": "model", "parts": [{ "sparkle": { "glitter": 3 } }] } }],
            })),
        ),
        Case::new(
            Group::Text,
            "prompt-blocked",
            "the prompt was blocked",
            blocked,
        )
        .truth(Truth::default().finish("content-filter"))
        .truth(Truth::error(&["content-filter"])),
    ]
}
