//! Conditions on texts and names, and paths into JSON.

use serde_json::Value;

use crate::script::{NameMatch, TextMatch};

impl TextMatch {
    /// Whether the text meets the condition.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Contains(wanted) => text.contains(wanted.as_str()),
            Self::Equals(wanted) => text == wanted,
            Self::StartsWith(wanted) => text.starts_with(wanted.as_str()),
            Self::EndsWith(wanted) => text.ends_with(wanted.as_str()),
            Self::Glob(pattern) => glob(pattern, text),
        }
    }
}

impl std::fmt::Display for TextMatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Contains(text) => write!(f, "something with {text:?}"),
            Self::Equals(text) => write!(f, "{text:?}"),
            Self::StartsWith(text) => write!(f, "something that starts with {text:?}"),
            Self::EndsWith(text) => write!(f, "something that ends with {text:?}"),
            Self::Glob(text) => write!(f, "a match for {text:?}"),
        }
    }
}

impl NameMatch {
    /// Whether the name meets the condition.
    pub fn matches(&self, name: &str) -> bool {
        glob(&self.0, name)
    }
}

/// Whether `pattern` matches all of `text`; `*` is any run of characters, `?` is one.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((star_p, star_t)) => {
                    star = Some((star_p, star_t + 1));
                    p = star_p + 1;
                    t = star_t + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The values at a path: a JSON pointer, or `$.a.b[0]` with `[-1]` for the last and `[*]` for all.
pub(super) fn at_path<'a>(body: &'a Value, path: &str) -> Vec<&'a Value> {
    if path.starts_with('/') {
        return body.pointer(path).into_iter().collect();
    }
    let path = path.strip_prefix('$').unwrap_or(path);
    let mut found = vec![body];
    for step in path
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']'))
    {
        if step.is_empty() {
            continue;
        }
        found = found
            .into_iter()
            .flat_map(|value| step_into(value, step))
            .collect();
    }
    found
}

/// Whether a path has a form that [`at_path`] reads.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    let wrong = |why: &str| {
        Err(format!(
            "{path:?} is no path into JSON, such as `$.messages[-1].content`, `$.tools[*].type` or `/tools/0`: {why}"
        ))
    };
    if let Some(pointer) = path.strip_prefix('/') {
        let escapes = pointer.split('~').skip(1);
        let good = escapes.into_iter().all(|rest| rest.starts_with(['0', '1']));
        return if good {
            Ok(())
        } else {
            wrong("in a JSON pointer `~` is written `~0`")
        };
    }
    if path.is_empty() {
        return wrong("it is empty");
    }
    let steps = path.strip_prefix('$').unwrap_or(path);
    for (at, name) in steps.split('.').enumerate() {
        let (name, places) = name
            .split_once('[')
            .map_or((name, None), |(name, rest)| (name, Some(rest)));
        if name.contains(']') {
            return wrong("a `]` without its `[`");
        }
        if at > 0 && name.is_empty() {
            return wrong("a name is missing behind a `.`");
        }
        for place in places.iter().flat_map(|places| places.split('[')) {
            let Some(place) = place.strip_suffix(']') else {
                return wrong("a `[` without its `]`");
            };
            if place != "*" && place.parse::<i64>().is_err() {
                return wrong("in `[]` is a number or `*`; a JSON pointer takes any name");
            }
        }
    }
    Ok(())
}

fn step_into<'a>(value: &'a Value, step: &str) -> Vec<&'a Value> {
    match value {
        Value::Object(members) if step == "*" => members.values().collect(),
        Value::Object(members) => members.get(step).into_iter().collect(),
        Value::Array(items) if step == "*" => items.iter().collect(),
        Value::Array(items) => {
            let place = match step.parse::<i64>() {
                Ok(place) if place < 0 => items
                    .len()
                    .checked_sub(usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX)),
                Ok(place) => usize::try_from(place).ok(),
                Err(_) => None,
            };
            place
                .and_then(|place| items.get(place))
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (pattern, name, expected) in [
            ("gpt-*", "gpt-5", true),
            ("gpt-*", "my-gpt-5", false),
            ("*", "", true),
            ("*/chat/*", "/v1/chat/completions", true),
            ("a*b*c", "a-bb-c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "x", false),
        ] {
            assert_eq!(glob(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn paths_reach_into_bodies() {
        let body = json!({"a": {"b": [1, 2, 3]}, "t": [{"n": "x"}, {"n": "y"}]});
        assert_eq!(at_path(&body, "$.a.b[0]"), [&json!(1)]);
        assert_eq!(at_path(&body, "$.a.b[-1]"), [&json!(3)]);
        assert_eq!(at_path(&body, "/a/b/1"), [&json!(2)]);
        assert_eq!(at_path(&body, "$.t[*].n"), [&json!("x"), &json!("y")]);
        assert!(at_path(&body, "$.a.b[-9]").is_empty());
        assert!(at_path(&body, "$.a.c.d").is_empty());
    }

    #[test]
    fn a_path_that_can_be_read_is_told_from_one_that_cannot() {
        for good in [
            "$",
            "$.a.b[0]",
            "$.a[-1][*].c",
            "$[0]",
            "a.b",
            "$.*.x",
            "/a~1b/0",
            "/",
        ] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        for bad in [
            "", "$.a[", "$.a]", "$.a[x]", "$..a", "$.a.", "$.a[0]b", "$['a']", "/a~2",
        ] {
            assert!(check_path(bad).is_err(), "{bad}");
        }
    }
}
