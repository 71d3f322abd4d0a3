//! Does a request meet a rule's conditions, and if not, which ones does it miss.
//!
//! [`Facts`] is what a wire module reads from a request: the conversation in one model for all wires.
//! Matching looks at nothing else. It is pure; counting uses and choosing replies is the mock's.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::HeaderMap;
use serde_json::Value;
use turnwire_spec::llm::Wire;

use crate::script::{NameMatch, TextMatch, ToolResultMatch, When};

/// What a request says, whatever its wire.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The wire.
    pub wire: Wire,
    /// The HTTP method.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a Value,
    /// What the wire module read from it.
    pub talk: Talk<'a>,
}

/// The conversation in a request.
#[derive(Debug, Default)]
pub struct Talk<'a> {
    /// The model's id.
    pub model: Cow<'a, str>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// The instructions.
    pub system: Vec<Cow<'a, str>>,
    /// The messages, oldest first, without instructions.
    pub turns: Vec<Turn<'a>>,
    /// The names of the tools on offer.
    pub tools: Vec<&'a str>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Speaker {
    /// The user, or the program that answers calls.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Who said it.
    pub speaker: Speaker,
    /// Its text parts, joined by newlines.
    pub text: Cow<'a, str>,
    /// How many images it has.
    pub images: usize,
    /// The results of calls in it.
    pub results: Vec<ToolResult<'a>>,
}

/// The result of a call.
#[derive(Debug)]
pub struct ToolResult<'a> {
    /// The call's id, empty where the wire has none.
    pub id: Cow<'a, str>,
    /// The function's name, found through the id where the wire does not repeat it.
    pub name: Cow<'a, str>,
    /// The result's text.
    pub text: Cow<'a, str>,
}

/// A condition that a request misses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mismatch {
    /// The condition's name in the file.
    pub condition: String,
    /// What the rule wants.
    pub wanted: String,
    /// What the request has.
    pub got: String,
}

impl Talk<'_> {
    /// How many turns of the assistant there are.
    pub fn assistant_turns(&self) -> usize {
        self.turns
            .iter()
            .filter(|turn| turn.speaker == Speaker::Assistant)
            .count()
    }

    /// The last message of the user that has a text or an image.
    pub fn last_user(&self) -> Option<&Turn<'_>> {
        self.last_user_at().and_then(|at| self.turns.get(at))
    }

    fn last_user_at(&self) -> Option<usize> {
        self.turns.iter().rposition(|turn| {
            turn.speaker == Speaker::User && (!turn.text.is_empty() || turn.images > 0)
        })
    }

    /// How many turns of the assistant came since the last message of the user.
    pub fn step(&self) -> usize {
        let from = self.last_user_at().unwrap_or(0);
        let since = self.turns.get(from..).unwrap_or_default();
        since
            .iter()
            .filter(|turn| turn.speaker == Speaker::Assistant)
            .count()
    }

    /// The results that came after the last turn of the assistant.
    pub fn new_results(&self) -> impl Iterator<Item = &ToolResult<'_>> {
        let after = self
            .turns
            .iter()
            .rposition(|turn| turn.speaker == Speaker::Assistant)
            .map_or(0, |at| at + 1);
        self.turns[after..]
            .iter()
            .flat_map(|turn| turn.results.iter())
    }
}

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

/// Whether the request meets every condition.
pub fn matches(when: &When, facts: &Facts<'_>, state: &BTreeMap<String, String>) -> bool {
    let mut all = true;
    judge(when, facts, state, &mut |_| {
        all = false;
        false
    });
    all
}

/// The conditions that the request misses.
pub fn mismatches(
    when: &When,
    facts: &Facts<'_>,
    state: &BTreeMap<String, String>,
) -> Vec<Mismatch> {
    let mut missed = Vec::new();
    judge(when, facts, state, &mut |mismatch| {
        missed.push(mismatch());
        true
    });
    missed
}

/// Is told of a missed condition; says whether to go on.
type Report<'r> = &'r mut dyn FnMut(&dyn Fn() -> Mismatch) -> bool;

/// Reports every missed condition, cheap ones first, until `report` has heard enough.
fn judge(when: &When, facts: &Facts<'_>, state: &BTreeMap<String, String>, report: Report<'_>) {
    let _ = judge_request(when, facts, report)
        && judge_counts(when, facts, report)
        && judge_texts(when, facts, report)
        && judge_results(when, facts, report)
        && judge_values(when, facts, state, report);
}

