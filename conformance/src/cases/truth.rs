//! What is right for a case, and whether a report is.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_mock::Usage;

/// One way in which a case may rightly end. What is absent is not looked at.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Truth {
    /// All text, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// All readable thinking, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tool calls, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<TrueCall>>,
    /// The finish is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finish: Vec<String>,
    /// The cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TrueUsage>,
    /// The call fails with one of these classes. Then nothing else is looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub error: Vec<String>,
    /// The error names this status, when it names any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The error's message holds this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The error's message does not hold this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// A tool call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TrueCall {
    /// The tool.
    pub name: String,
    /// Its arguments; a report may hold them as JSON or as text. Not looked at when absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arguments: Option<Value>,
    /// The id, where the wire gave one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
}

/// What it cost. What is absent is not looked at.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrueUsage {
    /// The whole request, cached tokens included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The whole answer, thinking included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input: read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// Of the output: thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Nothing was said, so nothing may be invented: the numbers are absent or zero.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

/// Classes of errors of a stream that did not come to its end.
pub const CUT: &[&str] = &["stream-interrupted", "network", "protocol"];
/// Classes of errors of an answer that cannot be read.
pub const BAD: &[&str] = &["protocol", "stream-interrupted", "server"];

impl Truth {
    /// A whole answer with this text and no calls.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            tool_calls: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// A whole answer with these calls, finished for them.
    pub fn calls(calls: impl IntoIterator<Item = TrueCall>) -> Self {
        Self {
            tool_calls: Some(calls.into_iter().collect()),
            finish: vec!["tool-calls".to_owned()],
            ..Self::default()
        }
    }

    /// The call fails with one of these classes.
    pub fn error(classes: &[&str]) -> Self {
        Self {
            error: classes.iter().map(|class| (*class).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The stream did not come to its end, and the adapter says so.
    pub fn cut() -> Self {
        Self::error(CUT)
    }

    /// The answer cannot be read, and the adapter says so.
    pub fn bad() -> Self {
        Self::error(BAD)
    }

    /// With this finish; several are alternatives.
    #[must_use]
    pub fn finish(mut self, finish: &str) -> Self {
        self.finish.push(finish.to_owned());
        self
    }

    /// With any finish.
    #[must_use]
    pub fn any_finish(mut self) -> Self {
        self.finish.clear();
        self
    }

    /// With this text besides calls or thinking.
    #[must_use]
    pub fn beside(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    /// With this thinking.
    #[must_use]
    pub fn thinking(mut self, text: &str) -> Self {
        self.reasoning = Some(text.to_owned());
        self
    }

    /// With this cost.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(TrueUsage {
            input_tokens: Some(usage.input),
            output_tokens: Some(usage.output),
            ..TrueUsage::default()
        });
        self
    }

    /// With these details of the cost looked at, too.
    #[must_use]
    pub fn details(mut self, usage: Usage) -> Self {
        let all = self.usage.get_or_insert_default();
        all.cached_input_tokens = Some(usage.cached);
        all.reasoning_tokens = Some(usage.reasoning);
        self
    }

    /// With no known cost.
    #[must_use]
    pub fn unknown_usage(mut self) -> Self {
        self.usage = Some(TrueUsage {
            unknown: true,
            ..TrueUsage::default()
        });
        self
    }

    /// With a cost that is not looked at.
    #[must_use]
    pub fn any_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// With this status, when the error names any.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Without this text in the error's message.
    #[must_use]
    pub fn withholds(mut self, text: &str) -> Self {
        self.withheld = Some(text.to_owned());
        self
    }

    /// With this text in the error's message.
    #[must_use]
    pub fn message(mut self, text: &str) -> Self {
        self.message = Some(text.to_owned());
        self
    }
}

impl TrueCall {
    /// A call with these arguments.
    pub fn new(name: &str, arguments: Value) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Some(arguments),
            id: None,
        }
    }

    /// A call whose arguments are not looked at.
    pub fn any(name: &str) -> Self {
        Self {
            arguments: None,
            ..Self::new(name, Value::Null)
        }
    }

    /// With this id.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }
}

/// Why a report is wrong: what was expected, and what was reported. `None` when it is right.
pub fn fault(truths: &[Truth], report: &Value) -> Option<(String, String)> {
    let faults: Option<Vec<_>> = truths.iter().map(|truth| one(truth, report)).collect();
    // The truth that is like the report tells most.
    let is_error = !report["error"].is_null();
    let like = |truth: &Truth| truth.error.is_empty() != is_error;
    let faults = faults?;
    let place = truths.iter().position(like).unwrap_or_default();
    faults.into_iter().nth(place)
}

