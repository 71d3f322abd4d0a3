//! Goes through two transcripts side by side.

use super::{
    Change, Diff, Difference, DifferenceKind, IGNORED_HEADERS, IdPair, Piece,
    align::{Step, align},
    alike::{Ids, compatible},
    changes::{between, canonical_unit, shorten},
};
use crate::transcript::{
    ExchangeId,
    text::{Outline, Template, Unit},
};

/// Something that is compared: a unit of an outline, as text.
struct Item {
    what: String,
    text: String,
    headers: Vec<(String, String)>,
    group: Option<usize>,
    line: usize,
    index: usize,
    opens: Option<ExchangeId>,
}

pub(super) fn compare(a: &Template, b: &Template) -> Diff {
    let (a, b) = (Outline::of(a), Outline::of(b));
    let mut walk = Walk {
        a: &a,
        b: &b,
        ids: Ids::default(),
        diff: Diff::default(),
    };
    let spine = |own: &Outline, other: &Outline| {
        let asked = own.spine.iter().filter(|unit| other.asks_for(unit));
        items(asked)
    };
    let (left, right) = (spine(&a, &b), spine(&b, &a));
    walk.items(&left, &right, (false, false), None);
    let mut diff = walk.diff;
    diff.ids = walk
        .ids
        .pairs()
        .iter()
        .map(|(a, b)| IdPair {
            a: a.clone(),
            b: b.clone(),
        })
        .collect();
    diff.same = diff.differences.is_empty();
    diff
}

fn items<'u>(units: impl Iterator<Item = &'u Unit>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for unit in units {
        let text = String::from_utf8_lossy(&unit.text.lower()).into_owned();
        if (unit.what == "frame" && is_noise(&text)) || keeps_alive(&unit.what) {
            continue;
        }
        let index = items.iter().filter(|item| item.what == unit.what).count();
        let header = |(name, value): &(crate::transcript::text::Pattern, _)| {
            let value: &crate::transcript::text::Pattern = value;
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            (text(name.lower()).to_ascii_lowercase(), text(value.lower()))
        };
        items.push(Item {
            text: canonical_unit(&unit.what, &text),
            what: unit.what.clone(),
            headers: unit.headers.iter().map(header).collect(),
            group: unit.group,
            line: unit.line,
            index,
            opens: unit.opens,
        });
    }
    items
}

/// Comments and heartbeats, of which there are as many as time passed; and the blank frames between others.
fn is_noise(frame: &str) -> bool {
    frame
        .lines()
        .all(|line| line.is_empty() || line.starts_with(':'))
        || frame.lines().any(|line| line == "event: system.heartbeat")
}

/// Pings and pongs, of which there are as many as time passed as well.
fn keeps_alive(what: &str) -> bool {
    what.starts_with("WebSocket ping") || what.starts_with("WebSocket pong")
}

/// Messages and lines of the client, which on a channel of both sides have an order of their own.
fn is_of_client(item: &Item) -> bool {
    item.what.ends_with("from the client")
}

/// Pieces that go on as long as the server speaks.
fn is_of_server(item: &Item) -> bool {
    item.what == "frame" || item.what.ends_with("from the server")
}

struct Walk<'a> {
    a: &'a Outline,
    b: &'a Outline,
    ids: Ids,
    diff: Diff,
}

/// The exchange that is being compared: its numbers on both sides, and its request line.
#[derive(Clone, Copy)]
struct Place<'p> {
    a: ExchangeId,
    b: ExchangeId,
    request: &'p str,
}

