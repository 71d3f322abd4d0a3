//! Tool calls in a stream: whole, in pieces, side by side, and damaged.

use serde_json::{Value, json};
use turnwire_mock::script::{FinishPlace, ToolArgs, ToolId, ToolIndex, Variation};
use turnwire_mock::{Call, Edit, Finish, RawEvent, Reply};
use turnwire_spec::llm::Wire;

use super::{Ask, COST, Case, Group, raw, truth::TrueCall, truth::Truth};

fn case(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Tools, id, about, reply.usage(COST))
        .ask(Ask::with_tools())
        .truth(truth)
}

fn paris() -> Value {
    json!({ "city": "Paris \"on\" Séine" })
}

fn weather() -> Call {
    Call::new("get_weather", paris()).id("call_weather_1")
}

fn time() -> Call {
    Call::new("get_time", json!({ "zone": "CET" })).id("call_time_2")
}

fn one() -> Truth {
    Truth::calls([TrueCall::new("get_weather", paris())])
}

fn both() -> Truth {
    Truth::calls([
        TrueCall::new("get_weather", paris()),
        TrueCall::new("get_time", json!({ "zone": "CET" })),
    ])
}

fn varied(calls: Vec<Call>, variation: Variation) -> Reply {
    Reply::new().calls(calls).variation(variation)
}

/// The cases of this group.
pub fn cases(wire: Wire) -> Vec<Case> {
    let own = match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => chat(),
        Wire::OpenaiResponses => responses(),
        Wire::AnthropicMessages => anthropic(),
        Wire::Gemini => gemini(),
    };
    [shared(wire), damaged(wire), own].concat()
}

fn shared(wire: Wire) -> Vec<Case> {
    // Gemini's wire often gives no id, and then the adapter makes one.
    let with_id = match wire {
        Wire::Gemini => one(),
        _ => Truth::calls([TrueCall::new("get_weather", paris()).id("call_weather_1")]),
    };
    let nothing = Call::new("get_time", json!({})).id("call_time_2");
    let same_tool = Call::new("get_weather", json!({ "city": "Rome" })).id("call_weather_2");
    let twice = Truth::calls([
        TrueCall::new("get_weather", paris()),
        TrueCall::new("get_weather", json!({ "city": "Rome" })),
    ]);
    let tagged = json!({ "city": "<think>Paris?</think> Paris" });
    let mut cases = vec![
        case(
            "call-in-pieces",
            "one call",
            Reply::new().calls([weather()]),
            with_id,
        ),
        case(
            "calls-in-turn",
            "two calls, one after the other",
            Reply::new().calls([weather(), time()]),
            both(),
        ),
        case(
            "calls-of-one-tool",
            "two calls of the same tool",
            Reply::new().calls([weather(), same_tool]),
            twice,
        ),
        case(
            "tags-in-arguments",
            "arguments with what looks like thinking in tags",
            Reply::new().calls([Call::new("get_weather", tagged.clone()).id("call_weather_1")]),
            Truth::calls([TrueCall::new("get_weather", tagged)]),
        ),
        case(
            "text-beside-calls",
            "text before the calls",
            Reply::text("Let me see.").calls([weather(), time()]),
            both().beside("Let me see."),
        ),
        case(
            "call-without-arguments/empty",
            "a call with empty arguments",
            Reply::new().calls([nothing.clone()]),
            Truth::calls([TrueCall::new("get_time", json!({}))]),
        ),
        case(
            "call-without-arguments/absent",
            "a call without any arguments",
            varied(
                vec![nothing],
                Variation {
                    tool_args: ToolArgs::Absent,
                    ..Variation::default()
                },
            ),
            Truth::calls([TrueCall::new("get_time", json!({}))]),
        ),
        case(
            "finish-call-length",
            "the token limit was reached within the arguments",
            Reply::new()
                .calls([weather().pieces(["{\"city\":", "\"Par"])])
                .finish(Finish::Length),
            Truth::default().finish("length"),
        ),
    ];
    if wire == Wire::Gemini {
        cases.pop();
    } else {
        let interleaved = Reply::new().interleaved_calls([weather(), time()]);
        cases.push(case(
            "calls-interleaved",
            "pieces of two calls in turns",
            interleaved,
            both(),
        ));
        let longer = weather().pieces(["{\"city\":\"Paris \\\"on\\\" Séine\"}", "\n", " "]);
        cases.push(case(
            "arguments-go-on",
            "pieces come after the arguments were valid JSON",
            Reply::new().calls([longer]),
            one(),
        ));
    }
    cases
}

