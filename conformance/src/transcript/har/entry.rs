//! One entry of a HAR file.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;

use super::{HarError, place::At};
use crate::transcript::{Request, Side, WsFrame};

/// An exchange as the file has it. Times are Unix microseconds.
#[derive(Clone, Debug)]
pub(super) struct HarEntry {
    pub(super) started: i64,
    /// When the response head came.
    pub(super) answered: i64,
    /// When the exchange was over.
    pub(super) finished: i64,
    pub(super) request: Request,
    pub(super) response: HarResponse,
    /// What the browser says went wrong, such as `net::ERR_CONNECTION_REFUSED`.
    pub(super) error: Option<String>,
    /// Messages of a WebSocket with their times.
    pub(super) messages: Vec<(i64, Side, WsFrame)>,
    /// Events of an `EventSource`.
    pub(super) events: Vec<HarEvent>,
}

#[derive(Clone, Debug)]
pub(super) struct HarResponse {
    /// 0 when there was none.
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The body; `None` when the browser did not keep it.
    pub(super) body: Option<Bytes>,
}

/// An event as an `EventSource` dispatches it.
#[derive(Clone, Debug)]
pub(super) struct HarEvent {
    pub(super) at: i64,
    pub(super) name: String,
    /// The newest id of the stream, which need not be this event's own.
    pub(super) id: String,
    pub(super) data: String,
}

/// Schemes of what goes over a network. Firefox lists what a page has within itself as well, such as `data:`.
const SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

/// The scheme of an entry that never was on the wire.
pub(super) fn inner(at: &At<'_>) -> Option<String> {
    let url = at.optional("request")?.optional("url")?;
    let (scheme, _) = url.value.as_str()?.split_once(':')?;
    let letters = |scheme: &str| {
        let mut bytes = scheme.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let known = SCHEMES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(scheme));
    (letters(scheme) && !known).then(|| scheme.to_ascii_lowercase())
}

pub(super) fn read(at: &At<'_>) -> Result<HarEntry, HarError> {
    let started = started(&at.member("startedDateTime")?)?;
    let (answered, finished) = times(at, started)?;
    let response = response(&at.member("response")?)?;
    let error = ["_error", "_errorText"]
        .into_iter()
        .find_map(|name| {
            at.optional(name)
                .or_else(|| at.optional("response")?.optional(name))
        })
        .and_then(|error| error.value.as_str().map(str::to_owned))
        .filter(|error| !error.is_empty());
    let mut broken = None;
    let mut messages = Vec::new();
    for told in list(at, "_webSocketMessages", message)? {
        match told {
            Told::Message(at, from, frame) => messages.push((at, from, frame)),
            Told::Broken(words) => broken = Some(words),
        }
    }
    Ok(HarEntry {
        started,
        answered,
        finished,
        request: request(&at.member("request")?)?,
        response,
        error: error.or(broken),
        messages,
        events: list(at, "_eventSourceMessages", event)?,
    })
}

fn list<T>(
    at: &At<'_>,
    name: &str,
    read: impl Fn(&At<'_>) -> Result<T, HarError>,
) -> Result<Vec<T>, HarError> {
    match at.optional(name) {
        Some(list) => list.items()?.iter().map(read).collect(),
        None => Ok(Vec::new()),
    }
}

fn started(at: &At<'_>) -> Result<i64, HarError> {
    let time = at.text()?.parse::<jiff::Timestamp>();
    let time = time.map_err(|_| at.error("a time such as 2026-07-26T12:00:00.000Z"))?;
    Ok(time.as_microsecond())
}

/// When the head came and when the exchange was over.
fn times(at: &At<'_>, started: i64) -> Result<(i64, i64), HarError> {
    let total = match at.optional("time") {
        Some(time) => micros(time.number()?.max(0.0)),
        None => 0,
    };
    let Some(timings) = at.optional("timings") else {
        return Ok((started.saturating_add(total), started.saturating_add(total)));
    };
    // -1 stands for a phase that did not occur; `ssl` is part of `connect`.
    let mut until_head = 0;
    for name in ["blocked", "dns", "connect", "send", "wait"] {
        if let Some(time) = timings.optional(name) {
            until_head += micros(time.number()?.max(0.0));
        }
    }
    let head = until_head.min(total.max(0));
    Ok((started.saturating_add(head), started.saturating_add(total)))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "more than a century is cut"
)]
fn micros(millis: f64) -> i64 {
    const CENTURY_MS: f64 = 3.2e12;
    (millis.min(CENTURY_MS) * 1000.0).round() as i64
}

/// Unix seconds with a fraction.
fn seconds(at: &At<'_>) -> Result<i64, HarError> {
    Ok(micros(at.number()?.clamp(0.0, 1e10) * 1000.0))
}

fn request(at: &At<'_>) -> Result<Request, HarError> {
    let url = at.member("url")?;
    Ok(Request {
        method: at.member("method")?.text()?.to_ascii_uppercase(),
        target: target(&url)?,
        headers: headers(at)?,
        body: at
            .optional("postData")
            .map_or(Ok(Bytes::new()), |data| post_data(&data))?,
    })
}

