//! The page of the LLM wires: paths, events, and one call of each.

use std::fmt::Write as _;

use turnwire_spec::llm::{PATHS, Wire, events, schemas::ALL};

use super::{golden::Golden, schemas};

/// The page.
pub(super) fn page(golden: &Golden) -> String {
    let mut text = String::from("# Reference of the LLM wires\n\n## Paths\n\n");
    for path in PATHS {
        let _ = writeln!(text, "- `{path}`");
    }
    text.push_str("\n## Events\n\n");
    for event in events::types() {
        let _ = writeln!(text, "### {event}\n");
        let suites = Wire::ALL.iter().map(|wire| wire.as_str());
        let example = suites
            .map(|suite| golden.event(suite, event))
            .find(|example| !example.is_empty());
        text.push_str(&example.unwrap_or_default());
        text.push('\n');
    }
    text.push_str("## Answers\n\n");
    for (name, _) in ALL {
        let _ = writeln!(text, "### {name}\n\n{}", schemas::table(name));
    }
    text.push_str("## Chunks\n\n");
    for (wire, mark) in [
        ("openai-chat", "\"choices\":[{"),
        ("gemini", "\"candidates\":[{"),
    ] {
        let _ = writeln!(
            text,
            "### A chunk of {wire}\n\n{}",
            golden.message(wire, mark)
        );
    }
    text
}