/// Calls that are not as they should be, and are not lost for that.
fn damaged(wire: Wire) -> Vec<Case> {
    if wire == Wire::Gemini {
        return Vec::new();
    }
    let broken = "{\"city\": \"Par";
    let invalid = weather().pieces(["{\"city\":", " \"Par"]);
    let same = time().id("call_weather_1");
    vec![
        case(
            "invalid-arguments",
            "arguments that are no JSON, with the finish of calls",
            Reply::new().calls([invalid]).finish(Finish::Calls),
            Truth::calls([TrueCall::new("get_weather", Value::from(broken))]).any_finish(),
        ),
        case(
            "same-id-twice",
            "two calls with the same id",
            Reply::new().calls([weather(), same]),
            both(),
        )
        .truth(Truth::bad()),
    ]
}

fn chat() -> Vec<Case> {
    let form = Variation::default;
    let two = || vec![weather(), time()];
    let index = |tool_index, tool_args| Variation {
        tool_index,
        tool_args,
        ..form()
    };
    let id = |tool_id| Variation { tool_id, ..form() };
    let args = |tool_args| Variation {
        tool_args,
        ..form()
    };
    let empty = || Truth::calls([TrueCall::new("get_time", json!({}))]);
    let bare = Call::new("get_time", json!({})).id("call_time_2");
    let name_later = {
        let function = json!({ "index": 0, "function": { "name": "get_weather" } });
        let later = raw::chunk(&json!({ "tool_calls": [function] }), Value::Null);
        let mut edit = Edit::all()
            .nth(0)
            .remove("/choices/0/delta/tool_calls/0/function/name")
            .after(RawEvent::new(later));
        edit.on.contains = Some("call_weather_1".to_owned());
        Reply::new().calls([weather()]).edit(edit)
    };
    let no_type = {
        let mut edit = Edit::all().remove("/choices/0/delta/tool_calls/0/type");
        edit.on.contains = Some("tool_calls".to_owned());
        Reply::new().calls(two()).edit(edit)
    };
    let lists = |value: Value| {
        let mut edit = Edit::all().set("/choices/0/delta/tool_calls", value);
        edit.on.contains = Some("\"delta\":{\"content\"".to_owned());
        Reply::text("Just text.").edit(edit)
    };
    let no_call = || Truth::text("Just text.").finish("stop");
    let with_finish = Variation {
        tool_args: ToolArgs::Whole,
        finish: FinishPlace::WithContent,
        ..form()
    };
    vec![
        case(
            "call-whole/alone",
            "a call in one chunk",
            varied(vec![weather()], args(ToolArgs::Whole)),
            one(),
        ),
        case(
            "call-whole/with-finish",
            "the finish in the same chunk",
            varied(vec![weather()], with_finish),
            one(),
        ),
        case(
            "call-index/absent",
            "calls without an index",
            varied(two(), index(ToolIndex::Missing, ToolArgs::Whole)),
            both(),
        ),
        case(
            "call-index/null",
            "calls whose index is null",
            varied(two(), index(ToolIndex::Null, ToolArgs::Whole)),
            both(),
        ),
        case(
            "call-index/zero",
            "two calls with index 0",
            varied(two(), index(ToolIndex::Zero, ToolArgs::Whole)),
            both(),
        ),
        case(
            "call-index/from-one",
            "indexes that begin with 1",
            varied(two(), index(ToolIndex::FromOne, ToolArgs::Split)),
            both(),
        ),
        case(
            "call-id/repeated",
            "id and name in every piece",
            varied(two(), id(ToolId::EveryDelta)),
            both(),
        ),
        case(
            "call-id/empty-later",
            "an empty id in later pieces",
            varied(two(), id(ToolId::EmptyLater)),
            both(),
        ),
        case(
            "call-id/absent",
            "no id at all",
            varied(two(), id(ToolId::Absent)),
            both(),
        ),
        case(
            "call-id/long",
            "an id of more than 64 characters",
            varied(two(), id(ToolId::Long)),
            both(),
        ),
        case(
            "call-name-later",
            "the name comes after the id",
            name_later,
            one(),
        ),
        case("call-without-type", "calls without a type", no_type, both()),
        case(
            "no-call-lists/empty",
            "empty lists of calls beside text",
            lists(json!([])),
            no_call(),
        ),
        case(
            "no-call-lists/null",
            "null in place of calls beside text",
            lists(Value::Null),
            no_call(),
        ),
        case(
            "argument-forms/object",
            "arguments as an object",
            varied(vec![weather()], args(ToolArgs::Object)),
            one(),
        ),
        case(
            "argument-forms/null",
            "null as arguments",
            varied(vec![bare.clone()], args(ToolArgs::Null)),
            empty(),
        ),
        case(
            "argument-forms/empty",
            "an empty text as arguments",
            Reply::new().calls([bare.pieces([""])]),
            empty(),
        ),
        case(
            "calls-with-stop",
            "whole calls with the finish stop",
            Reply::new().calls(two()).finish(Finish::Stop),
            both().finish("stop"),
        ),
        case(
            "finish-without-calls",
            "the finish of calls without a call",
            Reply::text("No call.").finish(Finish::Calls),
            Truth::text("No call."),
        ),
    ]
}

