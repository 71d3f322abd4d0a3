//! How a stream ends, and when: an answer that did not come to its end is none.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::script::{Done, Faults, FinishPlace, Framing, RawReply, Until, Variation};
use turnwire_mock::{Call, CutHow, Edit, Finish, Position, Reply, SocketEnd, SocketReply};
use turnwire_spec::llm::Wire;

use super::{Ask, COST, Case, Group, answer, raw, truth, truth::Truth};

fn case(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Ends, id, about, reply).truth(truth)
}

/// How long a case with a timeout may take in all.
const SOON: Duration = Duration::from_secs(5);
/// How long the provider may be silent in cases about time.
const PATIENCE_MS: u64 = 600;

/// The ways in which a connection ends early.
const HOW: [(&str, CutHow); 3] = [
    ("close", CutHow::Close),
    ("reset", CutHow::Reset),
    ("end", CutHow::End),
];

/// The cases of this group.
pub fn cases(wire: Wire) -> Vec<Case> {
    [
        cuts(wire),
        unfinished(wire),
        complete(wire),
        empty(),
        silence(),
    ]
    .concat()
}

fn cuts(wire: Wire) -> Vec<Case> {
    // Well inside of an event, and before the last one.
    let inside = match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => 700,
        Wire::OpenaiResponses => 2500,
        Wire::AnthropicMessages => 900,
        Wire::Gemini => 450,
    };
    let call = Call::new("get_weather", json!({ "city": "Paris" })).id("call_weather_1");
    let calls = || Reply::new().calls([call.clone()]).usage(COST);
    // The whole of a Gemini call is one event: what is cut is within it.
    let within = match wire {
        Wire::Gemini => Position::Bytes(120),
        _ => Position::Tokens(1),
    };
    let mut cases = Vec::new();
    for (name, how) in HOW {
        let between = answer().cut(Position::Tokens(3), how);
        cases.push(case(
            &format!("cut-between-events/{name}"),
            "after some events",
            between,
            Truth::cut(),
        ));
        let inside = answer().cut(Position::Bytes(inside), how);
        cases.push(case(
            &format!("cut-in-event/{name}"),
            "in the middle of an event",
            inside,
            Truth::cut(),
        ));
        let in_call = calls().cut(within, how);
        cases.push(
            case(
                &format!("cut-in-call/{name}"),
                "within the arguments of a call",
                in_call,
                Truth::cut(),
            )
            .ask(Ask::with_tools()),
        );
        let at_once = answer().cut(Position::Events(0), how);
        cases.push(case(
            &format!("cut-at-once/{name}"),
            "before the first event",
            at_once,
            Truth::cut(),
        ));
    }
    let short = Faults {
        content_length: Some(1 << 20),
        close_after: true,
        ..Faults::default()
    };
    let short = answer()
        .cut(Position::Tokens(3), CutHow::Close)
        .faults(Faults {
            cut: Some(turnwire_mock::Cut {
                after: Position::Tokens(3),
                how: CutHow::Close,
            }),
            ..short
        });
    cases.push(case(
        "cut-between-events/length",
        "with less than the announced length",
        short,
        Truth::cut(),
    ));
    cases
}

/// Streams that end cleanly and lack what ends them.
fn unfinished(wire: Wire) -> Vec<Case> {
    let absent = Framing {
        done: Some(Done::Absent),
        ..Framing::default()
    };
    let finish = |finish| {
        answer().variation(Variation {
            finish,
            ..Variation::default()
        })
    };
    match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => vec![
            case(
                "no-finish/null",
                "null as finish, and [DONE]",
                finish(FinishPlace::Null),
                Truth::cut(),
            ),
            case(
                "no-finish/absent",
                "no finish, and [DONE]",
                finish(FinishPlace::Absent),
                Truth::cut(),
            ),
            case(
                "no-finish/no-done",
                "neither finish nor [DONE]",
                finish(FinishPlace::Null).framing(absent),
                Truth::cut(),
            ),
        ],
        Wire::OpenaiResponses => vec![case(
            "no-terminal-event",
            "no response.completed",
            answer().framing(absent),
            Truth::cut(),
        )],
        Wire::AnthropicMessages => vec![
            case(
                "no-terminal-event",
                "no message_stop",
                answer().framing(absent),
                Truth::cut(),
            ),
            case(
                "no-stop-reason",
                "message_stop without a message_delta",
                answer().edit(Edit::on("message_delta").drop()),
                Truth::cut(),
            ),
        ],
        Wire::Gemini => vec![case(
            "no-finish",
            "no finishReason",
            answer().finish(Finish::Absent),
            Truth::cut(),
        )],
    }
}

/// Streams that are complete, whatever else may happen to them.
fn complete(wire: Wire) -> Vec<Case> {
    let held = Faults {
        hold_open: Duration::from_secs(30),
        ..Faults::default()
    };
    let mut cases = vec![
        case(
            "open-after-end",
            "the connection stays open behind the last event",
            answer().faults(held),
            truth(),
        )
        .within(SOON)
        .unsplit(),
    ];
    if matches!(wire, Wire::OpenaiChat | Wire::GeminiOpenai) {
        let without = Framing {
            done: Some(Done::Absent),
            ..Framing::default()
        };
        let more = raw::chunk(&json!({ "content": " And more." }), Value::Null);
        let behind = Framing {
            done: Some(Done::Line(format!("data: [DONE]\n\ndata: {more}"))),
            ..Framing::default()
        };
        cases.push(case(
            "no-done",
            "a finish and no [DONE]",
            answer().framing(without),
            truth(),
        ));
        cases.push(case(
            "text-after-done",
            "text behind [DONE]",
            answer().framing(behind),
            truth(),
        ));
    }
    cases
}

/// Answers that are none.
fn empty() -> Vec<Case> {
    let garbage = SocketReply::new("220 mail.example.org ESMTP\r\n", SocketEnd::Close);
    vec![
        case(
            "empty-body",
            "a stream without anything in it",
            RawReply::stream([""]).into(),
            Truth::cut(),
        )
        .truth(Truth::bad()),
        case(
            "no-http",
            "what comes is no HTTP",
            garbage.into(),
            Truth::error(&["network", "protocol"]),
        )
        .unsplit(),
    ]
}

/// Providers that take their time.
fn silence() -> Vec<Case> {
    let ask = || Ask::default().option("timeoutMs", PATIENCE_MS);
    let late = Truth::error(&["timeout"]);
    let slow = Duration::from_millis(PATIENCE_MS / 4);
    let timed = |case: Case| case.ask(ask()).within(SOON).unsplit();
    vec![
        timed(case(
            "slow-and-steady",
            "words that come slowly, for longer than the timeout",
            answer().per_token(slow),
            truth(),
        )),
        timed(case(
            "silent/head",
            "no response head",
            answer().headers_after(Duration::from_secs(30)),
            late.clone(),
        )),
        timed(case(
            "silent/first-event",
            "no first event",
            answer().stall(Position::Bytes(0), Until::Never),
            late.clone(),
        )),
        timed(case(
            "silent/between",
            "nothing more after some events",
            answer().stall(Position::Tokens(2), Until::Never),
            late,
        )),
    ]
}
