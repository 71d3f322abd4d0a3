//! The trace queries: what was recorded, in the order in which it happened.
//!
//! Source: seed 000, lines 1083-1084 and 1250-1265.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use turnwire_spec::covel::limits::{SLOW_FROM, TRACE_PAGE, TRACE_PAGE_MAX};
use turnwire_spec::covel::queries::traces::{
    Diagnostic, SlowWarning, ToolDiagnostic, Trace, TraceEvent, TracePage, TraceTurn, WarningCode,
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

/// The events whose success is worth a warning when it took long. Source: seed 000, line 1262.
const TIMED: [&str; 6] = [
    "llm.responded",
    "gateway.responded",
    "utils.fetch.responded",
    "tool.completed",
    "runtime.completed",
    "function.completed",
];

/// How a reader should take it: failures as errors, slow successes as warnings.
fn diagnostic(event: &model::TraceEvent) -> Diagnostic {
    let has_failed = has_failed(event);
    let duration = event.payload.get("durationMs").and_then(Value::as_f64);
    let took = duration.unwrap_or_default();
    let is_slow = !has_failed
        && TIMED.contains(&event.kind.as_str())
        && took >= SLOW_FROM.as_secs_f64() * 1000.0;
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
        prompt: event.payload.get("messages").map(|prompt| {
            json!({ "chars": prompt.to_string().chars().count(), "path": "payload.messages" })
        }),
        started_at: event
            .payload
            .get("startedAt")
            .filter(|_| event.kind == "llm.calling")
            .and_then(|at| at.as_str().map(str::to_owned)),
        tool: tool(event, duration),
    }
}

/// Whether it tells of a failure, in today's form or in that of older traces.
///
/// Source: seed 000, lines 1262 and 1277-1278.
fn has_failed(event: &model::TraceEvent) -> bool {
    let has = |name: &str, value: Value| event.payload.get(name) == Some(&value);
    match event.kind.as_str() {
        "error.occurred" => true,
        "llm.responded" => event.payload.contains_key("error"),
        "runtime.completed" | "function.completed" => has("status", json!("failed")),
        "turn.completed" => has("committed", json!(false)),
        kind => kind.ends_with(".failed"),
    }
}

/// A tool call in short: what there is, and where; nothing of its content.
fn tool(event: &model::TraceEvent, duration_ms: Option<f64>) -> Option<ToolDiagnostic> {
    let success = match event.kind.as_str() {
        "tool.calling" => None,
        "tool.completed" => Some(true),
        "tool.failed" => Some(false),
        _ => return None,
    };
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str);
    let at = |name: &str| {
        let is_there = event.payload.contains_key(name);
        is_there.then(|| format!("payload.{name}"))
    };
    let (arguments, result) = (at("arguments"), at("result"));
    Some(ToolDiagnostic {
        name: text("toolName")?.to_owned(),
        call_id: text("toolCallId")?.to_owned(),
        success,
        duration_ms,
        has_arguments: Some(arguments.is_some()),
        has_result: Some(result.is_some()),
        arguments_path: arguments,
        result_path: result,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: &str, payload: Value) -> Value {
        let row = model::TraceEvent {
            id: "e-1".into(),
            session_id: "s-1".into(),
            turn_id: "t-1".into(),
            trace_id: "tr-1".into(),
            kind: kind.to_owned(),
            payload: serde_json::from_value(payload).unwrap(),
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        };
        serde_json::to_value(diagnostic(&row)).unwrap()
    }

    #[test]
    fn only_slow_successes_of_six_kinds_are_warnings() {
        for kind in TIMED {
            let slow = shown(kind, json!({ "durationMs": 1000 }));
            assert_eq!(slow["severity"], "warning", "{kind}");
            assert_eq!(slow["warning"]["thresholdMs"], 1000, "{kind}");
            assert_eq!(
                shown(kind, json!({ "durationMs": 999 }))["severity"],
                "info"
            );
        }
        let step = shown("step.completed", json!({ "durationMs": 1500 }));
        assert_eq!(step["severity"], "info");
    }

    #[test]
    fn failures_are_errors_however_slow_and_however_old() {
        for (kind, payload) in [
            (
                "llm.responded",
                json!({ "error": "no", "durationMs": 1500 }),
            ),
            ("runtime.completed", json!({ "status": "failed" })),
            ("turn.completed", json!({ "committed": false })),
            ("tool.failed", json!({})),
        ] {
            assert_eq!(shown(kind, payload)["severity"], "error", "{kind}");
        }
    }

    #[test]
    fn a_tool_call_in_short_has_no_content() {
        let call = json!({ "toolName": "t", "toolCallId": "c", "result": "RES", "durationMs": 5 });
        let tool = &shown("tool.completed", call)["tool"];

        assert_eq!(
            tool,
            &json!({
                "name": "t", "callId": "c", "success": true, "durationMs": 5.0,
                "hasArguments": false, "hasResult": true, "resultPath": "payload.result",
            })
        );
    }
}
