//! Walks TOML with places: every key is asked for by name and type, and what was not asked for is an error.

use std::{collections::BTreeMap, ops::Range, path::Path, time::Duration};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Problem, ProfileError};

/// Below this likeness a name is no hint.
const LIKE: f64 = 0.6;

/// The text of a profile, for places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl Source<'_> {
    /// The error at a place of the text.
    pub(super) fn wrong(&self, span: Range<usize>, problem: Problem) -> ProfileError {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ProfileError::Wrong {
            path: self.path.display().to_string(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem,
        }
    }
}

/// One table that is being read. [`TableReader::finish`] refuses the keys that nobody asked for.
pub(super) struct TableReader<'a> {
    source: Source<'a>,
    table: &'a DeTable<'a>,
    /// Place of the table itself.
    pub(super) span: Range<usize>,
    /// Names of the tables around its keys, with a dot at the end.
    path: String,
    known: Vec<&'static str>,
}

/// A value, its full key and its place.
#[derive(Clone)]
pub(super) struct Found<'a> {
    source: Source<'a>,
    pub(super) key: String,
    value: &'a DeValue<'a>,
    span: Range<usize>,
}

type Read<T> = Result<T, ProfileError>;

impl<'a> TableReader<'a> {
    pub(super) fn new(
        source: Source<'a>,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        path: String,
    ) -> Self {
        Self {
            source,
            table,
            span,
            path,
            known: Vec::new(),
        }
    }

    /// The value of a key, when it is there.
    pub(super) fn find(&mut self, key: &'static str) -> Option<Found<'a>> {
        self.known.push(key);
        let value = self.table.get(key)?;
        Some(self.found(key, value))
    }

    pub(super) fn string(&mut self, key: &'static str) -> Read<Option<String>> {
        self.find(key).map(|found| found.string()).transpose()
    }

    pub(super) fn strings(&mut self, key: &'static str) -> Read<Option<Vec<String>>> {
        self.find(key).map(|found| found.strings()).transpose()
    }

    pub(super) fn string_map(&mut self, key: &'static str) -> Read<BTreeMap<String, String>> {
        self.map(key, |found| found.string())
    }

    pub(super) fn duration(&mut self, key: &'static str) -> Read<Option<Duration>> {
        self.find(key).map(|found| found.duration()).transpose()
    }

    pub(super) fn bytes(&mut self, key: &'static str) -> Read<Option<usize>> {
        self.find(key).map(|found| found.bytes()).transpose()
    }

    /// The table of a key, when it is there.
    pub(super) fn table(&mut self, key: &'static str) -> Read<Option<Self>> {
        self.find(key).map(|found| found.table()).transpose()
    }

    /// A table whose keys are names of the author's own.
    pub(super) fn map<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(Found<'a>) -> Read<T>,
    ) -> Read<BTreeMap<String, T>> {
        let Some(table) = self.table(key)? else {
            return Ok(BTreeMap::new());
        };
        let entries = table.table.iter();
        entries
            .map(|(name, value)| {
                let name = name.get_ref().to_string();
                let value = read(table.found(&name, value))?;
                Ok((name, value))
            })
            .collect()
    }

    /// Refuses keys that nobody asked for.
    pub(super) fn finish(self) -> Read<()> {
        let unknown = self
            .table
            .keys()
            .find(|key| !self.known.contains(&key.get_ref().as_ref()));
        let Some(unknown) = unknown else {
            return Ok(());
        };
        let name = unknown.get_ref().as_ref();
        let likeness =
            |known: &&&str| (strsim::normalized_damerau_levenshtein(name, known) * 1000.0) as u32;
        let nearest = self.known.iter().max_by_key(likeness);
        let nearest = nearest.filter(|near| f64::from(likeness(near)) >= LIKE * 1000.0);
        let mut known: Vec<_> = self.known.iter().map(|key| (*key).to_owned()).collect();
        known.sort_unstable();
        let problem = Problem::UnknownKey {
            key: format!("{}{name}", self.path),
            nearest: nearest.map(|near| (*near).to_owned()),
            known,
        };
        Err(self.source.wrong(unknown.span(), problem))
    }

    /// The error that a key is not there.
    pub(super) fn missing(&self, key: &str, expected: &'static str) -> ProfileError {
        let key = format!("{}{key}", self.path);
        self.source
            .wrong(self.span.clone(), Problem::Missing { key, expected })
    }

    fn found(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Found<'a> {
        Found {
            source: self.source,
            key: format!("{}{key}", self.path),
            value: value.get_ref(),
            span: value.span(),
        }
    }
}

impl<'a> Found<'a> {
    pub(super) fn string(&self) -> Read<String> {
        self.value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| self.wrong_type("a string"))
    }

    pub(super) fn strings(&self) -> Read<Vec<String>> {
        self.items("an array of strings")?
            .iter()
            .map(Self::string)
            .collect()
    }

    pub(super) fn bool(&self) -> Read<bool> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong_type("true or false"))
    }

    pub(super) fn number(&self) -> Read<f64> {
        let text = match self.value {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong_type("a number")),
        };
        text.parse()
            .map_err(|_| self.wrong_type("a decimal number"))
    }

    pub(super) fn bytes(&self) -> Read<usize> {
        let DeValue::Integer(number) = self.value else {
            return Err(self.wrong_type("a number of bytes"));
        };
        let parsed = usize::from_str_radix(number.as_str(), number.radix());
        parsed.map_err(|_| {
            self.bad(format!(
                "expected a number of bytes, got {}",
                number.as_str()
            ))
        })
    }

    /// A number with a unit: `250ms`, `5s`, `2m`.
    pub(super) fn duration(&self) -> Read<Duration> {
        const EXPECTED: &str = "a duration such as \"250ms\", \"5s\" or \"2m\"";
        let text = self
            .value
            .as_str()
            .ok_or_else(|| self.wrong_type(EXPECTED))?;
        duration(text).ok_or_else(|| self.bad(format!("expected {EXPECTED}, got {text:?}")))
    }

    pub(super) fn table(&self) -> Read<TableReader<'a>> {
        let table = self
            .value
            .as_table()
            .ok_or_else(|| self.wrong_type("a table"))?;
        Ok(TableReader::new(
            self.source,
            table,
            self.span.clone(),
            format!("{}.", self.key),
        ))
    }

    /// The items of an array, each with its place and the array's key.
    pub(super) fn items(&self, expected: &'static str) -> Read<Vec<Self>> {
        let array = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong_type(expected))?;
        let item = |value: &'a Spanned<DeValue<'a>>| Found {
            source: self.source,
            key: self.key.clone(),
            value: value.get_ref(),
            span: value.span(),
        };
        Ok(array.iter().map(item).collect())
    }

    /// The error that the value makes no sense.
    pub(super) fn bad(&self, why: String) -> ProfileError {
        self.source.wrong(
            self.span.clone(),
            Problem::BadValue {
                key: self.key.clone(),
                why,
            },
        )
    }

    fn wrong_type(&self, expected: &'static str) -> ProfileError {
        let problem = Problem::WrongType {
            key: self.key.clone(),
            expected,
            got: match self.value {
                DeValue::String(_) => "a string",
                DeValue::Integer(_) => "an integer",
                DeValue::Float(_) => "a float",
                DeValue::Boolean(_) => "a boolean",
                DeValue::Datetime(_) => "a date",
                DeValue::Array(_) => "an array",
                DeValue::Table(_) => "a table",
            },
        };
        self.source.wrong(self.span.clone(), problem)
    }
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()
}
