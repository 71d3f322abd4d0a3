//! The form of the event stream: whatever the standard allows, and what services are known to send.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

use std::time::Duration;

use serde_json::json;
use turnwire_mock::script::{Chunking, Done, Escape, Faults, Framing, LineEnd, RawReply};
use turnwire_mock::{Call, Reply};
use turnwire_spec::llm::Wire;

use super::{Ask, COST, Case, Group, TEXT, answer, raw, truth, truth::TrueCall, truth::Truth};

fn case(id: &str, about: &'static str, reply: Reply) -> Case {
    Case::new(Group::Framing, id, about, reply).truth(truth())
}

fn framed(id: &str, about: &'static str, framing: Framing) -> Case {
    case(id, about, answer().framing(framing))
}

fn broken(id: &str, about: &'static str, faults: Faults) -> Case {
    case(id, about, answer().faults(faults))
}

/// The cases of this group.
pub fn cases(wire: Wire) -> Vec<Case> {
    [
        vec![case("clean", "an answer as the service sends it", answer())],
        pieces(),
        lines(),
        fields(),
        characters(),
        ends(wire),
        names(wire),
        damaged(wire),
    ]
    .concat()
}

/// How the bytes are handed to the connection.
fn pieces() -> Vec<Case> {
    let sized = |size| Faults {
        write_size: Some(size),
        ..Faults::default()
    };
    let whole = Faults {
        join: true,
        ..Faults::default()
    };
    let zipped = Faults {
        gzip: true,
        ..Faults::default()
    };
    let slow = Faults {
        gap: Duration::from_millis(1),
        ..sized(40)
    };
    let place = json!({ "city": "Orléans 你好 👩‍🚀" });
    let call = Call::new("get_weather", place.clone()).id("call_weather_1");
    let cut_call = Reply::new().calls([call]).usage(COST).faults(sized(2));
    vec![
        broken("byte-by-byte", "every byte in a write of its own", sized(1)).unsplit(),
        broken(
            "utf8-cut",
            "writes of two bytes, which end inside characters",
            sized(2),
        )
        .unsplit(),
        Case::new(
            Group::Framing,
            "utf8-cut/arguments",
            "the same in arguments of a call",
            cut_call,
        )
        .ask(Ask::with_tools())
        .truth(Truth::calls([TrueCall::new("get_weather", place)]))
        .unsplit(),
        broken("one-packet", "the whole stream in one write", whole),
        // Who asks for no compression may refuse it.
        broken("gzip", "a compressed stream, asked for or not", zipped)
            .truth(Truth::bad())
            .truth(Truth::cut())
            .unsplit(),
        broken(
            "slow-bytes",
            "pieces of events, with pauses between them",
            slow,
        )
        .unsplit(),
    ]
}

fn lines() -> Vec<Case> {
    let end = |line_end| Framing {
        line_end: Some(line_end),
        ..Framing::default()
    };
    vec![
        framed("line-ends/lf", "lines end with LF", end(LineEnd::Lf)),
        framed("line-ends/crlf", "lines end with CR LF", end(LineEnd::CrLf)),
        framed("line-ends/cr", "lines end with CR", end(LineEnd::Cr)),
        framed(
            "line-ends/mixed",
            "LF behind fields, CR LF as empty line",
            end(LineEnd::Mixed),
        ),
    ]
}

fn fields() -> Vec<Case> {
    let form = Framing::default;
    let comment = Some("keep-alive".to_owned());
    vec![
        framed(
            "bom",
            "a byte order mark before the first event",
            Framing {
                bom: true,
                ..form()
            },
        ),
        framed(
            "comments/between",
            "comments between events",
            Framing {
                comment: comment.clone(),
                ..form()
            },
        ),
        framed(
            "comments/empty",
            "comments without any text",
            Framing {
                comment: Some(String::new()),
                ..form()
            },
        ),
        framed(
            "comments/inside",
            "comments among the lines of an event",
            Framing {
                comment_inside: comment,
                ..form()
            },
        ),
        framed(
            "empty-data",
            "events whose data is empty",
            Framing {
                empty_events: true,
                ..form()
            },
        ),
        framed(
            "events-without-data",
            "events that have a name and no data",
            Framing {
                nameless_pings: true,
                ..form()
            },
        ),
        framed(
            "id-and-retry",
            "lines with id and retry",
            Framing {
                ids: true,
                retry: Some(3000),
                ..form()
            },
        ),
        framed(
            "several-data-lines",
            "the JSON of an event over several data lines",
            Framing {
                multi_line: true,
                ..form()
            },
        ),
        framed(
            "no-blank-behind-colon",
            "no blank behind the colon of a field",
            Framing {
                blanks: Some(0),
                ..form()
            },
        ),
    ]
}

