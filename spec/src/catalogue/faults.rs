//! What a catalogue must hold to be of use, beyond being readable.

use std::collections::{HashMap, HashSet};

use super::entry::Entry;
use super::references;
use super::{Area, Catalogue};

/// Something in a catalogue that does not fit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Two entries have this id.
    #[error("{0}: the id is used twice")]
    IdTwice(String),
    /// The entry has the title of an earlier one.
    #[error("{id}: the title is that of {earlier}")]
    TitleTwice {
        /// The later entry.
        id: String,
        /// The earlier entry.
        earlier: String,
    },
    /// The title has fewer than three or more than nine words.
    #[error("{0}: a title has 3 to 9 words")]
    TitleLength(String),
    /// The id is not the area's prefix and three digits.
    #[error("{id}: an id here is {prefix}- and three digits")]
    IdForm {
        /// The entry.
        id: String,
        /// What the first id of the area begins with.
        prefix: String,
    },
    /// The number is not greater than that of the entry before.
    #[error("{0}: the numbers rise within an area")]
    Order(String),
    /// Two areas have the same prefix.
    #[error("areas {0} and {1} have the same prefix")]
    PrefixTwice(String, String),
    /// There is neither a seed nor another source.
    #[error("{0}: neither a seed range nor a source")]
    NoSource(String),
    /// The seed range does not exist.
    #[error("{id}: there are no lines {range}")]
    NoSuchLines {
        /// The entry.
        id: String,
        /// The range, as written.
        range: String,
    },
    /// A text of the entry is empty.
    #[error("{id}: {key} is empty")]
    Empty {
        /// The entry.
        id: String,
        /// The key of the text.
        key: &'static str,
    },
    /// `also` names an id that does not exist, or the entry itself.
    #[error("{id}: also names {other}, which is no other entry")]
    NoSuchNeighbour {
        /// The entry.
        id: String,
        /// The id that it names.
        other: String,
    },
    /// A rule or rewrite names an event type, a path or a schema that does not exist.
    #[error("{id}: the {what} {name:?} does not exist")]
    NoSuchName {
        /// The entry.
        id: String,
        /// What the name is of.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An entry that no check can reach has a check.
    #[error("{0}: waived, and yet it has a rule")]
    WaivedWithRule(String),
}

impl Catalogue {
    /// Everything in this catalogue that does not fit, in its order.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let ids: HashSet<_> = self.entries().map(|entry| entry.id.as_str()).collect();
        let mut faults = self.repeated();
        faults.extend(self.areas().iter().flat_map(misnumbered));
        faults.extend(self.entries().flat_map(|entry| unfit(entry, &ids)));
        faults.extend(self.entries().flat_map(references::broken));
        faults
    }

    /// Ids, titles and prefixes that occur twice.
    fn repeated(&self) -> Vec<Fault> {
        let (mut ids, mut titles, mut prefixes) = (HashSet::new(), HashMap::new(), HashMap::new());
        let mut faults = Vec::new();
        for entry in self.entries() {
            if !ids.insert(&entry.id) {
                faults.push(Fault::IdTwice(entry.id.clone()));
            }
            if let Some(earlier) = titles.insert(&entry.title, &entry.id) {
                faults.push(Fault::TitleTwice {
                    id: entry.id.clone(),
                    earlier: earlier.clone(),
                });
            }
        }
        for area in self.areas() {
            if let Some(earlier) = prefixes.insert(&area.prefix, &area.name) {
                faults.push(Fault::PrefixTwice(earlier.clone(), area.name.clone()));
            }
        }
        faults
    }
}

/// Ids of an area that have another form, or stand out of order.
fn misnumbered(area: &Area) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut last = 0;
    for entry in &area.entries {
        match entry.number().filter(|_| entry.prefix() == area.prefix) {
            None => faults.push(Fault::IdForm {
                id: entry.id.clone(),
                prefix: area.prefix.clone(),
            }),
            Some(number) if number <= last => faults.push(Fault::Order(entry.id.clone())),
            Some(number) => last = number,
        }
    }
    faults
}

