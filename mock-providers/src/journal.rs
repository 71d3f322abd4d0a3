//! What was asked, what was answered, and how it ended.
//!
//! The journal is bounded: it keeps the newest requests within a count and a number of bytes.
//! Keys and tokens in headers, queries and bodies are not shown, by the table that recordings use
//! ([`turnwire_spec::secrets`]): the header, the parameter or the member stays, `[secret]` takes the place of its
//! value. That is done when somebody reads the journal; until then the memory holds the request as it came.
//!
//! - [`head`]: how the head of a request is kept.

mod head;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_spec::llm::Wire;
use turnwire_spec::secrets;

pub(crate) use head::Head;

/// One request and its reply, as far as it got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Counts the requests of this mock from 0; never reused, also not after a reset.
    pub seq: u64,
    /// When the request had arrived, in milliseconds since the mock started.
    pub at_ms: u64,
    /// The wire, if the path belongs to one.
    pub wire: Option<Wire>,
    /// The HTTP method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query, without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The headers in order; values that are secrets are replaced by `[secret]`.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, as a text when it is none; values that are secrets are replaced by `[secret]`.
    pub body: Value,
    /// The model that was asked for.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Which try this is by the client's own count (`x-stainless-retry-count`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u32>,
    /// The newest earlier request with exactly the same body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_body_as: Option<u64>,
    /// The script and the rule that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleUse>,
    /// The status of the reply; 0 until one is chosen.
    pub status: u16,
    /// What is wrong with the request by the rules of the service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// How the reply ended.
    pub outcome: Outcome,
    /// Bytes that the body would have if it were sent whole.
    #[serde(default)]
    pub body_bytes: u64,
    /// Bytes of the body that were handed to the connection.
    pub bytes_sent: u64,
    /// How long the reply took, in milliseconds; until now if it has not ended.
    pub took_ms: u64,
}

/// Which rule answered.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RuleUse {
    /// The script's name.
    pub script: String,
    /// The rule's name, or its place in the script.
    pub rule: String,
    /// How often the rule had answered before.
    pub nth: u64,
}

/// Which rule answered, as long as nobody asks: its names are those of the script.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    pub(crate) script: Arc<str>,
    pub(crate) rule: Arc<str>,
    pub(crate) nth: u64,
}

impl Used {
    fn told(&self) -> RuleUse {
        RuleUse {
            script: self.script.as_ref().to_owned(),
            rule: self.rule.as_ref().to_owned(),
            nth: self.nth,
        }
    }
}

/// A rule of the service that a request breaks.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The requirement.
    pub id: String,
    /// What is wrong, with the place.
    pub message: String,
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not ended.
    Running,
    /// All of it was handed to the connection.
    Complete,
    /// It was closed or reset as the script says.
    Broken,
    /// The client went away first.
    ClientClosed,
}

/// How far a reply got; shared by the journal and the body that is sent.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    outcome: AtomicU8,
    whole: AtomicU64,
    bytes: AtomicU64,
    ended_at_ms: AtomicU64,
}

impl Progress {
    /// Says how many bytes there are to send.
    pub(crate) fn begins(&self, whole: usize) {
        self.whole.store(whole as u64, Ordering::Relaxed);
    }

    /// Counts bytes; true for the first ones.
    pub(crate) fn sent(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) == 0
    }

    /// Ends the reply; only the first call counts.
    pub(crate) fn end(&self, outcome: Outcome, at: Duration) {
        let running = outcome_code(Outcome::Running);
        let code = outcome_code(outcome);
        self.ended_at_ms.fetch_max(millis(at), Ordering::Relaxed);
        let _ = self
            .outcome
            .compare_exchange(running, code, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self.outcome.load(Ordering::Acquire) {
            1 => Outcome::Complete,
            2 => Outcome::Broken,
            3 => Outcome::ClientClosed,
            _ => Outcome::Running,
        }
    }
}

