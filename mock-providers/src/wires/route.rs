//! Which path belongs to which wire, and what it asks for.

use http::HeaderMap;
use turnwire_spec::llm::{Wire, azure};

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
    /// What can be asked of a path; the methods, as `Allow` lists them.
    Options(Wire, String),
    /// A method that the path does not take; those that it takes.
    NotAllowed(Wire, String),
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
            Self::Models(wire, _)
            | Self::Unknown(wire)
            | Self::Options(wire, _)
            | Self::NotAllowed(wire, _) => *wire,
            Self::Stored(..) => Wire::OpenaiResponses,
        }
    }
}

/// Finds what a request asks for; with or without a version in front and a slash at the end.
pub fn route(method: &str, path: &str, query: Option<&str>, headers: &HeaderMap) -> Route {
    let path = path.trim_end_matches('/');
    let at = |method: &str| match method {
        "POST" => post(path, query),
        // The server sends no body to HEAD.
        "GET" | "HEAD" => get(path, headers),
        "DELETE" => stored(path, StoredAction::Delete),
        _ => None,
    };
    if let Some(found) = at(method) {
        return found;
    }
    let others = ["GET", "HEAD", "POST", "DELETE"].map(|other| Some((other, at(other)?)));
    let mut others = others.into_iter().flatten().peekable();
    // Behind a colon stands a method of Gemini, and one that there is not is no model that could be read.
    let is_method = method == "POST" && path.rsplit('/').next().is_some_and(|it| it.contains(':'));
    let Some((_, other)) = others.peek().filter(|_| !is_method) else {
        return Route::Unknown(guess(path, headers));
    };
    let wire = other.wire();
    let names = others.map(|(name, _)| name).chain(["OPTIONS"]);
    let allow = names.collect::<Vec<_>>().join(", ");
    if method == "OPTIONS" {
        Route::Options(wire, allow)
    } else {
        Route::NotAllowed(wire, allow)
    }
}

fn post(path: &str, query: Option<&str>) -> Option<Route> {
    let (before, last) = path.rsplit_once('/')?;
    let target = |wire| Target {
        wire,
        model: None,
        form: Form::AsBody,
    };
    match last {
        "completions" if before.ends_with("/chat") => {
            Some(Route::Generate(target(chat(before, query))))
        }
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

fn chat(before: &str, query: Option<&str>) -> Wire {
    // Azure's paths begin with `/openai` too.
    if before.ends_with("/openai/chat") && !query.is_some_and(azure::is_versioned) {
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
    fn what_has_a_version_in_its_query_is_of_azure() {
        for path in [
            "/openai/chat/completions",
            "/openai/deployments/d/chat/completions",
        ] {
            let url = format!("{path}?api-version=2024-10-21");
            assert_eq!(
                generates(&url),
                Some((Wire::OpenaiChat, None, Form::AsBody))
            );
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
        let allow = "GET, HEAD, DELETE, OPTIONS".to_owned();
        assert_eq!(
            at("PUT", ""),
            Route::NotAllowed(Wire::OpenaiResponses, allow)
        );
    }

    #[test]
    fn a_path_tells_what_can_be_asked_of_it() {
        for (path, wire, allow) in [
            ("/v1/chat/completions", Wire::OpenaiChat, "POST, OPTIONS"),
            ("/v1/responses/", Wire::OpenaiResponses, "POST, OPTIONS"),
            ("/v1/messages", Wire::AnthropicMessages, "POST, OPTIONS"),
            ("/v1/models", Wire::OpenaiChat, "GET, HEAD, OPTIONS"),
            ("/v1beta/models", Wire::Gemini, "GET, HEAD, OPTIONS"),
        ] {
            let allow = || allow.to_owned();
            assert_eq!(at("OPTIONS", path), Route::Options(wire, allow()), "{path}");
            assert_eq!(
                at("PATCH", path),
                Route::NotAllowed(wire, allow()),
                "{path}"
            );
        }
        for method in ["OPTIONS", "PATCH", "HEAD"] {
            let nowhere = at(method, "/v1/nowhere");
            assert_eq!(nowhere, Route::Unknown(Wire::OpenaiChat), "{method}");
        }
        assert_eq!(at("HEAD", "/v1/models"), at("GET", "/v1/models"));
    }
}
