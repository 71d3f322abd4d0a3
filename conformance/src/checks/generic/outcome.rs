//! Demands on what a testee reports of its cases.

use serde_json::Value;
use turnwire_spec::catalogue::rule::OutcomeRule;

use crate::{
    cases::{self, Truth},
    schema,
    transcript::{
        Transcript,
        views::cases::{Played, played},
    },
    verdict::{Evidence, Findings},
};

/// Judges the report of every case of the hazard. A case that the testee cannot express is not judged; a case
/// without any report is a fault.
pub(super) fn judge(rule: &OutcomeRule, transcript: &Transcript) -> Findings {
    let selected = played(transcript)
        .into_iter()
        .filter(|case| cases::is_of(&case.id, &rule.hazard) && !case.unsupported());
    Findings::each(selected, |case| fault(rule, &case))
}

fn fault(rule: &OutcomeRule, case: &Played<'_>) -> Option<Evidence> {
    let truths: Vec<Truth> = serde_json::from_value(case.truth.clone()).unwrap_or_default();
    let nothing = Value::Null;
    let report = case.report.as_ref().map_or(&nothing, |(_, report)| report);
    let found = if rule.deltas {
        cases::fault_of_deltas(&truths, report)
    } else {
        cases::fault(&truths, report)
    };
    let unlike = || {
        let that = rule.that.as_ref()?;
        schema::fault(that, report).map(|fault| (format!("a report with {that}"), fault))
    };
    // What no request asked for is no answer.
    let unasked = || {
        let answered = report["outcome"].is_object() && case.exchange.is_none();
        answered.then(|| ("a request".to_owned(), "an answer to none".to_owned()))
    };
    let (expected, got) = match found.or_else(unlike).or_else(unasked) {
        None => return None,
        Some((expected, _)) if report.is_null() => {
            let why = case.over.as_ref();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            (expected, format!("no report{why}"))
        }
        Some(fault) => fault,
    };
    Some(Evidence {
        exchange: case.exchange.as_ref().map(|(id, _)| *id),
        request: case.exchange.as_ref().map(|(_, line)| line.clone()),
        at: Some(case.report.as_ref().map_or(case.begun, |(at, _)| *at)),
        ..Evidence::new(format!("{}: {expected}", case.id), got)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::transcript::{End, Entry, ExchangeId, Fact, Header, Request, Side};

    fn transcript(id: &str, report: Option<Value>) -> Transcript {
        let request = Fact::Request {
            exchange: ExchangeId(2),
            request: Request {
                method: "POST".to_owned(),
                target: "/v1/chat/completions".to_owned(),
                ..Request::default()
            },
        };
        unasked(id, [request], report)
    }

    fn unasked(
        id: &str,
        request: impl IntoIterator<Item = Fact>,
        report: Option<Value>,
    ) -> Transcript {
        let state = json!({ "case": id, "truth": [{ "text": "Hi", "finish": ["stop"] }] });
        let line = |from, value: &Value| Fact::Line {
            exchange: ExchangeId(1),
            from,
            bytes: value.to_string().into(),
        };
        let mut facts = vec![
            Fact::State(state),
            line(Side::Server, &json!({ "case": id })),
        ];
        facts.extend(request);
        facts.extend(report.map(|report| line(Side::Client, &report)));
        let entry = |fact| Entry {
            at: Duration::ZERO,
            fact,
        };
        Transcript {
            header: Header::default(),
            entries: facts.into_iter().map(entry).collect(),
        }
    }

    fn found(id: &str, report: Option<Value>) -> (usize, usize) {
        let rule = OutcomeRule {
            hazard: "utf8".to_owned(),
            ..OutcomeRule::default()
        };
        let findings = judge(&rule, &transcript(id, report));
        (findings.judged, findings.faults.len())
    }

    #[test]
    fn a_case_is_judged_by_its_truth() {
        let report = |text: &str| json!({ "case": "utf8/a", "outcome": { "text": text, "finishReason": "stop" } });
        assert_eq!(found("utf8/a", Some(report("Hi"))), (1, 0));
        assert_eq!(found("utf8/a", Some(report("H\u{fffd}"))), (1, 1));
    }

    #[test]
    fn a_report_is_judged_by_its_schema_too() {
        let rule = OutcomeRule {
            hazard: "utf8".to_owned(),
            that: Some(json!({ "required": ["note"] })),
            ..OutcomeRule::default()
        };
        let faults = |report: Value| judge(&rule, &transcript("utf8", Some(report))).faults.len();
        let outcome = json!({ "text": "Hi", "finishReason": "stop" });
        assert_eq!(faults(json!({ "case": "utf8", "outcome": outcome })), 1);
        assert_eq!(
            faults(json!({ "case": "utf8", "outcome": outcome, "note": 1 })),
            0
        );
    }

    #[test]
    fn an_answer_that_no_request_asked_for_is_a_fault() {
        let outcome = json!({ "text": "Hi", "finishReason": "stop" });
        let report = json!({ "case": "utf8", "outcome": outcome });
        let rule = OutcomeRule {
            hazard: "utf8".to_owned(),
            ..OutcomeRule::default()
        };
        let findings = judge(&rule, &unasked("utf8", [], Some(report)));
        assert_eq!((findings.judged, findings.faults.len()), (1, 1));
    }

    #[test]
    fn a_report_of_an_answer_and_an_error_is_a_fault() {
        let outcome = json!({ "text": "Hi", "finishReason": "stop" });
        let report = json!({ "case": "utf8", "outcome": outcome, "error": { "class": "server" } });
        assert_eq!(found("utf8", Some(report)), (1, 1));
    }

    #[test]
    fn members_of_a_report_that_are_null_say_nothing() {
        let outcome = json!({ "text": "Hi", "finishReason": "stop" });
        let report =
            json!({ "case": "utf8", "outcome": outcome, "error": null, "unsupported": null });
        assert_eq!(found("utf8", Some(report)), (1, 0));
    }

    #[test]
    fn a_case_whose_adapter_died_says_how() {
        let mut transcript = transcript("utf8", None);
        transcript.entries.push(Entry {
            at: Duration::ZERO,
            fact: Fact::End {
                exchange: ExchangeId(1),
                how: End::Broken("it closed its standard output | KeyError: 'tools'".to_owned()),
            },
        });
        let rule = OutcomeRule {
            hazard: "utf8".to_owned(),
            ..OutcomeRule::default()
        };
        let fault = &judge(&rule, &transcript).faults[0];
        assert!(fault.got.ends_with("KeyError: 'tools'"), "{}", fault.got);
    }

    #[test]
    fn a_case_without_a_report_is_a_fault() {
        assert_eq!(found("utf8", None), (1, 1));
    }

    #[test]
    fn other_hazards_and_what_cannot_be_expressed_are_not_judged() {
        assert_eq!(found("usage", None), (0, 0));
        let unsupported = json!({ "case": "utf8", "unsupported": "no streams" });
        assert_eq!(found("utf8", Some(unsupported)), (0, 0));
    }
}