/// What is wrong with one entry by itself.
fn unfit(entry: &Entry, ids: &HashSet<&str>) -> Vec<Fault> {
    let id = || entry.id.clone();
    let mut faults = Vec::new();
    if !(3..=9).contains(&entry.title.split_whitespace().count()) {
        faults.push(Fault::TitleLength(id()));
    }
    match &entry.seed {
        Some(range) if !range.exists() => {
            faults.push(Fault::NoSuchLines {
                id: id(),
                range: range.to_string(),
            });
        }
        None if entry.source.is_none() => faults.push(Fault::NoSource(id())),
        _ => {}
    }
    faults.extend(empty_texts(entry).map(|key| Fault::Empty { id: id(), key }));
    for other in &entry.also {
        if *other == entry.id || !ids.contains(other.as_str()) {
            faults.push(Fault::NoSuchNeighbour {
                id: id(),
                other: other.clone(),
            });
        }
    }
    if entry.waiver.is_some() && entry.rule.is_some() {
        faults.push(Fault::WaivedWithRule(id()));
    }
    faults
}

/// The keys of texts that are there and say nothing.
fn empty_texts(entry: &Entry) -> impl Iterator<Item = &'static str> {
    let given = [
        ("statement", Some(&entry.statement)),
        ("check", Some(&entry.check)),
        ("sabotage", Some(&entry.sabotage)),
        ("needs", entry.needs.as_ref()),
        ("waiver", entry.waiver.as_ref()),
        ("test", entry.test.as_ref()),
        ("source", entry.source.as_ref()),
    ];
    let empty = |text: Option<&String>| text.is_some_and(|text| text.trim().is_empty());
    given
        .into_iter()
        .filter(move |(_, text)| empty(*text))
        .map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, title: &str, more: &str) -> String {
        format!(
            "- {{ id: {id}, title: {title}, level: must, binds: server, statement: s, observe: wire, \
             check: c, sabotage: b, {more} }}\n"
        )
    }

    fn faults(entries: &[String]) -> String {
        let text = entries.concat();
        let catalogue = Catalogue::from_yaml([("x.yaml", text.as_str())]).unwrap();
        let faults: Vec<_> = catalogue.faults().iter().map(ToString::to_string).collect();
        faults.join("\n")
    }

    #[test]
    fn the_embedded_catalogue_has_no_fault() {
        assert_eq!(Catalogue::embedded().faults(), []);
    }

    #[test]
    fn a_good_entry_has_no_fault() {
        assert_eq!(
            faults(&[entry("X-001", "one two three", "source: here")]),
            ""
        );
    }

    #[test]
    fn repeated_ids_and_titles_are_found() {
        let twice = entry("X-001", "one two three", "source: here");
        insta::assert_snapshot!(faults(&[twice.clone(), twice]), @r"
        X-001: the id is used twice
        X-001: the title is that of X-001
        X-001: the numbers rise within an area
        ");
    }

    #[test]
    fn ids_out_of_form_or_order_are_found() {
        let entries = ["X-002", "X-001", "Y-003", "X-4"]
            .map(|id| entry(id, &format!("one two {id}"), "source: here"));
        insta::assert_snapshot!(faults(&entries), @r"
        X-001: the numbers rise within an area
        Y-003: an id here is X- and three digits
        X-4: an id here is X- and three digits
        ");
    }

    #[test]
    fn missing_sources_and_lines_are_found() {
        insta::assert_snapshot!(
            faults(&[
                entry("X-001", "one two three", "seed: 'nowhere.txt:1-2'"),
                entry("X-002", "two words", ""),
            ]),
            @r"
        X-001: there are no lines nowhere.txt:1-2
        X-002: a title has 3 to 9 words
        X-002: neither a seed range nor a source
        "
        );
    }

    #[test]
    fn empty_texts_and_foreign_neighbours_are_found() {
        insta::assert_snapshot!(
            faults(&[entry("X-001", "one two three", "source: x, also: [X-001, X-9], waiver: ' ', rule: { all: [] }")]),
            @r"
        X-001: waiver is empty
        X-001: also names X-001, which is no other entry
        X-001: also names X-9, which is no other entry
        X-001: waived, and yet it has a rule
        "
        );
    }
}
