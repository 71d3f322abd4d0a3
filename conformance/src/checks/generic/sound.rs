//! Whether rules and rewrites of the catalogue can be executed at all.
//!
//! A rule whose schema does not compile, that demands nothing, or that names a type which no stream has, would
//! judge nothing; a rewrite that changes nothing would prove nothing. [`rule_faults`] and [`rewrite_faults`] tell,
//! in words.

use serde_json::{Value, json};
use turnwire_spec::{
    catalogue::{
        rewrite::{
            FrameEdit, FrameRewrite, ReportRewrite, RequestRewrite, ResponseRewrite, Rewrite,
        },
        rule::{FrameRule, ResponseRule, Rule, StreamRule},
    },
    covel,
};

use super::frames::{COMMENT, CONTROL, RELAY};
use crate::{schema, transcript::views::stream::type_matches};

mod messages;
mod relations;

/// What is wrong with a rule.
pub fn rule_faults(rule: &Rule) -> Vec<String> {
    match rule {
        Rule::Frames(rule) => frame_rule(rule),
        Rule::Responses(rule) => response_rule(rule),
        Rule::Streams(rule) => stream_rule(rule),
        Rule::Outcome(rule) => {
            let mut faults = idle("outcome", "selects", rule.hazard.is_empty());
            faults.extend(schemas([("that", &rule.that)]));
            faults
        }
        Rule::Messages(_) | Rule::Answers(_) | Rule::Channels(_) | Rule::States(_) => {
            messages::rule_faults(rule)
        }
        Rule::Asked(rule) => {
            let mut faults = idle("asked", "selects", rule.label.is_empty());
            faults.extend(idle(
                "asked",
                "demands",
                rule.that.is_none()
                    && rule.count.is_none()
                    && rule.distinct.is_none()
                    && rule.without.is_empty()
                    && rule.left.is_none()
                    && rule.constant.is_empty(),
            ));
            faults.extend(schemas([
                ("where", &rule.where_request),
                ("that", &rule.that),
            ]));
            faults
        }
        Rule::Waits(rule) => {
            let mut faults = idle("waits", "selects", rule.hazard.is_empty());
            faults.extend(idle("waits", "demands", rule.at_least_ms == 0));
            faults
        }
        Rule::Said(rule) => {
            let mut faults = idle("said", "selects", rule.hazard.is_empty());
            faults.extend(idle("said", "demands", rule.user.is_empty()));
            faults
        }
        Rule::Relate(rule) => relations::relate_faults(rule),
        Rule::Pairs(rule) => relations::pair_faults(rule),
        Rule::All(rules) if rules.is_empty() => {
            vec!["all: an empty list demands nothing".to_owned()]
        }
        Rule::All(rules) => rules.iter().flat_map(rule_faults).collect(),
    }
}

/// What is wrong with a rewrite.
pub fn rewrite_faults(rewrite: &Rewrite) -> Vec<String> {
    match rewrite {
        Rewrite::Request(rewrite) => request_rewrite(rewrite),
        Rewrite::Response(rewrite) => response_rewrite(rewrite),
        Rewrite::Frames(rewrite) => frame_rewrite(rewrite),
        Rewrite::Report(rewrite) => report_rewrite(rewrite),
        Rewrite::Messages(_) => messages::rewrite_faults(rewrite),
        Rewrite::Extra(rewrite) => schemas([("where_request", &rewrite.where_request)]),
        Rewrite::All(rewrites) if rewrites.is_empty() => {
            vec!["all: an empty list changes nothing".to_owned()]
        }
        Rewrite::All(rewrites) => rewrites.iter().flat_map(rewrite_faults).collect(),
    }
}

fn report_rewrite(rewrite: &ReportRewrite) -> Vec<String> {
    let is_idle = rewrite.json.is_empty() && !rewrite.drop;
    let mut faults = idle("report", "changes", is_idle);
    faults.extend(schemas([("where", &rewrite.where_report)]));
    faults
}

fn frame_rule(rule: &FrameRule) -> Vec<String> {
    let selection = FrameRule {
        stream: rule.stream.clone(),
        types: rule.types.clone(),
        not_type: rule.not_type.clone(),
        label: rule.label.clone(),
        where_data: rule.where_data.clone(),
        ..FrameRule::default()
    };
    let mut faults = idle("frames", "demands", *rule == selection);
    faults.extend(schemas([("where", &rule.where_data), ("data", &rule.data)]));
    faults.extend(
        rule.line_pattern
            .values()
            .flat_map(|pattern| pattern_fault(pattern)),
    );
    // What is forbidden may well not exist; its sabotage shows that the rule would see it.
    let named = rule.types.iter().filter(|_| !rule.forbidden);
    faults.extend(unknown_types(named.chain(&rule.not_type)));
    faults.extend(bad_sources(
        rule.equal
            .iter()
            .flat_map(|(left, right)| [left, right])
            .chain(&rule.constant),
    ));
    faults.extend(bad_pointers(rule.clock.iter().chain(&rule.rising)));
    faults
}

