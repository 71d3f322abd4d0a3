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

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Calls, Finish, Part, Reasoning, UsagePlan};
use super::edit::Edit;
use super::errors::{ErrorReply, RawReply, SocketReply};
use super::framing::Framing;
use super::refusal::ScriptError;
use super::reply::{Body, Reply};
use super::sound;
use super::text::{Chunking, Text};
use super::variation::{Service, Variation};
use super::{Faults, Script, Timing};

impl Script {
    /// Reads a script from YAML or JSON.
    ///
    /// # Errors
    ///
    /// When the text is neither, has a member that no script has, or says nothing at all; with line and column.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script = if is_json(text) {
            serde_json::from_str(text).map_err(|error| ScriptError::of_json(&error))
        } else {
            serde_saphyr::from_str(text).map_err(ScriptError::of_yaml)
        }?;
        if script == Self::default() {
            return Err(ScriptError::of_all(
                "there is nothing in it; a script has `rules`",
            ));
        }
        Ok(script)
    }

    /// Writes the script as JSON that [`Script::parse`] reads back to an equal script.
    ///
    /// # Errors
    ///
    /// When a number in it is no JSON number, such as a rate of NaN tokens.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Writes the script as YAML that [`Script::parse`] reads back to an equal script; as JSON, which YAML includes,
    /// should it hold a text that the YAML writer does not keep.
    ///
    /// # Errors
    ///
    /// As [`Script::to_json`].
    pub fn to_yaml(&self) -> Result<String, serde_json::Error> {
        match serde_saphyr::to_string(self) {
            Ok(yaml) if Self::parse(&yaml).is_ok_and(|read| read == *self) => Ok(yaml),
            _ => self.to_json(),
        }
    }
}

/// Whether a text is meant as JSON, which has no limit of nodes. What begins as a map without quotes is YAML that is
/// written in one line.
fn is_json(text: &str) -> bool {
    let after = text.trim_start().strip_prefix('{').map(str::trim_start);
    after.is_some_and(|after| after.is_empty() || after.starts_with(['"', '}']))
}

