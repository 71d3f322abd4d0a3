//! The trace queries: what was recorded, in the order in which it happened.
//!
//! Source: seed 000, lines 1083-1084 and 1250-1265.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use turnwire_spec::covel::limits::{SLOW_FROM, TRACE_PAGE, TRACE_PAGE_MAX};
use turnwire_spec::covel::queries::traces::{
    Diagnostic, SlowWarning, Trace, TraceEvent, TracePage, TraceTurn, WarningCode,
};
use turnwire_spec::covel::vocabulary::Severity;

use super::Covel;
use super::auth::Owned;
use super::errors::ApiError;
use super::frames::timestamp;
use crate::engine::model;

/// `GET /api/traces/:sessionId`.
pub(super) async fn events(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<Trace>, ApiError> {
    let page = face
        .engine
        .traces(&owned.session.id, owned.query.get("cursor"))
        .await?;
    let events: Vec<_> = (0..).zip(&page.items).map(event).collect();
    Ok(Json(Trace {
        session_id: Some(owned.session.id.to_string()),
        count: Some(events.len() as u64),
        next_cursor: page.next.into(),
        events,
    }))
}

/// `GET /api/traces/:sessionId/turns/page`.
pub(super) async fn turns(
    State(face): State<Arc<Covel>>,
    owned: Owned,
) -> Result<Json<TracePage>, ApiError> {
    let limit = owned.query.limit(TRACE_PAGE, TRACE_PAGE_MAX)?;
    let cursor = owned.query.get("cursor");
    let page = face
        .engine
        .trace_turns(&owned.session.id, cursor, limit)
        .await?;
    let mut order = 0..;
    let turns = page
        .items
        .iter()
        .map(|turn| TraceTurn {
            turn_id: Some(turn.turn_id.to_string()),
            events: Some(
                turn.events
                    .iter()
                    .zip(&mut order)
                    .map(|(row, n)| event((n, row)))
                    .collect(),
            ),
        })
        .collect();
    Ok(Json(TracePage {
        turns,
        next_cursor: page.next.into(),
    }))
}

/// A trace event; `order` is its place in this answer, from 0.
fn event((order, event): (u64, &model::TraceEvent)) -> TraceEvent {
    TraceEvent {
        id: event.id.as_str().into(),
        event_order: order,
        r#type: Some(event.kind.clone()),
        turn_id: Some(event.turn_id.to_string()),
        trace_id: Some(event.trace_id.to_string()),
        flow_id: Some(event.trace_id.to_string()),
        seq: None,
        timestamp: Some(timestamp(event.timestamp)),
        payload: event.payload.clone(),
        diagnostic: diagnostic(event),
    }
}

/// How a reader should take it: failures as errors, slow successes as warnings.
fn diagnostic(event: &model::TraceEvent) -> Diagnostic {
    let has_failed = event.kind.ends_with(".failed") || event.kind == "error.occurred";
    let duration = event
        .payload
        .get("durationMs")
        .and_then(Value::as_f64)
        .unwrap_or_default();
    let is_slow = !has_failed && duration >= SLOW_FROM.as_secs_f64() * 1000.0;
    let threshold_ms = u64::try_from(SLOW_FROM.as_millis()).unwrap_or(u64::MAX);
    Diagnostic {
        display_type: Some(event.kind.clone()),
        severity: match (has_failed, is_slow) {
            (true, _) => Severity::Error,
            (false, true) => Severity::Warning,
            (false, false) => Severity::Info,
        },
        warning: is_slow.then_some(SlowWarning {
            code: WarningCode::Slow,
            threshold_ms,
        }),
        error: event.payload.get("error").filter(|_| has_failed).cloned(),
        prompt: None,
        started_at: None,
        tool: None,
    }
}
