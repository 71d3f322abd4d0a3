//! Changes of what a testee reports.

use serde_json::Value;
use turnwire_spec::catalogue::rewrite::ReportRewrite;

use crate::{
    cases,
    saboteurs::{json, saboteur::RequestInfo, template::Context},
    schema,
};

/// Applies a rewrite to a report that it selects. A report that never comes is null.
pub(super) fn apply(rewrite: &ReportRewrite, report: &mut Value) {
    if !selects(rewrite, report) {
        return;
    }
    if rewrite.drop {
        *report = Value::Null;
        return;
    }
    let context = Context {
        info: &RequestInfo::default(),
        frame: None,
        json: None,
        index: 0,
    };
    json::apply(&rewrite.json, report, context);
}

fn selects(rewrite: &ReportRewrite, report: &Value) -> bool {
    let case = report["case"].as_str().unwrap_or_default();
    let wanted = rewrite.where_report.as_ref();
    let session = report["state"]["session"].as_str().unwrap_or_default();
    (rewrite.session.is_empty() || rewrite.session == session)
        && (rewrite.hazard.is_empty() || cases::is_of(case, &rewrite.hazard))
        && wanted.is_none_or(|schema| schema::satisfied(schema, report))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_spec::catalogue::rewrite::JsonEdit;

    use super::*;

    #[test]
    fn only_reports_of_the_hazard_are_changed() {
        let rewrite = ReportRewrite {
            hazard: "line-ends".to_owned(),
            json: vec![JsonEdit::Set("/outcome/text".to_owned(), "".into())],
            ..ReportRewrite::default()
        };
        let after = |case: &str| {
            let mut report = json!({ "case": case, "outcome": { "text": "all of it" } });
            apply(&rewrite, &mut report);
            report["outcome"]["text"].clone()
        };
        assert_eq!(after("line-ends"), "");
        assert_eq!(after("line-ends/cr"), "");
        assert_eq!(after("line-ends-mixed"), "all of it");
    }

    #[test]
    fn a_dropped_report_is_null() {
        let rewrite = ReportRewrite {
            drop: true,
            ..ReportRewrite::default()
        };
        let mut report = json!({ "case": "a" });
        apply(&rewrite, &mut report);
        assert!(report.is_null());
    }
}