/// As [`fault`], for what a report says was handed on while the answer came in: its text and its thinking are what
/// the `deltas` of their kinds join to.
pub fn fault_of_deltas(truths: &[Truth], report: &Value) -> Option<(String, String)> {
    let outcome = &report["outcome"];
    let Some(deltas) = outcome["deltas"].as_array() else {
        let missing = || ("the deltas of the answer".to_owned(), report.to_string());
        return fault(truths, report).or_else(|| outcome.is_object().then(missing));
    };
    let joined = |kind: &str| -> String {
        let mine = deltas.iter().filter(|delta| delta["kind"] == kind);
        mine.filter_map(|delta| delta["text"].as_str()).collect()
    };
    let mut streamed = report.clone();
    streamed["outcome"]["text"] = joined("text").into();
    streamed["outcome"]["reasoning"] = joined("reasoning").into();
    fault(truths, &streamed)
}

/// What a report of both is not.
const BOTH: &str = "an answer, or else an error";

fn one(truth: &Truth, report: &Value) -> Option<(String, String)> {
    if !truth.error.is_empty() {
        return error(truth, report);
    }
    let outcome = &report["outcome"];
    if !outcome.is_object() {
        return Some(("a whole answer".to_owned(), report.to_string()));
    }
    if !report["error"].is_null() {
        return Some((BOTH.to_owned(), report.to_string()));
    }
    let text = |key: &str| outcome[key].as_str().unwrap_or_default();
    differs("the text", truth.text.as_deref(), text("text"))
        .or_else(|| {
            differs(
                "the thinking",
                truth.reasoning.as_deref(),
                text("reasoning"),
            )
        })
        .or_else(|| calls(truth.tool_calls.as_ref()?, &outcome["toolCalls"]))
        .or_else(|| finish(&truth.finish, text("finishReason")))
        .or_else(|| cost(truth.usage.as_ref()?, &outcome["usage"]))
}

fn error(truth: &Truth, report: &Value) -> Option<(String, String)> {
    let expected = format!("an error of the class {}", truth.error.join(" or "));
    let error = &report["error"];
    let class = error["class"].as_str().unwrap_or_default();
    if !error.is_object() || !truth.error.iter().any(|known| known == class) {
        return Some((expected, report.to_string()));
    }
    if !report["outcome"].is_null() {
        return Some((BOTH.to_owned(), report.to_string()));
    }
    let status = error["status"].as_u64();
    if let (Some(wanted), Some(status)) = (truth.status, status)
        && status != u64::from(wanted)
    {
        return Some((format!("status {wanted}"), error.to_string()));
    }
    let message = error["message"].as_str().unwrap_or_default();
    if let Some(withheld) = &truth.withheld
        && message.contains(withheld)
    {
        return Some((format!("a message without {withheld:?}"), error.to_string()));
    }
    let wanted = truth.message.as_ref()?;
    (!message.contains(wanted)).then(|| (format!("a message with {wanted:?}"), error.to_string()))
}

fn differs(what: &str, wanted: Option<&str>, got: &str) -> Option<(String, String)> {
    let wanted = wanted?;
    (wanted != got).then(|| {
        // Long texts differ somewhere in the middle: both are shown from there on.
        let same = wanted
            .char_indices()
            .zip(got.chars())
            .find(|((_, a), b)| a != b)
            .map_or(wanted.len().min(got.len()), |((at, _), _)| at);
        let from = wanted[..same]
            .char_indices()
            .rev()
            .nth(40)
            .map_or(0, |(at, _)| at);
        let show = |text: &str| match text.get(from..) {
            Some(rest) if from > 0 => format!("… {rest:?}"),
            _ => format!("{text:?}"),
        };
        (format!("{what} {}", show(wanted)), show(got))
    })
}

fn calls(wanted: &[TrueCall], got: &Value) -> Option<(String, String)> {
    let none = Vec::new();
    let got = got.as_array().unwrap_or(&none);
    let same = wanted.len() == got.len() && wanted.iter().zip(got).all(|(a, b)| is_call(a, b));
    let shown =
        |value: Result<String, _>| value.unwrap_or_else(|_: serde_json::Error| String::new());
    (!same).then(|| {
        let expected = format!("the calls {}", shown(serde_json::to_string(wanted)));
        (expected, shown(serde_json::to_string(got)))
    })
}

fn is_call(wanted: &TrueCall, got: &Value) -> bool {
    let arguments = match &got["arguments"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or(Value::String(text.clone())),
        other => other.clone(),
    };
    let id = got["id"].as_str();
    got["name"] == wanted.name.as_str()
        && wanted
            .arguments
            .as_ref()
            .is_none_or(|wanted| *wanted == arguments)
        && wanted.id.as_deref().is_none_or(|wanted| id == Some(wanted))
}

fn finish(wanted: &[String], got: &str) -> Option<(String, String)> {
    let met = wanted.is_empty() || wanted.iter().any(|word| word == got);
    (!met).then(|| {
        let expected = format!("the finish {}", wanted.join(" or "));
        (expected, format!("{got:?}"))
    })
}

