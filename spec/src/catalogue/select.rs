//! Finding entries: by id, by area, by suite, or by a misspelt name.

use super::entry::Entry;
use super::suite::{Suite, suite_of};
use super::{Area, Catalogue};

/// This text selects no requirement.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no requirement or area is named {text:?}{}", hint(nearest.as_deref()))]
pub struct UnknownSelection {
    /// The text that was given.
    pub text: String,
    /// The id, prefix or area that is spelt most like it.
    pub nearest: Option<String>,
}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean {name:?}?"))
        .unwrap_or_default()
}

/// Below this likeness a name is no hint.
const LIKE: f64 = 0.7;

impl Catalogue {
    /// The entry of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Entry> {
        let areas = self
            .areas()
            .iter()
            .filter(|area| id.starts_with(&area.prefix));
        areas
            .flat_map(|area| &area.entries)
            .find(|entry| entry.id == id)
    }

    /// The entries that `text` names: an id (`COV-SUB-102`), a part of the ids that ends at a hyphen
    /// (`COV-SUB`, which does not select `COV-SUBAG-001`), or an area (`covel-subscription`).
    ///
    /// # Errors
    ///
    /// [`UnknownSelection`] when it names none, with the nearest name.
    pub fn select(&self, text: &str) -> Result<Vec<&Entry>, UnknownSelection> {
        let found: Vec<_> = match self.areas().iter().find(|area| area.name == text) {
            Some(area) => area.entries.iter().collect(),
            None => self
                .entries()
                .filter(|entry| is_named(entry, text))
                .collect(),
        };
        if found.is_empty() {
            let nearest = self.nearest(text).map(str::to_owned);
            return Err(UnknownSelection {
                text: text.to_owned(),
                nearest,
            });
        }
        Ok(found)
    }

    /// The id, prefix or area name that is spelt most like `text`, upper or lower case alike.
    #[must_use]
    pub fn nearest(&self, text: &str) -> Option<&str> {
        let wanted = text.to_lowercase();
        let prefixes = self
            .areas()
            .iter()
            .flat_map(|area| [area.prefix.as_str(), area.name.as_str()]);
        let ids = self.entries().map(|entry| entry.id.as_str());
        let scored = prefixes
            .chain(ids)
            .map(|name| (likeness(&wanted, name), name));
        // The first of equals: names stand in the order of the catalogue, areas before entries.
        let best = scored.fold(
            (0.0, ""),
            |best, next| if next.0 > best.0 { next } else { best },
        );
        (best.0 >= LIKE).then_some(best.1)
    }

    /// The area in which `entry` stands.
    #[must_use]
    pub fn area_of(&self, entry: &Entry) -> Option<&Area> {
        self.areas()
            .iter()
            .find(|area| area.prefix == entry.prefix())
    }

    /// The suite to which `entry` belongs.
    #[must_use]
    pub fn suite_of(&self, entry: &Entry) -> Suite {
        suite_of(
            self.area_of(entry).map_or("", |area| area.name.as_str()),
            entry,
        )
    }

    /// Whether `entry` is judged in a suite: because it belongs to it, or because it holds there as well.
    #[must_use]
    pub fn is_in(&self, entry: &Entry, suite: Suite) -> bool {
        is_judged(entry, self.suite_of(entry), suite)
    }

    /// The entries of a suite: its own, and those of others that hold in it as well.
    pub fn suite(&self, suite: Suite) -> impl Iterator<Item = &Entry> {
        self.areas().iter().flat_map(move |area| {
            let entries = area.entries.iter();
            entries.filter(move |entry| is_judged(entry, suite_of(&area.name, entry), suite))
        })
    }
}

fn is_named(entry: &Entry, text: &str) -> bool {
    entry
        .id
        .strip_prefix(text)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        && !text.is_empty()
}

fn likeness(wanted: &str, name: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(wanted, &name.to_lowercase())
}

/// Whether an entry that belongs to `own` is judged in a suite.
fn is_judged(entry: &Entry, own: Suite, suite: Suite) -> bool {
    own == suite || entry.holds_in.contains(&suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        Catalogue::embedded().select(text).unwrap().len()
    }

    #[test]
    fn an_id_selects_one_entry() {
        let selected = Catalogue::embedded().select("COV-SUB-102").unwrap();
        assert_eq!(selected.len(), 1);
        assert_eq!(
            selected[0].title,
            Catalogue::embedded().get("COV-SUB-102").unwrap().title
        );
    }

    #[test]
    fn a_prefix_selects_its_area_and_not_a_longer_name() {
        let selected = Catalogue::embedded().select("COV-SUB").unwrap();
        assert!(selected.iter().all(|entry| entry.prefix() == "COV-SUB"));
        assert_eq!(count("COV-SUB"), count("covel-subscription"));
        assert!(count("COV") > count("COV-SUB") + count("COV-SUBAG"));
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_one() {
        let catalogue = Catalogue::embedded();
        for (text, nearest) in [
            ("COV-SBU", "COV-SUB"),
            ("cov-sub-102", "COV-SUB-102"),
            ("covel-subsciption", "covel-subscription"),
        ] {
            assert_eq!(
                catalogue.select(text).unwrap_err().nearest.as_deref(),
                Some(nearest),
                "{text}"
            );
        }
        let error = catalogue.select("COV-SBU").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no requirement or area is named \"COV-SBU\"; did you mean \"COV-SUB\"?"
        );
    }

    #[test]
    fn a_text_like_nothing_gets_no_hint() {
        let error = Catalogue::embedded().select("zzzzzzzzzzzz").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no requirement or area is named \"zzzzzzzzzzzz\""
        );
        assert!(Catalogue::embedded().select("").is_err());
    }

    #[test]
    fn an_entry_knows_its_area() {
        let catalogue = Catalogue::embedded();
        let entry = catalogue.get("COV-SUBAG-001").unwrap();
        assert_eq!(catalogue.area_of(entry).unwrap().name, "covel-subagent");
    }

    #[test]
    fn the_suites_share_out_the_catalogue() {
        let catalogue = Catalogue::embedded();
        let parts: usize = Suite::ALL
            .iter()
            .map(|suite| catalogue.suite(*suite).count())
            .sum();
        let again: usize = catalogue.entries().map(|entry| entry.holds_in.len()).sum();
        assert_eq!(parts, catalogue.len() + again);
    }
}