/// Reports a condition as missed unless `holds`; says whether to go on.
fn require(
    holds: bool,
    condition: &str,
    wanted: &dyn std::fmt::Display,
    got: &dyn Fn() -> String,
    report: Report<'_>,
) -> bool {
    holds
        || report(&|| Mismatch {
            condition: condition.to_owned(),
            wanted: wanted.to_string(),
            got: got(),
        })
}

fn judge_request(when: &When, facts: &Facts<'_>, report: Report<'_>) -> bool {
    let names = || {
        when.wire
            .iter()
            .map(|wire| wire.as_str())
            .collect::<Vec<_>>()
            .join(" or ")
    };
    let talk = &facts.talk;
    if !(when.wire.is_empty()
        || when.wire.contains(&facts.wire)
        || require(false, "wire", &names(), &|| facts.wire.to_string(), report))
    {
        return false;
    }
    if let Some(method) = &when.method
        && !require(
            method.eq_ignore_ascii_case(facts.method),
            "method",
            method,
            &|| facts.method.to_owned(),
            report,
        )
    {
        return false;
    }
    if let Some(path) = &when.path
        && !require(
            path.matches(facts.path),
            "path",
            &path.0,
            &|| facts.path.to_owned(),
            report,
        )
    {
        return false;
    }
    if let Some(model) = &when.model
        && !require(
            model.matches(&talk.model),
            "model",
            &model.0,
            &|| talk.model.to_string(),
            report,
        )
    {
        return false;
    }
    if let Some(stream) = when.stream
        && !require(
            stream == talk.stream,
            "stream",
            &stream,
            &|| talk.stream.to_string(),
            report,
        )
    {
        return false;
    }
    when.headers.iter().all(|(name, wanted)| {
        let got = facts
            .headers
            .get(name.as_str())
            .and_then(|value| value.to_str().ok());
        let holds = got.is_some_and(|value| wanted.matches(value));
        let describe =
            || got.map_or_else(|| "no such header".to_owned(), |value| format!("{value:?}"));
        require(holds, &format!("header {name}"), wanted, &describe, report)
    })
}

fn judge_counts(when: &When, facts: &Facts<'_>, report: Report<'_>) -> bool {
    let talk = &facts.talk;
    if let Some(turn) = when.turn {
        let got = talk.assistant_turns();
        if !require(turn == got, "turn", &turn, &|| got.to_string(), report) {
            return false;
        }
    }
    if let Some(step) = when.step {
        let got = talk.step();
        if !require(step == got, "step", &step, &|| got.to_string(), report) {
            return false;
        }
    }
    if let Some(image) = when.image {
        let got = talk.turns.iter().any(|turn| turn.images > 0);
        if !require(image == got, "image", &image, &|| got.to_string(), report) {
            return false;
        }
    }
    if let Some(tool) = &when.offers_tool {
        let holds = talk.tools.contains(&tool.as_str());
        return require(
            holds,
            "offers_tool",
            tool,
            &|| format!("{:?}", talk.tools),
            report,
        );
    }
    true
}

fn judge_texts(when: &When, facts: &Facts<'_>, report: Report<'_>) -> bool {
    let talk = &facts.talk;
    if let Some(wanted) = &when.last_user {
        let got = talk.last_user().map_or("", |turn| turn.text.as_ref());
        if !require(
            wanted.matches(got),
            "last_user",
            wanted,
            &|| excerpt(got),
            report,
        ) {
            return false;
        }
    }
    if let Some(wanted) = &when.any_message {
        let holds = talk.turns.iter().any(|turn| {
            wanted.matches(&turn.text)
                || turn
                    .results
                    .iter()
                    .any(|result| wanted.matches(&result.text))
        });
        let count = || format!("{} messages, none like it", talk.turns.len());
        if !require(holds, "any_message", wanted, &count, report) {
            return false;
        }
    }
    if let Some(wanted) = &when.system {
        let got = talk.system.join("\n");
        return require(
            wanted.matches(&got),
            "system",
            wanted,
            &|| excerpt(&got),
            report,
        );
    }
    true
}

