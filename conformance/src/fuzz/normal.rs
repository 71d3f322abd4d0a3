//! A transcript without what differs from run to run: ids that a target makes up, times, chunk boundaries.
//!
//! Two runs of the same case give the same normal form. It is text, exchange by exchange in the order in which they
//! were opened, then channel by channel, with `{id-1}`, `{id-2}` in the order of their first sight. Heartbeats, frames that
//! were cut off, and the headers that belong to the transport are left out; so are the pings of a channel that was cut off,
//! since the last ones may or may not be sent, and pongs, which may overtake what a turn tells everybody when it ends. Lists
//! of texts are sorted: that of sessions has no order of its own.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::transcript::{
    End, Side, Transcript, cut,
    views::{
        http::{Exchange, exchanges, percent_decode},
        messages::{Channel, Message, channels},
        stream::{Stream, StreamFrame, streams},
    },
};

/// The normal form of a transcript.
pub fn normal(transcript: &Transcript) -> String {
    let mut names = Names::default();
    let mut out = String::new();
    let streams = streams(transcript);
    for exchange in exchanges(transcript) {
        let stream = streams
            .iter()
            .find(|stream| stream.exchange.id == exchange.id);
        exchange_lines(&exchange, stream, &mut names, &mut out);
    }
    let cut = cut::exchanges(transcript);
    for channel in channels(transcript) {
        channel_lines(&channel, cut.contains(&channel.id), &mut names, &mut out);
    }
    out
}

/// The messages of a channel, first those of the client, then those of the server: how they interleave is a matter of
/// time. Control frames are left out.
fn channel_lines(channel: &Channel<'_>, is_cut: bool, names: &mut Names, out: &mut String) {
    out.push_str(&format!("[{}] {}\n", channel.label, channel.path()));
    for (side, mark) in [(Side::Client, '>'), (Side::Server, '<')] {
        let counts = |message: &&Message<'_>| match message.kind() {
            "ping" => !is_cut,
            "pong" => false,
            _ => message.is_data(),
        };
        for message in channel.from(side).filter(counts) {
            let text = match &message.json {
                Some(json) => names.json(Value::clone(json), "").to_string(),
                None => names.text(&message.show()),
            };
            out.push_str(&format!("  {mark} {text}\n"));
        }
    }
    out.push_str(&format!("  {}\n", end(channel.end.map(|(_, end)| end))));
}

fn exchange_lines(
    exchange: &Exchange<'_>,
    stream: Option<&Stream<'_>>,
    names: &mut Names,
    out: &mut String,
) {
    let target = percent_decode(&exchange.request.target);
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!(
        "[{}] {} {}",
        exchange.label,
        exchange.request.method,
        names.text(&target)
    ));
    if let Some(cursor) = exchange.request_header("last-event-id") {
        line(format!("  last-event-id: {}", names.text(cursor)));
    }
    if let Some(body) = exchange.request_json() {
        line(format!("  > {}", names.json(body, "")));
    }
    line(format!("  {}", exchange.status().unwrap_or_default()));
    match stream {
        Some(stream) => {
            for frame in stream
                .events()
                .filter(|frame| frame.event_type() != "system.heartbeat")
            {
                line(frame_line(frame, names));
            }
        }
        None => {
            if let Some(body) = exchange.json() {
                line(format!("  < {}", names.json(body, "")));
            }
        }
    }
    line(format!("  {}", end(exchange.end.map(|(_, end)| end))));
}

fn frame_line(frame: &StreamFrame, names: &mut Names) -> String {
    let id = frame
        .frame
        .id()
        .map(|id| names.text(id))
        .unwrap_or_default();
    let data = frame
        .json
        .clone()
        .map(|json| names.json(json, "").to_string());
    format!("  {} {id} {}", frame.event_type(), data.unwrap_or_default())
}

fn end(end: Option<&End>) -> &'static str {
    match end {
        None => "open",
        Some(End::Complete) => "complete",
        Some(End::Broken(_)) => "broken",
        Some(End::ClosedByHarness) => "closed",
        Some(_) => "ended otherwise",
    }
}

