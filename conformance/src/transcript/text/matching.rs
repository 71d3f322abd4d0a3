//! Whether a transcript is what a template describes: see [`matches`](super::matches()).
//!
//! Both sides are laid out alike, as an [`outline::Outline`]: a spine (labels, target facts, states, openings of
//! exchanges) and, for each exchange, its units (request, heads, frames or body, end). Units are compared one
//! by one; the members of a group are tried in any order. The first way that fits is kept.

use std::collections::BTreeMap;

use super::{
    ParseError,
    matching::outline::{Outline, Unit},
    pattern::{ANY, Pattern, Piece},
    template::Template,
};
use crate::transcript::{ExchangeId, Transcript};

pub(super) mod outline;

/// What the placeholders stand for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bindings(BTreeMap<String, Vec<u8>>);

impl Bindings {
    /// What a placeholder stands for; bytes that are no UTF-8 are replaced.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0
            .get(name)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// All placeholders that were bound, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        self.0
            .iter()
            .map(|(name, bytes)| (name.as_str(), String::from_utf8_lossy(bytes).into_owned()))
    }
}

impl Bindings {
    /// A pattern with what its placeholders stand for, as far as that is known.
    fn show(&self, pattern: &Pattern) -> String {
        let mut bound = Pattern::default();
        for piece in &pattern.pieces {
            match piece {
                Piece::Hole(name) => match self.0.get(name) {
                    Some(value) => bound.push_bytes(value),
                    None => bound.push_hole(name),
                },
                Piece::Bytes(bytes) => bound.push_bytes(bytes),
            }
        }
        show(&bound)
    }
}

/// Where a transcript is not what the template describes.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: {what}: expected {expected}, got {got}")]
pub struct Mismatch {
    /// Line of the template, from 1.
    pub line: usize,
    /// What is compared, such as `frame`.
    pub what: String,
    /// The template's text.
    pub expected: String,
    /// The transcript's text.
    pub got: String,
}

impl From<ParseError> for Mismatch {
    fn from(error: ParseError) -> Self {
        Self {
            line: error.line,
            what: "template".to_owned(),
            expected: error.expected,
            got: error.got,
        }
    }
}

impl Template {
    /// Whether a transcript is what this template describes: see [`matches`](super::matches()).
    ///
    /// # Errors
    ///
    /// [`Mismatch`] with the first line of the template that is not met.
    pub fn matches(&self, actual: &Transcript) -> Result<Bindings, Mismatch> {
        let actual = Template::of(actual);
        let (expected, actual) = (Outline::of(self), Outline::of(&actual));
        let mut matcher = Matcher {
            expected: &expected,
            actual: &actual,
            budget: BUDGET,
        };
        let spine: Vec<&Unit> = actual
            .spine
            .iter()
            .filter(|unit| expected.asks_for(unit))
            .collect();
        let mut bindings = Bindings::default();
        matcher.sequence(
            &expected.spine.iter().collect::<Vec<_>>(),
            &spine,
            &mut bindings,
        )?;
        Ok(bindings)
    }
}

/// Attempts at orders of groups and lengths of placeholders, in one comparison.
const BUDGET: u32 = 100_000;

/// Placeholders and texts between them in one unit.
const MAX_PIECES: usize = 2_000;

struct Matcher<'a> {
    expected: &'a Outline,
    actual: &'a Outline,
    budget: u32,
}

