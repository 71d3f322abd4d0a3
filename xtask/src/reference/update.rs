//! The page of `session-update`: messages, methods, events, errors.

use std::fmt::Write as _;

use turnwire_spec::session_update::{Class, EVENTS, ErrorType, METHODS};

use super::{golden::Golden, schemas};

const SUITE: &str = "session-update";

/// The page.
pub(super) fn page(golden: &Golden) -> String {
    let mut text = String::from("# Reference of session-update\n\n## Messages\n\n");
    for name in ["request", "response", "envelope"] {
        let _ = writeln!(
            text,
            "### {name}\n\n{}",
            schemas::table(&format!("{SUITE}.{name}"))
        );
    }
    text.push_str("## Methods\n\n");
    for row in METHODS {
        let _ = writeln!(text, "### {}\n\n{}\n", row.name, row.about);
        let name = row.name.replace('/', ".");
        if row.params.is_some() {
            let _ = writeln!(
                text,
                "Parameters. {}",
                schemas::table(&format!("{SUITE}.params.{name}"))
            );
        }
        let _ = writeln!(
            text,
            "Result. {}",
            schemas::table(&format!("{SUITE}.result.{name}"))
        );
        text.push_str(&golden.message(SUITE, &format!("\"method\":\"{}\"", row.name)));
        text.push('\n');
    }
    text.push_str("## Events\n\n");
    for row in EVENTS {
        let _ = writeln!(text, "### {}\n\n- class: {}\n", row.name, class(row.class));
        if row.members.is_some() {
            text.push_str(&schemas::table(&format!("{SUITE}.event.{}", row.name)));
        }
        text.push_str(&golden.message(SUITE, &format!("\"type\":\"{}\"", row.name)));
        text.push('\n');
    }
    text.push_str("## Errors\n\n| type |\n| --- |\n");
    for kind in ErrorType::ALL {
        let _ = writeln!(text, "| `{kind}` |");
    }
    text.push('\n');
    for kind in ErrorType::ALL {
        let example = golden.message(SUITE, &format!("\"error\":{{\"type\":\"{kind}\""));
        if !example.is_empty() {
            let _ = writeln!(text, "### {kind}\n\n{example}");
        }
    }
    text
}

fn class(class: Class) -> String {
    match class {
        Class::Stated(class) => format!("{class}, as the seed says"),
        Class::Public(class) => format!("{class}, from public sources"),
        Class::ByState => "durable when the state is terminal".to_owned(),
    }
}
