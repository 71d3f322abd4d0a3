//! Edits, applied to the events that a wire has written.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::out::{Frame, Frames, MarkKind, What};
use crate::script::{Edit, Pick, RawEvent};

/// Applies edits in order; each sees what the ones before it left.
pub(crate) fn apply(frames: &mut Frames, edits: &[Edit]) {
    for edit in edits {
        let picked = picked(frames, &edit.on);
        let mut list = Vec::with_capacity(frames.list.len());
        for (at, frame) in std::mem::take(&mut frames.list).into_iter().enumerate() {
            if picked.contains(&at) {
                change(frames, frame, edit, &mut list);
            } else {
                list.push(frame);
            }
        }
        frames.list = list;
        if edit.swap {
            for at in picked.into_iter().rev() {
                if at + 1 < frames.list.len() {
                    frames.list.swap(at, at + 1);
                }
            }
        }
    }
}

fn data<'a>(frames: &'a Frames, what: &What) -> &'a [u8] {
    match what {
        What::Event { from, to, .. } => frames.data.get(*from..*to).unwrap_or_default(),
        _ => &[],
    }
}

/// The places of the events that are meant.
fn picked(frames: &Frames, pick: &Pick) -> Vec<usize> {
    let matching: Vec<usize> = frames
        .list
        .iter()
        .enumerate()
        .filter(|(_, frame)| matches!(frame.what, What::Event { .. }))
        .filter(|(_, frame)| {
            let data = data(frames, &frame.what);
            pick.kind
                .as_ref()
                .is_none_or(|kind| is_kind(frame, data, kind))
                && pick
                    .contains
                    .as_ref()
                    .is_none_or(|text| String::from_utf8_lossy(data).contains(text.as_str()))
        })
        .map(|(at, _)| at)
        .collect();
    let Some(nth) = pick.nth else { return matching };
    let place = match usize::try_from(nth) {
        Ok(from_start) => Some(from_start),
        Err(_) => usize::try_from(nth.unsigned_abs())
            .ok()
            .and_then(|from_end| matching.len().checked_sub(from_end)),
    };
    place
        .and_then(|place| matching.get(place))
        .copied()
        .into_iter()
        .collect()
}

fn is_kind(frame: &Frame, data: &[u8], kind: &str) -> bool {
    let name = match &frame.what {
        What::Event { name, .. } => name.as_deref(),
        _ => None,
    };
    name == Some(kind)
        || serde_json::from_slice::<Value>(data).is_ok_and(|value| value["type"] == kind)
        || data == kind.as_bytes()
}

/// Puts what becomes of an event into `list`.
fn change(frames: &mut Frames, mut frame: Frame, edit: &Edit, list: &mut Vec<Frame>) {
    for event in &edit.before {
        list.push(raw(frames, event));
    }
    if !edit.drop {
        if !edit.set.is_empty() || !edit.remove.is_empty() {
            let changed = members(data(frames, &frame.what), edit);
            replace(frames, &mut frame, changed.as_bytes());
        }
        if let Some(text) = &edit.data {
            replace(frames, &mut frame, text.as_bytes());
        }
        if let (Some(other), What::Event { name, .. }) = (&edit.name, &mut frame.what) {
            *name = Some(Cow::Owned(other.clone()));
        }
        for _ in 0..edit.repeat {
            list.push(frame.clone());
        }
        list.push(frame);
    }
    for event in &edit.after {
        list.push(raw(frames, event));
    }
}

fn raw(frames: &mut Frames, event: &RawEvent) -> Frame {
    let from = frames.data.len();
    frames.data.extend_from_slice(event.text().as_bytes());
    let name = event.event.clone().map(Cow::Owned);
    let what = What::Event {
        name,
        from,
        to: frames.data.len(),
    };
    Frame {
        what,
        kind: MarkKind::Event,
        terminal: false,
    }
}

fn replace(frames: &mut Frames, frame: &mut Frame, data: &[u8]) {
    if let What::Event { from, to, .. } = &mut frame.what {
        *from = frames.data.len();
        frames.data.extend_from_slice(data);
        *to = frames.data.len();
    }
}

/// The data with members set and removed; data that is no JSON stays as it is.
fn members(data: &[u8], edit: &Edit) -> String {
    let Ok(mut value) = serde_json::from_slice::<Value>(data) else {
        return String::from_utf8_lossy(data).into_owned();
    };
    for (pointer, wanted) in &edit.set {
        set(&mut value, pointer, wanted.clone());
    }
    for pointer in &edit.remove {
        remove(&mut value, pointer);
    }
    value.to_string()
}

fn steps(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Sets the value at a JSON pointer. Objects on the way are made; `-` stands for a new element.
fn set(root: &mut Value, pointer: &str, wanted: Value) {
    let mut at = root;
    for step in steps(pointer) {
        if let Value::Array(items) = at {
            let place = step.parse().unwrap_or(items.len());
            if place >= items.len() {
                items.push(Value::Null);
            }
            let last = items.len() - 1;
            at = &mut items[place.min(last)];
            continue;
        }
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[step.as_str()];
    }
    *at = wanted;
}

fn remove(root: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return;
    };
    match root.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.shift_remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(place) = last.parse().ok().filter(|place| *place < items.len()) {
                items.remove(place);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(edit: Edit) -> String {
        let mut frames = Frames::default();
        for (name, data) in [
            ("a", r#"{"type":"a","n":{"x":[1,2]}}"#),
            ("b", "{}"),
            ("a", "{}"),
        ] {
            frames.event(Some(name), data, MarkKind::Token);
        }
        apply(&mut frames, &[edit]);
        let show = |frame: &Frame| match &frame.what {
            What::Event { name, from, to } => format!(
                "{}={}",
                name.as_deref().unwrap_or("-"),
                String::from_utf8_lossy(&frames.data[*from..*to])
            ),
            other => format!("{other:?}"),
        };
        frames.list.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn events_are_dropped_repeated_swapped_and_changed() {
        let first = r#"a={"type":"a","n":{"x":[1,2]}}"#;
        assert_eq!(edited(Edit::on("a").drop()), "b={}");
        assert_eq!(
            edited(Edit::on("b").twice()),
            format!("{first} b={{}} b={{}} a={{}}")
        );
        assert_eq!(
            edited(Edit::on("a").nth(0).swap()),
            format!("b={{}} {first} a={{}}")
        );
        assert_eq!(
            edited(
                Edit::on("a")
                    .nth(0)
                    .set("/n/x/1", 3)
                    .set("/m/k", true)
                    .remove("/type")
            ),
            r#"a={"n":{"x":[1,3]},"m":{"k":true}} b={} a={}"#
        );
        assert_eq!(
            edited(
                Edit::on("a")
                    .nth(-1)
                    .after(RawEvent::named("z", json!({"q": 1})))
            ),
            format!("{first} b={{}} a={{}} z={{\"q\":1}}")
        );
        assert_eq!(
            edited(Edit {
                data: Some("x".into()),
                ..Edit::on("b")
            }),
            format!("{first} b=x a={{}}")
        );
        assert_eq!(
            edited(Edit::on("a").nth(5).drop()),
            format!("{first} b={{}} a={{}}")
        );
    }
}