const fn outcome_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Running => 0,
        Outcome::Complete => 1,
        Outcome::Broken => 2,
        Outcome::ClientClosed => 3,
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A request as it is kept.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) seq: u64,
    pub(crate) at: Duration,
    pub(crate) wire: Option<Wire>,
    pub(crate) head: Head,
    pub(crate) body: Bytes,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) rule: Option<Used>,
    pub(crate) status: u16,
    pub(crate) violations: Vec<Violation>,
    pub(crate) progress: Arc<Progress>,
}

/// The newest requests.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    records: VecDeque<Record>,
    bytes: usize,
    next: u64,
}

/// How much of the journal is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JournalLimits {
    /// Requests.
    pub entries: usize,
    /// Bytes of their bodies, all together.
    pub bytes: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self {
            entries: 1_000,
            bytes: 4 << 20,
        }
    }
}

impl Journal {
    /// The number of the next request.
    pub(crate) fn number(&mut self) -> u64 {
        let seq = self.next;
        self.next += 1;
        seq
    }

    pub(crate) fn push(&mut self, record: Record, limits: JournalLimits) {
        self.bytes += record.body.len();
        self.records.push_back(record);
        while self.records.len() > limits.entries.max(1)
            || (self.bytes > limits.bytes && self.records.len() > 1)
        {
            if let Some(old) = self.records.pop_front() {
                self.bytes -= old.body.len();
            }
        }
    }

    /// Whether a request with this path and body came before.
    pub(crate) fn has_body(&self, path: &str, body: &Bytes) -> bool {
        self.records
            .iter()
            .rev()
            .any(|record| record.head.path() == path && record.body == *body)
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }

    /// The requests from the number `since` on.
    pub(crate) fn entries(&self, since: u64, now: Duration) -> Vec<JournalEntry> {
        self.records
            .iter()
            .enumerate()
            .filter(|(_, record)| record.seq >= since)
            .map(|(at, record)| self.entry(at, record, now))
            .collect()
    }

    fn entry(&self, at: usize, record: &Record, now: Duration) -> JournalEntry {
        let same = self.records.iter().take(at).rev().find(|other| {
            !record.body.is_empty()
                && other.body == record.body
                && other.head.path() == record.head.path()
        });
        let outcome = record.progress.outcome();
        let ended = match outcome {
            Outcome::Running => millis(now),
            _ => record.progress.ended_at_ms.load(Ordering::Relaxed),
        };
        JournalEntry {
            seq: record.seq,
            at_ms: millis(record.at),
            wire: record.wire,
            method: record.head.method().to_owned(),
            path: shown_text(record.head.path()),
            query: record.head.query().map(shown_query),
            headers: shown_headers(&record.head),
            body: shown_body(&record.body),
            model: record.model.clone(),
            stream: record.stream,
            retry_count: record
                .head
                .header("x-stainless-retry-count")
                .and_then(|count| count.parse().ok()),
            same_body_as: same.map(|other| other.seq),
            rule: record.rule.as_ref().map(Used::told),
            status: record.status,
            violations: record.violations.iter().map(shown_violation).collect(),
            outcome,
            body_bytes: record.progress.whole.load(Ordering::Relaxed),
            bytes_sent: record.progress.bytes.load(Ordering::Relaxed),
            took_ms: ended.saturating_sub(millis(record.at)),
        }
    }
}

/// What stands in place of a secret.
pub(crate) const SECRET: &str = "[secret]";

fn shown_headers(head: &Head) -> Vec<(String, String)> {
    head.headers()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value);
            let shown = secrets::replaced(&value, &secrets::of_header(name, &value), SECRET);
            (name.to_owned(), shown)
        })
        .collect()
}

fn shown_query(query: &str) -> String {
    secrets::replaced(query, &secrets::of_service_query(query), SECRET)
}

fn shown_text(text: &str) -> String {
    secrets::replaced(text, &secrets::of_text(text.as_bytes()), SECRET)
}

