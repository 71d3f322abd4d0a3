//! Demands on what an adapter's requests let the user say.
//!
//! Each wire is read into the same texts and images. Reading is strict: what is no part of a wire is unknown, and
//! unlike anything that a rule demands.

use serde_json::{Value, json};
use turnwire_spec::{catalogue::rule::SaidRule, llm::Wire};

use crate::{
    cases::is_of,
    transcript::{
        Transcript,
        views::http::{Exchange, exchanges},
    },
    verdict::Findings,
};

/// Judges the requests of every case of the hazard that call a model.
pub(super) fn judge(rule: &SaidRule, transcript: &Transcript) -> Findings {
    let all = exchanges(transcript);
    let calls = all
        .iter()
        .filter(|exchange| is_of(exchange.label, &rule.hazard))
        .filter_map(|exchange| Some((exchange, wire_of(exchange.path())?)))
        .filter(|(exchange, wire)| asks_for(exchange, *wire, rule.model.as_deref()));
    Findings::each(calls, |(exchange, wire)| {
        let said = exchange
            .request_json()
            .map(|body| said(wire, &body))
            .unwrap_or_default();
        let same = said.len() == rule.user.len()
            && said.iter().zip(&rule.user).all(|(a, b)| is_like(a, b));
        (!same).then(|| {
            let expected = format!("a user who says {}", shortened(&rule.user));
            exchange.evidence(expected, shortened(&said))
        })
    })
}

/// The wire of a request that calls a model, by its path.
fn wire_of(path: &str) -> Option<Wire> {
    let ends = |end: &str| path.ends_with(end);
    Some(match path {
        _ if ends("/chat/completions") => Wire::OpenaiChat,
        _ if ends("/responses") => Wire::OpenaiResponses,
        _ if ends("/messages") => Wire::AnthropicMessages,
        _ if ends(":generateContent") || ends(":streamGenerateContent") => Wire::Gemini,
        _ => return None,
    })
}

fn asks_for(exchange: &Exchange<'_>, wire: Wire, model: Option<&str>) -> bool {
    model.is_none_or(|model| match wire {
        Wire::Gemini => exchange.path().contains(&format!("/{model}:")),
        _ => exchange
            .request_json()
            .is_some_and(|body| body["model"] == model),
    })
}

/// Texts and images of the user's messages, in order.
fn said(wire: Wire, body: &Value) -> Vec<Value> {
    let (list, content) = match wire {
        Wire::OpenaiResponses => ("input", "content"),
        Wire::Gemini => ("contents", "parts"),
        _ => ("messages", "content"),
    };
    if let Value::String(text) = &body[list] {
        return vec![json!(text)];
    }
    let messages = body[list].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for message in messages.filter(|message| message["role"] == "user") {
        match &message[content] {
            Value::String(text) if wire != Wire::Gemini => found.push(json!(text)),
            Value::Array(parts) => found.extend(parts.iter().filter_map(|part| read(wire, part))),
            other => found.push(json!({ "unknown": other })),
        }
    }
    found
}

/// A part as a text or an image; none for what is neither: the results of calls.
fn read(wire: Wire, part: &Value) -> Option<Value> {
    let kind = part["type"].as_str().unwrap_or_default();
    let text = |of: &Value| of.as_str().map(Value::from);
    let read = match (wire, kind) {
        (Wire::AnthropicMessages, "tool_result") => return None,
        (Wire::Gemini, _) if part["functionResponse"].is_object() => return None,
        (Wire::OpenaiChat, "text")
        | (Wire::OpenaiResponses, "input_text")
        | (Wire::AnthropicMessages, "text")
        | (Wire::Gemini, "")
            if part["text"].is_string() =>
        {
            text(&part["text"])
        }
        (Wire::OpenaiChat, "image_url") => by_url(&part["image_url"]["url"]),
        (Wire::OpenaiResponses, "input_image") => by_url(&part["image_url"]),
        (Wire::AnthropicMessages, "image") => match part["source"]["type"].as_str() {
            Some("base64") => inline(&part["source"]["media_type"], &part["source"]["data"]),
            Some("url") => by_url(&part["source"]["url"]),
            _ => None,
        },
        (Wire::Gemini, "") if part["inlineData"].is_object() => {
            inline(&part["inlineData"]["mimeType"], &part["inlineData"]["data"])
        }
        (Wire::Gemini, "") if part["fileData"].is_object() => {
            let file = by_url(&part["fileData"]["fileUri"]);
            file.map(|mut file| {
                file["type"] = part["fileData"]["mimeType"].clone();
                file
            })
        }
        _ => None,
    };
    Some(read.unwrap_or_else(|| json!({ "unknown": part })))
}