/// Names of made ids, in the order of their first sight.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    /// A text with its ids replaced.
    fn text(&mut self, text: &str) -> String {
        if is_time(text) {
            return "{time}".to_owned();
        }
        let mut out = String::new();
        let mut word = String::new();
        for letter in text.chars().chain(std::iter::once('\n')) {
            if letter.is_ascii_alphanumeric() || letter == '-' || letter == '_' {
                word.push(letter);
                continue;
            }
            out.push_str(&self.word(&word));
            word.clear();
            out.push(letter);
        }
        out.pop();
        out
    }

    fn word(&mut self, word: &str) -> String {
        if !is_made(word) {
            return word.to_owned();
        }
        let next = self.0.len() + 1;
        let number = *self.0.entry(word.to_owned()).or_insert(next);
        format!("{{id-{number}}}")
    }

    /// A document with its ids, times and durations replaced.
    fn json(&mut self, value: Value, name: &str) -> Value {
        match value {
            Value::String(text) => Value::from(self.text(&text)),
            Value::Number(_) if is_measure(name) => Value::from(0),
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.json(item, name));
                let mut items: Vec<Value> = items.collect();
                if items.iter().all(Value::is_string) {
                    items.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
                }
                Value::Array(items)
            }
            Value::Object(members) => {
                let members = members.into_iter().map(|(key, value)| {
                    let value = self.json(value, &key);
                    (key, value)
                });
                Value::Object(members.collect())
            }
            other => other,
        }
    }
}

/// Whether a word is an id that a target made up, and none of the names and texts of a case.
fn is_made(word: &str) -> bool {
    let has_digits = word.bytes().any(|byte| byte.is_ascii_digit());
    word.len() >= 12
        && !word.starts_with("tw-")
        && (has_digits || word.len() >= 40 || word.split('-').any(is_hexadecimal))
}

/// Eight hexadecimal digits or more. One such id in some two thousand has letters only.
fn is_hexadecimal(part: &str) -> bool {
    part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a member of this name is something that was measured.
fn is_measure(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["ms", "duration", "latency", "elapsed"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Whether a text is an ISO 8601 time.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20
        && bytes.len() <= 30
        && bytes.get(4) == Some(&b'-')
        && bytes.get(10) == Some(&b'T')
        && bytes.last() == Some(&b'Z')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript::testing::Script;

    #[test]
    fn the_same_id_gets_the_same_name_and_times_are_gone() {
        let mut names = Names::default();
        let one = json!({
            "id": "epoch-58b3d13aca384fb7:1",
            "timestamp": "2026-11-30T01:06:53.754Z",
            "durationMs": 12,
            "n": 12,
            "epoch": "epoch-58b3d13aca384fb7",
            "text": "tw-0000-reconnect-fuzz-00001",
        });
        assert_eq!(
            names.json(one, ""),
            json!({
                "id": "{id-1}:1",
                "timestamp": "{time}",
                "durationMs": 0,
                "n": 12,
                "epoch": "{id-1}",
                "text": "tw-0000-reconnect-fuzz-00001",
            })
        );
        assert_eq!(names.text("turn-0123456789abcdef"), "{id-2}");
    }

    #[test]
    fn a_pong_that_overtakes_another_message_makes_no_difference() {
        const PONG: &str = r#"{"type":"pong"}"#;
        const ENDED: &str = r#"{"type":"chat:active","payload":{"running":false}}"#;
        let told = |messages: [&str; 2]| {
            let socket = Script::new().websocket("/ws");
            let told = messages
                .into_iter()
                .fold(socket, |socket, text| socket.server_says(text));
            normal(&told.closes().transcript())
        };
        assert_eq!(told([PONG, ENDED]), told([ENDED, PONG]));
        assert_ne!(told([PONG, ENDED]), told([PONG, PONG]));
    }

    #[test]
    fn an_id_of_letters_only_is_an_id() {
        let mut names = Names::default();
        let path = "/api/chats/garden-feeddbcc/interactions";
        assert_eq!(names.text(path), "/api/chats/{id-1}/interactions");
    }
}
