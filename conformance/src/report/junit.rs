//! A report as JUnit XML: one test suite an area, one test case a requirement.
//!
//! What was not exercised is a failure where it had to be, else it is skipped; so are requirements that are not
//! applicable, waived or open. Faults of the harness are errors of a suite of their own.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::{EvidenceReport, Report, RequirementReport, State};

/// The whole report.
///
/// # Errors
///
/// When the XML cannot be written, which happens on texts that no XML holds.
pub fn render(report: &Report) -> Result<String, quick_junit::SerializeError> {
    let mut junit =
        quick_junit::Report::new(format!("turnwire {} on {}", report.suite, report.target));
    junit.set_time(Duration::try_from_secs_f64(report.seconds).unwrap_or_default());
    for area in &report.areas {
        let mut suite = TestSuite::new(area.name.as_str());
        for requirement in report
            .requirements
            .iter()
            .filter(|requirement| requirement.area == area.name)
        {
            suite.add_test_case(case(report, requirement));
        }
        junit.add_test_suite(suite);
    }
    if !report.harness_errors.is_empty() {
        let mut suite = TestSuite::new("harness");
        for error in &report.harness_errors {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(error.as_str());
            suite.add_test_case(TestCase::new("the harness does its part", status));
        }
        junit.add_test_suite(suite);
    }
    junit.to_string()
}

fn case(report: &Report, requirement: &RequirementReport) -> TestCase {
    let name = format!("{} {}", requirement.id, requirement.title);
    let mut case = TestCase::new(name, status(report, requirement));
    case.set_classname(requirement.area.as_str());
    case
}

fn status(report: &Report, requirement: &RequirementReport) -> TestCaseStatus {
    let why = requirement.why.as_deref();
    if requirement.red {
        let first = requirement.evidence.first();
        let kind = if requirement.state == State::Pass {
            "stale"
        } else {
            requirement.state.word()
        };
        let message = match first {
            Some(EvidenceReport { expected, got, .. }) => format!("expected {expected}, got {got}"),
            None if kind == "stale" => format!(
                "passes, but is expected to fail: {}",
                why.unwrap_or_default()
            ),
            None => format!("{kind}: {}", why.unwrap_or("it has to be exercised")),
        };
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status
            .set_message(message)
            .set_type(kind)
            .set_description(details(report, requirement));
        return status;
    }
    match requirement.state {
        State::Pass => TestCaseStatus::success(),
        state => {
            let mut status = TestCaseStatus::skipped();
            let message = why.map_or_else(
                || state.word().to_owned(),
                |why| format!("{}: {why}", state.word()),
            );
            status.set_message(message);
            status
        }
    }
}

fn details(report: &Report, requirement: &RequirementReport) -> String {
    let mut lines = vec![requirement.statement.clone()];
    for evidence in &requirement.evidence {
        lines.push(format!("expected: {}", evidence.expected));
        lines.push(format!("got: {}", evidence.got));
        lines.push(format!("scenario: {}", evidence.scenario));
        lines.extend(evidence.wire.iter().map(|line| format!("| {line}")));
    }
    lines.push(format!("rerun: {}", report.rerun(&requirement.id)));
    lines.join("\n")
}
