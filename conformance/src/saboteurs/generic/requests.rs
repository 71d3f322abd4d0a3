//! Changes of requests.

use turnwire_spec::catalogue::rewrite::{ExtraRewrite, RequestRewrite};

use super::{body_matches, request_matches};
use crate::{
    saboteurs::{
        json,
        saboteur::{More, RequestInfo, drop_header, set_header},
        template::Context,
    },
    transcript::{Request, views::http::query_pairs},
};

pub(super) fn selects(rewrite: &RequestRewrite, info: &RequestInfo) -> bool {
    request_matches(&rewrite.method, &rewrite.path, &rewrite.when_query, info)
        && body_matches(rewrite.where_request.as_ref(), info)
}

pub(super) fn apply(rewrite: &RequestRewrite, info: &RequestInfo, request: &mut Request) {
    let json = info.json();
    let context = Context {
        info,
        frame: None,
        json: json.as_ref(),
        index: 0,
    };
    move_values(rewrite, request);
    let names =
        |name: &String| rewrite.drop_query.contains(name) || rewrite.set_query.contains_key(name);
    if !rewrite.drop_query.is_empty() || !rewrite.set_query.is_empty() {
        let mut pairs = pairs_of(request);
        pairs.retain(|(name, _)| !names(name));
        pairs.extend(
            rewrite
                .set_query
                .iter()
                .map(|(name, value)| (name.clone(), context.fill(value))),
        );
        set_pairs(request, &pairs);
    }
    for name in &rewrite.drop_header {
        drop_header(&mut request.headers, name);
    }
    for (name, value) in &rewrite.set_header {
        set_header(&mut request.headers, name, &context.fill(value));
    }
    if let Some(method) = &rewrite.set_method {
        method.clone_into(&mut request.method);
    }
    if let Ok(mut body) = serde_json::from_slice(&request.body)
        && !rewrite.json.is_empty()
    {
        json::apply(&rewrite.json, &mut body, context);
        request.body = body.to_string().into();
    }
    if rewrite.repeat_body > 0 {
        let times = usize::try_from(rewrite.repeat_body).unwrap_or(usize::MAX);
        request.body = request.body.repeat(times.saturating_add(1)).into();
    }
}

/// The request that follows this one.
pub(super) fn more(rewrite: &ExtraRewrite, info: &RequestInfo) -> More {
    let mut request = info.request.clone();
    if let Some((method, target)) = rewrite.send.as_ref().and_then(|send| send.split_once(' ')) {
        method.clone_into(&mut request.method);
        target.clone_into(&mut request.target);
        request.body = bytes::Bytes::new();
    }
    if let Some(body) = &rewrite.body {
        set_header(&mut request.headers, "content-type", "application/json");
        request.body = body.to_string().into();
    }
    More {
        after: std::time::Duration::from_millis(rewrite.delay_ms),
        request,
    }
}

/// Moves values between query parameters and headers.
fn move_values(rewrite: &RequestRewrite, request: &mut Request) {
    for (from, to) in &rewrite.moves {
        let value = match from.split_once(':') {
            Some(("query", name)) => take_query(request, name),
            Some(("header", name)) => take_header(request, name),
            _ => None,
        };
        let Some(value) = value else { continue };
        match to.split_once(':') {
            Some(("query", name)) => {
                let mut pairs = pairs_of(request);
                pairs.retain(|(key, _)| key != name);
                pairs.push((name.to_owned(), value));
                set_pairs(request, &pairs);
            }
            Some(("header", name)) => set_header(&mut request.headers, name, &value),
            _ => {}
        }
    }
}

fn take_query(request: &mut Request, name: &str) -> Option<String> {
    let mut pairs = pairs_of(request);
    let value = pairs
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.clone())?;
    pairs.retain(|(key, _)| key != name);
    set_pairs(request, &pairs);
    Some(value)
}

fn take_header(request: &mut Request, name: &str) -> Option<String> {
    let value = crate::transcript::header(&request.headers, name).map(str::to_owned)?;
    drop_header(&mut request.headers, name);
    Some(value)
}

fn pairs_of(request: &Request) -> Vec<(String, String)> {
    query_pairs(&request.target).collect()
}

fn set_pairs(request: &mut Request, pairs: &[(String, String)]) {
    let path = request.target.split('?').next().unwrap_or_default();
    let query: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    request.target = if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", query.join("&"))
    };
}

/// Percent-encodes all but unreserved characters, and `:` and `,`, which queries may hold.
fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' | b'~' | b':' | b',' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}
