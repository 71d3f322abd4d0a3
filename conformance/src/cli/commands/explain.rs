//! `turnwire explain ID`: everything that is known about one requirement.

use serde::Serialize;
use serde_json::Value;
use turnwire_spec::catalogue::{
    Catalogue, Entry, Rewrite, Rule,
    rewrite::{FrameRewrite, RequestRewrite, ResponseRewrite},
    rule::{FrameRule, ResponseRule, StreamRule},
};

use super::print;
use crate::{
    cli::{args::ExplainArgs, console::Console, exit::CliError, select, state},
    report::explained::{Explained, ExplainedScenario, LastVerdict, QuotedLine},
    saboteurs, suites,
};

pub(in crate::cli) fn run(args: &ExplainArgs, console: &Console) -> Result<u8, CliError> {
    let colour = console.colour;
    print(
        console,
        args.print,
        || select::entry(&args.id).map(explained),
        |explained| explained.render(colour),
    )
}

fn explained(entry: &Entry) -> Explained {
    let catalogue = Catalogue::embedded();
    let suite = catalogue.suite_of(entry).name().to_owned();
    let quote = entry.seed_text().map(|(line, text)| QuotedLine {
        line,
        text: text.to_owned(),
    });
    let source = entry
        .seed
        .as_ref()
        .map(ToString::to_string)
        .or_else(|| entry.source.clone());
    let proof = state::last_proof(&suite).filter(|proof| proof.judged.contains(&entry.id));
    Explained {
        id: entry.id.clone(),
        title: entry.title.clone(),
        area: catalogue
            .area_of(entry)
            .map(|area| area.name.clone())
            .unwrap_or_default(),
        level: entry.level.name().to_owned(),
        binds: entry.binds.name().to_owned(),
        observe: entry.observe.name().to_owned(),
        statement: entry.statement.clone(),
        source: source.unwrap_or_default(),
        quote: quote.collect(),
        check: entry.check.clone(),
        rule: entry.rule.as_ref().map(rule),
        functions: functions(entry, &suite),
        sabotage: entry.sabotage.clone(),
        rewrite: entry.rewrite.as_ref().map(rewrite),
        coded_saboteur: saboteurs::coded(&entry.id).is_some(),
        also: entry.also.clone(),
        needs: entry.needs.clone(),
        scenarios: scenarios(entry, &suite),
        waiver: entry.waiver.clone(),
        test: entry.test.clone(),
        last: last(entry, &suite),
        proven: proof.map(|proof| proof.proven.contains(&entry.id)),
        suite,
    }
}

fn functions(entry: &Entry, suite: &str) -> Vec<String> {
    let suite = suites::find(suite).ok();
    let checks = suite.into_iter().flat_map(|suite| suite.checks(&entry.id));
    checks.map(|check| check.name.to_owned()).collect()
}

fn scenarios(entry: &Entry, suite: &str) -> Vec<ExplainedScenario> {
    let scenarios = suites::find(suite)
        .map(|suite| suite.scenarios_of(entry))
        .unwrap_or_default();
    let explained = scenarios.into_iter().map(|scenario| ExplainedScenario {
        name: scenario.name.to_owned(),
        about: scenario.about.to_owned(),
    });
    explained.collect()
}

fn last(entry: &Entry, suite: &str) -> Option<LastVerdict> {
    let report = state::last_report(suite)?;
    let verdict = report.requirement(&entry.id)?.clone();
    Some(LastVerdict {
        target: report.target,
        started: report.started,
        verdict,
    })
}

/// A rule as it is written: without what has its default.
fn rule(rule: &Rule) -> Value {
    trimmed(to_json(rule), &|kind| match kind {
        "frames" => to_json(&FrameRule::default()),
        "responses" => to_json(&ResponseRule::default()),
        "streams" => to_json(&StreamRule::default()),
        _ => Value::Null,
    })
}

/// A rewrite as it is written: without what has its default.
fn rewrite(rewrite: &Rewrite) -> Value {
    trimmed(to_json(rewrite), &|kind| match kind {
        "request" => to_json(&RequestRewrite::default()),
        "response" => to_json(&ResponseRewrite::default()),
        "frames" => to_json(&FrameRewrite::default()),
        _ => Value::Null,
    })
}

fn to_json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// `{kind: members}` without the members that `defaults` gives for the kind; `{all: [..]}` member by member.
fn trimmed(value: Value, defaults: &dyn Fn(&str) -> Value) -> Value {
    let Value::Object(kinds) = value else {
        return value;
    };
    let kinds = kinds.into_iter().map(|(kind, value)| {
        let value = match value {
            Value::Array(parts) => parts
                .into_iter()
                .map(|part| trimmed(part, defaults))
                .collect(),
            Value::Object(members) => {
                let default = defaults(&kind);
                members
                    .into_iter()
                    .filter(|(name, value)| default.get(name) != Some(value))
                    .collect()
            }
            other => other,
        };
        (kind, value)
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_shown_as_it_was_written() {
        for entry in Catalogue::embedded().entries() {
            let reread = entry
                .rule
                .as_ref()
                .map(|given| serde_json::from_value::<Rule>(rule(given)).unwrap());
            assert_eq!(reread, entry.rule, "{}", entry.id);
            let reread = entry
                .rewrite
                .as_ref()
                .map(|given| serde_json::from_value::<Rewrite>(rewrite(given)).unwrap());
            assert_eq!(reread, entry.rewrite, "{}", entry.id);
        }
        let written = serde_json::json!({"all": [{"frames": {"type": ["system.reset"], "lines": {"id": 0}}}]});
        assert_eq!(
            rule(&serde_json::from_value(written.clone()).unwrap()),
            written
        );
    }
}
