//! Which path belongs to which wire, and what it asks for.

use http::HeaderMap;
use turnwire_spec::llm::Wire;

/// What a request asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Route {
    /// An answer of a model.
    Generate(Target),
    /// The number of tokens of a request.
    Count(Target),
    /// The list of models, or one of them.
    Models(Wire, Option<String>),
    /// A stored answer of the Responses wire, by its id.
    Stored(StoredAction, String),
    /// Nothing that this server has.
    Unknown(Wire),
}

/// Who is to answer, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// The wire.
    pub wire: Wire,
    /// The model, where the path names it.
    pub model: Option<String>,
    /// The form of the answer.
    pub form: Form,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Form {
    /// What `stream` in the body says.
    #[default]
    AsBody,
    /// One JSON object.
    Plain,
    /// Server-sent events.
    Events,
    /// A JSON array, sent element by element.
    Array,
}

/// What to do with a stored answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoredAction {
    /// Read it, plain or as its stream.
    Get,
    /// Forget it.
    Delete,
    /// Cancel it.
    Cancel,
    /// Read the request's items.
    InputItems,
}

impl Route {
    /// The wire, for errors too.
    pub const fn wire(&self) -> Wire {
        match self {
            Self::Generate(target) | Self::Count(target) => target.wire,
            Self::Models(wire, _) | Self::Unknown(wire) => *wire,
            Self::Stored(..) => Wire::OpenaiResponses,
        }
    }
}

/// Finds what a request asks for; with or without a version in front and a slash at the end.
pub fn route(method: &str, path: &str, query: Option<&str>, headers: &HeaderMap) -> Route {
    let path = path.trim_end_matches('/');
    let found = match method {
        "POST" => post(path, query),
        "GET" => get(path, headers),
        "DELETE" => stored(path, StoredAction::Delete),
        _ => None,
    };
    found.unwrap_or_else(|| Route::Unknown(guess(path, headers)))
}

fn post(path: &str, query: Option<&str>) -> Option<Route> {
    let (before, last) = path.rsplit_once('/')?;
    let target = |wire| Target {
        wire,
        model: None,
        form: Form::AsBody,
    };
    match last {
        "completions" if before.ends_with("/chat") => Some(Route::Generate(target(chat(before)))),
        "responses" => Some(Route::Generate(target(Wire::OpenaiResponses))),
        "input_tokens" if before.ends_with("/responses") => {
            Some(Route::Count(target(Wire::OpenaiResponses)))
        }
        "cancel" => stored(before, StoredAction::Cancel),
        "messages" => Some(Route::Generate(target(Wire::AnthropicMessages))),
        "count_tokens" if before.ends_with("/messages") => {
            Some(Route::Count(target(Wire::AnthropicMessages)))
        }
        _ => gemini(before, last, query),
    }
}

/// `models/{model}:{method}` and `tunedModels/{model}:{method}`.
fn gemini(before: &str, last: &str, query: Option<&str>) -> Option<Route> {
    let (model, method) = last.rsplit_once(':')?;
    if !(before.ends_with("/models") || before.ends_with("/tunedModels")) {
        return None;
    }
    let events = query
        .unwrap_or_default()
        .split('&')
        .any(|pair| pair == "alt=sse");
    let target = |form| Target {
        wire: Wire::Gemini,
        model: Some(model.to_owned()),
        form,
    };
    match method {
        "generateContent" => Some(Route::Generate(target(Form::Plain))),
        "streamGenerateContent" if events => Some(Route::Generate(target(Form::Events))),
        "streamGenerateContent" => Some(Route::Generate(target(Form::Array))),
        "countTokens" => Some(Route::Count(target(Form::Plain))),
        _ => None,
    }
}

fn get(path: &str, headers: &HeaderMap) -> Option<Route> {
    if path.ends_with("/models") {
        return Some(Route::Models(models_wire(path, headers), None));
    }
    if let Some((_, id)) = path.split_once("/models/") {
        return Some(Route::Models(
            models_wire(path, headers),
            Some(id.to_owned()),
        ));
    }
    match path.strip_suffix("/input_items") {
        Some(path) => stored(path, StoredAction::InputItems),
        None => stored(path, StoredAction::Get),
    }
}

fn stored(path: &str, action: StoredAction) -> Option<Route> {
    let (before, id) = path.rsplit_once('/')?;
    before
        .ends_with("/responses")
        .then(|| Route::Stored(action, id.to_owned()))
}

