//! The form of the event stream: whatever the standard allows, and what services are known to send.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

use turnwire_mock::Reply;
use turnwire_mock::script::{Faults, Framing, LineEnd};
use turnwire_spec::llm::Wire;

use super::{Case, Group, answer, truth};

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
pub fn cases(_: Wire) -> Vec<Case> {
    let line_end = |line_end| Framing {
        line_end: Some(line_end),
        ..Framing::default()
    };
    let small = Faults {
        write_size: Some(1),
        ..Faults::default()
    };
    let whole = Faults {
        join: true,
        ..Faults::default()
    };
    vec![
        case("clean", "an answer as the service sends it", answer()),
        broken("byte-by-byte", "every byte in a write of its own", small).unsplit(),
        broken("one-packet", "the whole stream in one write", whole),
        framed(
            "line-ends/crlf",
            "lines end with CR LF",
            line_end(LineEnd::CrLf),
        ),
        framed(
            "line-ends/mixed",
            "LF behind fields, CR LF as empty line",
            line_end(LineEnd::Mixed),
        ),
    ]
}
