//! The seed documents, embedded, so that a requirement can quote its source.
//!
//! Lines are counted from 1, and a range names its first and its last line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The file name and the text of every seed document, in the order of the names.
pub const SEEDS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/seeds.rs"));

/// The text of a seed document, by its file name or by the number at its beginning (`000`).
#[must_use]
pub fn seed(name: &str) -> Option<&'static str> {
    let is = |file: &str| {
        file == name
            || file
                .split_once('_')
                .is_some_and(|(number, _)| number == name)
    };
    SEEDS
        .iter()
        .find(|(file, _)| is(file))
        .map(|(_, text)| *text)
}

/// The lines `from` to `to` of a seed document, each with its number.
///
/// Empty when there is no such document or no such line.
pub fn lines(name: &str, from: u32, to: u32) -> impl Iterator<Item = (u32, &'static str)> {
    let text = seed(name).unwrap_or_default();
    (1..)
        .zip(text.lines())
        .skip_while(move |(n, _)| *n < from)
        .take_while(move |(n, _)| *n <= to)
}

/// Lines of a seed document, written `000_a71ef9082e9aff66.txt:741-800`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SeedRange {
    /// The file name of the document.
    pub file: String,
    /// The first line, counted from 1.
    pub from: u32,
    /// The last line; `from <= to`.
    pub to: u32,
}

/// This text is no range of lines.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is no seed range; expected FILE:FIRST-LAST")]
pub struct BadSeedRange(pub String);

impl SeedRange {
    /// The lines themselves, each with its number; empty when the document is not embedded.
    pub fn lines(&self) -> impl Iterator<Item = (u32, &'static str)> {
        lines(&self.file, self.from, self.to)
    }

    /// Whether every line of the range exists in the embedded documents.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.lines().count() == (self.to - self.from) as usize + 1
    }

    /// The number at the beginning of the file name: how people name the document.
    #[must_use]
    pub fn document(&self) -> &str {
        self.file
            .split_once('_')
            .map_or(self.file.as_str(), |(number, _)| number)
    }
}

impl fmt::Display for SeedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}-{}", self.file, self.from, self.to)
    }
}

impl FromStr for SeedRange {
    type Err = BadSeedRange;

    fn from_str(text: &str) -> Result<Self, BadSeedRange> {
        let range = || {
            let (file, lines) = text.rsplit_once(':')?;
            let (from, to) = lines.split_once('-').unwrap_or((lines, lines));
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (!file.is_empty() && 1 <= from && from <= to).then(|| Self {
                file: file.to_owned(),
                from,
                to,
            })
        };
        range().ok_or_else(|| BadSeedRange(text.to_owned()))
    }
}

impl Serialize for SeedRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SeedRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_reads_back_and_quotes_its_lines() {
        let range: SeedRange = "000_a71ef9082e9aff66.txt:644-644".parse().unwrap();
        assert_eq!(range.to_string(), "000_a71ef9082e9aff66.txt:644-644");
        assert_eq!(range.document(), "000");
        let quote: Vec<_> = range.lines().collect();
        assert_eq!(
            quote,
            [(
                644,
                "2. After that, it sends system.heartbeat every 30 seconds."
            )]
        );
    }

    #[test]
    fn a_range_beyond_the_document_does_not_exist() {
        assert!(
            "000_a71ef9082e9aff66.txt:1-3"
                .parse::<SeedRange>()
                .unwrap()
                .exists()
        );
        assert!(
            !"000_a71ef9082e9aff66.txt:1-9999"
                .parse::<SeedRange>()
                .unwrap()
                .exists()
        );
        assert!(!"nowhere.txt:1-1".parse::<SeedRange>().unwrap().exists());
    }

    #[test]
    fn what_is_no_range_is_quoted_in_the_error() {
        for text in [
            "", "file", "file:", "file:0-3", "file:5-4", ":1-2", "file:a-b",
        ] {
            let error = text.parse::<SeedRange>().unwrap_err();
            assert_eq!(error, BadSeedRange(text.into()));
        }
    }

    #[test]
    fn a_document_is_found_by_name_and_by_number() {
        assert_eq!(seed("002"), seed("002_542b1bc3f0021fe3.txt"));
        assert!(seed("002").is_some());
        assert_eq!(seed("00"), None);
    }
}
