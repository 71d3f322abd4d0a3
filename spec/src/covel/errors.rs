//! How requests are refused: the body of every answer outside 2xx, and the codes in it.
//!
//! The codes of `error.occurred` in a stream are in [`vocabulary`](super::vocabulary). Where the seed
//! leaves status or code open, a check accepts any 4xx with the shape of [`ErrorBody`].
//!
//! Source: seed 000, lines 249-254, 670, 888, 1015-1026 and 1064.

use serde_json::Value;

use super::meta::Source::{self, Ours, Public, Seed};
use super::shape::shape;

shape! {
    /// The body of every answer outside 2xx.
    ///
    /// Source: seed 000, line 1026.
    struct ErrorBody {
        /// What to tell the reader.
        error: String,
        /// A stable code.
        code?: String,
        /// More about it.
        details?: Value,
    }
}

/// A code that a refusal can have.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCode {
    /// The code in the body.
    pub code: &'static str,
    /// The HTTP status that goes with it.
    pub status: u16,
    /// What happened, in one sentence.
    pub doc: &'static str,
    /// Where it is stated.
    pub source: Source,
}

const fn row(code: &'static str, status: u16, source: Source, doc: &'static str) -> ErrorCode {
    ErrorCode {
        code,
        status,
        doc,
        source,
    }
}

/// Every known code, by status. A code with two statuses has two rows.
#[rustfmt::skip] // one row a line
pub const ERROR_CODES: &[ErrorCode] = &[
    row("invalid_json_body", 400, Public, "The body is no JSON object."),
    row("invalid_action_request", 400, Public, "The body is no action of the five."),
    row("no_active_plugins", 400, Public, "The session has no active plugin to start with."),
    row("form_provider_inactive", 400, Public, "The plugin that asked is not active."),
    row("form_provider_unavailable", 400, Public, "The plugin that asked cannot be reached."),
    row("form_validator_undeclared", 400, Public, "The plugin that asked declares no validator."),
    row("invalid_cursor", 400, Public, "The cursor of a page cannot be read."),
    row("confirm_required", 400, Public, "Waiving needs a confirmation."),
    row("world_requirement_unmet", 400, Public, "The world needs what no plugin provides."),
    row("event_payload_invalid", 400, Public, "The payload of an event does not fit its declaration."),
    row("plugin_mismatch", 400, Public, "The runtime belongs to another plugin."),
    row("invalid_checkpoint", 400, Public, "The browser's checkpoint cannot be read."),
    row("session_record_scope_conflict", 400, Public, "A record belongs to another session."),
    row("session_owner_required", 401, Seed(670, 670), "The owner's token is missing or wrong."),
    row("operator_token_required", 401, Public, "The operator's token is missing or wrong."),
    row("origin_not_allowed", 403, Public, "The origin of the page is foreign."),
    row("media_reference_forbidden", 403, Public, "A snapshot refers to foreign media."),
    row("session_not_found", 404, Public, "There is no such session."),
    row("world_not_found", 404, Public, "There is no such world."),
    row("unknown_action", 404, Seed(1021, 1021), "The plugin has no such action."),
    row("runtime_not_active", 404, Seed(1021, 1021), "The runtime is not active."),
    row("command_not_active", 404, Seed(1021, 1021), "The session has no such command."),
    row("plugin_not_active", 404, Public, "The plugin is not active."),
    row("event_not_declared", 404, Public, "The plugin declares no such event."),
    row("retry_turn_not_found", 404, Public, "There is no such turn to retry."),
    row("session_not_active", 409, Seed(1022, 1022), "The session is paused or ended."),
    row("session_deleting", 409, Seed(1022, 1022), "The session is being deleted."),
    row("session_incarnation_changed", 409, Seed(888, 888), "The session was rebuilt under its id."),
    row("approval_scope_changed", 409, Seed(1022, 1022), "What was approved is no longer the same."),
    row("session_ended", 409, Public, "An ended session stays ended."),
    row("session_lifecycle_busy", 409, Public, "The session is being set up or deleted."),
    row("session_already_exists", 409, Public, "The id is taken."),
    row("world_deleting", 409, Public, "The world is being deleted."),
    row("dimension_provider_required", 409, Public, "The session needs this plugin for its dimensions."),
    row("dimension-version-conflict", 409, Public, "A dimension changed meanwhile."),
    row("retry_source_not_committed", 409, Public, "The turn to retry is not committed."),
    row("cursor_missing", 409, Public, "The snapshot has no cursor."),
    row("snapshot_schema_missing", 409, Public, "The snapshot has no schema."),
    row("runtime_job_not_cancellable", 409, Public, "The job is committing or over, or unknown."),
    row("runtime_job_not_retryable", 409, Public, "The job has not failed."),
    row("recovery_refused", 409, Ours, "The turn cannot be recovered by this action."),
    row("browser_private_profile_required", 409, Public, "The store is not the browser's own."),
    row("unsupported_browser_mutation", 409, Public, "The browser cannot commit this."),
    row("rate_limit_exceeded", 429, Public, "Too many requests in a minute."),
    row("connection_limit_exceeded", 429, Public, "The session has eight subscriptions."),
    row("global_connection_limit_exceeded", 429, Public, "The process has 512 subscriptions."),
    row("queue_full", 429, Seed(1023, 1023), "Too many approvals wait."),
    row("background_queue_full", 429, Public, "Too many jobs wait."),
    row("operation_in_progress", 429, Public, "One operation of this kind runs already."),
    row("runtime_execution_failed", 500, Seed(1024, 1024), "The runtime threw."),
    row("background_enqueue_failed", 500, Seed(1024, 1024), "The job could not be queued."),
    row("turn_commit_failed", 500, Seed(1024, 1024), "The turn could not be committed."),
    row("handler-threw", 500, Ours, "The handler of a plugin threw."),
    row("fork_media_reference_failed", 500, Public, "The media of a fork could not be referred to."),
    row("session_busy", 503, Public, "The session's lock was not free in time."),
    row("server_shutting_down", 503, Public, "The server takes no new work."),
];

/// The rows of the code `code`.
pub fn error_codes(code: &str) -> impl Iterator<Item = &'static ErrorCode> {
    ERROR_CODES.iter().filter(move |row| row.code == code)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::seeds;

    #[test]
    fn every_code_stands_once_for_each_status_and_is_a_refusal() {
        let rows: BTreeSet<_> = ERROR_CODES
            .iter()
            .map(|row| (row.code, row.status))
            .collect();
        assert_eq!(rows.len(), ERROR_CODES.len());
        assert!(
            ERROR_CODES
                .iter()
                .all(|row| (400..600).contains(&row.status))
        );
        assert!(ERROR_CODES.is_sorted_by_key(|row| row.status));
    }

    #[test]
    fn every_code_of_the_seed_stands_in_its_lines() {
        for row in ERROR_CODES {
            let Seed(from, to) = row.source else { continue };
            let quote: String = seeds::lines("000", from, to)
                .map(|(_, line)| line)
                .collect();
            assert!(quote.contains(row.code), "{}", row.code);
        }
    }
}