/// The body as JSON, or as a text when it is none.
fn shown_body(body: &[u8]) -> Value {
    let shown = shown_text(&String::from_utf8_lossy(body));
    serde_json::from_str(&shown).unwrap_or(Value::String(shown))
}

fn shown_violation(violation: &Violation) -> Violation {
    Violation {
        id: violation.id.clone(),
        message: shown_text(&violation.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u64, body: &'static str) -> Record {
        let (parts, ()) = http::Request::post("/v1/x?key=abc&alt=sse")
            .header(http::header::AUTHORIZATION, "Bearer sk-secret")
            .body(())
            .unwrap()
            .into_parts();
        Record {
            seq,
            at: Duration::ZERO,
            wire: None,
            head: Head::of(&parts),
            body: Bytes::from_static(body.as_bytes()),
            model: String::new(),
            stream: false,
            rule: None,
            status: 200,
            violations: Vec::new(),
            progress: Arc::default(),
        }
    }

    #[test]
    fn secrets_are_not_shown_and_repeated_bodies_are_noticed() {
        let mut journal = Journal::default();
        for (seq, body) in [(0, "{\"a\":1}"), (1, "no json"), (2, "{\"a\":1}")] {
            journal.push(record(seq, body), JournalLimits::default());
        }
        let entries = journal.entries(0, Duration::from_secs(1));
        assert!(
            !serde_json::to_string(&entries)
                .unwrap()
                .contains("sk-secret")
        );
        assert_eq!(entries[0].query.as_deref(), Some("key=[secret]&alt=sse"));
        assert_eq!(
            entries[0].headers,
            [("authorization".into(), "Bearer [secret]".into())]
        );
        assert_eq!(entries[1].body, "no json");
        assert_eq!(entries[2].same_body_as, Some(0));
        assert_eq!(
            (entries[2].outcome, entries[2].took_ms),
            (Outcome::Running, 1000)
        );
    }

    #[test]
    fn no_secret_is_shown_by_whatever_name_it_came() {
        let secret = "0123456789abcdef-secret";
        let target =
            format!("/v1/x?token={secret}&apikey={secret}&Key={secret}&k%65y={secret}&alt=sse");
        let names = [
            "x-amz-security-token",
            "cf-access-client-secret",
            "x-custom-secret",
            "authorization2",
        ];
        let request = names
            .iter()
            .fold(http::Request::post(target), |request, name| {
                request.header(*name, secret)
            });
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let body = format!(
            r#"{{"api_key":"{secret}","messages":[{{"content":"use sk-proj-{secret} now","n":1}}]}}"#
        );
        let mut journal = Journal::default();
        let record = Record {
            head: Head::of(&parts),
            body: body.into(),
            ..record(0, "")
        };
        journal.push(record, JournalLimits::default());
        let entry = journal.entries(0, Duration::ZERO).remove(0);
        assert!(!serde_json::to_string(&entry).unwrap().contains(secret));
        assert_eq!(
            entry.query.as_deref(),
            Some("token=[secret]&apikey=[secret]&Key=[secret]&k%65y=[secret]&alt=sse")
        );
        // What came can still be asked for.
        let shown: Vec<_> = entry
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(shown, names);
        assert_eq!(entry.body["api_key"], "[secret]");
        assert_eq!(
            entry.body["messages"][0],
            serde_json::json!({"content": "use [secret] now", "n": 1})
        );
    }

    #[test]
    fn the_oldest_requests_are_forgotten() {
        let mut journal = Journal::default();
        for seq in 0..5 {
            journal.push(
                record(seq, "0123456789"),
                JournalLimits {
                    entries: 3,
                    bytes: 25,
                },
            );
        }
        let seqs: Vec<_> = journal
            .entries(0, Duration::ZERO)
            .iter()
            .map(|entry| entry.seq)
            .collect();
        assert_eq!(seqs, [3, 4]);
    }
}
