//! The file form of scripts: YAML, or JSON (which YAML includes).
//!
//! ```yaml
//! name: weather
//! rules:
//!   - name: ask for the tool
//!     when: {last_user: weather, step: 0}
//!     reply:
//!       reasoning: The user wants the weather.
//!       calls: [{name: get_weather, arguments: {city: Paris}}]
//!   - name: answer
//!     when: {last_user: weather, tool_result: true}
//!     reply: {text: It is sunny in Paris., timing: {first_token: 50ms, tokens_per_second: 40}}
//!   - name: down, then up
//!     when: {last_user: outage}
//!     replies:
//!       - error: {status: 429, retry_after: 2}
//!       - text: Here I am again.
//! ```
//!
//! A reply is one of: an answer (`parts`, or the short forms `reasoning`, `text`, `json`, `refusal` and
//! `calls`, which are put in this order), an `error` status, a `raw` response, or `socket` bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::answer::{Answer, Calls, Finish, Part, Reasoning, UsagePlan};
use super::edit::Edit;
use super::errors::{ErrorReply, RawReply, SocketReply};
use super::framing::Framing;
use super::reply::{Body, Reply};
use super::text::{Chunking, Text};
use super::variation::{Service, Variation};
use super::{Faults, Script, Timing};

/// Why a text is no script.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("script, line {line}, column {column}: {message}")]
pub struct ScriptError {
    /// From 1; 0 when the place is not known.
    pub line: u64,
    /// From 1; 0 when the place is not known.
    pub column: u64,
    /// What was expected.
    pub message: String,
}

impl Script {
    /// Reads a script from YAML or JSON.
    ///
    /// # Errors
    ///
    /// When the text is neither, or has a member that no script has; with line and column.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text).map_err(|error| ScriptError {
                line: error.line() as u64,
                column: error.column() as u64,
                message: error.to_string(),
            });
        }
        serde_saphyr::from_str(text).map_err(|error| {
            let place = error.location();
            ScriptError {
                line: place.map_or(0, |place| place.line()),
                column: place.map_or(0, |place| place.column()),
                message: error.to_string(),
            }
        })
    }

    /// Writes the script as JSON that [`Script::parse`] reads back to an equal script.
    ///
    /// # Errors
    ///
    /// When a number in it is no JSON number, such as a rate of NaN tokens.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

/// Reads a value, or a list of values.
pub(super) fn one_or_many<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany<T> {
        Many(Vec<T>),
        One(T),
    }
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(value) => vec![value],
        OneOrMany::Many(values) => values,
    })
}

