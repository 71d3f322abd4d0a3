//! The pages of `covel-sse`: endpoints, events, frames, codes.

use std::fmt::Write as _;

use turnwire_spec::covel::{
    Endpoint, EventMeta, envelope,
    errors::ErrorCode,
    meta::{ActionStream, Source, TopicRule},
};

use super::{golden::Golden, requirements, schemas};

const SUITE: &str = "covel-sse";

/// Every endpoint.
pub(super) fn endpoints(rows: &[Endpoint], golden: &Golden) -> String {
    let mut text = String::from("# Endpoints of covel-sse\n\n");
    text.push_str("Refusals have the body `{error, code?, details?}`; see [codes](errors.md).\n\n");
    for row in rows {
        let _ = writeln!(text, "## {} {}\n\n{}\n", row.method, row.path, row.doc);
        let _ = writeln!(text, "- kind: {}", row.kind);
        if !row.label.is_empty() {
            let _ = writeln!(text, "- label: `{}`", row.label);
        }
        if !row.query.is_empty() {
            let _ = writeln!(text, "- query: `{}`", row.query.join("`, `"));
        }
        let statuses: Vec<_> = row.success.iter().map(u16::to_string).collect();
        let _ = writeln!(text, "- succeeds with: {}", statuses.join(", "));
        source(&mut text, row.source);
        if let Some(name) = row.request {
            let _ = writeln!(text, "Request. {}", schemas::table(name));
        }
        if let Some(name) = row.response {
            let _ = writeln!(text, "Answer. {}", schemas::table(name));
        }
        text.push_str(&golden.exchange(SUITE, row));
        text.push('\n');
    }
    text
}

/// Every event.
pub(super) fn events(rows: &[EventMeta], golden: &Golden) -> String {
    let mut text = String::from("# Events of covel-sse\n\n");
    text.push_str("| event | topic | stream of the action | |\n| --- | --- | --- | --- |\n");
    for row in rows {
        let _ = writeln!(
            text,
            "| [`{0}`](#{1}) | {2} | {3} | {4} |",
            row.name,
            anchor(row.name),
            topic(row.topic),
            way(row.action_stream),
            schemas::cell(row.doc)
        );
    }
    for row in rows {
        let _ = writeln!(text, "\n## {}\n\n{}\n", row.name, row.doc);
        let _ = writeln!(text, "- topic: {}", topic(row.topic));
        let _ = writeln!(
            text,
            "- on the stream of `POST /api/actions`: {}",
            way(row.action_stream)
        );
        if row.trace_only {
            text.push_str("- in traces and under the diagnostic topics only\n");
        }
        if !row.member {
            text.push_str("- a row of the stored trace, no member of the union of events\n");
        }
        source(&mut text, row.source);
        text.push_str(&schemas::table(row.name));
        text.push_str(&golden.event(SUITE, row.name));
    }
    text
}

/// The frames of both streams.
pub(super) fn frames(golden: &Golden) -> String {
    let mut text = String::from("# Frames of covel-sse\n\n");
    let controls = [envelope::CONNECTED, envelope::HEARTBEAT, envelope::RESET];
    for (title, name) in [
        ("The envelope of a subscription", "protocol-event"),
        ("The envelope of an action", "sse-envelope"),
    ] {
        let _ = writeln!(text, "## {title}\n\n{}", schemas::table(name));
    }
    for name in controls {
        let _ = writeln!(text, "## {name}\n\n{}", schemas::table(name));
        text.push_str(&golden.event(SUITE, name));
        text.push('\n');
    }
    text
}

/// Every code.
pub(super) fn errors(rows: &[ErrorCode], golden: &Golden) -> String {
    let mut text = String::from("# Codes of covel-sse\n\n");
    text.push_str(&schemas::table("error"));
    text.push_str("| status | code | | source |\n| --- | --- | --- | --- |\n");
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} |",
            row.status,
            row.code,
            schemas::cell(row.doc),
            row.source
        );
    }
    text.push_str("\n## Examples\n\n");
    for row in rows {
        let example = golden.code(SUITE, row.code);
        if !example.is_empty() {
            let _ = writeln!(text, "### {}\n\n{example}", row.code);
        }
    }
    text
}

fn source(text: &mut String, source: Source) {
    let _ = writeln!(text, "- source: {source}");
    if let Source::Seed(from, to) = source {
        let links = requirements::of_lines("000", from, to);
        if !links.is_empty() {
            let _ = writeln!(text, "- requirements: {links}");
        }
    }
    text.push('\n');
}

fn topic(rule: TopicRule) -> String {
    match rule {
        TopicRule::Stated(topic) => format!("`{topic}`"),
        TopicRule::OneOf(topics) => {
            let names: Vec<_> = topics.iter().map(|topic| format!("`{topic}`")).collect();
            names.join(" or ")
        }
        TopicRule::Ours(topic) => format!("`{topic}` (ours)"),
        TopicRule::Unstated => "none".to_owned(),
    }
}

fn way(stream: ActionStream) -> &'static str {
    match stream {
        ActionStream::Direct => "written by the request",
        ActionStream::Forwarded => "forwarded",
        ActionStream::Never => "never",
    }
}

/// The anchor of a heading.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .collect()
}
