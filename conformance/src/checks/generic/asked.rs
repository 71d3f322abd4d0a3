//! Demands on what a client under test asks for.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use turnwire_spec::catalogue::rule::AskedRule;

use crate::{
    schema,
    transcript::{
        End,
        views::{
            client::{Act, CANNOT, acts, base, ended_as},
            http::{Exchange, path_matches, query_pairs},
            messages::label_fits,
            reading::Reading,
        },
    },
    verdict::Findings,
};

/// Judges the requests under every label of the rule. A label under which nothing was asked says nothing: the
/// client was not there.
pub(super) fn judge(rule: &AskedRule, reading: &Reading<'_>) -> Findings {
    let mut findings = Findings::none();
    let is_named = |act: &Act<'_>| {
        rule.label
            .iter()
            .any(|label| label_fits(Some(label), act.name))
    };
    let acts = acts(reading.transcript());
    // A client that was there at the start of an act is there under its other labels.
    let was_there = |name: &str| {
        acts.iter()
            .any(|act| base(act.name) == base(name) && !act.exchanges.is_empty())
    };
    // What a client cannot do at all is no fault of it.
    findings.merge(constant(rule, &acts, is_named));
    let is_judged =
        |act: &Act<'_>| is_named(act) && was_there(act.name) && !ended_as(&acts, act, CANNOT);
    let mut seen: Vec<(&str, String)> = Vec::new();
    for act in acts.iter().filter(|act| is_judged(act)) {
        let chosen: Vec<_> = act
            .exchanges
            .iter()
            .map(|exchange| (exchange, document(exchange)))
            .filter(|(exchange, asked)| selects(rule, exchange, asked))
            .collect();
        if let Some(that) = &rule.that {
            findings.merge(Findings::each(&chosen, |(exchange, asked)| {
                schema::fault(that, asked)
                    .map(|fault| exchange.evidence(format!("a request with {that}"), fault))
            }));
        }
        if let Some(pointer) = &rule.distinct {
            for (exchange, asked) in &chosen {
                let value = asked.pointer(pointer).and_then(Value::as_str);
                let value = (base(act.name), value.unwrap_or_default().to_owned());
                let fresh = !value.1.is_empty() && !seen.contains(&value);
                if seen.iter().any(|(act, _)| *act == value.0) || value.1.is_empty() {
                    findings.judge((!fresh).then(|| {
                        let wanted = format!("a text of its own at {pointer}");
                        exchange.evidence(wanted, format!("{:?}", value.1))
                    }));
                }
                seen.push(value);
            }
        }
        if !rule.without.is_empty() {
            findings.merge(Findings::each(&chosen, |(exchange, _)| {
                let found = rule.without.iter().find(|text| holds(exchange, text))?;
                let expected = format!("a request without {found:?}");
                Some(exchange.evidence(expected, format!("{found:?} in it")))
            }));
        }
        findings.merge(left(rule, act, &chosen));
        if let Some(count) = rule.count {
            let found = u64::try_from(chosen.len()).unwrap_or(u64::MAX);
            let fits = count.min <= found && count.max.is_none_or(|max| found <= max);
            let what = format!(
                "under {:?}, {count} requests {} {}",
                act.name,
                rule.method.join("|"),
                rule.path.join("|")
            );
            let narrowed = rule
                .where_request
                .as_ref()
                .map_or(String::new(), |wanted| format!(" with {wanted}"));
            let got = format!("{found} of {} requests", act.exchanges.len());
            findings.judge((!fits).then(|| {
                match chosen
                    .last()
                    .map(|(exchange, _)| *exchange)
                    .or(act.exchanges.last())
                {
                    Some(exchange) => exchange.evidence(what + &narrowed, got),
                    None => crate::verdict::Evidence::new(what + &narrowed, got),
                }
            }));
        }
    }
    findings
}

/// Whether the client stayed with its requests, or left them, as the rule says.
fn left(rule: &AskedRule, act: &Act<'_>, chosen: &[(&Exchange<'_>, Value)]) -> Findings {
    let Some(wanted) = rule.left else {
        return Findings::none();
    };
    let over = chosen
        .iter()
        .filter_map(|(exchange, _)| Some((exchange, exchange.end?.1)));
    Findings::each(over, |(exchange, end)| {
        let left = matches!(end, End::Broken(_));
        let what = |left| if left { "leaves" } else { "stays with" };
        (left != wanted).then(|| {
            let expected = format!("under {:?}, the client {} this", act.name, what(wanted));
            exchange.evidence(expected, format!("it {} it", what(left)))
        })
    })
}

/// Whether the pointers of the rule have one value in all selected requests of an act.
fn constant(rule: &AskedRule, acts: &[Act<'_>], is_named: impl Fn(&Act<'_>) -> bool) -> Findings {
    let mut findings = Findings::none();
    let mut first: BTreeMap<(&str, &str), Value> = BTreeMap::new();
    let named = acts.iter().filter(|act| is_named(act));
    let all = named.flat_map(|act| act.exchanges.iter().map(move |one| (base(act.name), one)));
    for (act, exchange) in all {
        let asked = document(exchange);
        if !selects(rule, exchange, &asked) {
            continue;
        }
        for pointer in &rule.constant {
            let value = asked.pointer(pointer).cloned().unwrap_or_default();
            match first.get(&(act, pointer.as_str())) {
                None => {
                    first.insert((act, pointer), value);
                }
                Some(known) => findings.judge((*known != value).then(|| {
                    exchange.evidence(
                        format!("{pointer} is {known}, as before"),
                        value.to_string(),
                    )
                })),
            }
        }
    }
    findings
}

fn selects(rule: &AskedRule, exchange: &Exchange<'_>, asked: &Value) -> bool {
    let method = rule.method.is_empty() || rule.method.contains(&exchange.request.method);
    let path = rule.path.is_empty()
        || rule
            .path
            .iter()
            .any(|path| path_matches(path, exchange.path()));
    let wanted = rule.where_request.as_ref();
    method && path && wanted.is_none_or(|wanted| schema::satisfied(wanted, asked))
}

/// Whether a text is in the target or the body of a request.
fn holds(exchange: &Exchange<'_>, text: &str) -> bool {
    let request = exchange.request;
    request.target.contains(text) || String::from_utf8_lossy(&request.body).contains(text)
}

/// A request as schemas see it.
fn document(exchange: &Exchange<'_>) -> Value {
    let text = |(name, value): (String, String)| (name, Value::from(value));
    let query: Map<_, _> = query_pairs(&exchange.request.target).map(text).collect();
    let headers = exchange.request.headers.iter();
    let headers: Map<_, _> = headers
        .map(|(name, value)| text((name.to_ascii_lowercase(), value.clone())))
        .collect();
    json!({
        "method": exchange.request.method,
        "path": exchange.path(),
        "query": query,
        "headers": headers,
        "body": exchange.request_json(),
        "bytes": exchange.request.body.len(),
    })
}
