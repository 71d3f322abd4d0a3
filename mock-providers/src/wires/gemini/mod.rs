//! Gemini native: requests read, answers written.
//!
//! Plain answers and events are the same object; `stream` makes the events, and a plain answer joins
//! their parts.

mod stream;

use std::borrow::Cow;

use serde_json::{Value, json};

use super::framing::House;
use super::route::Form;
use super::{Context, Response, content_type, headers};
use crate::matching::{Speaker, Talk, ToolResult, Turn};
use crate::script::{Answer, ErrorReply, Finish, LineEnd, Usage};

/// How the service frames its events.
const HOUSE: House = House {
    line_end: LineEnd::CrLf,
    event_lines: false,
};

/// A member of a request, whose name may be in camelCase or snake_case.
pub(crate) fn member<'a>(value: &'a Value, camel: &str) -> &'a Value {
    match &value[camel] {
        Value::Null => {
            let mut snake = String::with_capacity(camel.len() + 4);
            for character in camel.chars() {
                if character.is_ascii_uppercase() {
                    snake.push('_');
                }
                snake.push(character.to_ascii_lowercase());
            }
            &value[snake.as_str()]
        }
        found => found,
    }
}

/// The parts of a content.
pub(crate) fn parts(content: &Value) -> &[Value] {
    content["parts"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether a model signs its calls: Gemini 3 and later.
pub(crate) fn signs(model: &str) -> bool {
    let version = model
        .strip_prefix("models/")
        .unwrap_or(model)
        .strip_prefix("gemini-");
    let major = version.and_then(|rest| rest.split(['-', '.']).next());
    major
        .and_then(|digits| digits.parse::<u32>().ok())
        .is_some_and(|major| major >= 3)
}

/// Reads a request's conversation. The model and the form are in the path.
pub fn read(body: &Value) -> Talk<'_> {
    let mut talk = Talk::default();
    let system = member(body, "systemInstruction");
    if !system.is_null() {
        talk.system.push(text_of(system));
    }
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    talk.tools = tools
        .iter()
        .filter_map(|tool| member(tool, "functionDeclarations").as_array())
        .flatten()
        .filter_map(|function| function["name"].as_str())
        .collect();
    for content in contents(body) {
        let speaker = match content["role"].as_str() {
            Some("model") => Speaker::Assistant,
            _ => Speaker::User,
        };
        let responses = parts(content)
            .iter()
            .map(|part| member(part, "functionResponse"));
        let results = responses
            .filter(|response| response.is_object())
            .map(result)
            .collect();
        let images = parts(content)
            .iter()
            .filter(|part| !member(part, "inlineData").is_null())
            .count();
        talk.turns.push(Turn {
            speaker,
            text: text_of(content),
            images,
            results,
        });
    }
    talk
}

/// The conversation of a request; one content may stand without its list.
pub(crate) fn contents(body: &Value) -> &[Value] {
    match &body["contents"] {
        Value::Array(contents) => contents,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// The text of a content without thoughts, joined by newlines.
fn text_of(content: &Value) -> Cow<'_, str> {
    let texts: Vec<&str> = parts(content)
        .iter()
        .filter(|part| part["thought"] != true)
        .filter_map(|part| part["text"].as_str())
        .collect();
    match texts.as_slice() {
        [] => content.as_str().unwrap_or_default().into(),
        [one] => (*one).into(),
        many => many.join("\n").into(),
    }
}

fn result(response: &Value) -> ToolResult<'_> {
    ToolResult {
        id: response["id"].as_str().unwrap_or_default().into(),
        name: response["name"].as_str().unwrap_or_default().into(),
        text: response["response"].to_string().into(),
    }
}

/// Writes an answer: plain, as events, or as an array.
pub fn answer(answer: &Answer, context: &mut Context<'_>) -> Response {
    let frames = stream::write(answer, context);
    let stream = context.form != Form::Plain;
    let body = context.render(frames, answer, HOUSE);
    Response {
        status: 200,
        headers: headers(content_type(context), 200, context),
        stream,
        body,
    }
}

/// The body of `countTokens`.
pub(super) fn token_count(count: u64) -> Value {
    json!({"totalTokens": count,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": count}]})
}

/// The answer to a count of nothing.
///
/// Source: <https://github.com/zed-industries/zed/issues/17343>
pub(super) fn nothing_to_count() -> ErrorReply {
    ErrorReply::new(400)
        .message("CountTokens requires generate_content_request or contents to be set.")
}

/// The value of a name in a query.
pub(crate) fn query_value<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    query?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Items on a page, if the request does not say.
const PAGE: usize = 50;

/// Why there is no such page: its size is a number that is not negative, and its token is one that a page gave out.
///
/// Source: <https://google.aip.dev/158>
pub(super) fn page_refusal(models: &[String], query: Option<&str>) -> Option<ErrorReply> {
    let refusal =
        |param: &str, message: String| Some(ErrorReply::new(400).param(param).message(message));
    match query_value(query, "pageSize").map(|size| (size, size.parse::<i32>())) {
        Some((size, Err(_))) if !size.is_empty() => {
            let message = format!("Invalid value at 'page_size' (TYPE_INT32), \"{size}\"");
            return refusal("page_size", message);
        }
        Some((_, Ok(..0))) => {
            return refusal("page_size", "page_size must not be negative.".to_owned());
        }
        _ => {}
    }
    let token = query_value(query, "pageToken").filter(|token| !token.is_empty())?;
    let given = token
        .parse()
        .is_ok_and(|from: usize| (1..models.len()).contains(&from));
    if given {
        return None;
    }
    refusal("page_token", format!("Invalid page token: {token}"))
}

/// Writes the list of models, or one of them.
pub fn models(models: &[String], id: Option<&str>, query: Option<&str>) -> Option<Value> {
    let entry = |id: &String| {
        json!({"name": format!("models/{id}"), "version": "001", "displayName": id,
            "description": "A mock.", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
            "temperature": 1, "topP": 0.95, "topK": 64, "thinking": true})
    };
    if let Some(id) = id {
        return models.iter().find(|model| *model == id).map(entry);
    }
    let size = query_value(query, "pageSize").and_then(|size| size.parse().ok());
    let size = size.filter(|size| *size > 0).unwrap_or(PAGE).min(1000);
    let from = query_value(query, "pageToken")
        .and_then(|token| token.parse().ok())
        .unwrap_or(0);
    let from = models.len().min(from);
    let to = models.len().min(from + size);
    let mut page = json!({"models": models[from..to].iter().map(entry).collect::<Vec<_>>()});
    if to < models.len() {
        page["nextPageToken"] = to.to_string().into();
    }
    Some(page)
}

/// The wire's word for why an answer ends; `None` for never said.
fn finish_word(answer: &Answer) -> Option<&str> {
    Some(match &answer.finish {
        Some(Finish::Absent) => return None,
        Some(Finish::Word(word)) => word,
        Some(Finish::Length | Finish::Context) => "MAX_TOKENS",
        Some(Finish::Filter) => "SAFETY",
        Some(Finish::Refusal) => "PROHIBITED_CONTENT",
        Some(Finish::Pause) => "CONTINUATION",
        Some(Finish::Stop | Finish::Calls | Finish::StopSequence(_)) => "STOP",
        None if answer.has_refusal() => "PROHIBITED_CONTENT",
        Some(Finish::PromptBlocked(_)) | None => "STOP",
    })
}

/// The usage object; `output` and `reasoning` are those so far.
fn usage(usage: &Usage, output: u64, reasoning: u64, last: bool) -> Value {
    let candidates = output.saturating_sub(reasoning);
    let total = usage.input + output;
    let mut object = json!({"promptTokenCount": usage.input});
    if usage.cached > 0 {
        object["cachedContentTokenCount"] = usage.cached.into();
    }
    if candidates > 0 || last {
        object["candidatesTokenCount"] = candidates.into();
    }
    object["totalTokenCount"] = usage.total.filter(|_| last).unwrap_or(total).into();
    object["promptTokensDetails"] = json!([{"modality": "TEXT", "tokenCount": usage.input}]);
    if reasoning > 0 {
        object["thoughtsTokenCount"] = reasoning.into();
    }
    object
}