impl Walk<'_> {
    /// Compares two lists. Of one that is `open` there might have been more: what only the other has at its end
    /// is no difference.
    fn items(
        &mut self,
        left: &[Item],
        right: &[Item],
        open: (bool, bool),
        place: Option<Place<'_>>,
    ) {
        let same = |i: usize, j: usize| {
            let (a, b): (&Item, &Item) = (&left[i], &right[j]);
            a.what == b.what && compatible(&a.text, &b.text)
        };
        let mut steps = align(left.len(), right.len(), same);
        drop_tail(&mut steps, left, right, open);
        pair_up(&mut steps, left, right);
        let mut moved: Vec<usize> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match *step {
                Step::Both(i, j) => self.both(&left[i], &right[j], place),
                Step::Left(i) => {
                    let partner = elsewhere(&left[i], right, &steps, &moved);
                    match partner {
                        Some(j) => {
                            moved.push(j);
                            if left[i].group.is_none() && right[j].group.is_none() {
                                self.tell(
                                    DifferenceKind::Moved,
                                    Some(&left[i]),
                                    Some(&right[j]),
                                    place,
                                    Vec::new(),
                                );
                            }
                            self.both(&left[i], &right[j], place);
                        }
                        None => self.tell(
                            DifferenceKind::Missing,
                            Some(&left[i]),
                            None,
                            place,
                            Vec::new(),
                        ),
                    }
                }
                Step::Right(j) => {
                    let claimed = moved.contains(&j)
                        || steps[at..].iter().any(|later| {
                            matches!(later, Step::Left(i) if left[*i].what == right[j].what
                                && compatible(&left[*i].text, &right[j].text))
                        });
                    if !claimed {
                        self.tell(
                            DifferenceKind::Extra,
                            None,
                            Some(&right[j]),
                            place,
                            Vec::new(),
                        );
                    }
                }
            }
        }
    }

    /// Compares two items that belong together.
    fn both(&mut self, a: &Item, b: &Item, place: Option<Place<'_>>) {
        if let (Some(left), Some(right)) = (a.opens, b.opens) {
            return self.exchange(left, right, a);
        }
        let mut changes = self.headers(a, b);
        let mut tried = self.ids.clone();
        if tried.alike(&a.text, &b.text) {
            self.ids = tried;
        } else {
            let exact = between(&a.what, &a.text, &b.text, &self.ids);
            if exact.is_empty() {
                changes.extend(self.other_ids(&a.text, &b.text));
            }
            changes.extend(exact);
            return self.tell(DifferenceKind::Changed, Some(a), Some(b), place, changes);
        }
        if changes.is_empty() {
            self.diff.alike += 1;
        } else {
            self.tell(DifferenceKind::Changed, Some(a), Some(b), place, changes);
        }
    }

    /// Texts that are alike but for an id that stood for another one before.
    fn other_ids(&self, a: &str, b: &str) -> Vec<Change> {
        let mut fresh = Ids::default();
        fresh.alike(a, b);
        let wrong = fresh.pairs().iter().find(|(a, b)| {
            let known = self.ids.in_b(a);
            known.is_some_and(|known| known != b)
                || self
                    .ids
                    .pairs()
                    .iter()
                    .any(|(other, value)| value == b && other != a)
        });
        let change = wrong.map(|(a, b)| {
            let known = self.ids.in_b(a).unwrap_or("another id");
            Change {
                at: "id".to_owned(),
                a: Some(format!("{a} (elsewhere {known})")),
                b: Some(b.clone()),
            }
        });
        change.into_iter().collect()
    }

    fn exchange(&mut self, left: ExchangeId, right: ExchangeId, a: &Item) {
        self.diff.exchanges += 1;
        let request = shorten(&a.text);
        let place = Place {
            a: left,
            b: right,
            request: &request,
        };
        let mut units = items(self.a.exchange(left).iter());
        let mut others = items(self.b.exchange(right).iter());
        let open = (is_open(&units), is_open(&others));
        if open != (false, false) {
            units.retain(|item| item.what != "end");
            others.retain(|item| item.what != "end");
        }
        for item in units.iter_mut().chain(&mut others) {
            // The words of a broken connection are the system's own.
            if item.what == "end" {
                item.text = item.text.split(' ').next().unwrap_or_default().to_owned();
            }
        }
        // Which of two messages that cross on their way was first is chance.
        let apart = |items: Vec<Item>| items.into_iter().partition::<Vec<_>, _>(is_of_client);
        let ((asked, said), (other_asked, other_said)) = (apart(units), apart(others));
        self.items(&asked, &other_asked, (false, false), Some(place));
        self.items(&said, &other_said, open, Some(place));
    }

    fn headers(&mut self, a: &Item, b: &Item) -> Vec<Change> {
        let mut changes = Vec::new();
        let compared = a
            .headers
            .iter()
            .filter(|(name, _)| !IGNORED_HEADERS.contains(&name.as_str()));
        for (name, value) in compared {
            let mut others = b.headers.iter().filter(|(other, _)| other == name);
            let Some((_, first)) = others.next() else {
                continue;
            };
            let fits = self.ids.alike(value, first)
                || others.any(|(_, other)| self.ids.alike(value, other));
            if !fits {
                changes.push(Change {
                    at: name.clone(),
                    a: Some(shorten(value)),
                    b: Some(shorten(first)),
                });
            }
        }
        changes
    }

    fn tell(
        &mut self,
        kind: DifferenceKind,
        a: Option<&Item>,
        b: Option<&Item>,
        place: Option<Place<'_>>,
        changes: Vec<Change>,
    ) {
        let piece = |item: &Item, exchange: Option<ExchangeId>| Piece {
            exchange: item.opens.or(exchange).map(|id| id.0),
            line: (item.line > 0).then_some(item.line),
            index: item.index,
            text: shorten(&item.text),
        };
        let what = a.or(b).map(|item| item.what.clone()).unwrap_or_default();
        self.diff.differences.push(Difference {
            kind,
            what,
            request: place.map(|place| place.request.to_owned()),
            a: a.map(|item| piece(item, place.map(|place| place.a))),
            b: b.map(|item| piece(item, place.map(|place| place.b))),
            changes,
        });
    }
}

