//! From text to a catalogue.
//!
//! The embedded catalogue is JSON made from the YAML at compile time; a catalogue that a user brings
//! is YAML, and its errors name file, line and column. Reading files is the caller's business.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;

use super::entry::Entry;
use super::{Area, Catalogue};

/// A file of a catalogue cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct LoadError {
    /// The name of the file, as the caller gave it.
    pub file: String,
    /// The line, counted from 1; 0 when unknown.
    pub line: u64,
    /// The column, counted from 1; 0 when unknown.
    pub column: u64,
    /// What is wrong, and what was expected.
    pub message: String,
}

/// One file as `build.rs` wrote it.
#[derive(Deserialize)]
struct File {
    area: String,
    entries: Vec<Entry>,
}

/// The JSON that the catalogue of this version is read from: what `build.rs` wrote. A debug build reads the file that
/// `TURNWIRE_CATALOGUE` names instead, so that whoever works at entries need not compile the workspace for each.
fn embedded_text() -> Cow<'static, str> {
    if cfg!(debug_assertions)
        && let Some(path) = std::env::var_os("TURNWIRE_CATALOGUE")
        && let Ok(text) = std::fs::read_to_string(path)
    {
        return Cow::Owned(text);
    }
    Cow::Borrowed(include_str!(concat!(env!("OUT_DIR"), "/catalogue.json")))
}

impl Catalogue {
    /// The catalogue of this version, read at the first call.
    ///
    /// # Panics
    ///
    /// Never in a version that passed its tests: they read the same bytes.
    #[must_use]
    pub fn embedded() -> &'static Self {
        static EMBEDDED: LazyLock<Catalogue> = LazyLock::new(|| {
            let files: Result<Vec<File>, _> = serde_json::from_str(&embedded_text());
            match files {
                Ok(files) => {
                    let areas = files
                        .into_iter()
                        .map(|file| Area::new(file.area, file.entries));
                    Catalogue {
                        areas: areas.collect(),
                    }
                }
                Err(error) => panic!("the embedded catalogue is broken: {error}"),
            }
        });
        &EMBEDDED
    }

    /// Reads a catalogue from YAML files, given as name and text, in the order of the names.
    ///
    /// # Errors
    ///
    /// [`LoadError`] at the first place that is no YAML, or no list of entries. Whether the entries
    /// fit together is told by [`Catalogue::faults`].
    pub fn from_yaml<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, LoadError> {
        let mut areas = Vec::new();
        for (file, text) in files {
            areas.push(Area::new(area_name(file), entries(file, text)?));
        }
        areas.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { areas })
    }
}

impl Area {
    fn new(name: String, entries: Vec<Entry>) -> Self {
        let prefix = entries.first().map_or("", Entry::prefix).to_owned();
        Self {
            name,
            prefix,
            entries,
        }
    }
}

/// The last part of a path, without its extension.
fn area_name(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.rsplit_once('.')
        .map_or(name, |(stem, _)| stem)
        .to_owned()
}

fn entries(file: &str, text: &str) -> Result<Vec<Entry>, LoadError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let (line, column) = error
            .location()
            .map_or((0, 0), |at| (at.line(), at.column()));
        LoadError {
            file: file.to_owned(),
            line,
            column,
            message: message(&error),
        }
    })
}

/// The error in one line, without the place that it repeats.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.rsplit_once(" at line ")
        .map_or(line, |(message, _)| message)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r"
- id: X-ONE-001
  title: Something holds always
  level: must
  binds: server
  seed: 002_542b1bc3f0021fe3.txt:1-2
  statement: >-
    It holds.
  observe: wire
  check: Look.
  sabotage: Break it.
";

    fn fails(text: &str) -> String {
        Catalogue::from_yaml([("my/x-one.yaml", text)])
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_embedded_catalogue_is_read_whole() {
        let catalogue = Catalogue::embedded();
        assert!(catalogue.len() >= 2736, "{}", catalogue.len());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/requirements");
        let names = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path());
        let files = names.filter(|path| path.extension().is_some_and(|kind| kind == "yaml"));
        assert_eq!(catalogue.areas().len(), files.count());
        assert_eq!(catalogue.areas()[1].prefix, "COV-ADV");
    }

    #[test]
    fn a_catalogue_of_ones_own_is_read_from_yaml() {
        let catalogue = Catalogue::from_yaml([("my/x-one.yaml", GOOD)]).unwrap();
        assert_eq!(catalogue.areas()[0].name, "x-one");
        let entry = catalogue.entries().next().unwrap();
        assert_eq!((entry.statement.as_str(), entry.revision), ("It holds.", 1));
        assert_eq!(entry.seed_text().count(), 2);
    }

    #[test]
    fn an_unknown_key_is_shown_with_its_place() {
        let error = fails(&GOOD.replace("level:", "lvel:"));
        let expected = "my/x-one.yaml:4:3: unknown field `lvel`, expected one of id, title, level,";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn a_foreign_word_is_shown_with_its_place() {
        insta::assert_snapshot!(fails(&GOOD.replace("must", "shall")), @"my/x-one.yaml:4:10: unknown variant `shall`, expected one of must, should, may");
    }

    #[test]
    fn broken_yaml_is_shown_with_its_place() {
        insta::assert_snapshot!(fails("- id: [\n"), @"my/x-one.yaml:1:7: expected string scalar");
    }

    #[test]
    fn a_bad_seed_range_is_shown_with_its_place() {
        insta::assert_snapshot!(fails(&GOOD.replace("1-2", "2-1")), @r#"my/x-one.yaml:6:9: "002_542b1bc3f0021fe3.txt:2-1" is no seed range; expected FILE:FIRST-LAST"#);
    }
}
