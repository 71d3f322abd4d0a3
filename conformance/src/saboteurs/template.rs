//! Texts of a rewrite with placeholders.
//!
//! `{/json/pointer}` of the document at hand, `{line:NAME}` of the frame, `{request:NAME}` (query parameter, or
//! member of the JSON body), `{index}` (position among the frames that the rewrite touches, from 0). Any other
//! brace is itself, so that JSON needs no escapes. A placeholder without a value becomes nothing.

use serde_json::Value;

use super::{draft::Draft, saboteur::RequestInfo};
use crate::transcript::views::stream::text_of;

/// Where placeholders get their values from.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The request.
    pub info: &'a RequestInfo,
    /// The frame, when there is one.
    pub frame: Option<&'a Draft>,
    /// The JSON document at hand: data of the frame, or a body.
    pub json: Option<&'a Value>,
    /// Value of `{index}`.
    pub index: u64,
}

impl Context<'_> {
    /// The text with its placeholders filled in.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let (before, from) = rest.split_at(start);
            filled.push_str(before);
            let inside = from.get(1..).unwrap_or_default();
            match inside
                .split_once('}')
                .filter(|(name, _)| is_placeholder(name))
            {
                Some((name, after)) => {
                    filled.push_str(
                        &self
                            .value(name)
                            .map(|value| text_of(&value))
                            .unwrap_or_default(),
                    );
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = inside;
                }
            }
        }
        filled + rest
    }

    /// A value whose strings, at any depth, are filled in.
    pub fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), self.fill_value(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    fn value(&self, name: &str) -> Option<Value> {
        if name.starts_with('/') {
            return self.json?.pointer(name).cloned();
        }
        match name.split_once(':') {
            Some(("line", name)) => self.frame?.line(name).map(Value::from),
            Some(("request", name)) => self.info.parameter(name),
            _ => Some(Value::from(self.index)),
        }
    }
}

fn is_placeholder(name: &str) -> bool {
    let plain = |text: &str| !text.is_empty() && !text.contains(['{', '"', '\n']);
    let named = name
        .strip_prefix("line:")
        .or_else(|| name.strip_prefix("request:"));
    name == "index" || (name.starts_with('/') && plain(name)) || named.is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript::Request;

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let request = Request {
            target: "/x?sessionId=s%201".into(),
            ..Request::default()
        };
        let info = RequestInfo { request, number: 0 };
        let json = json!({"a": {"b": 7}, "t": "x"});
        let draft = Draft::new("name", "{}");
        let context = Context {
            info: &info,
            frame: Some(&draft),
            json: Some(&json),
            index: 3,
        };
        for (text, filled) in [
            ("id: {/a/b}", "id: 7"),
            ("{/t}{/t}", "xx"),
            ("{/a}", "{\"b\":7}"),
            ("{line:event}/{request:sessionId}/{index}", "name/s 1/3"),
            ("[{/nothing}{line:id}{request:no}]", "[]"),
            ("data: {\"a\":{\"b\":1}}", "data: {\"a\":{\"b\":1}}"),
            ("{", "{"),
            ("{other}{}", "{other}{}"),
            ("{{/t}}", "{x}"),
        ] {
            assert_eq!(context.fill(text), filled, "{text}");
        }
        assert_eq!(
            context.fill_value(&json!({"k": ["{/t}", 1]})),
            json!({"k": ["x", 1]})
        );
    }
}
