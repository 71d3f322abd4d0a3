//! Demands on values that two places of one conversation tell.

use serde_json::Value;
use turnwire_spec::catalogue::relation::{Picked, RelateRule, Relation, Which};

use super::{
    frames::carries_event,
    labelled,
    source::{Place, equal},
    type_selected,
};
use crate::{
    schema,
    transcript::views::{
        http::{Exchange, served_at},
        reading::Reading,
        stream::StreamFrame,
    },
    verdict::{Evidence, Findings},
};

/// Judges the two lists of the rule, once for the whole transcript.
pub(super) fn judge(rule: &RelateRule, reading: &Reading<'_>) -> Findings {
    let (Some(these), Some(those)) = (pick(&rule.these, reading), pick(&rule.those, reading))
    else {
        return Findings::none();
    };
    let mut findings = Findings::none();
    if let Some(fault) = judge_lists(rule, &these, &those) {
        findings.judge(fault);
    }
    findings
}

/// The values of one side, and the last exchange that they were looked for in.
struct List<'a> {
    exchange: &'a Exchange<'a>,
    values: Vec<Value>,
}

/// The fault, if there is one; `None` when there is nothing to compare.
fn judge_lists(rule: &RelateRule, these: &List<'_>, those: &List<'_>) -> Option<Option<Evidence>> {
    let (a, b) = (&these.values, &those.values);
    let same = |x: &Value, y: &Value| equal((&rule.these.at, x), (&rule.those.at, y));
    let alike =
        |x: &[Value], y: &[Value]| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y));
    let is_in = |x: &Value| b.iter().any(|y| same(x, y));
    let (expected, met) = match rule.holds {
        Relation::Equal | Relation::SameSet | Relation::Different
            if a.is_empty() && b.is_empty() =>
        {
            return None;
        }
        Relation::Within | Relation::Apart | Relation::Prefix | Relation::Suffix
            if a.is_empty() =>
        {
            return None;
        }
        Relation::Equal => ("the same values", alike(a, b)),
        Relation::SameSet => ("the same values, in any order", same_set(a, b, same)),
        Relation::Different => ("other values", !alike(a, b)),
        Relation::Within => ("values that are all among those", a.iter().all(is_in)),
        Relation::Apart => ("values of which none is among those", !a.iter().any(is_in)),
        Relation::Prefix => (
            "the beginning of those",
            b.get(..a.len()).is_some_and(|start| alike(a, start)),
        ),
        Relation::Suffix => (
            "the end of those",
            b.len()
                .checked_sub(a.len())
                .and_then(|from| b.get(from..))
                .is_some_and(|end| alike(a, end)),
        ),
        Relation::Fewer => ("fewer than those", a.len() < b.len()),
        Relation::GrowsBy(by) => return grows(by, these, those),
    };
    Some((!met).then(|| {
        let shown = |list: &[Value]| Value::from(list.to_vec()).to_string();
        those
            .exchange
            .evidence(format!("{}: {expected}", shown(a)), shown(b))
    }))
}

fn same_set(a: &[Value], b: &[Value], same: impl Fn(&Value, &Value) -> bool) -> bool {
    let mut rest: Vec<&Value> = b.iter().collect();
    let all = a.iter().all(|x| {
        let found = rest.iter().position(|y| same(x, y));
        found.map(|at| rest.swap_remove(at)).is_some()
    });
    all && rest.is_empty()
}

fn grows(by: i64, these: &List<'_>, those: &List<'_>) -> Option<Option<Evidence>> {
    let first = these.values.first()?.as_i64()?;
    let then = those.values.first().and_then(Value::as_i64);
    let met = then.is_some_and(|then| then.checked_sub(first) == Some(by));
    Some((!met).then(|| {
        those.exchange.evidence(
            format!("{first} and {by} more"),
            those
                .values
                .first()
                .map_or_else(|| "no number".to_owned(), Value::to_string),
        )
    }))
}

/// The values of one side; `None` when there is nothing that it could be read from.
fn pick<'a>(picked: &Picked, reading: &'a Reading<'_>) -> Option<List<'a>> {
    let places = if picked.stream.is_empty() && picked.types.is_empty() {
        responses(picked, reading)
    } else {
        frames(picked, reading)?
    };
    let (places, exchange) = (places.0, places.1?);
    let places = match picked.only {
        None => &places[..],
        Some(Which::First) => places.get(..1).unwrap_or_default(),
        Some(Which::Last) => places
            .len()
            .checked_sub(1)
            .map_or(&[][..], |at| &places[at..]),
    };
    let mut values = Vec::new();
    for place in places {
        values.extend(values_at(picked, place));
    }
    if picked.count {
        values = vec![Value::from(values.len())];
    }
    Some(List { exchange, values })
}

