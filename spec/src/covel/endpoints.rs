//! Which requests there are, in one table that server, checks and docs read.
//!
//! A row tells the method, the path, what goes in and out, and how it succeeds. Refusals are in
//! [`errors`](super::errors). Schemas are named as in [`schema`](crate::schema).
//!
//! Endpoint families that carry no protocol events (worlds but their list, gallery, lorebook, media
//! and the like) are left out.
//!
//! Source: seed 000, lines 635-639, 840-1085; rows that the seed does not have are public.

use super::meta::Source::{self, Public, Seed};
use crate::words::words;

words! {
    /// What kind of exchange an endpoint is.
    ///
    /// Source: seed 000, lines 11-17.
    "kind of endpoint" enum EndpointKind {
        /// Changes something; answers at once.
        Command = "command",
        /// Only reads.
        Query = "query",
        /// Answers with an event stream.
        Stream = "stream",
    }
}

/// One request that a server answers.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// The HTTP method.
    pub method: &'static str,
    /// The path; a segment that begins with `:` is a parameter.
    pub path: &'static str,
    /// What kind of exchange it is.
    pub kind: EndpointKind,
    /// The label that the seed gives the command, such as `turn.submit`; empty when it gives none.
    pub label: &'static str,
    /// The query parameters that it knows.
    pub query: &'static [&'static str],
    /// The schema of the request's body.
    pub request: Option<&'static str>,
    /// The schema of the answer's body, or of the data of each frame that is an event.
    pub response: Option<&'static str>,
    /// The statuses of success; the usual one first.
    pub success: &'static [u16],
    /// What it is for, in one sentence.
    pub doc: &'static str,
    /// Where it is described.
    pub source: Source,
}

impl Endpoint {
    /// Whether a request with this method and path (without its query) is for this endpoint.
    #[must_use]
    pub fn matches(&self, method: &str, path: &str) -> bool {
        let mut given = path.split('/');
        let mut own = self.path.split('/');
        self.method == method
            && own.by_ref().all(|part| {
                given
                    .next()
                    .is_some_and(|segment| match part.strip_prefix(':') {
                        Some(_) => !segment.is_empty(),
                        None => part == segment,
                    })
            })
            && given.next().is_none()
    }

    const fn command(
        method: &'static str,
        path: &'static str,
        source: Source,
        doc: &'static str,
    ) -> Self {
        Self {
            method,
            path,
            kind: EndpointKind::Command,
            label: "",
            query: &[],
            request: None,
            response: None,
            success: &[200],
            doc,
            source,
        }
    }

    const fn query(
        path: &'static str,
        source: Source,
        response: &'static str,
        doc: &'static str,
    ) -> Self {
        let mut endpoint = Self::command("GET", path, source, doc);
        endpoint.kind = EndpointKind::Query;
        endpoint.response = Some(response);
        endpoint
    }

    const fn stream(
        method: &'static str,
        path: &'static str,
        source: Source,
        doc: &'static str,
    ) -> Self {
        let mut endpoint = Self::command(method, path, source, doc);
        endpoint.kind = EndpointKind::Stream;
        endpoint
    }

    const fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }

    const fn with(mut self, query: &'static [&'static str]) -> Self {
        self.query = query;
        self
    }

    const fn takes(mut self, schema: &'static str) -> Self {
        self.request = Some(schema);
        self
    }

    const fn gives(mut self, schema: &'static str) -> Self {
        self.response = Some(schema);
        self
    }

    const fn succeeds(mut self, statuses: &'static [u16]) -> Self {
        self.success = statuses;
        self
    }
}