fn cost(wanted: &TrueUsage, got: &Value) -> Option<(String, String)> {
    let number = |key: &str| got[key].as_u64();
    let is = |key: &str, wanted: Option<u64>| {
        wanted
            .is_none_or(|wanted| number(key) == Some(wanted) || (wanted == 0 && got[key].is_null()))
    };
    let nothing = |key: &str| number(key).unwrap_or_default() == 0;
    let met = is("inputTokens", wanted.input_tokens)
        && is("outputTokens", wanted.output_tokens)
        && is("cachedInputTokens", wanted.cached_input_tokens)
        && is("reasoningTokens", wanted.reasoning_tokens)
        && (!wanted.unknown || (nothing("inputTokens") && nothing("outputTokens")));
    (!met).then(|| {
        let shown = serde_json::to_string(wanted).unwrap_or_default();
        (format!("the usage {shown}"), got.to_string())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(truth: &Truth, report: Value) -> String {
        match fault(std::slice::from_ref(truth), &report) {
            None => "right".to_owned(),
            Some((expected, got)) => format!("{expected}, got {got}"),
        }
    }

    #[test]
    fn a_report_that_says_what_is_true_is_right() {
        let truth = Truth::text("Hi").finish("stop");
        let report = json!({ "outcome": { "text": "Hi", "finishReason": "stop" } });
        assert_eq!(says(&truth, report), "right");
    }

    #[test]
    fn a_text_that_differs_is_shown_from_there_on() {
        let truth = Truth::text("a".repeat(100) + "b");
        let report = json!({ "outcome": { "text": "a".repeat(100) + "c" } });
        let shown = says(&truth, report);
        assert!(
            shown.starts_with("the text … \"aaa") && shown.ends_with("ac\""),
            "{shown}"
        );
    }

    #[test]
    fn arguments_may_be_json_or_text() {
        let truth = Truth::calls([TrueCall::new("f", json!({ "a": 1 }))]);
        for arguments in [json!({ "a": 1 }), json!("{\"a\": 1}")] {
            let call = json!({ "id": "x", "name": "f", "arguments": arguments });
            let outcome = json!({ "toolCalls": [call], "finishReason": "tool-calls" });
            assert_eq!(says(&truth, json!({ "outcome": outcome })), "right");
        }
    }

    #[test]
    fn an_answer_in_place_of_an_error_is_wrong() {
        let shown = says(&Truth::cut(), json!({ "outcome": { "text": "half" } }));
        assert!(
            shown.starts_with("an error of the class stream-interrupted or"),
            "{shown}"
        );
        let error = json!({ "error": { "class": "auth", "message": "" } });
        assert_ne!(says(&Truth::cut(), error), "right");
        let error = json!({ "error": { "class": "network", "message": "" } });
        assert_eq!(says(&Truth::cut(), error), "right");
    }

    #[test]
    fn what_is_withheld_is_not_in_the_message() {
        let truth = Truth::error(&["auth"]).withholds("my-key");
        let error = |message: &str| json!({ "error": { "class": "auth", "message": message } });
        assert_eq!(says(&truth, error("bad key [key]")), "right");
        assert!(says(&truth, error("bad key my-key")).starts_with("a message without \"my-key\""));
    }

    #[test]
    fn of_several_truths_one_is_enough() {
        let truths = [Truth::text("a"), Truth::bad()];
        let error = json!({ "error": { "class": "protocol", "message": "no JSON" } });
        assert_eq!(fault(&truths, &error), None);
        let wrong = fault(&truths, &json!({ "outcome": { "text": "b" } }));
        assert_eq!(
            wrong,
            Some(("the text \"a\"".to_owned(), "\"b\"".to_owned()))
        );
    }

    #[test]
    fn deltas_are_judged_by_what_they_join_to() {
        let truths = [Truth::text("Hello").thinking("plan")];
        let with = |deltas: Value| {
            let outcome = json!({ "text": "Hello", "reasoning": "plan", "deltas": deltas });
            fault_of_deltas(&truths, &json!({ "outcome": outcome }))
        };
        let delta = |kind: &str, text: &str| json!({ "kind": kind, "text": text });
        let apart = [
            delta("reasoning", "pl"),
            delta("reasoning", "an"),
            delta("text", "Hello"),
        ];
        assert_eq!(with(json!(apart)), None);
        let aloud = json!([delta("text", "<think>plan</think>Hello")]);
        assert_eq!(
            with(aloud),
            Some((
                "the text \"Hello\"".to_owned(),
                "\"<think>plan</think>Hello\"".to_owned()
            ))
        );
        let missing = with(Value::Null).map(|(expected, _)| expected);
        assert_eq!(missing.as_deref(), Some("the deltas of the answer"));
    }

    #[test]
    fn an_error_has_no_deltas_to_be_judged() {
        let report = json!({ "error": { "class": "network", "message": "" } });
        assert_eq!(fault_of_deltas(&[Truth::cut()], &report), None);
        assert!(fault_of_deltas(&[Truth::text("a")], &report).is_some());
    }

    #[test]
    fn usage_that_is_unknown_may_not_be_invented() {
        let truth = Truth::text("a").unknown_usage();
        let with = |usage: Value| json!({ "outcome": { "text": "a", "usage": usage } });
        assert_eq!(says(&truth, with(Value::Null)), "right");
        assert_eq!(says(&truth, with(json!({ "inputTokens": 0 }))), "right");
        assert_ne!(says(&truth, with(json!({ "inputTokens": 3 }))), "right");
    }
}