/// Where one value is looked for.
struct Spot<'a> {
    exchange: &'a Exchange<'a>,
    frame: Option<&'a StreamFrame>,
    json: Option<Value>,
}

type Spots<'a> = (Vec<Spot<'a>>, Option<&'a Exchange<'a>>);

fn responses<'a>(picked: &Picked, reading: &'a Reading<'_>) -> Spots<'a> {
    let selected = reading.exchanges().iter().filter(|exchange| {
        let path = exchange.path();
        (picked.method.is_empty() || picked.method.contains(&exchange.request.method))
            && (picked.path.is_empty() || picked.path.iter().any(|one| served_at(one, path)))
            && labelled(picked.label.as_deref(), exchange)
            && exchange.status().is_some_and(|status| {
                picked.when_status.is_empty() || picked.when_status.contains(&status)
            })
    });
    let spots: Vec<Spot<'a>> = selected
        .map(|exchange| Spot {
            exchange,
            frame: None,
            json: exchange.json(),
        })
        .filter(|spot| fits(picked, spot.json.as_ref()))
        .collect();
    let last = spots.last().map(|spot| spot.exchange);
    (spots, last)
}

/// Frames of the streams that carried one at all; `None` when none did.
fn frames<'a>(picked: &Picked, reading: &'a Reading<'_>) -> Option<Spots<'a>> {
    let streams: Vec<_> = reading
        .streams()
        .iter()
        .filter(|stream| {
            (picked.stream.is_empty()
                || stream
                    .kind
                    .is_some_and(|kind| picked.stream.contains(&kind)))
                && labelled(picked.label.as_deref(), &stream.exchange)
                && stream.events().next().is_some()
        })
        .collect();
    let last = &streams.last()?.exchange;
    let frames = streams
        .into_iter()
        .flat_map(|stream| stream.events().map(move |frame| (&stream.exchange, frame)));
    let spots = frames
        .filter(|(_, frame)| {
            carries_event(frame)
                && type_selected(&picked.types, &[], frame.event_type())
                && fits(picked, frame.json.as_ref())
        })
        .map(|(exchange, frame)| Spot {
            exchange,
            frame: Some(frame),
            json: frame.json.clone(),
        })
        .collect();
    Some((spots, Some(last)))
}

fn fits(picked: &Picked, json: Option<&Value>) -> bool {
    picked
        .where_data
        .as_ref()
        .is_none_or(|wanted| json.is_some_and(|json| schema::satisfied(wanted, json)))
}

fn values_at(picked: &Picked, spot: &Spot<'_>) -> Vec<Value> {
    let found = if picked.at.is_empty() || picked.at.starts_with('/') {
        let mut found = Vec::new();
        if let Some(json) = &spot.json {
            let segments: Vec<&str> = picked.at.split('/').skip(1).collect();
            expand(json, &segments, &mut found);
        }
        found
    } else {
        let place = Place {
            exchange: spot.exchange,
            templates: &picked.path,
            frame: spot.frame.map(|frame| &frame.frame),
            json: spot.json.as_ref(),
        };
        place.value(&picked.at).into_iter().collect()
    };
    let kept = found.into_iter().filter(|value| {
        picked
            .item
            .as_ref()
            .is_none_or(|wanted| schema::satisfied(wanted, value))
    });
    kept.filter_map(|value| match &picked.value {
        None => Some(value),
        Some(pointer) => value.pointer(pointer).cloned(),
    })
    .collect()
}

/// The values at a pointer of which `*` segments stand for every element.
fn expand(json: &Value, segments: &[&str], found: &mut Vec<Value>) {
    let Some((first, rest)) = segments.split_first() else {
        found.push(json.clone());
        return;
    };
    match (json, *first) {
        (Value::Array(items), "*") => items.iter().for_each(|item| expand(item, rest, found)),
        (Value::Object(members), "*") => members
            .values()
            .for_each(|member| expand(member, rest, found)),
        _ => {
            if let Some(child) = json.pointer(&format!("/{first}")) {
                expand(child, rest, found);
            }
        }
    }
}