/// A reply as it stands in a file.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReplyFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Calls>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<Finish>,
    #[serde(skip_serializing_if = "is_default")]
    usage: UsagePlan,
    #[serde(skip_serializing_if = "is_default")]
    chunk: Chunking,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Sets `variation` and `framing`, where they are not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Service>,
    #[serde(skip_serializing_if = "Framing::is_none")]
    framing: Framing,
    #[serde(skip_serializing_if = "is_default")]
    variation: Variation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<Edit>,
    /// Structured output: the text is this value as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorReply>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<RawReply>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<SocketReply>,
    #[serde(skip_serializing_if = "Timing::is_none")]
    timing: Timing,
    #[serde(skip_serializing_if = "Faults::is_none")]
    faults: Faults,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    set: BTreeMap<String, String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ReplyFile {
    fn short_parts(&mut self) -> Vec<Part> {
        [
            self.reasoning.take().map(Part::Reasoning),
            self.text.take().map(Part::Text),
            self.json
                .take()
                .map(|json| Part::Text(Text::Whole(json.to_string()))),
            self.refusal.take().map(Part::Refusal),
            self.calls.take().map(Part::Calls),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl TryFrom<ReplyFile> for Reply {
    type Error = &'static str;

    fn try_from(mut file: ReplyFile) -> Result<Self, Self::Error> {
        if let Some((variation, framing)) = file.service.map(Service::profile) {
            file.variation = Some(file.variation)
                .filter(|own| !is_default(own))
                .unwrap_or(variation);
            file.framing = Some(file.framing)
                .filter(|own| !own.is_none())
                .unwrap_or(framing);
        }
        let short = file.short_parts();
        let parts = match (short.is_empty(), file.parts.is_empty()) {
            (_, true) => short,
            (true, false) => file.parts,
            (false, false) => {
                return Err("a reply has `parts`, or the short forms of parts, but not both");
            }
        };
        let body = match (file.error, file.raw, file.socket, parts.is_empty()) {
            (Some(error), None, None, true) => Body::Error(error),
            (None, Some(raw), None, true) => Body::Raw(raw),
            (None, None, Some(socket), true) => Body::Socket(socket),
            (None, None, None, _) => Body::Answer(Answer {
                parts,
                finish: file.finish,
                usage: file.usage,
                chunk: file.chunk,
                id: file.id,
                model: file.model,
                framing: file.framing,
                variation: file.variation,
                edits: file.edits,
            }),
            _ => return Err("a reply is one of: an answer, `error`, `raw`, `socket`"),
        };
        Ok(Self {
            body,
            timing: file.timing,
            faults: file.faults,
            headers: file.headers,
            set: file.set,
        })
    }
}

impl From<Reply> for ReplyFile {
    fn from(reply: Reply) -> Self {
        let mut file = Self {
            timing: reply.timing,
            faults: reply.faults,
            headers: reply.headers,
            set: reply.set,
            ..Self::default()
        };
        match reply.body {
            Body::Error(error) => file.error = Some(error),
            Body::Raw(raw) => file.raw = Some(raw),
            Body::Socket(socket) => file.socket = Some(socket),
            Body::Answer(answer) => {
                file.parts = answer.parts;
                file.finish = answer.finish;
                file.usage = answer.usage;
                file.chunk = answer.chunk;
                file.id = answer.id;
                file.model = answer.model;
                file.framing = answer.framing;
                file.variation = answer.variation;
                file.edits = answer.edits;
            }
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::script::{Call, CutHow, Position, Rule, Until, Usage, When};

    const WEATHER: &str = r#"
name: weather
rules:
  - name: ask for the tool
    when: {last_user: weather, step: 0, wire: openai-chat}
    reply:
      reasoning: The user wants the weather.
      calls: [{name: get_weather, arguments: {city: Paris, days: 2}}]
  - name: answer
    when: {last_user: {equals: weather}, tool_result: true}
    reply:
      text: [It is, " sunny."]
      timing: {first_token: 50ms, tokens_per_second: 40}
      faults: {cut: {after: {bytes: 100}, how: reset}, stalls: [{after: {events: 1}, gate: go}]}
  - when: {last_user: outage}
    replies:
      - error: {status: 429, retry_after: 2}
      - text: Here I am again.
        finish: length
        usage: {input: 7, output: 3}
    after: stop
"#;

    fn built() -> Script {
        Script::new("weather")
            .rule(
                Rule::new("ask for the tool")
                    .when(
                        When::new()
                            .last_user("weather")
                            .step(0)
                            .wire(turnwire_spec::llm::Wire::OpenaiChat),
                    )
                    .reply(
                        Reply::new()
                            .reasoning("The user wants the weather.")
                            .calls([Call::new(
                                "get_weather",
                                serde_json::json!({"city": "Paris", "days": 2}),
                            )]),
                    ),
            )
            .rule(
                Rule::new("answer")
                    .when(
                        When::new()
                            .last_user(crate::TextMatch::Equals("weather".into()))
                            .tool_result(true),
                    )
                    .reply(
                        Reply::new()
                            .pieces(["It is", " sunny."])
                            .timing(Timing {
                                first_token: Duration::from_millis(50),
                                tokens_per_second: Some(40.0),
                                ..Timing::default()
                            })
                            .cut(Position::Bytes(100), CutHow::Reset)
                            .stall(Position::Events(1), Until::Gate("go".into())),
                    ),
            )
            .rule(
                Rule {
                    name: String::new(),
                    ..Rule::on("outage")
                }
                .reply(ErrorReply::new(429).retry_after(2.0))
                .reply(
                    Reply::text("Here I am again.")
                        .finish(Finish::Length)
                        .usage(Usage {
                            input: 7,
                            output: 3,
                            ..Usage::default()
                        }),
                )
                .once(),
            )
    }

    #[test]
    fn a_file_and_the_builder_make_the_same_script() {
        assert_eq!(Script::parse(WEATHER).unwrap(), built());
    }

    #[test]
    fn a_written_script_is_read_back() {
        let text = built().to_json().unwrap();
        assert_eq!(Script::parse(&text).unwrap(), built());
    }

    #[test]
    fn a_bad_script_names_the_place() {
        let error = Script::parse("name: x\nrules:\n  - whn: {turn: 0}\n").unwrap_err();
        assert_eq!((error.line, error.column), (3, 5), "{error}");
        let error = Script::parse("{\"rules\": [\n  {\"priority\": \"high\"}]}").unwrap_err();
        assert_eq!(error.line, 2, "{error}");
    }

    #[test]
    fn a_reply_of_two_kinds_is_refused() {
        for text in [
            "text: a\nerror: {status: 500}",
            "text: a\nparts: [{text: b}]",
        ] {
            assert!(serde_saphyr::from_str::<Reply>(text).is_err(), "{text}");
        }
    }
}
