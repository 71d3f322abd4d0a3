//! The page of `chat-ws`: frames and close codes.

use std::fmt::Write as _;

use turnwire_spec::{
    catalogue::messages::Sender,
    chat_ws::{KINDS, close::CLOSE_CODES, kinds::Reach},
};

use super::{golden::Golden, requirements, schemas};

const SUITE: &str = "chat-ws";

/// The page.
pub(super) fn page(golden: &Golden) -> String {
    let mut text = String::from("# Reference of chat-ws\n\n");
    for (title, sender) in [
        ("Frames of a client", Sender::Client),
        ("Frames of a server", Sender::Server),
    ] {
        let _ = writeln!(text, "## {title}\n");
        for kind in KINDS.iter().filter(|kind| kind.from == sender) {
            let _ = writeln!(text, "### {}\n\nWhen {}.\n", kind.name, kind.when);
            let _ = writeln!(text, "- goes to: {}", reach(kind.reach));
            let _ = writeln!(text, "- source: seed 004, line {}", kind.line);
            let links = requirements::of_lines("004", kind.line, kind.line);
            if !links.is_empty() {
                let _ = writeln!(text, "- requirements: {links}");
            }
            let schema = turnwire_spec::schema::named(&kind.schema_name());
            let schema = schema.map(|schema| schema.to_value()).unwrap_or_default();
            let payload = payload(&schema);
            let _ = writeln!(
                text,
                "\nPayload. {}",
                schemas::of(&kind.schema_name(), &payload)
            );
            text.push_str(&golden.message(SUITE, &format!("\"type\":\"{}\"", kind.name)));
            text.push('\n');
        }
    }
    text.push_str("## Close codes\n\n| code | when |\n| --- | --- |\n");
    for row in CLOSE_CODES {
        let _ = writeln!(text, "| {} | {} |", row.code, row.when);
    }
    text
}

/// The schema of a frame's payload, with the definitions of the frame's.
fn payload(schema: &serde_json::Value) -> serde_json::Value {
    let Some(payload) = schema.pointer("/properties/payload") else {
        return schema.clone();
    };
    let pointer = payload.get("$ref").and_then(|pointer| pointer.as_str());
    let found = pointer.and_then(|pointer| schema.pointer(pointer.trim_start_matches('#')));
    let mut payload = found.unwrap_or(payload).clone();
    if let (Some(definitions), Some(object)) = (schema.get("$defs"), payload.as_object_mut()) {
        object.insert("$defs".to_owned(), definitions.clone());
    }
    payload
}

fn reach(reach: Reach) -> &'static str {
    match reach {
        Reach::All => "every socket",
        Reach::Session => "the sockets of the session",
        Reach::One => "one socket",
        Reach::Server => "the server",
    }
}
