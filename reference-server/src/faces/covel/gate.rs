//! What every request passes on its way in, and every answer on its way out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_LENGTH;
use http::{Method, StatusCode, Uri};
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
    let (doors, headers) = (&face.settings.doors, request.headers());
    let refused = if !doors.is_host(headers) {
        Some("requests under this host name are not accepted")
    } else if is_write(request.method()) && !doors.is_origin(headers) {
        Some("requests from this origin are not accepted")
    } else {
        None
    };
    if let Some(error) = refused {
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

/// The answer to a path that leads nowhere.
pub(super) async fn no_route(uri: Uri) -> ApiError {
    ApiError::no_route(uri.path())
}

/// The answer to a method that a path does not take.
pub(super) async fn no_method(method: Method) -> ApiError {
    ApiError::no_method(method.as_str())
}