fn responses() -> Vec<Case> {
    let args = |tool_args| {
        varied(
            vec![weather()],
            Variation {
                tool_args,
                ..Variation::default()
            },
        )
    };
    let without = |kinds: &[&str]| {
        let reply = Reply::new().calls([weather()]);
        kinds
            .iter()
            .fold(reply, |reply, kind| reply.edit(Edit::on(*kind).drop()))
    };
    let (delta, done) = (
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
    );
    vec![
        case(
            "arguments-twice/early",
            "arguments when the item is announced",
            args(ToolArgs::Whole),
            one(),
        ),
        case(
            "arguments-twice/both",
            "the same arguments again in pieces",
            args(ToolArgs::Both),
            one(),
        ),
        case(
            "arguments-without-deltas/done",
            "arguments come when they are done",
            without(&[delta]),
            one(),
        ),
        case(
            "arguments-without-deltas/item",
            "arguments come with the item only",
            without(&[delta, done]),
            one(),
        ),
    ]
}

fn anthropic() -> Vec<Case> {
    let args = |tool_args| {
        varied(
            vec![weather()],
            Variation {
                tool_args,
                ..Variation::default()
            },
        )
    };
    vec![
        case(
            "arguments-twice/early",
            "arguments when the block opens",
            args(ToolArgs::Whole),
            one(),
        ),
        case(
            "arguments-twice/both",
            "the same arguments again in pieces",
            args(ToolArgs::Both),
            one(),
        ),
        case(
            "empty-argument-piece",
            "an empty piece before the arguments",
            Reply::new().calls([weather().pieces([
                "",
                "{\"city\":\"Paris \\\"on\\\" S",
                "éine\"}",
            ])]),
            one(),
        ),
    ]
}

fn gemini() -> Vec<Case> {
    let form = Variation::default;
    let malformed = Reply::new().finish(Finish::Word("MALFORMED_FUNCTION_CALL".to_owned()));
    vec![
        case(
            "calls-in-one-event",
            "both calls in one event",
            varied(
                vec![weather(), time()],
                Variation {
                    calls_together: true,
                    ..form()
                },
            ),
            both(),
        ),
        case(
            "call-ids",
            "calls that have ids",
            varied(
                vec![weather(), time()],
                Variation {
                    call_ids: true,
                    ..form()
                },
            ),
            both(),
        ),
        case(
            "malformed-call",
            "the model wrote a call that cannot be read",
            malformed,
            Truth::error(&["protocol", "server", "stream-interrupted", "malformed-call"]),
        )
        .truth(
            Truth::text("")
                .finish("other")
                .finish("error")
                .finish("malformed-call")
                .finish("MALFORMED_FUNCTION_CALL")
                .finish("malformed_function_call"),
        ),
    ]
}
