//! How far a text is from the one that was wanted, for choosing the rule that somebody most likely meant.

use crate::script::{NameMatch, TextMatch};

/// Nothing alike.
pub(super) const FAR: u32 = 1_000;
/// Characters that are looked at; the rest of longer texts does not count.
const MOST: usize = 400;

/// How far a text is from meeting a condition: 0 for one that does, [`FAR`] for one that has nothing of it. A text
/// that differs in the case of its letters only is nearer than every other.
pub(super) fn of_text(wanted: &TextMatch, got: &str) -> u32 {
    match wanted {
        TextMatch::Equals(wanted) => whole(wanted, got),
        TextMatch::Contains(wanted)
        | TextMatch::StartsWith(wanted)
        | TextMatch::EndsWith(wanted) => within(wanted, got),
        TextMatch::Glob(pattern) => within(&letters(pattern), got),
    }
}

/// The same for a name.
pub(super) fn of_name(wanted: &NameMatch, got: &str) -> u32 {
    within(&letters(&wanted.0), got)
}

/// The same for a text that must be equal.
pub(super) fn whole(wanted: &str, got: &str) -> u32 {
    distance(wanted, got, false)
}

fn within(wanted: &str, got: &str) -> u32 {
    distance(wanted, got, true)
}

/// A glob's own characters.
fn letters(pattern: &str) -> String {
    pattern.replace(['*', '?'], "")
}

fn small(text: &str) -> Vec<char> {
    text.chars()
        .take(MOST)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Insertions, deletions and replacements that make `wanted` of `got`, in thousandths of the longer text. With
/// `anywhere`, of that part of `got` that is nearest.
fn distance(wanted: &str, got: &str, anywhere: bool) -> u32 {
    let (wanted, got) = (small(wanted), small(got));
    let longer = if anywhere {
        wanted.len()
    } else {
        wanted.len().max(got.len())
    };
    // One row of the table for each character of `got`: the cheapest ways to make each beginning of `wanted`.
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    let mut best = wanted.len();
    for (at, have) in got.iter().enumerate() {
        let mut before = row.first().copied().unwrap_or(0);
        if let Some(first) = row.first_mut() {
            *first = if anywhere { 0 } else { at + 1 };
        }
        for (place, want) in wanted.iter().enumerate() {
            let (left, above) = (row[place], row[place + 1]);
            row[place + 1] = (before + usize::from(want != have))
                .min(left + 1)
                .min(above + 1);
            before = above;
        }
        best = best.min(row.last().copied().unwrap_or(0));
    }
    let edits = if anywhere {
        best
    } else {
        row.last().copied().unwrap_or(0)
    };
    let share = edits * FAR as usize / longer.max(1);
    u32::try_from(share).unwrap_or(FAR).min(FAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_near_where_little_is_missing() {
        let outage = TextMatch::from("outage");
        let far = |text: &str| of_text(&outage, text);
        assert_eq!(far("is there an outage now"), 0);
        assert_eq!(far("Outage"), 0, "the case of letters costs nothing here");
        assert_eq!(far("is there an outag"), 1_000 / 6);
        assert_eq!(far(""), FAR);
        assert!(far("outrage") < far("weather"));
        assert!(whole("abc", "abcdef") > within("abc", "abcdef"));
        assert!(of_name(&"gpt-*".into(), "gtp-5") < of_name(&"claude-*".into(), "gtp-5"));
    }
}