fn response_rule(rule: &ResponseRule) -> Vec<String> {
    let selection = ResponseRule {
        method: rule.method.clone(),
        path: rule.path.clone(),
        label: rule.label.clone(),
        when_status: rule.when_status.clone(),
        when_query: rule.when_query.clone(),
        where_request: rule.where_request.clone(),
        ..ResponseRule::default()
    };
    let mut faults = idle("responses", "demands", *rule == selection);
    faults.extend(schemas([
        ("where_request", &rule.where_request),
        ("body", &rule.body),
    ]));
    faults.extend(
        rule.header
            .values()
            .flat_map(|pattern| pattern_fault(pattern)),
    );
    faults.extend(bad_sources(
        rule.equal.iter().flat_map(|(left, right)| [left, right]),
    ));
    faults.extend(bad_paths(&rule.path));
    let bad = rule.status.iter().filter(|status| !is_status(status));
    faults.extend(bad.map(|status| {
        format!("status {status} is no number from 100 to 599 and no class such as \"4xx\"")
    }));
    faults
}

fn stream_rule(rule: &StreamRule) -> Vec<String> {
    let selection = StreamRule {
        stream: rule.stream.clone(),
        label: rule.label.clone(),
        ..StreamRule::default()
    };
    let mut faults = idle("streams", "demands", *rule == selection);
    let listed = rule
        .first
        .iter()
        .chain(&rule.last)
        .chain(&rule.only)
        .chain(rule.count.keys());
    let ordered = rule
        .order
        .iter()
        .flat_map(|(before, after)| [before, after]);
    let periodic = rule.period.keys().filter(|name| *name != COMMENT);
    faults.extend(unknown_types(listed.chain(ordered).chain(periodic)));
    faults
}

fn request_rewrite(rewrite: &RequestRewrite) -> Vec<String> {
    let selection = RequestRewrite {
        method: rewrite.method.clone(),
        path: rewrite.path.clone(),
        when_query: rewrite.when_query.clone(),
        where_request: rewrite.where_request.clone(),
        skip: rewrite.skip,
        limit: rewrite.limit,
        ..RequestRewrite::default()
    };
    let mut faults = idle("request", "changes", *rewrite == selection);
    faults.extend(schemas([("where_request", &rewrite.where_request)]));
    faults.extend(bad_paths(&rewrite.path));
    let places = rewrite.moves.iter().flat_map(|(from, to)| [from, to]);
    let is_place = |place: &&String| place.starts_with("query:") || place.starts_with("header:");
    let bad = places.filter(|place| !is_place(place));
    faults
        .extend(bad.map(|place| format!("move: {place:?} is neither query:NAME nor header:NAME")));
    faults
}

fn response_rewrite(rewrite: &ResponseRewrite) -> Vec<String> {
    let selection = ResponseRewrite {
        method: rewrite.method.clone(),
        path: rewrite.path.clone(),
        when_status: rewrite.when_status.clone(),
        when_query: rewrite.when_query.clone(),
        where_request: rewrite.where_request.clone(),
        skip: rewrite.skip,
        limit: rewrite.limit,
        ..ResponseRewrite::default()
    };
    let mut faults = idle("response", "changes", *rewrite == selection);
    faults.extend(schemas([("where_request", &rewrite.where_request)]));
    faults.extend(bad_paths(&rewrite.path));
    if rewrite.instead && !rewrite.json.is_empty() {
        faults.push(
            "response: `json` has nothing to change where the target is not asked".to_owned(),
        );
    }
    faults
}

fn frame_rewrite(rewrite: &FrameRewrite) -> Vec<String> {
    let mut faults = idle("frames", "changes", rewrite.edits.is_empty());
    faults.extend(schemas([
        ("where", &rewrite.where_data),
        ("where_request", &rewrite.where_request),
    ]));
    faults.extend(unknown_types(
        rewrite
            .types
            .iter()
            .chain(&rewrite.not_type)
            .filter(|name| *name != COMMENT),
    ));
    let sent = rewrite.edits.iter().filter_map(|edit| match edit {
        FrameEdit::Before(text) | FrameEdit::After(text) => Some(text),
        _ => None,
    });
    let unfinished = sent.filter(|text| !text.ends_with("\n\n"));
    faults.extend(unfinished.map(|text| {
        format!("{text:?} does not end in a blank line, so it runs into the next frame")
    }));
    faults
}

fn idle(what: &str, verb: &str, is_idle: bool) -> Vec<String> {
    if is_idle {
        vec![format!("{what}: it {verb} nothing")]
    } else {
        Vec::new()
    }
}

fn schemas<'a>(wanted: impl IntoIterator<Item = (&'a str, &'a Option<Value>)>) -> Vec<String> {
    let given = wanted
        .into_iter()
        .filter_map(|(name, schema)| Some((name, schema.as_ref()?)));
    given
        .filter_map(|(name, schema)| Some(format!("{name}: {}", schema::compile(schema).err()?)))
        .collect()
}

