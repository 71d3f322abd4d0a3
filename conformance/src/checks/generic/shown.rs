//! Demands on what a client under test shows.

use std::time::Duration;

use serde_json::{Map, Value};
use turnwire_spec::catalogue::messages::StateRule;

use crate::{
    schema,
    transcript::views::{
        client::{Act, CANNOT, UNFOLLOWED, acts, base, ended_as},
        messages::label_fits,
        reading::Reading,
    },
    verdict::{Evidence, Findings},
};

/// Judges what is shown at the end of every label of the rule, or all the time under it.
///
/// A client reports when something changes, so what it reported before a label of the same act is what it shows
/// until its next report.
pub(super) fn judge(rule: &StateRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    if rule.shows.is_none() && rule.same.is_empty() {
        return findings;
    }
    let acts = acts(reading.transcript());
    let mut ends = Vec::new();
    for (place, act) in acts.iter().enumerate() {
        let named = rule
            .label
            .iter()
            .any(|label| label_fits(Some(label), act.name));
        // An act that ended early shows nothing of what would have come.
        let left = ended_as(&acts, act, CANNOT) || ended_as(&acts, act, UNFOLLOWED);
        if !named || left {
            continue;
        }
        let mut seen = shown(act);
        let mut before = acts[..place]
            .iter()
            .rev()
            .take_while(|before| base(before.name) == base(act.name));
        if seen.is_empty() {
            seen.extend(before.find_map(|before| shown(before).pop()));
        }
        let from = if rule.every {
            0
        } else {
            seen.len().saturating_sub(1)
        };
        for (at, state) in &seen[from..] {
            if let Some(wanted) = &rule.shows {
                findings.merge(fault(wanted, act, *at, state));
            }
        }
        ends.extend(seen.last().map(|(at, state)| (act.name, *at, *state)));
    }
    for pointer in &rule.same {
        findings.merge(differences(pointer, &ends));
    }
    findings
}

/// Compares what stands at a pointer at the end of each label with the first that has it.
fn differences(pointer: &str, ends: &[(&str, Duration, &Value)]) -> Findings {
    let mut having = ends
        .iter()
        .filter_map(|(name, at, state)| Some((*name, *at, state.pointer(pointer)?)));
    let Some((first, _, wanted)) = having.next() else {
        return Findings::none();
    };
    Findings::each(having, |(name, at, got)| {
        (got != wanted).then(|| Evidence {
            at: Some(at),
            ..Evidence::new(
                format!("under {name:?}, {pointer} as under {first:?}: {wanted}"),
                got.to_string(),
            )
        })
    })
}

/// What was reported under a label, and is an object.
fn shown<'a>(act: &Act<'a>) -> Vec<(Duration, &'a Value)> {
    let states = act
        .reports
        .iter()
        .filter_map(|(at, report)| Some((*at, report.get("state")?)));
    states.filter(|(_, state)| state.is_object()).collect()
}

/// Judges one state, when it has all that the schema is about.
fn fault(wanted: &Value, act: &Act<'_>, at: Duration, state: &Value) -> Findings {
    let needed: Vec<&str> = needs(wanted);
    if needed.iter().any(|member| state.get(member).is_none()) {
        return Findings::none();
    }
    let about: Map<_, _> = needed
        .iter()
        .map(|member| ((*member).to_owned(), state[member].clone()))
        .collect();
    Findings::each([()], |()| {
        let fault = schema::fault(wanted, state)?;
        Some(Evidence {
            at: Some(at),
            ..Evidence::new(
                format!("under {:?}, what is shown satisfies {wanted}", act.name),
                format!("{fault}; it shows {}", Value::Object(about.clone())),
            )
        })
    })
}

/// The members that a schema requires of the whole, itself or by its parts.
fn needs(wanted: &Value) -> Vec<&str> {
    let own = wanted["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let parts = wanted["allOf"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(needs);
    own.chain(parts).collect()
}
