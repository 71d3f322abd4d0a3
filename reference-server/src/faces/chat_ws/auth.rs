//! The hook that the socket and the HTTP routes of this face pass alike.
//!
//! It is checked once, at the request; whoever passes may read and drive every chat. A browser sends its user's
//! credentials with a socket that any page opens, so pages of other origins are refused too, and so are names that
//! are not the server's: see [`doors`](crate::faces::doors).
//!
//! Source: seed 004, line 3.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Chat;
use crate::faces::covel::errors::ApiError;
use crate::faces::covel::request::is_text;
use crate::faces::doors::Doors;

/// The rules of this deployment.
#[derive(Clone, Debug)]
pub struct ChatGuard {
    /// The token that every request has to bring; without one, everybody may come in.
    pub token: Option<String>,
    /// Under which names it may be asked, and by whose pages.
    pub doors: Doors,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Refused {
    /// It brings no token.
    NoToken,
    /// It brings another token.
    WrongToken,
    /// It asks for a server of another name.
    Host,
    /// It comes from the page of a stranger.
    Origin,
}

impl ChatGuard {
    fn check(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if !self.doors.is_host(headers) {
            return Err(Refused::Host);
        }
        if !self.doors.is_origin(headers) {
            return Err(Refused::Origin);
        }
        let Some(expected) = &self.token else {
            return Ok(());
        };
        let token = bearer(headers).ok_or(Refused::NoToken)?;
        let (expected, token) = (Sha256::digest(expected), Sha256::digest(token));
        if expected.as_slice().ct_eq(token.as_slice()).into() {
            Ok(())
        } else {
            Err(Refused::WrongToken)
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, error, code) = match self {
            Self::NoToken => (StatusCode::UNAUTHORIZED, "unauthorized", "auth_required"),
            Self::WrongToken => (StatusCode::UNAUTHORIZED, "invalid token", "auth_invalid"),
            Self::Host => (
                StatusCode::FORBIDDEN,
                "requests under this host name are not accepted",
                "origin_not_allowed",
            ),
            Self::Origin => (
                StatusCode::FORBIDDEN,
                "requests from this origin are not accepted",
                "origin_not_allowed",
            ),
        };
        (status, Json(json!({ "error": error, "code": code }))).into_response()
    }
}

/// Lets a request through, or not.
pub(super) async fn hook(
    State(face): State<Arc<Chat>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    match face.guard.check(request.headers()) {
        Ok(()) if !is_text(request.uri().path()) => {
            ApiError::invalid("the path is no UTF-8").into_response()
        }
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let check = |token: Option<&str>, sent: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(sent) = sent {
                headers.insert(AUTHORIZATION, sent.parse().unwrap());
            }
            let guard = ChatGuard {
                token: token.map(str::to_owned),
                doors: Doors::default(),
            };
            guard.check(&headers)
        };
        assert_eq!(check(None, None), Ok(()));
        assert_eq!(check(Some("t"), Some("Bearer t")), Ok(()));
        assert_eq!(check(Some("t"), None), Err(Refused::NoToken));
        assert_eq!(check(Some("t"), Some("Bearer u")), Err(Refused::WrongToken));
        assert_eq!(check(Some("t"), Some("Basic t")), Err(Refused::NoToken));
    }
}
