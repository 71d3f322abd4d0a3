//! Whether the harness keeps to the protocol itself: its requests are held to the endpoint table of the
//! protocol, in every transcript. A request that is wrong on purpose says so, see
//! [`Call::wrong_on_purpose`](crate::drivers::http::Call::wrong_on_purpose), and is not looked at.
//!
//! What is found is no verdict on anybody's target: a harness that breaks the protocol accuses nobody.

use serde_json::{Value, json};
use turnwire_spec::covel::{Endpoint, endpoint};

use crate::{
    drivers::http::call::wrong_on_purpose,
    schema,
    transcript::{
        ExchangeId, Side, Transcript,
        views::{
            http::{Exchange, exchanges, query_pairs},
            session_update,
        },
    },
};

/// A request of the harness that breaks the protocol.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HarnessError {
    /// Scenario that sent it.
    pub scenario: String,
    /// Its exchange, when it is about one.
    pub exchange: Option<ExchangeId>,
    /// What is wrong, with the request line.
    pub what: String,
}

impl HarnessError {
    /// A fault of the harness that is about no single request.
    pub(super) fn of(scenario: &str, what: String) -> Self {
        Self {
            scenario: scenario.to_owned(),
            exchange: None,
            what,
        }
    }
}

impl std::fmt::Display for HarnessError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "harness: {}: {}", self.scenario, self.what)
    }
}

/// What is wrong with the harness's own requests in a transcript of `covel-sse` or `session-update`; nothing
/// for other suites. The requests of a client under test are not the harness's, see [`faults`].
pub fn errors(transcript: &Transcript) -> Vec<HarnessError> {
    let error = |(exchange, what): (Exchange<'_>, String)| HarnessError {
        scenario: transcript.header.scenario.clone(),
        exchange: Some(exchange.id),
        what: format!("{}: {what}", exchange.request_line()),
    };
    match transcript.header.suite.as_str() {
        "covel-sse" => faults(transcript).into_iter().map(error).collect(),
        "session-update" => line_errors(transcript),
        _ => Vec::new(),
    }
}

/// The requests of a `covel-sse` transcript that the endpoint table of the protocol does not allow, whoever sent
/// them, each with what is wrong.
pub fn faults(transcript: &Transcript) -> Vec<(Exchange<'_>, String)> {
    let on_purpose = wrong_on_purpose(transcript);
    let mut found = Vec::new();
    for exchange in exchanges(transcript) {
        if !on_purpose.contains(&exchange.id)
            && let Some(what) = fault(&exchange)
        {
            found.push((exchange, what));
        }
    }
    found
}

/// The harness's requests as a client of lines: each is held to the schema of requests, and its parameters to that
/// of the method.
fn line_errors(transcript: &Transcript) -> Vec<HarnessError> {
    let mut errors = Vec::new();
    for channel in &session_update::served(transcript) {
        for request in channel.from(Side::Client) {
            let fault = match &request.json {
                None => Some("it is no JSON".to_owned()),
                Some(line) => line_fault(line),
            };
            errors.extend(fault.map(|fault| HarnessError {
                scenario: transcript.header.scenario.clone(),
                exchange: Some(channel.id),
                what: format!("{}: {fault}", request.show()),
            }));
        }
    }
    errors
}

fn line_fault(line: &Value) -> Option<String> {
    let method = line["method"].as_str().unwrap_or_default();
    let known = turnwire_spec::session_update::method(method);
    let params = known.and_then(|meta| meta.params).map(|_| {
        let name = format!("session-update.params.{}", method.replace('/', "."));
        let empty = json!({});
        let params = line.get("params").unwrap_or(&empty);
        schema::fault(&json!(name), params)
    });
    schema::fault(&json!("session-update.request"), line)
        .or_else(|| {
            known
                .is_none()
                .then(|| "there is no such method".to_owned())
        })
        .or_else(|| params.flatten())
}

fn fault(exchange: &Exchange<'_>) -> Option<String> {
    let (method, path) = (&exchange.request.method, exchange.path());
    let Some(endpoint) = endpoint(method, path) else {
        return Some("the protocol has no such endpoint".to_owned());
    };
    query_fault(endpoint, exchange).or_else(|| body_fault(endpoint, exchange))
}

