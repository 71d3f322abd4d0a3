//! Ids and placeholders of a transcript, and what stands for them now.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::transcript::diff::volatile::{Kind, shape, tokens};

/// Shortest text of a request that is put in place of the recorded one in its answer, in bytes.
const TELLING: usize = 4;

/// What stands for what.
#[derive(Clone, Debug, Default)]
pub struct Words {
    now: BTreeMap<String, String>,
}

impl Words {
    /// These placeholders, by name, stand for these values.
    pub fn given(values: &[(String, String)]) -> Self {
        let now = values
            .iter()
            .map(|(name, value)| (format!("{{{{{name}}}}}"), value.clone()))
            .collect();
        Self { now }
    }

    /// Notes that one text stands for another. A replayed server may say a placeholder as it stands; then it stands for
    /// itself.
    pub fn learn(&mut self, recorded: &str, now: &str) {
        let is_news = recorded != now || is_placeholder(recorded);
        if is_news && !recorded.is_empty() {
            self.now
                .entry(recorded.to_owned())
                .or_insert_with(|| now.to_owned());
        }
    }

    /// Learns from two texts of the same form: ids that stand at the same places, and a placeholder that stands
    /// alone or behind words that both have.
    pub fn learn_text(&mut self, recorded: &str, now: &str) {
        let (left, right) = (tokens(recorded), tokens(now));
        if let [token] = left.as_slice()
            && token.kind == Kind::Placeholder
        {
            let (before, after) = (&recorded[..token.start], &recorded[token.end()..]);
            let value = now
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after));
            if let Some(value) = value {
                self.learn(token.text, value);
            }
            return;
        }
        if left.len() != right.len() || shape(recorded) != shape(now) {
            return;
        }
        for (a, b) in left.iter().zip(&right) {
            if a.kind == Kind::Id {
                self.learn(a.text, b.text);
            }
        }
    }

    /// Learns from two JSON values: from the strings that stand at the same places.
    pub fn learn_json(&mut self, recorded: &Value, now: &Value) {
        match (recorded, now) {
            (Value::String(recorded), Value::String(now)) => self.learn_text(recorded, now),
            (Value::Array(left), Value::Array(right)) => {
                for (a, b) in left.iter().zip(right) {
                    self.learn_json(a, b);
                }
            }
            (Value::Object(left), Value::Object(right)) => {
                for (name, a) in left {
                    if let Some(b) = right.get(name) {
                        self.learn_json(a, b);
                    }
                }
            }
            _ => {}
        }
    }

    /// Learns every string of a request that is another one now, such as an id that the client makes up itself.
    pub fn learn_request(&mut self, recorded: &Value, now: &Value) {
        match (recorded, now) {
            (Value::String(recorded), Value::String(now)) if recorded.len() >= TELLING => {
                self.learn(recorded, now);
            }
            (Value::Object(left), Value::Object(right)) => {
                for (name, a) in left {
                    let Some(b) = right.get(name) else { continue };
                    match (a, b) {
                        // Too short to be replaced wherever it stands; as a value of its own it is telling.
                        (Value::String(short), Value::String(_))
                            if short.len() < TELLING && names_an_id(name) =>
                        {
                            self.learn(&a.to_string(), &b.to_string());
                        }
                        _ => self.learn_request(a, b),
                    }
                }
            }
            _ => {}
        }
    }

    /// The bytes with everything replaced that stands for something else now. Longer texts win.
    pub fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(self.now.keys());
        let Ok(finder) = finder else {
            return bytes.to_vec();
        };
        let values: Vec<&String> = self.now.values().collect();
        finder.replace_all_bytes(bytes, &values)
    }

    /// Whether a text that was said has a placeholder of which nothing is known.
    pub fn leaves_open(&self, said: &str) -> bool {
        let known = |text: &str| self.now.values().any(|value| value == text);
        tokens(said)
            .iter()
            .any(|token| token.kind == Kind::Placeholder && !known(token.text))
    }

    /// As [`Words::say`], for a text.
    pub fn say_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.say(text.as_bytes())).into_owned()
    }
}

fn is_placeholder(text: &str) -> bool {
    matches!(tokens(text).as_slice(), [token] if token.kind == Kind::Placeholder && token.text == text)
}

/// Whether a member of this name is an id.
fn names_an_id(name: &str) -> bool {
    name == "id" || name.ends_with("_id") || name.ends_with("Id")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_short_id_of_the_client_is_replaced_only_where_it_stands_alone() {
        let mut words = Words::default();
        let recorded = json!({ "request_id": "r-1", "mode": "on" });
        words.learn_request(&recorded, &json!({ "request_id": "7", "mode": "off" }));
        let said = words.say_text(r#"{"request_id":"r-1","text":"r-12 is on","mode":"on"}"#);
        assert_eq!(
            said,
            r#"{"request_id":"7","text":"r-12 is on","mode":"on"}"#
        );
    }
}