/// Every endpoint: streams, then commands, then queries, each in the order of the seed.
pub const ENDPOINTS: &[Endpoint] = &[
    // Streams.
    Endpoint::stream(
        "POST",
        "/api/actions",
        Seed(856, 870),
        "Runs an action of the player and tells of it.",
    )
    .takes("action-request")
    .gives("sse-envelope")
    .succeeds(&[200, 202]),
    Endpoint::stream(
        "GET",
        "/api/events/stream",
        Seed(638, 670),
        "Subscribes to a session.",
    )
    .with(&["sessionId", "topics", "lastEventId", "session_token"])
    .gives("protocol-event"),
    Endpoint::stream(
        "GET",
        "/api/model-relay/stream",
        Seed(639, 784),
        "Hands model requests to a browser.",
    ),
    // Sessions.
    Endpoint::command("POST", "/api/sessions", Seed(845, 845), "Makes a session.")
        .label("session.create")
        .takes("create-session")
        .gives("created-session")
        .succeeds(&[201, 200]),
    Endpoint::command("PATCH", "/api/sessions/:id", Public, "Changes a session.")
        .takes("patch-session")
        .gives("session-record"),
    Endpoint::command(
        "DELETE",
        "/api/sessions/:id",
        Seed(847, 847),
        "Deletes a session.",
    )
    .label("session.delete")
    .gives("deleted-session"),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/fork",
        Seed(584, 593),
        "Makes a session from a snapshot.",
    )
    .takes("fork")
    .gives("forked")
    .succeeds(&[201, 200]),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/snapshots",
        Seed(590, 590),
        "Makes a snapshot.",
    )
    .gives("snapshot-record")
    .succeeds(&[201, 200]),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/messages/sync",
        Public,
        "Stores messages of a client.",
    )
    .takes("sync-messages")
    .gives("done"),
    // Control during a turn.
    Endpoint::command(
        "POST",
        "/api/sessions/:id/steer",
        Seed(220, 225),
        "Interjects during a turn.",
    )
    .takes("steer")
    .gives("turn-controlled"),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/abort",
        Seed(227, 231),
        "Stops the player's action.",
    )
    .gives("turn-controlled"),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/setup/:runtimeId/retry",
        Public,
        "Retries a blocked setup.",
    )
    .gives("setup-controlled"),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/setup/:runtimeId/waive",
        Public,
        "Waives a blocked setup.",
    )
    .takes("waive-setup")
    .gives("setup-controlled"),
    // Plugins.
    Endpoint::command(
        "PUT",
        "/api/sessions/:id/plugins/:pluginId",
        Seed(967, 967),
        "Switches a plugin on.",
    )
    .label("plugin.enable")
    .gives("plugin-switched"),
    Endpoint::command(
        "DELETE",
        "/api/sessions/:id/plugins/:pluginId",
        Seed(968, 968),
        "Switches a plugin off.",
    )
    .label("plugin.disable")
    .gives("plugin-switched"),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/plugin-rpc",
        Seed(980, 1026),
        "Calls a plugin.",
    )
    .label("plugin.rpc")
    .takes("plugin-rpc")
    .gives("rpc-answer")
    .succeeds(&[200, 202]),
    Endpoint::command(
        "PUT",
        "/api/sessions/:id/plugin-data/:pluginId/:ns/:key",
        Public,
        "Writes plugin data.",
    )
    .takes("put-plugin-data")
    .gives("plugin-data-written"),
    Endpoint::command(
        "DELETE",
        "/api/sessions/:id/plugin-data/:pluginId/:ns/:key",
        Seed(307, 307),
        "Removes plugin data.",
    )
    .gives("done"),
    Endpoint::command(
        "POST",
        "/api/approvals/:approvalId/decision",
        Seed(1051, 1064),
        "Decides about a call.",
    )
    .label("approval.decide")
    .takes("approval-decision")
    .gives("decided"),
    // Jobs and suspensions.
    Endpoint::command(
        "POST",
        "/api/sessions/:id/runtime-jobs/:jobId/cancel",
        Seed(472, 472),
        "Cancels a job.",
    )
    .gives("public-job"),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/runtime-jobs/:jobId/retry",
        Seed(473, 473),
        "Runs a failed job again.",
    )
    .gives("public-job")
    .succeeds(&[202, 200, 201]),
    Endpoint::command(
        "POST",
        "/api/sessions/:id/suspensions/:suspensionId/resume",
        Seed(574, 574),
        "Answers a suspension.",
    )
    .takes("resume")
    .gives("resumed")
    .succeeds(&[200, 202]),
    Endpoint::command(
        "DELETE",
        "/api/sessions/:id/suspensions/:suspensionId",
        Public,
        "Drops a suspension.",
    )
    .gives("dropped-suspension"),
    Endpoint::command(
        "POST",
        "/api/events/emit",
        Public,
        "Emits an event, for debugging.",
    )
    .takes("emit-event"),
    Endpoint::command(
        "POST",
        "/api/model-relay/requests/:id/:part",
        Seed(784, 788),
        "Answers a relayed request.",
    )
    .succeeds(&[204]),
    // Queries.
    Endpoint::query(
        "/api/sessions",
        Seed(1073, 1073),
        "session-list",
        "Lists the sessions of a world.",
    )
    .with(&["worldId"]),
    Endpoint::query(
        "/api/sessions/:id",
        Seed(1074, 1074),
        "session-record",
        "Tells of one session.",
    ),
    Endpoint::query(
        "/api/sessions/:id/view",
        Seed(1075, 1075),
        "session-snapshot",
        "Tells all that a client shows.",
    )
    .label("session.restore"),
    Endpoint::query(
        "/api/sessions/:id/messages",
        Seed(1076, 1076),
        "message-list",
        "Lists all messages.",
    ),
    Endpoint::query(
        "/api/sessions/:id/messages/page",
        Seed(1077, 1077),
        "message-page",
        "Lists messages in pages.",
    )
    .with(&["limit", "cursor"]),
    Endpoint::query(
        "/api/sessions/:id/characters",
        Seed(1078, 1078),
        "object-list",
        "Lists the characters.",
    ),
    Endpoint::query(
        "/api/sessions/:id/plugins",
        Seed(1079, 1079),
        "session-plugins",
        "Lists the plugins.",
    ),
    Endpoint::query(
        "/api/sessions/:id/state",
        Seed(1080, 1080),
        "state-tables",
        "Tells the state tables.",
    ),
    Endpoint::query(
        "/api/sessions/:id/plugin-data/:pluginId/:ns",
        Seed(1081, 1081),
        "plugin-data-list",
        "Lists plugin data.",
    ),
    Endpoint::query(
        "/api/sessions/:id/plugin-data/:pluginId/:ns/:key",
        Public,
        "plugin-data-row",
        "Tells one row of plugin data.",
    ),
    Endpoint::query(
        "/api/worlds",
        Seed(1082, 1082),
        "object-list",
        "Lists the worlds.",
    ),
    Endpoint::query(
        "/api/traces/:sessionId",
        Seed(1083, 1083),
        "trace",
        "Tells the newest trace events.",
    )
    .with(&["cursor"]),
    Endpoint::query(
        "/api/traces/:sessionId/turns/page",
        Seed(1084, 1084),
        "trace-page",
        "Tells the trace turn by turn.",
    )
    .with(&["limit", "cursor"]),
    Endpoint::query(
        "/api/health",
        Seed(1085, 1085),
        "health",
        "Tells how the server is.",
    ),
    Endpoint::query(
        "/api/sessions/:id/execution",
        Seed(885, 888),
        "execution-status",
        "Tells how the newest execution stands.",
    ),
    Endpoint::query(
        "/api/sessions/:id/approvals",
        Seed(1050, 1050),
        "approval-list",
        "Lists the calls that wait.",
    )
    .label("approval.list"),
    Endpoint::query(
        "/api/sessions/:id/runtime-jobs",
        Seed(471, 471),
        "job-list",
        "Lists the background jobs.",
    ),
    Endpoint::query(
        "/api/sessions/:id/suspensions",
        Public,
        "suspension-list",
        "Lists the suspensions.",
    ),
    Endpoint::query(
        "/api/sessions/:id/snapshots",
        Public,
        "snapshot-page",
        "Lists snapshots in pages.",
    )
    .with(&["limit", "cursor"]),
    Endpoint::query(
        "/api/sessions/:id/ui-slots",
        Public,
        "ui-slot-list",
        "Lists committed interface state.",
    )
    .with(&["prefix", "slot", "key"]),
];

