//! Demands on how long an adapter waits before it asks again.
//!
//! Times are those of the harness's server: it notes an answer before it sends it, and the next request when it has
//! come. So what is measured is never shorter than what the adapter waited.

use std::time::Duration;

use turnwire_spec::catalogue::rule::WaitRule;

use crate::{
    cases::is_of,
    transcript::{
        Transcript,
        views::http::{Exchange, exchanges},
    },
    verdict::Findings,
};

/// How much earlier a request may come: clocks are read, and times written down, in whole milliseconds.
const SLACK: Duration = Duration::from_millis(5);

/// Judges every request of a case of the hazard that follows an error of the service.
pub(super) fn judge(rule: &WaitRule, transcript: &Transcript) -> Findings {
    let all = exchanges(transcript);
    let mine: Vec<_> = all
        .iter()
        .filter(|exchange| is_of(exchange.label, &rule.hazard))
        .collect();
    let again = mine.windows(2).filter_map(|pair| match pair {
        [first, second] if first.label == second.label => Some((refused(first)?, *second)),
        _ => None,
    });
    let at_least = Duration::from_millis(rule.at_least_ms);
    Findings::each(again, |(refused, second)| {
        let waited = second.opened.saturating_sub(refused);
        (waited + SLACK < at_least).then(|| {
            second.evidence(
                format!("the next request after {at_least:?} or more"),
                format!("a request after {waited:?}"),
            )
        })
    })
}

/// When the service said that it cannot answer now.
fn refused(exchange: &Exchange<'_>) -> Option<Duration> {
    let (at, head) = exchange.head?;
    (head.status == 429 || head.status >= 500).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Entry, ExchangeId, Fact, Header, Request, ResponseHead};

    /// Requests under a label, each with its time and the status of its answer, which comes 10 ms later.
    fn found(label: &str, requests: &[(u64, u16)]) -> (usize, usize) {
        let entry = |at: u64, fact| Entry {
            at: Duration::from_millis(at),
            fact,
        };
        let mut entries = vec![entry(0, Fact::Label(label.to_owned()))];
        for (number, (at, status)) in (1..).zip(requests) {
            let exchange = ExchangeId(number);
            let request = Request::default();
            let head = ResponseHead {
                status: *status,
                headers: Vec::new(),
            };
            entries.push(entry(*at, Fact::Request { exchange, request }));
            entries.push(entry(at + 10, Fact::Response { exchange, head }));
        }
        let transcript = Transcript {
            header: Header::default(),
            entries,
        };
        let rule = WaitRule {
            hazard: "busy".to_owned(),
            at_least_ms: 1000,
        };
        let findings = judge(&rule, &transcript);
        (findings.judged, findings.faults.len())
    }

    #[test]
    fn a_request_that_comes_too_early_is_a_fault() {
        assert_eq!(found("busy", &[(0, 429), (1010, 200)]), (1, 0));
        assert_eq!(found("busy/a", &[(0, 503), (900, 200)]), (1, 1));
        assert_eq!(found("busy", &[(0, 429), (1010, 429), (1020, 200)]), (2, 1));
    }

    #[test]
    fn who_asks_once_or_after_an_answer_shows_nothing() {
        assert_eq!(found("busy", &[(0, 429)]), (0, 0));
        assert_eq!(found("busy", &[(0, 200), (20, 200)]), (0, 0));
        assert_eq!(found("busy", &[(0, 400), (20, 200)]), (0, 0));
        assert_eq!(found("other", &[(0, 429), (20, 200)]), (0, 0));
    }
}