fn query_fault(endpoint: &Endpoint, exchange: &Exchange<'_>) -> Option<String> {
    let mut given = query_pairs(&exchange.request.target).map(|(name, _)| name);
    // The owner token may stand in the query of every request.
    let unknown =
        given.find(|name| !endpoint.query.contains(&name.as_str()) && name != "session_token");
    unknown.map(|unknown| format!("it has no query parameter {unknown:?}"))
}

fn body_fault(endpoint: &Endpoint, exchange: &Exchange<'_>) -> Option<String> {
    let body = &exchange.request.body;
    let Some(name) = endpoint.request else {
        let nothing = body.is_empty() || body.as_ref() == b"{}";
        return (!nothing).then(|| "it takes no body".to_owned());
    };
    let media = exchange.request_header("content-type").unwrap_or_default();
    if !media.starts_with("application/json") {
        return Some(format!(
            "its body is JSON, and the content type is {media:?}"
        ));
    }
    match serde_json::from_slice::<Value>(body) {
        Err(error) => Some(format!("its body is no JSON: {error}")),
        Ok(value) => schema::fault(&json!(name), &value).map(|fault| format!("its body: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use turnwire_spec::covel::ENDPOINTS;

    use super::*;
    use crate::{
        drivers::http::call::on_purpose,
        transcript::{Entry, Fact, Header, Request},
    };

    fn sent(method: &str, target: &str, body: &str) -> Transcript {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let request = Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers,
            body: body.to_owned().into(),
        };
        let fact = Fact::Request {
            exchange: ExchangeId(1),
            request,
        };
        Transcript {
            header: Header {
                suite: "covel-sse".to_owned(),
                ..Header::default()
            },
            entries: vec![Entry {
                at: Duration::ZERO,
                fact,
            }],
        }
    }

    fn said(transcript: &Transcript) -> String {
        errors(transcript)
            .iter()
            .map(|error| error.what.clone())
            .collect()
    }

    #[test]
    fn requests_that_keep_to_the_protocol_are_not_mentioned() {
        let action = json!({
            "requestId": "r-1",
            "sessionId": "s-1",
            "type": "submit_actions",
            "payload": { "actions": [{ "type": "say", "text": "hello" }] },
        });
        assert_eq!(said(&sent("POST", "/api/actions", &action.to_string())), "");
        assert_eq!(
            said(&sent(
                "GET",
                "/api/events/stream?sessionId=s&lastEventId=e:1",
                ""
            )),
            ""
        );
        assert_eq!(said(&sent("POST", "/api/sessions/s/abort", "{}")), "");
    }

    #[test]
    fn what_breaks_the_protocol_is_told_with_the_reason() {
        let cases = [
            (
                "GET",
                "/api/view",
                "",
                "GET /api/view: the protocol has no such endpoint",
            ),
            (
                "GET",
                "/api/health?x=1",
                "",
                "it has no query parameter \"x\"",
            ),
            ("POST", "/api/sessions/s/abort", "[1]", "it takes no body"),
            ("POST", "/api/sessions/s/steer", "{", "its body is no JSON"),
            (
                "POST",
                "/api/sessions/s/steer",
                "{}",
                "\"message\" is a required property",
            ),
        ];
        for (method, target, body, expected) in cases {
            let said = said(&sent(method, target, body));
            assert!(said.contains(expected), "{method} {target}: {said}");
        }
    }

    #[test]
    fn a_request_that_is_wrong_on_purpose_is_not_looked_at() {
        let mut transcript = sent("GET", "/api/nonsense", "");
        let note = Fact::Note(on_purpose(ExchangeId(1), "to see the 404"));
        transcript.entries.push(Entry {
            at: Duration::ZERO,
            fact: note,
        });
        assert!(errors(&transcript).is_empty());
    }

    #[test]
    fn every_schema_that_the_endpoint_table_names_can_be_used() {
        for name in ENDPOINTS.iter().filter_map(|endpoint| endpoint.request) {
            assert!(schema::compile(&json!(name)).is_ok(), "{name}");
        }
    }
}