/// The endpoint of a request, by method and path without its query.
#[must_use]
pub fn endpoint(method: &str, path: &str) -> Option<&'static Endpoint> {
    // Fixed segments beat parameters: `/api/sessions/:id/messages/page` over a longer parameter.
    let matching = ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.matches(method, path));
    matching.min_by_key(|endpoint| endpoint.path.matches(':').count())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{schema, seeds};

    #[test]
    fn every_endpoint_stands_once() {
        let keys: BTreeSet<_> = ENDPOINTS.iter().map(|row| (row.method, row.path)).collect();
        assert_eq!(keys.len(), ENDPOINTS.len());
    }

    #[test]
    fn every_schema_that_an_endpoint_names_exists() {
        for row in ENDPOINTS {
            for name in [row.request, row.response].into_iter().flatten() {
                assert!(schema::named(name).is_some(), "{}: {name}", row.path);
            }
        }
    }

    #[test]
    fn every_source_names_its_endpoint() {
        for row in ENDPOINTS {
            let Seed(from, to) = row.source else { continue };
            let quote: String = seeds::lines("000", from, to)
                .map(|(_, line)| line)
                .collect();
            let fixed = row
                .path
                .split('/')
                .rfind(|part| !part.is_empty() && !part.starts_with(':'));
            assert!(
                quote.contains(fixed.unwrap()),
                "{} in {}",
                row.path,
                row.source
            );
        }
    }

    #[test]
    fn every_label_of_the_seed_stands_in_its_lines() {
        for row in ENDPOINTS.iter().filter(|row| !row.label.is_empty()) {
            let found = seeds::lines("000", 840, 1064)
                .any(|(_, line)| line.starts_with(&format!("{}\t{}", row.label, row.method)));
            assert!(found, "{}", row.label);
        }
    }

    #[test]
    fn a_request_finds_its_endpoint() {
        let path = |method, path| endpoint(method, path).map(|row| row.path);
        assert_eq!(path("GET", "/api/sessions/s-1"), Some("/api/sessions/:id"));
        assert_eq!(
            path("GET", "/api/sessions/s-1/messages/page"),
            Some("/api/sessions/:id/messages/page")
        );
        assert_eq!(
            path("DELETE", "/api/sessions/s-1"),
            Some("/api/sessions/:id")
        );
        assert_eq!(path("GET", "/api/sessions/"), None);
        assert_eq!(path("GET", "/api/sessions/s-1/nothing"), None);
        assert_eq!(path("POST", "/api/health"), None);
    }
}