/// Drops the frames at the end that only one list has, where the other is open; but not those of a frame that
/// changed or moved.
fn drop_tail(steps: &mut Vec<Step>, left: &[Item], right: &[Item], open: (bool, bool)) {
    let tail = steps
        .iter()
        .rev()
        .take_while(|step| !matches!(step, Step::Both(..)))
        .count();
    let from = steps.len() - tail;
    let (before, tail) = steps.split_at(from);
    let more = |step: &Step| match *step {
        Step::Left(i) => {
            let moved = before.iter().any(|other| matches!(other, Step::Right(j) if compatible(&left[i].text, &right[*j].text)));
            open.1 && is_of_server(&left[i]) && !moved
        }
        Step::Right(j) => {
            let moved = before.iter().any(|other| matches!(other, Step::Left(i) if compatible(&left[*i].text, &right[j].text)));
            open.0 && is_of_server(&right[j]) && !moved
        }
        Step::Both(..) => false,
    };
    let one_side = |is_left: bool| {
        tail.iter()
            .all(|step| matches!(step, Step::Left(_)) == is_left)
    };
    if (one_side(true) || one_side(false)) && tail.iter().all(more) {
        steps.truncate(from);
    }
}

/// Whether the server did not end the exchange: the client left, or it went on at the end of the transcript.
fn is_open(units: &[Item]) -> bool {
    let end = units.iter().find(|item| item.what == "end");
    end.is_none_or(|end| end.text == "closed-by-harness")
}

/// The place of an item of the second list that only moved.
fn elsewhere(item: &Item, right: &[Item], steps: &[Step], taken: &[usize]) -> Option<usize> {
    steps.iter().find_map(|step| match *step {
        Step::Right(j)
            if !taken.contains(&j)
                && right[j].what == item.what
                && compatible(&item.text, &right[j].text) =>
        {
            Some(j)
        }
        _ => None,
    })
}

/// Puts a missing and an extra item of the same kind, side by side in the lists, together as one that changed.
fn pair_up(steps: &mut Vec<Step>, left: &[Item], right: &[Item]) {
    let mut paired = Vec::with_capacity(steps.len());
    let mut at = 0;
    while at < steps.len() {
        let run = steps[at..]
            .iter()
            .take_while(|step| !matches!(step, Step::Both(..)))
            .count();
        if run == 0 {
            paired.push(steps[at]);
            at += 1;
            continue;
        }
        let gap = &steps[at..at + run];
        let mut rights: Vec<usize> = gap
            .iter()
            .filter_map(|step| match step {
                Step::Right(j) => Some(*j),
                _ => None,
            })
            .collect();
        for step in gap {
            let Step::Left(i) = step else { continue };
            let like = |j: &usize| head_of(&left[*i]) == head_of(&right[*j]);
            match rights.iter().position(like) {
                Some(0) => paired.push(Step::Both(*i, rights.remove(0))),
                _ => paired.push(Step::Left(*i)),
            }
        }
        paired.extend(rights.into_iter().map(Step::Right));
        at += run;
    }
    *steps = paired;
}

/// What two items have in common when one is a change of the other: the kind, and of a frame its type.
fn head_of(item: &Item) -> (&str, String) {
    let text = item.text.as_str();
    let kind = match item.what.as_str() {
        "frame" => {
            let named = text.lines().find(|line| line.starts_with("event: "));
            let typed = || {
                let data = text.lines().find_map(|line| line.strip_prefix("data: "))?;
                let json: serde_json::Value = serde_json::from_str(data).ok()?;
                json.get("type").map(ToString::to_string)
            };
            named.map(str::to_owned).or_else(typed).unwrap_or_default()
        }
        what if what.ends_with("from the server") || what.ends_with("from the client") => {
            let json = serde_json::from_str(text).ok();
            json.as_ref().map(super::kind).unwrap_or_default()
        }
        "exchange" => {
            let line = text.split('?').next().unwrap_or_default();
            super::volatile::shape(line)
        }
        _ => String::new(),
    };
    (item.what.as_str(), kind)
}
