//! JSON values that know their path.

use serde_json::Value;

use super::HarError;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    /// The value.
    pub(super) value: &'a Value,
    /// Its path, such as `log.entries[3]`; empty for the whole file.
    pub(super) path: String,
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// This place is not as the format says.
    pub(super) fn error(&self, expected: &str) -> HarError {
        let got = match self.value {
            Value::Null => "null".to_owned(),
            Value::Array(items) => format!("a list of {}", items.len()),
            Value::Object(_) => "an object".to_owned(),
            scalar => shorten(&scalar.to_string()),
        };
        self.wrong(expected, got)
    }

    fn wrong(&self, expected: &str, got: String) -> HarError {
        let path = if self.path.is_empty() {
            "the file".to_owned()
        } else {
            self.path.clone()
        };
        HarError::Value {
            path,
            expected: expected.to_owned(),
            got,
        }
    }

    /// A member that has to be there.
    pub(super) fn member(&self, name: &str) -> Result<Self, HarError> {
        let object = self
            .value
            .as_object()
            .ok_or_else(|| self.error("an object"))?;
        let value = object.get(name).ok_or_else(|| {
            let names: Vec<&str> = object.keys().take(8).map(String::as_str).collect();
            let got = match names.join(", ").as_str() {
                "" => "an object without members".to_owned(),
                names => format!("members {names}"),
            };
            self.wrong(&format!("a member {name:?}"), got)
        })?;
        Ok(self.below(name, value))
    }

    /// A member that may be missing; `null` counts as missing.
    pub(super) fn optional(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(self.below(name, value))
    }

    fn below(&self, name: &str, value: &'a Value) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            value,
            path: format!("{}{dot}{name}", self.path),
        }
    }

    pub(super) fn items(&self) -> Result<Vec<Self>, HarError> {
        let items = self.value.as_array().ok_or_else(|| self.error("a list"))?;
        let item = |(index, value)| Self {
            value,
            path: format!("{}[{index}]", self.path),
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, HarError> {
        self.value.as_str().ok_or_else(|| self.error("a string"))
    }

    pub(super) fn number(&self) -> Result<f64, HarError> {
        self.value.as_f64().ok_or_else(|| self.error("a number"))
    }

    /// The text of a member; empty without one.
    pub(super) fn text_or_empty(&self, name: &str) -> Result<&'a str, HarError> {
        self.optional(name).map_or(Ok(""), |member| member.text())
    }
}

fn shorten(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}
