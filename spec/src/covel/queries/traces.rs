//! Stored traces as the trace endpoints give them.
//!
//! Source: seed 000, lines 1083-1084 and 1256-1264.

use serde_json::Value;

use crate::covel::shape::{Nullable, Object, shape};
use crate::covel::vocabulary::Severity;
use crate::words::words;

shape! {
    /// The answer of `GET /api/traces/:sessionId`.
    struct Trace {
        /// The newest events, the oldest first.
        events: Vec<TraceEvent>,
        /// Leads to older events; null when there are none.
        next_cursor: Nullable<String>,
        /// The session. Public.
        session_id?: String,
        /// How many events. Public.
        count?: u64,
    }
}

shape! {
    /// The answer of `GET /api/traces/:sessionId/turns/page`.
    struct TracePage {
        /// The turns; one may be cut at the edge of a page.
        turns: Vec<TraceTurn>,
        /// Leads to older turns; null when there are none.
        next_cursor: Nullable<String>,
    }
}

shape! {
    /// The events of one turn, or of a part of it.
    struct TraceTurn {
        /// The turn, by which parts are merged. Public.
        turn_id?: String,
        /// Its events, the oldest first. Public.
        events?: Vec<TraceEvent>,
    }
}

shape! {
    /// A stored event, with what the endpoint adds.
    ///
    /// Source: seed 000, lines 1258-1262; the names of the stored members are public.
    struct TraceEvent {
        /// The stored row.
        id: Value,
        /// The position in this answer, from 0.
        event_order: u64,
        /// The event's name.
        r#type?: String,
        /// The turn.
        turn_id?: String,
        /// The trace.
        trace_id?: String,
        /// Equal to the trace.
        flow_id?: String,
        /// The number within the trace.
        seq?: u64,
        /// When it was stored: ISO 8601, UTC.
        timestamp?: String,
        /// What it tells.
        payload: Object,
        /// The event in short.
        diagnostic: Diagnostic,
    }
}

shape! {
    /// An event in short. Source: seed 000, lines 1258-1264.
    struct Diagnostic {
        /// How it is shown. Public.
        display_type?: String,
        /// How severe it is.
        severity: Severity,
        /// What was not quite right.
        warning?: SlowWarning,
        /// What went wrong.
        error?: Value,
        /// How large the prompt is, and where it stands.
        prompt?: Value,
        /// When the request to the provider began: ISO 8601, UTC.
        started_at?: String,
        /// The tool call.
        tool?: ToolDiagnostic,
    }
}

shape! {
    /// A success took long. Source: seed 000, line 1262.
    struct SlowWarning {
        /// `slow`.
        code: WarningCode,
        /// From how many milliseconds on.
        threshold_ms: u64,
    }
}

words! {
    /// What was not quite right.
    "warning code" enum WarningCode {
        /// It took long.
        Slow = "slow",
    }
}

shape! {
    /// A tool call in short. Source: seed 000, line 1263; the names of the members about the content are ours.
    struct ToolDiagnostic {
        /// The tool.
        name: String,
        /// The call of it.
        call_id: String,
        /// Whether it went well.
        success?: bool,
        /// How long it took, in milliseconds.
        duration_ms?: f64,
        /// Whether the event has the arguments.
        has_arguments?: bool,
        /// Whether the event has the result.
        has_result?: bool,
        /// Where the arguments are, such as `payload.arguments`.
        arguments_path?: String,
        /// Where the result is, such as `payload.result`.
        result_path?: String,
    }
}
