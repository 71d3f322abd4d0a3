//! How a stream ends, and when: an answer that did not come to its end is none.

use turnwire_mock::{CutHow, Position, Reply};
use turnwire_spec::llm::Wire;

use super::{Case, Group, answer, truth::Truth};

fn case(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Ends, id, about, reply).truth(truth)
}

/// The cases of this group.
pub fn cases(_: Wire) -> Vec<Case> {
    vec![case(
        "cut-in-text/close",
        "the connection is closed after some words",
        answer().cut(Position::Tokens(3), CutHow::Close),
        Truth::cut(),
    )]
}
