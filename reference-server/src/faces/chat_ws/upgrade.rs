//! From an HTTP request to a socket.
//!
//! Source: RFC 6455, section 4.2; seed 004, line 3.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{
    ALLOW, CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Chat, socket};

/// The version of the WebSocket protocol.
const VERSION: &str = "13";

/// Why there is no socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NoSocket {
    /// The request is no GET.
    Method,
    /// The request does not ask for one.
    NotAsked,
    /// It asks for another version.
    Version,
    /// Its key is none.
    Key,
    /// There are as many as may be.
    Full,
    /// The server goes down.
    Stopping,
}

/// `GET /ws`.
pub(super) async fn upgrade(State(face): State<Arc<Chat>>, mut request: Request<Body>) -> Response {
    let accept = match accept(request.method(), request.headers()) {
        Ok(accept) => accept,
        Err(refused) => return refused.into_response(),
    };
    if face.life.stopping.is_cancelled() {
        return NoSocket::Stopping.into_response();
    }
    let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        return NoSocket::NotAsked.into_response();
    };
    let Ok(place) = Arc::clone(&face.places).try_acquire_owned() else {
        return NoSocket::Full.into_response();
    };
    let protocol = first_protocol(request.headers());
    let tasks = face.life.tasks.clone();
    tasks.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => socket::run(face, TokioIo::new(upgraded)).await,
            Err(error) => tracing::debug!(%error, "a socket did not open"),
        }
        drop(place);
    });
    switched(accept, protocol)
}

fn switched(accept: HeaderValue, protocol: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    response
}

/// Checks the request's half of the handshake, and gives the answer to its key.
fn accept(method: &Method, headers: &HeaderMap) -> Result<HeaderValue, NoSocket> {
    // A route for GET takes HEAD, too.
    if *method != Method::GET {
        return Err(NoSocket::Method);
    }
    if !lists(headers, &CONNECTION, "upgrade") || !lists(headers, &UPGRADE, "websocket") {
        return Err(NoSocket::NotAsked);
    }
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .map(HeaderValue::as_bytes)
        != Some(VERSION.as_bytes())
    {
        return Err(NoSocket::Version);
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or(NoSocket::Key)?;
    let is_key = BASE64_STANDARD
        .decode(key.as_bytes())
        .is_ok_and(|key| key.len() == 16);
    let accept = derive_accept_key(key.as_bytes());
    HeaderValue::from_str(&accept)
        .ok()
        .filter(|_| is_key)
        .ok_or(NoSocket::Key)
}

/// Whether a header lists a word, in any case.
fn lists(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|item| item.trim().eq_ignore_ascii_case(word))
}

fn first_protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let offered = headers.get(SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    HeaderValue::from_str(offered.split(',').next()?.trim()).ok()
}

impl IntoResponse for NoSocket {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Self::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                "a WebSocket begins with GET",
            ),
            Self::NotAsked => (StatusCode::UPGRADE_REQUIRED, "this is a WebSocket"),
            Self::Version => (StatusCode::UPGRADE_REQUIRED, "the WebSocket version is 13"),
            Self::Key => (StatusCode::BAD_REQUEST, "Sec-WebSocket-Key is no key"),
            Self::Full => (StatusCode::SERVICE_UNAVAILABLE, "too many sockets"),
            Self::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "server is shutting down"),
        };
        let mut response = (status, Json(json!({ "error": error }))).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Method => {
                headers.insert(ALLOW, HeaderValue::from_static("GET"));
            }
            Self::NotAsked | Self::Version => {
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
            }
            Self::Key | Self::Full | Self::Stopping => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(change: impl Fn(&mut HeaderMap)) -> Result<HeaderValue, NoSocket> {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, "keep-alive, Upgrade".parse().unwrap());
        headers.insert(UPGRADE, "WebSocket".parse().unwrap());
        headers.insert(SEC_WEBSOCKET_VERSION, "13".parse().unwrap());
        headers.insert(
            SEC_WEBSOCKET_KEY,
            "dGhlIHNhbXBsZSBub25jZQ==".parse().unwrap(),
        );
        change(&mut headers);
        accept(&Method::GET, &headers)
    }

    #[test]
    fn only_get_opens_a_socket() {
        let whole = HeaderMap::new();
        assert_eq!(accept(&Method::HEAD, &whole), Err(NoSocket::Method));
        let response = NoSocket::Method.into_response();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[ALLOW], "GET");
    }

    #[test]
    fn whoever_speaks_another_version_is_told_which_one_is_spoken() {
        let other = handshake(|headers| {
            headers.insert(SEC_WEBSOCKET_VERSION, "8".parse().unwrap());
        });
        assert_eq!(other, Err(NoSocket::Version));
        let response = NoSocket::Version.into_response();
        assert_eq!(response.status(), StatusCode::UPGRADE_REQUIRED);
        assert_eq!(response.headers()[SEC_WEBSOCKET_VERSION], "13");
    }

    #[test]
    fn the_key_of_the_rfc_gets_its_answer() {
        let accept = handshake(|_| {}).unwrap();
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn each_wrong_half_of_a_handshake_is_told() {
        let without = |name: HeaderName| handshake(move |headers| drop(headers.remove(&name)));
        assert_eq!(without(CONNECTION), Err(NoSocket::NotAsked));
        assert_eq!(without(UPGRADE), Err(NoSocket::NotAsked));
        assert_eq!(without(SEC_WEBSOCKET_VERSION), Err(NoSocket::Version));
        assert_eq!(without(SEC_WEBSOCKET_KEY), Err(NoSocket::Key));
        let short = handshake(|headers| {
            headers.insert(SEC_WEBSOCKET_KEY, "c2hvcnQ=".parse().unwrap());
        });
        assert_eq!(short, Err(NoSocket::Key));
    }
}
