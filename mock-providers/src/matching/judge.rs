//! Conditions against facts.

use std::collections::BTreeMap;

use turnwire_spec::secrets;

use super::text::at_path;
use super::{Facts, near};
use crate::journal::SECRET;
use crate::script::{TextMatch, ToolResultMatch, When};

/// A condition that a request misses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mismatch {
    /// The condition's name in the file.
    pub condition: String,
    /// What the rule wants.
    pub wanted: String,
    /// What the request has.
    pub got: String,
    /// How far that is from what the rule wants, in thousandths: 1000 has nothing of it. Of texts, the part that
    /// would have to be written anew, whatever the case of the letters.
    pub far: u32,
}

/// How many conditions there are, counted as a mismatch counts them.
pub fn conditions(when: &When) -> usize {
    let said = [
        !when.wire.is_empty(),
        when.method.is_some(),
        when.path.is_some(),
        when.model.is_some(),
        when.stream.is_some(),
        when.last_user.is_some(),
        when.any_message.is_some(),
        when.system.is_some(),
        when.turn.is_some(),
        when.step.is_some(),
        when.tool_result.is_some(),
        when.offers_tool.is_some(),
        when.image.is_some(),
    ];
    let single = said.into_iter().filter(|said| *said).count();
    single + when.headers.len() + when.json.len() + when.state.len()
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
    require_near(holds, condition, wanted, got, &|| near::FAR, report)
}

/// The same for a condition that can be met nearly.
fn require_near(
    holds: bool,
    condition: &str,
    wanted: &dyn std::fmt::Display,
    got: &dyn Fn() -> String,
    far: &dyn Fn() -> u32,
    report: Report<'_>,
) -> bool {
    holds
        || report(&|| Mismatch {
            condition: condition.to_owned(),
            wanted: wanted.to_string(),
            got: got(),
            far: far(),
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
        && !require_near(
            path.matches(facts.path),
            "path",
            &path.0,
            &|| facts.path.to_owned(),
            &|| near::of_name(path, facts.path),
            report,
        )
    {
        return false;
    }
    if let Some(model) = &when.model
        && !require_near(
            model.matches(&talk.model),
            "model",
            &model.0,
            &|| talk.model.to_string(),
            &|| near::of_name(model, &talk.model),
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
        let describe = || {
            let shown = |value| secrets::replaced(value, &secrets::of_header(name, value), SECRET);
            got.map_or_else(
                || "no such header".to_owned(),
                |value| format!("{:?}", shown(value)),
            )
        };
        let far = || near::of_text(wanted, got.unwrap_or_default());
        require_near(
            holds,
            &format!("header {name}"),
            wanted,
            &describe,
            &far,
            report,
        )
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
        if !require_near(
            wanted.matches(got),
            "last_user",
            wanted,
            &|| excerpt(got),
            &|| near::of_text(wanted, got),
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
        let far = || {
            let turns = talk
                .turns
                .iter()
                .map(|turn| near::of_text(wanted, &turn.text));
            turns.min().unwrap_or(near::FAR)
        };
        if !require_near(holds, "any_message", wanted, &count, &far, report) {
            return false;
        }
    }
    if let Some(wanted) = &when.system {
        let got = talk.system.join("\n");
        return require_near(
            wanted.matches(&got),
            "system",
            wanted,
            &|| excerpt(&got),
            &|| near::of_text(wanted, &got),
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
            let like = liked(name.as_deref(), id.as_deref(), text.as_ref());
            require(holds, "tool_result", &like, &count, report)
        }
    }
}

/// A condition on a result, as it stands in a file.
fn liked(name: Option<&str>, id: Option<&str>, text: Option<&TextMatch>) -> String {
    let members = [
        name.map(|name| format!("name {name:?}")),
        id.map(|id| format!("id {id:?}")),
        text.map(|text| format!("text {text}")),
    ];
    let members: Vec<String> = members.into_iter().flatten().collect();
    format!("a result with {}", members.join(", "))
}

fn judge_values(
    when: &When,
    facts: &Facts<'_>,
    state: &BTreeMap<String, String>,
    report: Report<'_>,
) -> bool {
    when.state.iter().all(|(name, wanted)| {
        let got = state.get(name).map_or("", String::as_str);
        require_near(
            wanted == got,
            &format!("state {name}"),
            wanted,
            &|| got.to_owned(),
            &|| near::whole(wanted, got),
            report,
        )
    }) && when.json.iter().all(|(path, wanted)| {
        let found = at_path(facts.body, path);
        let describe = || {
            found
                .first()
                .map_or_else(|| "nothing".to_owned(), |value| excerpt(&value.to_string()))
        };
        let far = || match (wanted.as_str(), found.first().and_then(|got| got.as_str())) {
            (Some(wanted), Some(got)) => near::whole(wanted, got),
            _ => near::FAR,
        };
        require_near(
            found.contains(&wanted),
            &format!("json {path}"),
            wanted,
            &describe,
            &far,
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

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::{Value, json};
    use turnwire_spec::llm::Wire;

    use super::super::{Speaker, Talk, ToolResult, Turn};
    use super::*;

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
    fn a_key_is_not_said_again() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer my-own".parse().unwrap());
        let (body, when) = (json!({}), When::new().header("authorization", "other"));
        let missed = mismatches(&when, &facts(&headers, &body), &BTreeMap::new());
        assert_eq!(missed[0].got, "\"Bearer [secret]\"");
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
        assert_eq!(conditions(&when), missed.len(), "all are missed");
    }
}