fn judge_results(when: &When, facts: &Facts<'_>, report: Report<'_>) -> bool {
    let Some(wanted) = &when.tool_result else {
        return true;
    };
    let count = || format!("{} new results", facts.talk.new_results().count());
    match wanted {
        ToolResultMatch::Present(present) => {
            let got = facts.talk.new_results().next().is_some();
            require(*present == got, "tool_result", present, &count, report)
        }
        ToolResultMatch::Like { name, id, text } => {
            let holds = facts.talk.new_results().any(|result| {
                name.as_ref().is_none_or(|name| *name == result.name)
                    && id.as_ref().is_none_or(|id| *id == result.id)
                    && text.as_ref().is_none_or(|text| text.matches(&result.text))
            });
            require(holds, "tool_result", &format!("{wanted:?}"), &count, report)
        }
    }
}

fn judge_values(
    when: &When,
    facts: &Facts<'_>,
    state: &BTreeMap<String, String>,
    report: Report<'_>,
) -> bool {
    when.state.iter().all(|(name, wanted)| {
        let got = state.get(name).map_or("", String::as_str);
        require(
            wanted == got,
            &format!("state {name}"),
            wanted,
            &|| got.to_owned(),
            report,
        )
    }) && when.json.iter().all(|(path, wanted)| {
        let found = at_path(facts.body, path);
        let describe = || {
            found
                .first()
                .map_or_else(|| "nothing".to_owned(), |value| excerpt(&value.to_string()))
        };
        require(
            found.contains(&wanted),
            &format!("json {path}"),
            wanted,
            &describe,
            report,
        )
    })
}

/// The first 80 characters of a text, quoted.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        format!("{short:?}…")
    } else {
        format!("{short:?}")
    }
}

/// The values at a path: a JSON pointer, or `$.a.b[0]` with `[-1]` for the last and `[*]` for all.
fn at_path<'a>(body: &'a Value, path: &str) -> Vec<&'a Value> {
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

    fn turn(speaker: Speaker, text: &str, results: &[&'static str]) -> Turn<'static> {
        let results = results
            .iter()
            .map(|text| ToolResult {
                id: "c1".into(),
                name: "f".into(),
                text: (*text).into(),
            })
            .collect();
        Turn {
            speaker,
            text: text.to_owned().into(),
            images: 0,
            results,
        }
    }

    fn facts<'a>(headers: &'a HeaderMap, body: &'a Value) -> Facts<'a> {
        let turns = vec![
            turn(Speaker::User, "what is the weather", &[]),
            turn(Speaker::Assistant, "", &[]),
            turn(Speaker::User, "", &["sunny"]),
        ];
        let talk = Talk {
            model: "gpt-5".into(),
            stream: true,
            turns,
            ..Talk::default()
        };
        Facts {
            wire: Wire::OpenaiChat,
            method: "POST",
            path: "/v1/x",
            headers,
            body,
            talk,
        }
    }

    #[test]
    fn results_are_not_the_users_last_message() {
        let (headers, body) = (HeaderMap::new(), json!({}));
        let facts = facts(&headers, &body);
        let state = BTreeMap::new();
        let when = When::new()
            .last_user("weather")
            .step(1)
            .turn(1)
            .tool_result(true);
        assert!(matches(&when, &facts, &state));
        assert!(matches(&When::new().any_message("sunny"), &facts, &state));
        assert!(!matches(&When::new().tool_result(false), &facts, &state));
        let like = |name: &str| ToolResultMatch::Like {
            name: Some(name.into()),
            id: None,
            text: Some("sun".into()),
        };
        assert!(matches(
            &When::new().tool_result_like(like("f")),
            &facts,
            &state
        ));
        assert!(!matches(
            &When::new().tool_result_like(like("g")),
            &facts,
            &state
        ));
    }

    #[test]
    fn every_missed_condition_is_named() {
        let (headers, body) = (HeaderMap::new(), json!({"seed": 1}));
        let when = When::new()
            .wire(Wire::Gemini)
            .model("claude-*")
            .header("x-run", "7")
            .stream(false)
            .turn(0)
            .last_user("snow")
            .json("$.seed", 2)
            .state("phase", "two");
        let missed = mismatches(&when, &facts(&headers, &body), &BTreeMap::new());
        let names: Vec<_> = missed
            .iter()
            .map(|missed| missed.condition.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "wire",
                "model",
                "stream",
                "header x-run",
                "turn",
                "last_user",
                "state phase",
                "json $.seed"
            ]
        );
    }
}