impl Matcher<'_> {
    fn sequence(
        &mut self,
        expected: &[&Unit],
        actual: &[&Unit],
        bindings: &mut Bindings,
    ) -> Result<(), Mismatch> {
        let (mut expected, mut actual) = (expected, actual);
        while let [first, ..] = expected {
            let size = match first.group {
                None => 1,
                Some(_) => expected
                    .iter()
                    .take_while(|unit| unit.group == first.group)
                    .count(),
            };
            let (now, later) = expected.split_at(size);
            let (found, rest) = actual.split_at(size.min(actual.len()));
            match (now, found) {
                ([unit], [found]) => self.unit(unit, found, bindings)?,
                ([unit, ..], []) => {
                    let expected = bindings.show(&unit.text);
                    return Err(Mismatch {
                        expected,
                        ..mismatch(unit, "nothing more")
                    });
                }
                _ => self.group(now, found, bindings)?,
            }
            (expected, actual) = (later, rest);
        }
        match actual {
            [] => Ok(()),
            [extra, ..] => Err(Mismatch {
                line: self.expected.last_line,
                what: extra.what.clone(),
                expected: "nothing more".to_owned(),
                got: show(&extra.text),
            }),
        }
    }

    /// Finds, for each unit of a group, one that was found; each only once.
    fn group(
        &mut self,
        group: &[&Unit],
        found: &[&Unit],
        bindings: &mut Bindings,
    ) -> Result<(), Mismatch> {
        let [unit, later @ ..] = group else {
            return Ok(());
        };
        let mut deepest = None;
        for (index, candidate) in found.iter().enumerate() {
            self.spend(unit)?;
            let mut tried = bindings.clone();
            if self.unit(unit, candidate, &mut tried).is_err() {
                continue;
            }
            let mut rest = found.to_vec();
            rest.remove(index);
            match self.group(later, &rest, &mut tried) {
                Ok(()) => {
                    *bindings = tried;
                    return Ok(());
                }
                Err(error) => deepest = Some(error),
            }
        }
        Err(deepest.unwrap_or_else(|| {
            let rest: Vec<String> = found.iter().map(|unit| show(&unit.text)).collect();
            let got = if rest.is_empty() {
                "nothing more".to_owned()
            } else {
                rest.join(" | ")
            };
            Mismatch {
                expected: bindings.show(&unit.text),
                ..mismatch(unit, &got)
            }
        }))
    }

    fn unit(&mut self, unit: &Unit, found: &Unit, bindings: &mut Bindings) -> Result<(), Mismatch> {
        if unit.what != found.what {
            return Err(mismatch(
                unit,
                &format!("{} {}", found.what, show(&found.text)),
            ));
        }
        if let (Some(exchange), Some(other)) = (unit.opens, found.opens) {
            return self.exchange(exchange, other, bindings);
        }
        self.text(unit, &unit.text, &found.text, bindings)?;
        for (name, value) in &unit.headers {
            self.header(unit, (name, value), found, bindings)?;
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        id: ExchangeId,
        other: ExchangeId,
        bindings: &mut Bindings,
    ) -> Result<(), Mismatch> {
        let (expected, actual) = (self.expected, self.actual);
        let expected: Vec<&Unit> = expected.exchange(id).iter().collect();
        let ends = expected.iter().any(|unit| unit.is_end());
        let actual: Vec<&Unit> = actual
            .exchange(other)
            .iter()
            .filter(|unit| ends || !unit.is_end())
            .collect();
        self.sequence(&expected, &actual, bindings)
    }

    fn header(
        &mut self,
        unit: &Unit,
        (name, value): (&Pattern, &Pattern),
        found: &Unit,
        bindings: &mut Bindings,
    ) -> Result<(), Mismatch> {
        let same_name = |other: &Pattern| other.lower().eq_ignore_ascii_case(&name.lower());
        let values = found
            .headers
            .iter()
            .filter(|(other, _)| same_name(other))
            .map(|(_, value)| value);
        let what = format!("{}, header {}", unit.what, name);
        let mut error = Mismatch {
            what,
            got: "no such header".to_owned(),
            ..mismatch(unit, "")
        };
        error.expected = show(value);
        for found in values {
            let mut tried = bindings.clone();
            match self.text(unit, value, found, &mut tried) {
                Ok(()) => {
                    *bindings = tried;
                    return Ok(());
                }
                Err(_) => error.got = show(found),
            }
        }
        Err(error)
    }

    fn text(
        &mut self,
        unit: &Unit,
        pattern: &Pattern,
        found: &Pattern,
        bindings: &mut Bindings,
    ) -> Result<(), Mismatch> {
        if pattern.pieces.len() > MAX_PIECES {
            return Err(mismatch(unit, "too many placeholders to compare"));
        }
        let mut tried = bindings.clone();
        if self.unify(&pattern.pieces, &found.lower(), &mut tried) {
            *bindings = tried;
            return Ok(());
        }
        Err(Mismatch {
            expected: bindings.show(pattern),
            ..mismatch(unit, &show(found))
        })
    }

    /// Whether the pieces, one after the other, are this text. Placeholders take the shortest text that fits.
    fn unify(&mut self, pieces: &[Piece], text: &[u8], bindings: &mut Bindings) -> bool {
        let Some((piece, later)) = pieces.split_first() else {
            return text.is_empty();
        };
        let name = match piece {
            Piece::Bytes(bytes) => {
                return text
                    .strip_prefix(&bytes[..])
                    .is_some_and(|rest| self.unify(later, rest, bindings));
            }
            Piece::Hole(name) => name,
        };
        if let Some(value) = bindings.0.get(name).cloned() {
            return text
                .strip_prefix(&value[..])
                .is_some_and(|rest| self.unify(later, rest, bindings));
        }
        let longest = text
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\n' | b'\r'))
            .unwrap_or(text.len());
        for length in 1..=longest {
            // What cannot fit is not tried: the next piece has to begin here.
            let (value, rest) = text.split_at(length);
            if matches!(later.first(), Some(Piece::Bytes(next)) if !rest.starts_with(next)) {
                continue;
            }
            let Some(left) = self.budget.checked_sub(1) else {
                return false;
            };
            self.budget = left;
            if name != ANY {
                bindings.0.insert(name.clone(), value.to_vec());
            }
            if self.unify(later, rest, bindings) {
                return true;
            }
            bindings.0.remove(name);
        }
        false
    }

    fn spend(&mut self, unit: &Unit) -> Result<(), Mismatch> {
        self.budget = self
            .budget
            .checked_sub(1)
            .ok_or_else(|| mismatch(unit, "too many ways to order the group"))?;
        Ok(())
    }
}

fn mismatch(unit: &Unit, got: &str) -> Mismatch {
    Mismatch {
        line: unit.line,
        what: unit.what.clone(),
        expected: show(&unit.text),
        got: got.to_owned(),
    }
}

/// A text on one line, cut to a readable length.
fn show(pattern: &Pattern) -> String {
    const SHOWN: usize = 300;
    let text = pattern.encode().replace("\\x0a", "⏎");
    match text.char_indices().nth(SHOWN) {
        None if text.is_empty() => "nothing".to_owned(),
        None => text,
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}