/// Three services have a list of models at `/v1/models`: the headers tell them apart.
fn models_wire(path: &str, headers: &HeaderMap) -> Wire {
    if path.contains("/openai/") {
        Wire::GeminiOpenai
    } else if path.starts_with("/v1beta") || headers.contains_key("x-goog-api-key") {
        Wire::Gemini
    } else if headers.contains_key("anthropic-version") {
        Wire::AnthropicMessages
    } else {
        Wire::OpenaiChat
    }
}

fn chat(before: &str) -> Wire {
    if before.ends_with("/openai/chat") {
        Wire::GeminiOpenai
    } else {
        Wire::OpenaiChat
    }
}

/// The wire in whose form an unknown path is refused.
fn guess(path: &str, headers: &HeaderMap) -> Wire {
    if path.contains("/responses") {
        Wire::OpenaiResponses
    } else if path.contains("/messages") {
        Wire::AnthropicMessages
    } else {
        models_wire(path, headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(method: &str, url: &str) -> Route {
        let (path, query) = url
            .split_once('?')
            .map_or((url, None), |(p, q)| (p, Some(q)));
        route(method, path, query, &HeaderMap::new())
    }

    fn generates(url: &str) -> Option<(Wire, Option<String>, Form)> {
        match at("POST", url) {
            Route::Generate(Target { wire, model, form }) => Some((wire, model, form)),
            _ => None,
        }
    }

    #[test]
    fn every_wire_is_found_with_and_without_version_and_slash() {
        for (path, wire) in [
            ("/chat/completions", Wire::OpenaiChat),
            ("/openai/chat/completions", Wire::GeminiOpenai),
            ("/responses", Wire::OpenaiResponses),
            ("/messages", Wire::AnthropicMessages),
        ] {
            for (front, back) in [("/v1", ""), ("", ""), ("/v1", "/"), ("/v1beta", "")] {
                let url = format!("{front}{path}{back}");
                assert_eq!(generates(&url), Some((wire, None, Form::AsBody)), "{url}");
            }
        }
    }

    #[test]
    fn gemini_says_model_and_form_in_the_url() {
        for version in ["v1", "v1beta"] {
            let url = |rest| format!("/{version}/models/gemini-3-pro:{rest}");
            for (rest, form) in [
                ("generateContent", Form::Plain),
                ("streamGenerateContent", Form::Array),
                ("streamGenerateContent?key=k&alt=sse", Form::Events),
            ] {
                let expected = (Wire::Gemini, Some("gemini-3-pro".into()), form);
                assert_eq!(generates(&url(rest)), Some(expected), "{rest}");
            }
        }
        assert!(matches!(
            at("POST", "/v1/models/m:countTokens"),
            Route::Count(_)
        ));
        assert_eq!(
            at("POST", "/v1/models/m:embed"),
            Route::Unknown(Wire::OpenaiChat)
        );
    }

    #[test]
    fn lists_of_models_go_by_headers() {
        let models = |name: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, http::HeaderValue::from_static("x"));
            route("GET", "/v1/models", None, &headers)
        };
        assert_eq!(
            models("authorization"),
            Route::Models(Wire::OpenaiChat, None)
        );
        assert_eq!(
            models("anthropic-version"),
            Route::Models(Wire::AnthropicMessages, None)
        );
        assert_eq!(models("x-goog-api-key"), Route::Models(Wire::Gemini, None));
        assert_eq!(
            at("GET", "/v1/models/org/m"),
            Route::Models(Wire::OpenaiChat, Some("org/m".into()))
        );
    }

    #[test]
    fn stored_answers_have_four_actions() {
        let id = || "resp_1".to_owned();
        let at = |method, rest: &str| at(method, &format!("/v1/responses/resp_1{rest}"));
        assert_eq!(at("GET", ""), Route::Stored(StoredAction::Get, id()));
        assert_eq!(at("DELETE", ""), Route::Stored(StoredAction::Delete, id()));
        assert_eq!(
            at("POST", "/cancel"),
            Route::Stored(StoredAction::Cancel, id())
        );
        assert_eq!(
            at("GET", "/input_items"),
            Route::Stored(StoredAction::InputItems, id())
        );
        assert_eq!(at("PUT", ""), Route::Unknown(Wire::OpenaiResponses));
    }
}