/// A reply as it stands in a file.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a reply, such as `{text: Hello.}`"
)]
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
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "sound::headers"
    )]
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

    /// The message without the quotes around names, which YAML and JSON write in their own ways.
    fn plain(error: &ScriptError) -> String {
        error.message.replace('`', "")
    }

    /// What a script says about a reply, on the third line.
    fn refused(reply: &str) -> ScriptError {
        let script = format!("rules:\n  - reply:\n      {reply}\n");
        Script::parse(&script).expect_err(reply)
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_the_names_that_are_known() {
        for (reply, told) in [
            ("txt: a", &["unknown field txt", "text", "calls"] as &[&str]),
            ("finish: stopp", &["stopp", "stop", "length"]),
            ("usage: {inpt: 3}", &["inpt", "input"]),
            ("usage: countd", &["countd", "counted"]),
            ("timing: {first_token: soon}", &["soon", "250ms"]),
            ("socket: {bytes: x}", &["bytes", "hex"]),
            ("text: 42", &["42", "in quotes"]),
            ("raw: {status: 99999}", &["99999", "200 to 999"]),
            (
                "calls: {list: [], interleved: true}",
                &["interleved", "interleave"],
            ),
            ("calls: [{nam: f}]", &["nam", "name"]),
            ("reasoning: {txt: a}", &["txt", "signature"]),
            ("parts: [{txt: a}]", &["txt", "text", "keepalive"]),
            (
                "faults: {stalls: [{after: {events: 1}}]}",
                &["for: 5s", "gate: NAME"],
            ),
        ] {
            let error = refused(reply);
            for told in told {
                assert!(plain(&error).contains(told), "{reply}: {error}");
            }
            assert!(!error.message.contains('\n'), "{reply}: {error}");
            assert_eq!(error.line, 3, "{reply}: {error}");
            assert!(error.column > 6, "{reply}: {error}");
        }
        for (when, told) in [
            ("{wire: openai-chatt}", "openai-chat"),
            ("{wire: [openai-chat, gemni]}", "gemini"),
            ("{last_user: 42}", "in quotes"),
            ("{last_user: {equls: a}}", "equals"),
            ("{last_user: {equals: a, contains: b}}", "mapping end"),
            ("{tool_result: {nam: f}}", "name"),
            ("{tool_result: yes please}", "true"),
        ] {
            let script = format!("rules:\n  - when: {when}\n    reply: {{text: a}}\n");
            let error = Script::parse(&script).expect_err(when);
            assert!(plain(&error).contains(told), "{when}: {error}");
            assert_eq!(error.line, 2, "{when}: {error}");
        }
    }

    #[test]
    fn the_same_mistakes_are_told_in_json() {
        for (reply, told) in [
            (r#"{"finish": "stopp"}"#, "`length`"),
            (r#"{"usage": {"inpt": 3}}"#, "`input`"),
            (r#"{"text": 42}"#, "in quotes"),
            (r#"{"error": {}}"#, "400 to 599"),
        ] {
            let script = format!("{{\"rules\": [\n{{\"reply\": {reply}}}]}}");
            let error = Script::parse(&script).expect_err(reply);
            assert!(error.message.contains(told), "{reply}: {error}");
            assert_eq!(error.line, 2, "{reply}: {error}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_would_be_right() {
        for (reply, told) in [
            ("error: {}", "an error has a `status`: 400 to 599"),
            ("error: {status: 9999}", "other than 9999: 400 to 599"),
            ("error: {status: 200}", "200 with `form: base_resp`"),
            ("error: {status: 429, retry_after: -3}", "seconds from 0 on"),
            ("raw: {status: 1000}", "from 200 to 999, not 1000"),
            ("raw: {status: 100}", "from 200 to 999, not 100"),
            ("raw: {hex: zz}", "'z' is no hexadecimal digit"),
            ("raw: {hex: '00f'}", "half a byte"),
            (
                "raw: {headers: {'a b': c}}",
                "no header can be called \"a b\"",
            ),
            (
                "headers: {x: \"a\\nb\"}",
                "the header \"x\" cannot have the value",
            ),
            ("socket: {}", "`text`, `hex` or `then`"),
            (
                "timing: {tokens_per_second: -1}",
                "a number above 0, not -1",
            ),
            ("timing: {first_token: -1}", "milliseconds"),
            ("faults: {write_size: 0}", "1 at least"),
            (
                "faults: {insert: [{after: {bytes: 1}, hex: q}]}",
                "'q' is no",
            ),
            ("edits: [{remove: [$.a]}]", "\"$.a\" is no JSON pointer"),
            ("edits: [{set: {a: 1}}]", "\"a\" is no JSON pointer"),
        ] {
            let error = refused(reply);
            assert!(error.message.contains(told), "{reply}: {error}");
            assert_eq!(error.line, 3, "{reply}: {error}");
        }
        for (rule, told) in [
            ("{name: silent}", "a rule has a `reply`"),
            ("{replies: []}", "a rule has a `reply`"),
            ("{when: {json: {'$.a[': 1}}, reply: {text: a}}", "\"$.a[\""),
            ("{when: {headers: {'a b': x}}, reply: {text: a}}", "\"a b\""),
        ] {
            let error = Script::parse(&format!("rules:\n  - {rule}\n")).expect_err(rule);
            assert!(error.message.contains(told), "{rule}: {error}");
            assert_eq!(error.line, 2, "{rule}: {error}");
        }
        let odd = "rules: [{reply: {error: {status: 200, form: base_resp}}}]";
        assert!(Script::parse(odd).is_ok());
    }

    #[test]
    fn a_script_with_too_many_nodes_is_told_what_to_do() {
        let pieces = vec!["a"; 1_000].join(",");
        let yaml = format!(
            "rules:\n{}",
            format!("  - reply: {{text: [{pieces}]}}\n").repeat(251)
        );
        let error = Script::parse(&yaml).unwrap_err();
        assert!(error.message.contains("write it in JSON"), "{error}");
        let reply = Reply::new().pieces(vec!["a"; 1_000]);
        let rules = vec![Rule::new("r").reply(reply); 251];
        let json = Script {
            rules,
            ..Script::default()
        }
        .to_json()
        .unwrap();
        assert_eq!(Script::parse(&json).unwrap().rules.len(), 251);
    }
}