fn pattern_fault(pattern: &str) -> Option<String> {
    schema::compile(&json!({ "pattern": pattern })).err()
}

/// Patterns that fit no type of any stream.
fn unknown_types<'a>(patterns: impl Iterator<Item = &'a String>) -> Vec<String> {
    let known = |pattern: &String| {
        let pattern = std::slice::from_ref(pattern);
        let mut names = covel::EVENTS
            .iter()
            .map(|event| event.name)
            .chain(CONTROL.iter().chain(RELAY).copied())
            .chain(turnwire_spec::llm::events::types());
        names.any(|name| type_matches(pattern, name)) || type_matches(pattern, "message")
    };
    patterns
        .filter(|pattern| !known(pattern))
        .map(|pattern| format!("no stream has frames of type {pattern:?}"))
        .collect()
}

fn bad_sources<'a>(sources: impl Iterator<Item = &'a String>) -> Vec<String> {
    const KINDS: [&str; 7] = [
        "/",
        "=",
        "line:",
        "request:",
        "request-header:",
        "header:",
        "path:",
    ];
    let bad = sources
        .filter(|source| !source.is_empty() && !KINDS.iter().any(|kind| source.starts_with(kind)));
    bad.map(|source| format!("{source:?} is no source"))
        .collect()
}

fn bad_pointers<'a>(pointers: impl Iterator<Item = &'a String>) -> Vec<String> {
    let bad = pointers.filter(|pointer| !pointer.starts_with('/'));
    bad.map(|pointer| format!("{pointer:?} is no JSON pointer"))
        .collect()
}

fn bad_paths(paths: &[String]) -> Vec<String> {
    let bad = paths
        .iter()
        .filter(|path| !path.starts_with('/') || path.contains('?'));
    bad.map(|path| format!("{path:?} is no path template"))
        .collect()
}

fn is_status(status: &Value) -> bool {
    match status {
        Value::Number(number) => number
            .as_u64()
            .is_some_and(|number| (100..600).contains(&number)),
        Value::String(class) => matches!(class.as_bytes(), [b'1'..=b'5', b'x', b'x']),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rule: Value) -> Vec<String> {
        rule_faults(&serde_json::from_value(rule).unwrap())
    }

    fn rewrite(rewrite: Value) -> Vec<String> {
        rewrite_faults(&serde_json::from_value(rewrite).unwrap())
    }

    #[test]
    fn sound_rules_and_rewrites_have_no_fault() {
        assert!(rule(json!({"frames": {"type": ["system.*"], "lines": {"id": 0}, "data": "system.reset"}})).is_empty());
        assert!(
            rule(json!({"responses": {"path": ["/x/:id"], "status": [200, "4xx"]}})).is_empty()
        );
        assert!(rule(json!({"frames": {"type": ["abort.*"], "forbidden": true}})).is_empty());
        assert!(rule(json!({"streams": {"period": {":": {"every_ms": 5}}}})).is_empty());
        assert!(rewrite(json!({"frames": {"type": [":"], "do": ["drop"]}})).is_empty());
        assert!(rewrite(json!({"request": {"move": [["query:a", "header:b"]]}})).is_empty());
        assert!(rewrite(json!({"response": {"hold_open": true}})).is_empty());
    }

    #[test]
    fn what_cannot_judge_is_told() {
        for faulty in [
            json!({"frames": {"type": ["system.connected"]}}),
            json!({"frames": {"data": {"type": "nonsense"}}}),
            json!({"frames": {"data": "no-such-schema"}}),
            json!({"frames": {"line_pattern": {"id": "("}}}),
            json!({"frames": {"type": ["sytem.*"], "lines": {"id": 0}}}),
            json!({"frames": {"equal": [["/a", "b"]]}}),
            json!({"frames": {"rising": "seq"}}),
            json!({"responses": {"path": ["x"], "status": [200]}}),
            json!({"responses": {"status": ["6xx"]}}),
            json!({"streams": {"first": ["nothing"]}}),
            json!({"streams": {}}),
            json!({"all": []}),
        ] {
            assert_eq!(rule(faulty.clone()).len(), 1, "{faulty}");
        }
    }

    #[test]
    fn what_cannot_break_anything_is_told() {
        for faulty in [
            json!({"frames": {"type": ["system.reset"]}}),
            json!({"frames": {"do": [{"before": "data: 1\n"}]}}),
            json!({"request": {"path": ["/x"]}}),
            json!({"request": {"move": [["a", "query:b"]]}}),
            json!({"response": {"when_status": [200], "skip": 1}}),
            json!({"response": {"instead": true, "json": [{"remove": "/a"}]}}),
            json!({"all": []}),
        ] {
            assert_eq!(rewrite(faulty.clone()).len(), 1, "{faulty}");
        }
    }
}