fn characters() -> Vec<Case> {
    let escaped = |escape| Framing {
        escape,
        ..Framing::default()
    };
    let with = |id: &str, about, text: &str| {
        let reply = Reply::text(text).usage(COST);
        Case::new(Group::Framing, id, about, reply)
            .truth(Truth::text(text).finish("stop").usage(COST))
    };
    let long: String = "All work and no play, said Jörg. ".repeat(32 << 10);
    let separators = "one\u{2028}two\u{2029}three\u{85}four";
    let halves: String = TEXT
        .chars()
        .flat_map(|c| {
            std::iter::repeat_n(
                if c.len_utf16() == 2 { '\u{fffd}' } else { c },
                c.len_utf16(),
            )
        })
        .collect();
    let replaced = TEXT.replace(|c: char| c.len_utf16() == 2, "\u{fffd}");
    vec![
        with(
            "line-separators",
            "U+2028, U+2029 and U+0085 within a text",
            separators,
        ),
        framed(
            "escapes/ascii",
            "characters as \\uXXXX",
            escaped(Escape::Ascii),
        ),
        framed(
            "split-surrogates",
            "the halves of a surrogate pair come in two events",
            escaped(Escape::SplitSurrogates),
        )
        .truth(Truth {
            text: Some(halves),
            ..truth()
        })
        .truth(Truth {
            text: Some(replaced),
            ..truth()
        }),
        with("nul", "a text with the character U+0000", "a\u{0}b")
            .truth(Truth::text("ab").finish("stop").usage(COST))
            .truth(Truth::text("a\u{fffd}b").finish("stop").usage(COST)),
        Case::new(
            Group::Framing,
            "long-line",
            "one event of a megabyte",
            Reply::text(long.clone()).chunk(Chunking::Whole).usage(COST),
        )
        .truth(Truth::text(long).finish("stop").usage(COST))
        .unsplit(),
        case(
            "no-charset",
            "a content type without a charset",
            answer().header("content-type", "text/event-stream"),
        ),
    ]
}

/// The end of the stream, as a matter of form.
fn ends(wire: Wire) -> Vec<Case> {
    let done = |done| Framing {
        done: Some(done),
        ..Framing::default()
    };
    let no_blank = Framing {
        no_last_blank: true,
        ..Framing::default()
    };
    let mut cases = vec![framed(
        "no-last-blank",
        "no empty line behind the last event",
        no_blank,
    )];
    match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => {
            for (id, line) in [
                ("tight", "data:[DONE]"),
                ("wide", "data:  [DONE]"),
                ("trailing", "data: [DONE] "),
            ] {
                let framing = done(Done::Line(line.to_owned()));
                cases.push(framed(
                    &format!("done-forms/{id}"),
                    "blanks around [DONE]",
                    framing,
                ));
            }
            cases.push(framed(
                "done-forms/twice",
                "[DONE] twice",
                done(Done::Twice),
            ));
        }
        Wire::OpenaiResponses | Wire::Gemini => {
            cases.push(framed(
                "done-of-others",
                "[DONE], which this wire does not have",
                done(Done::Extra),
            ));
        }
        Wire::AnthropicMessages => {}
    }
    cases
}

/// The `event:` lines.
fn names(wire: Wire) -> Vec<Case> {
    let lines = |lines| Framing {
        event_lines: Some(lines),
        ..Framing::default()
    };
    match wire {
        Wire::OpenaiResponses | Wire::AnthropicMessages => {
            vec![framed(
                "event-lines/absent",
                "no event lines, types in the data only",
                lines(false),
            )]
        }
        Wire::OpenaiChat | Wire::GeminiOpenai | Wire::Gemini => {
            vec![framed(
                "event-lines/extra",
                "event: message in every event",
                lines(true),
            )]
        }
    }
}

/// Bytes that are no UTF-8, and other content types than asked for.
fn damaged(wire: Wire) -> Vec<Case> {
    let mut cases = Vec::new();
    if let Some(stream) = raw::stream(wire, "a@b") {
        let mut hex = String::new();
        for byte in stream.bytes() {
            let byte = if byte == b'@' { 0xff } else { byte };
            hex.push_str(&format!("{byte:02x}"));
        }
        let reply = RawReply {
            hex,
            ..RawReply::stream::<&str>([])
        };
        cases.push(
            Case::new(
                Group::Framing,
                "no-utf8",
                "a byte that is no UTF-8 within a text",
                reply.into(),
            )
            .truth(Truth::text("a\u{fffd}b"))
            .truth(Truth::bad())
            .unsplit(),
        );
    }
    if wire == Wire::Gemini {
        let array = RawReply::new(200, "application/json", raw::array("Hello there"));
        cases.push(
            Case::new(
                Group::Framing,
                "json-array",
                "a JSON array in place of an event stream",
                array.into(),
            )
            .truth(Truth::text("Hello there").finish("stop"))
            .truth(Truth::bad()),
        );
    }
    cases
}