/// Path and query of an absolute URL.
fn target(at: &At<'_>) -> Result<String, HarError> {
    let url = at.text()?;
    let wrong = || at.error("an absolute URL");
    let (_, rest) = url.split_once("://").ok_or_else(wrong)?;
    let rest = rest.split('#').next().unwrap_or_default();
    let target = rest.find(['/', '?']).map_or("/", |at| &rest[at..]);
    Ok(if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    })
}

/// Headers in lower case, without the pseudo headers of HTTP/2.
fn headers(at: &At<'_>) -> Result<Vec<(String, String)>, HarError> {
    let Some(list) = at.optional("headers") else {
        return Ok(Vec::new());
    };
    let mut headers = Vec::new();
    for header in list.items()? {
        let name = header.member("name")?.text()?.to_ascii_lowercase();
        let value = header.member("value")?.text()?;
        if !name.starts_with(':') {
            // Chromium joins the values of repeated headers with line feeds.
            headers.extend(value.lines().map(|value| (name.clone(), value.to_owned())));
            if value.is_empty() {
                headers.push((name, String::new()));
            }
        }
    }
    Ok(headers)
}

fn post_data(at: &At<'_>) -> Result<Bytes, HarError> {
    let text = at.text_or_empty("text")?;
    if !text.is_empty() {
        return decoded(at, text);
    }
    let mut pairs = Vec::new();
    if let Some(params) = at.optional("params") {
        for pair in params.items()? {
            let name = pair.member("name")?.text()?;
            pairs.push(format!("{name}={}", pair.text_or_empty("value")?));
        }
    }
    Ok(pairs.join("&").into())
}

fn response(at: &At<'_>) -> Result<HarResponse, HarError> {
    let status = at.member("status")?;
    let code = status.number()?;
    // Chromium writes 0, other tools -1, where there is no response.
    let code = if code <= 0.0 { 0.0 } else { code };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    let number = (code.fract() == 0.0 && code < 1000.0).then_some(code as u16);
    let number = number.ok_or_else(|| status.error("a status code"))?;
    let mut headers = headers(at)?;
    let mut body = None;
    if let Some(content) = at.optional("content") {
        let media_type = content.text_or_empty("mimeType")?;
        let typed = headers.iter().any(|(name, _)| name == "content-type");
        if !typed && !media_type.is_empty() && media_type != "x-unknown" {
            headers.push(("content-type".to_owned(), media_type.to_owned()));
        }
        body = match content.optional("text") {
            Some(text) => Some(decoded(&content, text.text()?)?),
            None => None,
        };
    }
    Ok(HarResponse {
        status: number,
        headers,
        body,
    })
}

/// The bytes of a text next to which `encoding` may say that it is in base64.
fn decoded(at: &At<'_>, text: &str) -> Result<Bytes, HarError> {
    match at.text_or_empty("encoding")? {
        "" => Ok(Bytes::copy_from_slice(text.as_bytes())),
        "base64" => {
            let compact: String = text.split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(compact);
            let text = at.member("text")?;
            Ok(bytes.map_err(|_| text.error("base64"))?.into())
        }
        _ => Err(at.member("encoding")?.error("\"base64\"")),
    }
}

/// What the list of a WebSocket's messages tells.
enum Told {
    Message(i64, Side, WsFrame),
    /// Chromium lists here, in its own words, why the connection broke.
    Broken(String),
}

fn message(at: &At<'_>) -> Result<Told, HarError> {
    let kind = at.member("type")?;
    let from = match kind.text()? {
        "send" | "request" => Side::Client,
        "receive" | "response" => Side::Server,
        "error" => return Ok(Told::Broken(at.text_or_empty("data")?.to_owned())),
        _ => return Err(kind.error("\"send\" or \"receive\"")),
    };
    let data = at.member("data")?;
    let text = data.text()?;
    let bytes = || {
        STANDARD
            .decode(text)
            .map(Bytes::from)
            .map_err(|_| data.error("base64"))
    };
    let opcode = at.member("opcode")?;
    #[expect(clippy::cast_possible_truncation, reason = "no other number is taken")]
    let frame = match opcode.number()? as i64 {
        1 => WsFrame::Text(text.to_owned()),
        2 => WsFrame::Binary(bytes()?),
        8 => WsFrame::Close(None),
        9 => WsFrame::Ping(Bytes::copy_from_slice(text.as_bytes())),
        10 => WsFrame::Pong(Bytes::copy_from_slice(text.as_bytes())),
        _ => return Err(opcode.error("1, 2, 8, 9 or 10")),
    };
    Ok(Told::Message(seconds(&at.member("time")?)?, from, frame))
}

fn event(at: &At<'_>) -> Result<HarEvent, HarError> {
    Ok(HarEvent {
        at: seconds(&at.member("time")?)?,
        name: at.text_or_empty("eventName")?.to_owned(),
        id: at.text_or_empty("eventId")?.to_owned(),
        data: at.member("data")?.text()?.to_owned(),
    })
}
