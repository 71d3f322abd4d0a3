//! What every request passes on its way in, and every answer on its way out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, HOST, ORIGIN};
use http::{HeaderMap, Method, StatusCode, Uri};
use turnwire_spec::covel::limits::BODY_BYTES;

use super::Covel;
use super::errors::{ApiError, INTERNAL};
use super::request::is_text;

/// Refuses what no handler needs to see, and keeps the details of failures inside, in production.
pub(super) async fn pass(
    State(face): State<Arc<Covel>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    if let Err(refusal) = admit(&face, &request) {
        return refusal.into_response();
    }
    let response = next.run(request).await;
    if face.guard.production && response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        return ApiError::plain(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL).into_response();
    }
    response
}

fn admit(face: &Covel, request: &Request<Body>) -> Result<(), ApiError> {
    if face.stopping.is_cancelled() {
        return Err(ApiError::shutting_down());
    }
    if !is_text(request.uri().path()) {
        return Err(ApiError::invalid("the path is no UTF-8"));
    }
    if is_write(request.method()) && !is_origin_allowed(request.headers(), &face.settings.origins) {
        let error = "requests from this origin are not accepted";
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            error,
        ));
    }
    let length = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    if length
        .and_then(|text| text.parse::<u64>().ok())
        .is_some_and(|n| n > BODY_BYTES as u64)
    {
        return Err(ApiError::too_large());
    }
    Ok(())
}

fn is_write(method: &Method) -> bool {
    matches!(
        *method,
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE
    )
}

/// A request without `Origin` comes from no page. One with it has to come from the server's own page
/// or from an origin that the deployment names.
pub(in crate::faces) fn is_origin_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own = origin.split_once("://").is_some_and(|(scheme, authority)| {
        matches!(scheme, "http" | "https") && host.is_some_and(|host| host == authority)
    });
    is_own || allowed.iter().any(|other| other == origin)
}

/// The answer to a path that leads nowhere.
pub(super) async fn no_route(uri: Uri) -> ApiError {
    ApiError::no_route(uri.path())
}

/// The answer to a method that a path does not take.
pub(super) async fn no_method(method: Method) -> ApiError {
    ApiError::no_method(method.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "127.0.0.1:7000".parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_foreign_page_may_not_write_and_a_program_may() {
        let allowed = ["https://app.test".to_owned()];
        let may = |origin| is_origin_allowed(&headers(origin), &allowed);

        assert!(may(None));
        assert!(may(Some("http://127.0.0.1:7000")));
        assert!(may(Some("https://app.test")));
        assert!(!may(Some("https://app.test.evil.test")));
        assert!(!may(Some("http://127.0.0.1:7001")));
        assert!(!may(Some("null")));
    }
}