fn inline(mime: &Value, data: &Value) -> Option<Value> {
    let data = data.as_str()?;
    Some(json!({ "type": mime.as_str()?, "data": data, "length": data.len() }))
}

/// An image behind a URL, or in it.
fn by_url(url: &Value) -> Option<Value> {
    let url = url.as_str()?;
    if let Some((mime, data)) = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        return inline(&mime.into(), &data.into());
    }
    let (_, rest) = url.split_once("://")?;
    let path = rest.find('/').map_or("/", |at| &rest[at..]);
    Some(json!({ "url": url, "path": path }))
}

/// Whether a text is the same, or an image has all members that are demanded.
fn is_like(said: &Value, wanted: &Value) -> bool {
    match wanted.as_object() {
        Some(members) => members.iter().all(|(name, value)| said[name] == *value),
        None => said == wanted,
    }
}

/// Characters of one text that evidence shows.
const SHOWN: usize = 120;

fn shortened(said: &[Value]) -> String {
    let short = |text: &str| match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    };
    let one = |value: &Value| match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| match value {
                Value::String(text) => (name.clone(), Value::from(short(text))),
                Value::Number(number) => (name.clone(), Value::Number(number.clone())),
                other => (name.clone(), Value::from(short(&other.to_string()))),
            });
            Value::Object(members.collect())
        }
        Value::String(text) => Value::from(short(text)),
        other => other.clone(),
    };
    Value::from(said.iter().map(one).collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user's message with a text, a PNG and a URL, as each wire has it.
    fn body(wire: Wire) -> Value {
        let (list, content, parts) = match wire {
            Wire::OpenaiResponses => (
                "input",
                "content",
                json!([{ "type": "input_text", "text": "a" },
                    { "type": "input_image", "image_url": "data:image/png;base64,AAAA" },
                    { "type": "input_image", "image_url": "http://h/x?y" }]),
            ),
            Wire::AnthropicMessages => (
                "messages",
                "content",
                json!([{ "type": "tool_result", "tool_use_id": "t" }, { "type": "text", "text": "a" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                    { "type": "image", "source": { "type": "url", "url": "http://h/x?y" } }]),
            ),
            Wire::Gemini => (
                "contents",
                "parts",
                json!([{ "functionResponse": { "name": "f" } }, { "text": "a" },
                    { "inlineData": { "mimeType": "image/png", "data": "AAAA" } },
                    { "fileData": { "mimeType": "image/gif", "fileUri": "http://h/x?y" } }]),
            ),
            Wire::OpenaiChat | Wire::GeminiOpenai => (
                "messages",
                "content",
                json!([{ "type": "text", "text": "a" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                    { "type": "image_url", "image_url": { "url": "http://h/x?y" } }]),
            ),
        };
        json!({ list: [{ "role": "system", "content": "s" }, { "role": "user", content: parts }] })
    }

    const WIRES: [Wire; 4] = [
        Wire::OpenaiChat,
        Wire::OpenaiResponses,
        Wire::AnthropicMessages,
        Wire::Gemini,
    ];

    #[test]
    fn every_wire_says_the_same() {
        let wanted = [
            json!("a"),
            json!({ "type": "image/png", "data": "AAAA", "length": 4 }),
            json!({ "url": "http://h/x?y", "path": "/x?y" }),
        ];
        for wire in WIRES {
            let said = said(wire, &body(wire));
            assert_eq!(said.len(), wanted.len(), "{wire}: {said:?}");
            assert!(
                said.iter().zip(&wanted).all(|(a, b)| is_like(a, b)),
                "{wire}: {said:?}"
            );
        }
    }

    #[test]
    fn what_belongs_to_another_wire_is_unknown() {
        for wire in WIRES {
            for other in WIRES.into_iter().filter(|other| *other != wire) {
                for part in ["/1/content/2", "/1/parts/3"] {
                    let body = body(other);
                    let list = ["messages", "input", "contents"];
                    let Some(part) = list
                        .iter()
                        .find_map(|list| body.pointer(&format!("/{list}{part}")))
                    else {
                        continue;
                    };
                    let read = read(wire, part).unwrap();
                    assert!(read.get("unknown").is_some(), "{other} on {wire}: {read}");
                }
            }
        }
    }

    #[test]
    fn a_bare_base64_is_no_url_and_a_text_no_image() {
        assert_eq!(by_url(&json!("AAAA")), None);
        assert_eq!(by_url(&json!(null)), None);
        assert!(!is_like(&json!("a"), &json!({ "type": "image/png" })));
        assert!(!is_like(&json!({ "url": "http://a" }), &json!("a")));
    }
}
