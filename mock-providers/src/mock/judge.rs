//! What is to become of a request: refused by the service's rules, answered by a script, or neither.

use bytes::Bytes;
use http::HeaderName;
use http::request::Parts;
use serde_json::Value;
use turnwire_spec::llm::Wire;

use super::choose::Chosen;
use super::{Mock, Verify};
use crate::journal::Violation;
use crate::matching::Facts;
use crate::script::{Echo, ErrorReply};
use crate::verify::{self, Fault, Finding};
use crate::wires;
use crate::wires::route::{Route, Target, route};

/// Which try a request is, by the count of the official clients.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// What is to become of a request.
pub(super) struct Verdict {
    pub(super) violations: Vec<Violation>,
    pub(super) chosen: Choice,
}

/// Who answers.
pub(super) enum Choice {
    /// The service, because the request breaks a rule.
    Refused(Box<ErrorReply>),
    /// A rule of a script.
    Rule(Chosen),
    /// Nobody; so many requests had nobody before.
    Unmatched(u64),
}

impl Mock {
    /// What the service's rules say about a request.
    pub(super) fn findings(
        &self,
        facts: &Facts<'_>,
        query: Option<&str>,
        count: bool,
        echo: Option<Echo>,
    ) -> Vec<Finding> {
        if self.inner.config.verify == Verify::Off {
            return Vec::new();
        }
        verify::verify(&verify::Request {
            wire: facts.wire,
            headers: facts.headers,
            query,
            body: facts.body,
            model: &facts.talk.model,
            count,
            keys: &self.inner.config.keys,
            echo,
            signer: self.signer(),
            memory: self,
        })
    }

    /// What the service's rules say about a request to a generating path, as if it came now. Nothing is
    /// answered, journalled or used up; other paths, and bodies that are no JSON, say nothing.
    pub fn breaches(&self, parts: &Parts, body: &Bytes) -> Vec<Violation> {
        let uri = &parts.uri;
        let route = route(
            parts.method.as_str(),
            uri.path(),
            uri.query(),
            &parts.headers,
        );
        let Route::Generate(target) = route else {
            return Vec::new();
        };
        let Some(body) = serde_json::from_slice(body)
            .ok()
            .and_then(|body| self.continued(body).ok())
        else {
            return Vec::new();
        };
        let facts = Facts {
            wire: target.wire,
            method: parts.method.as_str(),
            path: uri.path(),
            headers: &parts.headers,
            body: &body,
            talk: wires::read(&target, &body),
        };
        let found = self.state().scripts.find(&facts, false);
        let echo = found.and_then(|(_, rule)| rule.echo);
        let findings = self.findings(&facts, uri.query(), false, echo);
        findings.iter().map(Finding::violation).collect()
    }

    /// The finding that the service answers with.
    pub(super) fn refusal(&self, findings: &[Finding]) -> Option<Box<ErrorReply>> {
        let refused = findings.iter().find(|finding| finding.refused)?;
        (self.inner.config.verify == Verify::Refuse).then(|| Box::new(refused.error()))
    }

    /// Judges a request by the service's rules, and finds the rule that answers it.
    pub(super) fn judge(&self, facts: &Facts<'_>, query: Option<&str>, bytes: &Bytes) -> Verdict {
        let found = self.state().scripts.find(facts, false);
        let (lenient, echo) = found
            .as_ref()
            .map_or((false, None), |(_, rule)| (rule.lenient, rule.echo));
        let mut findings = self.findings(facts, query, false, echo);
        findings.extend(self.changed_body(facts, bytes));
        let violations = findings.iter().map(Finding::violation).collect();
        if let Some(refusal) = self.refusal(&findings).filter(|_| !lenient) {
            return Verdict {
                violations,
                chosen: Choice::Refused(refusal),
            };
        }
        // Found again: between the two looks another request may have used the rule up.
        let mut state = self.state();
        let found = state.scripts.find(facts, false);
        let chosen = match found.and_then(|(found, _)| state.scripts.take(found)) {
            Some(chosen) => Choice::Rule(chosen),
            None => Choice::Unmatched(state.scripts.count_unmatched()),
        };
        Verdict { violations, chosen }
    }

    /// LLM-REQ-001: a repeated request has the body of the first attempt.
    fn changed_body(&self, facts: &Facts<'_>, bytes: &Bytes) -> Option<Finding> {
        let attempt = facts.headers.get(RETRY_COUNT)?.to_str().ok()?;
        let first = attempt == "0" || self.inner.config.verify == Verify::Off;
        if first || self.state().journal.has_body(facts.path, bytes) {
            return None;
        }
        let message = format!("attempt {attempt} has another body than every request before");
        let fault = Fault {
            message,
            param: None,
            code: None,
            status: 400,
        };
        Some(Finding {
            id: verify::SAME_BODY,
            refused: false,
            fault,
        })
    }

    /// What the service's rules say about a request whose tokens are to be counted. Only Anthropic
    /// judges what it counts as it judges what it answers.
    pub(super) fn counted_findings(
        &self,
        target: &Target,
        parts: &Parts,
        body: &Value,
    ) -> Vec<Finding> {
        if target.wire != Wire::AnthropicMessages {
            return Vec::new();
        }
        let facts = Facts {
            wire: target.wire,
            method: parts.method.as_str(),
            path: parts.uri.path(),
            headers: &parts.headers,
            body,
            talk: wires::read(target, body),
        };
        self.findings(&facts, parts.uri.query(), true, None)
    }
}
