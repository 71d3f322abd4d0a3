//! The form of an exchange in a HAR file.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::draft::Draft;

/// Headers that are left out: they say who somebody is.
const HELD_BACK: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
];

/// An entry, with the raw heads of the exchange as far as they are known. What a page that has `ended` left
/// unfinished was broken off.
pub(super) fn render(
    draft: &Draft,
    raw_request: &Value,
    raw_response: &Value,
    ended: bool,
) -> Value {
    let unix = |at: f64| at + draft.to_unix.unwrap_or_default();
    let aborted = ended && draft.finished.is_none() && draft.response.is_some();
    let error = match &draft.error {
        Some(error) => Some(error.as_str()),
        None => aborted.then_some("net::ERR_ABORTED"),
    };
    let timings = timings(draft);
    let mut entry = json!({
        "_priority": draft.request["initialPriority"],
        "_resourceType": draft.kind.to_ascii_lowercase(),
        "cache": {},
        "pageref": format!("page_{}", draft.page.0 + 1),
        "request": request(draft, raw_request),
        "response": response(draft, raw_response, error),
        "serverIPAddress": response_text(draft, "remoteIPAddress"),
        "startedDateTime": date(unix(draft.started)),
        "time": (draft.finished.unwrap_or(draft.last) - draft.started) * 1000.0,
        "timings": timings,
    });
    let events = draft.events();
    if !events.is_empty() {
        let events = events.iter().map(|event| {
            json!({
                "time": unix(event.at), "eventName": event.name, "eventId": event.id, "data": event.data,
            })
        });
        entry["_eventSourceMessages"] = events.collect();
    }
    if draft.kind == "WebSocket" {
        let messages = draft.messages.iter().map(|message| {
            json!({
                "type": if message.sent { "send" } else { "receive" },
                "time": unix(message.at), "opcode": message.opcode, "data": message.data,
            })
        });
        entry["_webSocketMessages"] = messages.collect();
    }
    entry
}

/// Unix seconds as the format writes a time, in milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "a time of this century")]
pub(super) fn date(unix: f64) -> String {
    let millis = (unix.clamp(0.0, 1e11) * 1000.0).floor() as i64;
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    format!("{time:.3}")
}

fn response_text(draft: &Draft, member: &str) -> String {
    let response = draft.response.as_ref();
    let text = response.and_then(|response| response[member].as_str());
    text.unwrap_or_default().to_owned()
}

fn request(draft: &Draft, raw: &Value) -> Value {
    let url = draft.request["url"].as_str().unwrap_or_default();
    let url = url.split('#').next().unwrap_or_default();
    let named = first_object(&[&raw["headers"], &draft.request["headers"]]);
    let post = draft.request["postData"].as_str();
    let mut request = json!({
        "method": draft.request["method"],
        "url": url,
        "httpVersion": protocol(draft),
        "headers": headers(named),
        "queryString": query(url),
        "cookies": [],
        "headersSize": -1,
        "bodySize": post.map_or(0, str::len),
    });
    if let Some(text) = post {
        let media_type = named.and_then(|named| find(named, "content-type"));
        request["postData"] = json!({ "mimeType": media_type.unwrap_or_default(), "text": text });
    }
    request
}

fn response(draft: &Draft, raw: &Value, error: Option<&str>) -> Value {
    let Some(known) = &draft.response else {
        // As Chromium writes an exchange that has no answer.
        return json!({
            "status": 0, "statusText": "", "httpVersion": "", "headers": [], "cookies": [],
            "content": { "size": 0, "mimeType": "x-unknown" }, "redirectURL": "", "headersSize": -1,
            "bodySize": -1, "_transferSize": 0, "_error": error,
        });
    };
    let status = raw["statusCode"]
        .as_u64()
        .or_else(|| known["status"].as_u64());
    let named = first_object(&[&raw["headers"], &known["headers"]]);
    let location = named.and_then(|named| find(named, "location"));
    json!({
        "status": status.unwrap_or_default(),
        "statusText": known["statusText"].as_str().unwrap_or_default(),
        "httpVersion": protocol(draft),
        "headers": headers(named),
        "cookies": [],
        "content": content(draft, known),
        "redirectURL": location.unwrap_or_default(),
        "headersSize": -1,
        "bodySize": -1,
        "_transferSize": known["encodedDataLength"].as_f64().unwrap_or_default(),
        "_error": error,
        "_fetchedViaServiceWorker": known["fromServiceWorker"] == true,
    })
}

fn content(draft: &Draft, response: &Value) -> Value {
    let media_type = response["mimeType"].as_str().unwrap_or("x-unknown");
    let Some(bytes) = draft.bytes() else {
        return json!({ "size": 0, "mimeType": media_type });
    };
    let size = bytes.len();
    match String::from_utf8(bytes) {
        Ok(text) => json!({ "size": size, "mimeType": media_type, "text": text }),
        Err(error) => json!({
            "size": size, "mimeType": media_type, "encoding": "base64",
            "text": STANDARD.encode(error.as_bytes()),
        }),
    }
}

fn protocol(draft: &Draft) -> String {
    let text = response_text(draft, "protocol");
    if text.is_empty() {
        "http/1.1".to_owned()
    } else {
        text
    }
}

fn first_object<'a>(values: &[&'a Value]) -> Option<&'a Map<String, Value>> {
    values.iter().find_map(|value| value.as_object())
}

fn find(named: &Map<String, Value>, name: &str) -> Option<String> {
    let found = named.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found
        .and_then(|(_, value)| value.as_str())
        .map(str::to_owned)
}

fn headers(named: Option<&Map<String, Value>>) -> Vec<Value> {
    let kept = named
        .into_iter()
        .flatten()
        .filter(|(name, _)| !HELD_BACK.iter().any(|held| name.eq_ignore_ascii_case(held)));
    kept.map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}

fn query(url: &str) -> Vec<Value> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            json!({ "name": name, "value": value })
        })
        .collect()
}

/// The phases of an exchange in milliseconds; -1 for one that did not occur.
fn timings(draft: &Draft) -> Value {
    let end = draft.finished.unwrap_or(draft.last);
    let timing = draft.response.as_ref().map(|response| &response["timing"]);
    let Some(timing) = timing.filter(|timing| timing.is_object()) else {
        let all = (end - draft.started) * 1000.0;
        return json!({
            "blocked": -1, "dns": -1, "ssl": -1, "connect": -1, "send": 0, "wait": all, "receive": 0,
        });
    };
    let at = |member: &str| timing[member].as_f64().unwrap_or(-1.0);
    let phase = |from: &str, to: &str| {
        if at(from) < 0.0 {
            -1.0
        } else {
            (at(to) - at(from)).max(0.0)
        }
    };
    let asked = at("requestTime");
    let queued = ((asked - draft.started) * 1000.0).max(0.0);
    let first = ["dnsStart", "connectStart", "sendStart"].map(at);
    let first = first.into_iter().find(|time| *time >= 0.0).unwrap_or(0.0);
    let head = at("receiveHeadersEnd").max(0.0);
    json!({
        "blocked": queued + first,
        "dns": phase("dnsStart", "dnsEnd"),
        "ssl": phase("sslStart", "sslEnd"),
        "connect": phase("connectStart", "connectEnd"),
        "send": phase("sendStart", "sendEnd").max(0.0),
        "wait": (head - at("sendEnd")).max(0.0),
        "receive": ((end - asked) * 1000.0 - head).max(0.0),
        "_blocked_queueing": queued,
    })
}
