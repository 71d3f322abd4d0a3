//! From a request to a reply that is ready to be sent.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use turnwire_spec::llm::Wire;

use super::judge::Choice;
use super::{Mock, Ticket, Unmatched};
use crate::faults::{self, Plan};
use crate::ids::Ids;
use crate::journal::{Head, Progress, Record, Used, Violation, millis};
use crate::matching::{Facts, Talk};
use crate::script::{Body, ErrorReply, Faults, Reply, SocketEnd};
use crate::verify::Finding;
use crate::wires::cors;
use crate::wires::openai_responses::{self, Stored};
use crate::wires::out::Rendered;
use crate::wires::route::{Form, Route, StoredAction, Target, route};
use crate::wires::signatures::Signer;
use crate::wires::{self, Context, Response};

/// A reply that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The length to announce; none for chunked framing.
    pub(crate) length: Option<u64>,
    pub(crate) close_after: bool,
    pub(crate) plan: Plan,
    pub(crate) ticket: Ticket,
}

/// Bytes that are written to the socket in place of a response.
#[derive(Debug)]
pub(crate) struct Hijack {
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: SocketEnd,
    pub(crate) before: std::time::Duration,
    pub(crate) ticket: Ticket,
}

/// What is to be sent.
#[derive(Debug)]
pub(crate) enum Wanted {
    Response(Planned),
    Hijack(Hijack),
}

/// A request on its way into the journal.
struct Incoming {
    wire: Wire,
    parts: Parts,
    body: Bytes,
    model: String,
    stream: bool,
    rule: Option<Used>,
    violations: Vec<Violation>,
}

impl Incoming {
    fn plain(wire: Wire, parts: Parts, body: Bytes) -> Self {
        Self {
            wire,
            parts,
            body,
            model: String::new(),
            stream: false,
            rule: None,
            violations: Vec::new(),
        }
    }
}

/// A reply without anything in it.
static NOTHING: LazyLock<Reply> = LazyLock::new(Reply::default);

/// A target for answers that no model makes.
const fn bare(wire: Wire) -> Target {
    Target {
        wire,
        model: None,
        form: Form::Plain,
    }
}

impl Mock {
    /// Chooses a reply and plans it.
    pub(crate) fn answer(&self, parts: Parts, body: Bytes) -> Wanted {
        let uri = &parts.uri;
        let method = parts.method.as_str();
        let route = route(method, uri.path(), uri.query(), &parts.headers);
        if cors::is_refused(route.wire(), method, &parts.headers) {
            let refusal = ErrorReply::new(401).message(cors::NOT_ON_PURPOSE);
            return self.fixed_error(route.wire(), &refusal, parts, body);
        }
        match route {
            Route::Generate(target) => self.generate(&target, parts, body),
            Route::Count(target) => self.count(&target, parts, body),
            Route::Models(wire, id) => self.models(wire, id.as_deref(), parts, body),
            Route::Stored(action, id) => self.stored_answer(action, &id, parts, body),
            Route::Options(wire, allow) => self.options(wire, &allow, parts, body),
            Route::NotAllowed(wire, allow) => self.not_allowed(wire, &allow, parts, body),
            Route::Unknown(wire) => self.unknown_path(wire, parts, body),
        }
    }

    fn ids(&self, owner: &str, nth: u64) -> Ids {
        Ids::new(self.inner.config.seed, &[owner], nth)
    }

    /// Ids of an answer that no script gives; no two have the same, and they begin anew with a reset.
    fn unscripted_ids(&self, owner: &str) -> Ids {
        let mut state = self.state();
        let nth = state.unscripted;
        state.unscripted += 1;
        drop(state);
        self.ids(owner, nth)
    }

    fn ids_of(&self, used: &Used) -> Ids {
        let owner = [&used.script, "/", &used.rule];
        Ids::new(self.inner.config.seed, &owner, used.nth)
    }

    pub(super) fn signer(&self) -> Signer {
        Signer {
            seed: self.inner.config.seed,
        }
    }

    fn generate(&self, target: &Target, parts: Parts, bytes: Bytes) -> Wanted {
        let body = match Self::parse(target, &bytes) {
            Ok(body) => body,
            Err(error) => return self.fixed_error(target.wire, &error, parts, bytes),
        };
        let body = match target.wire {
            Wire::OpenaiResponses => match self.continued(body) {
                Ok(body) => body,
                Err(error) => return self.fixed_error(target.wire, &error, parts, bytes),
            },
            _ => body,
        };
        let facts = Facts {
            wire: target.wire,
            method: parts.method.as_str(),
            path: parts.uri.path(),
            headers: &parts.headers,
            body: &body,
            talk: wires::read(target, &body),
        };
        let verdict = self.judge(&facts, parts.uri.query(), &bytes);
        // A scripted reply is read where it lies.
        let (own, scripted, rule, ids) = match verdict.chosen {
            Choice::Refused(error) => (
                Some(Reply::from(*error)),
                None,
                None,
                self.unscripted_ids("refused"),
            ),
            Choice::Unmatched(nth) => (Some(self.fallback(&facts)), None, None, self.ids("", nth)),
            Choice::Rule(chosen) => {
                let (rule, place, used) = chosen.into_parts();
                let ids = self.ids_of(&used);
                (None, Some((rule, place)), Some(used), ids)
            }
        };
        let scripted = scripted
            .as_ref()
            .and_then(|(rule, place)| rule.replies.get(*place));
        let reply = scripted.or(own.as_ref()).unwrap_or(&NOTHING);
        let mut context = Context::new(target, &facts.talk, &body, ids);
        context.signer = self.signer();
        let response = wires::write(&reply.body, &mut context);
        let Context { ids, made, .. } = context;
        self.remember(made);
        let (model, stream) = (facts.talk.model.clone().into_owned(), facts.talk.stream);
        let incoming = Incoming {
            model,
            stream,
            rule,
            violations: verdict.violations,
            ..Incoming::plain(target.wire, parts, bytes)
        };
        self.plan(response, reply, incoming, ids)
    }

    fn parse(target: &Target, bytes: &Bytes) -> Result<Value, Box<ErrorReply>> {
        serde_json::from_slice(bytes).map_err(|error| {
            let message = match target.wire {
                Wire::Gemini => format!("Invalid JSON payload received. {error}"),
                _ => format!("We could not parse the JSON body of your request: {error}."),
            };
            Box::new(ErrorReply::new(400).message(message))
        })
    }

    /// The request with the stored conversation that it goes on from, and with the items in place of
    /// references to them.
    pub(super) fn continued(&self, mut body: Value) -> Result<Value, Box<ErrorReply>> {
        let input = body.get_mut("input").and_then(Value::as_array_mut);
        for item in input.into_iter().flatten() {
            if item["type"] != "item_reference" {
                continue;
            }
            let id = item["id"].as_str().unwrap_or_default();
            *item = self.stored_item(id).ok_or_else(|| {
                let message = format!("Item with id '{id}' not found.");
                Box::new(
                    ErrorReply::new(404)
                        .code("item_not_found")
                        .param("input")
                        .message(message),
                )
            })?;
        }
        let Some(id) = body["previous_response_id"].as_str() else {
            return Ok(body);
        };
        match self.stored(id) {
            Some(stored) => Ok(openai_responses::continued(&body, &stored)),
            None => Err(Box::new(
                ErrorReply::new(400)
                    .code("previous_response_not_found")
                    .param("previous_response_id")
                    .message(format!("Previous response with id '{id}' not found.")),
            )),
        }
    }

    fn fallback(&self, facts: &Facts<'_>) -> Reply {
        match &self.inner.config.unmatched {
            Unmatched::Reply(reply) => (**reply).clone(),
            Unmatched::Strict => {
                let message = self.state().scripts.nearest(facts);
                ErrorReply::new(400)
                    .code("turnwire_no_rule")
                    .message(message)
                    .into()
            }
        }
    }

    /// A reply that a script has for a path without a model, such as an error for the model list.
    fn scripted(&self, wire: Wire, parts: &Parts, bytes: &Bytes) -> Option<(Reply, Used)> {
        let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let target = bare(wire);
        let facts = Facts {
            wire,
            method: parts.method.as_str(),
            path: parts.uri.path(),
            headers: &parts.headers,
            body: &body,
            talk: wires::read(&target, &body),
        };
        let mut state = self.state();
        let (found, _) = state.scripts.find(&facts, true)?;
        let chosen = state.scripts.take(found)?;
        Some((chosen.reply()?.clone(), chosen.used))
    }

    /// Answers a path without a model: as a script says, otherwise with `usual`.
    fn side(
        &self,
        wire: Wire,
        parts: Parts,
        body: Bytes,
        usual: impl FnOnce(&Parts, &mut Context<'_>) -> Response,
    ) -> Wanted {
        self.side_with(wire, parts, body, Vec::new(), usual)
    }

    fn side_with(
        &self,
        wire: Wire,
        parts: Parts,
        body: Bytes,
        violations: Vec<Violation>,
        usual: impl FnOnce(&Parts, &mut Context<'_>) -> Response,
    ) -> Wanted {
        let scripted = self.scripted(wire, &parts, &body);
        let talk = Talk::default();
        let ids = match &scripted {
            Some((_, used)) => self.ids_of(used),
            None => self.unscripted_ids("side"),
        };
        let target = bare(wire);
        let mut context = Context::new(&target, &talk, &Value::Null, ids);
        let (reply, rule) = match scripted {
            Some((reply, used)) => (reply, Some(used)),
            None => (Reply::default(), None),
        };
        let response = match rule {
            Some(_) => wires::write(&reply.body, &mut context),
            None => usual(&parts, &mut context),
        };
        let ids = context.ids;
        let incoming = Incoming {
            rule,
            violations,
            ..Incoming::plain(wire, parts, body)
        };
        self.plan(response, &reply, incoming, ids)
    }

    fn count(&self, target: &Target, parts: Parts, bytes: Bytes) -> Wanted {
        let body = match Self::parse(target, &bytes) {
            Ok(body) => body,
            Err(error) => return self.fixed_error(target.wire, &error, parts, bytes),
        };
        // Gemini may wrap the request that is to be counted.
        let wrapped = crate::wires::gemini::member(&body, "generateContentRequest");
        let counted = if wrapped.is_object() { wrapped } else { &body };
        let findings = self.counted_findings(target, &parts, counted);
        let refusal = self.refusal(&findings);
        let violations = findings.iter().map(Finding::violation).collect();
        let talk = wires::read(target, counted);
        self.side_with(
            target.wire,
            parts,
            bytes.clone(),
            violations,
            |_, side| match refusal {
                Some(error) => wires::write_error(&error, side),
                None => {
                    let mut context = Context::new(target, &talk, counted, side.ids.clone());
                    wires::count(&mut context)
                }
            },
        )
    }

    fn models(&self, wire: Wire, id: Option<&str>, parts: Parts, body: Bytes) -> Wanted {
        let models = &self.inner.config.models;
        self.side(wire, parts, body, |parts, context| {
            wires::models(models, id, parts.uri.query(), context).unwrap_or_else(|| {
                let id = id.unwrap_or_default();
                let error = ErrorReply::new(404)
                    .code("model_not_found")
                    .param("model")
                    .message(match wire {
                        Wire::AnthropicMessages => format!("model: {id}"),
                        Wire::Gemini => format!("models/{id} is not found for this API version."),
                        _ => format!("The model '{id}' does not exist"),
                    });
                wires::write_error(&error, context)
            })
        })
    }

    fn stored_answer(&self, action: StoredAction, id: &str, parts: Parts, body: Bytes) -> Wanted {
        let stored = self.stored(id);
        self.side(Wire::OpenaiResponses, parts, body, |parts, context| {
            let Some(stored) = stored else {
                let message = format!("Response with id '{id}' not found.");
                return wires::write_error(
                    &ErrorReply::new(404).code("not_found").message(message),
                    context,
                );
            };
            match action {
                StoredAction::Get => get_stored(&stored, parts, context),
                StoredAction::Delete => {
                    self.forget(id);
                    let gone = json!({"id": id, "object": "response", "deleted": true});
                    wires::json_response(200, &gone, context)
                }
                StoredAction::Cancel => cancel_stored(&stored, context),
                StoredAction::InputItems => {
                    let list = json!({"object": "list", "data": stored.input, "has_more": false,
                        "first_id": null, "last_id": null});
                    wires::json_response(200, &list, context)
                }
            }
        })
    }

    /// What can be asked of a path, for a browser that asks before its page may.
    fn options(&self, wire: Wire, allow: &str, parts: Parts, body: Bytes) -> Wanted {
        self.side(wire, parts, body, |parts, context| {
            let mut response = wires::json_response(200, &Value::Null, context);
            response.headers.remove(http::header::CONTENT_TYPE);
            response.body = Rendered::default();
            wires::put_text(&mut response.headers, "allow", allow);
            cors::answer_preflight(allow, &parts.headers, &mut response.headers);
            response
        })
    }

    fn not_allowed(&self, wire: Wire, allow: &str, parts: Parts, body: Bytes) -> Wanted {
        self.side(wire, parts, body, |parts, context| {
            let (method, path) = (&parts.method, parts.uri.path());
            let message = match wire {
                Wire::AnthropicMessages => "Method Not Allowed".to_owned(),
                _ => format!(
                    "Not allowed to {method} on {path} (HINT: Perhaps you meant to use a different HTTP method?)"
                ),
            };
            let error = ErrorReply::new(405).message(message);
            let mut response = wires::write_error(&error, context);
            wires::put_text(&mut response.headers, "allow", allow);
            response
        })
    }

    fn unknown_path(&self, wire: Wire, parts: Parts, body: Bytes) -> Wanted {
        self.side(wire, parts, body, |parts, context| {
            let error = ErrorReply::new(404).code("unknown_url").message(format!(
                "Unknown request URL: {} {}. Please check the URL for typos.",
                parts.method,
                parts.uri.path()
            ));
            wires::write_error(&error, context)
        })
    }

    /// The answer to a body above the limit.
    pub(crate) fn too_large(&self, parts: Parts) -> Wanted {
        let uri = &parts.uri;
        let wire = route(
            parts.method.as_str(),
            uri.path(),
            uri.query(),
            &parts.headers,
        )
        .wire();
        self.fixed_error(wire, &ErrorReply::new(413), parts, Bytes::new())
    }

    fn fixed_error(&self, wire: Wire, error: &ErrorReply, parts: Parts, body: Bytes) -> Wanted {
        let (talk, target) = (Talk::default(), bare(wire));
        let mut context = Context::new(&target, &talk, &Value::Null, self.unscripted_ids("error"));
        let response = wires::write_error(error, &mut context);
        let ids = context.ids;
        let incoming = Incoming::plain(wire, parts, body);
        self.plan(response, &Reply::default(), incoming, ids)
    }

    fn plan(&self, response: Response, reply: &Reply, incoming: Incoming, mut ids: Ids) -> Wanted {
        let progress = Arc::new(Progress::default());
        let ticket = Ticket {
            mock: self.clone(),
            progress: progress.clone(),
        };
        let mut response = response;
        let (asked, method) = (&incoming.parts.headers, incoming.parts.method.as_str());
        cors::let_read(incoming.wire, method, asked, &mut response.headers);
        let is_head = method == "HEAD";
        self.record(incoming, response.status, progress);
        if let Body::Socket(socket) = &reply.body {
            let mut bytes = socket.text.clone().into_bytes();
            bytes.extend(crate::script::transport::hex_bytes(&socket.hex));
            let before = reply.timing.headers;
            ticket.begins(bytes.len());
            return Wanted::Hijack(Hijack {
                bytes,
                then: socket.then,
                before,
                ticket,
            });
        }
        let Response {
            status,
            mut headers,
            stream,
            body,
        } = response;
        let faults = &reply.faults;
        if faults.gzip {
            headers.insert(
                http::header::CONTENT_ENCODING,
                HeaderValue::from_static("gzip"),
            );
        }
        for (name, value) in &reply.headers {
            wires::put_text(&mut headers, name, value.clone());
        }
        let mut plan = faults::plan(body, stream, &reply.timing, faults, &mut ids);
        let length = announced(faults, stream, &headers, &plan);
        if is_head {
            plan.steps.clear();
            plan.bytes.clear();
        }
        ticket.begins(plan.bytes.len());
        let close_after = faults.close_after;
        Wanted::Response(Planned {
            status,
            headers,
            length,
            close_after,
            plan,
            ticket,
        })
    }

    fn record(&self, incoming: Incoming, status: u16, progress: Arc<Progress>) {
        let at = self.elapsed();
        let head = Head::of(&incoming.parts);
        let mut state = self.state();
        let seq = state.journal.number();
        tracing::debug!(
            seq,
            status,
            at_ms = millis(at),
            path = head.path(),
            "request"
        );
        let record = Record {
            seq,
            at,
            wire: Some(incoming.wire),
            head,
            body: incoming.body,
            model: incoming.model,
            stream: incoming.stream,
            rule: incoming.rule,
            status,
            violations: incoming.violations,
            progress,
        };
        state.journal.push(record, self.inner.config.journal);
        drop(state);
        self.changed();
    }
}

/// The length to announce: what a script says, and that of a plain answer.
fn announced(faults: &Faults, stream: bool, headers: &HeaderMap, plan: &Plan) -> Option<u64> {
    let own = headers
        .get(http::header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    faults
        .content_length
        .or_else(|| own.and_then(|own| own.parse().ok()))
        .or((!stream).then_some(plan.length as u64))
}

fn get_stored(stored: &Stored, parts: &Parts, context: &mut Context<'_>) -> Response {
    let value = |name| crate::wires::gemini::query_value(parts.uri.query(), name);
    if value("stream") != Some("true") {
        return wires::json_response(200, &stored.response, context);
    }
    if stored.events.is_empty() {
        let error = ErrorReply::new(400).param("stream").message(
            "This response cannot be streamed because it was not created with background=true.",
        );
        return wires::write_error(&error, context);
    }
    let after = value("starting_after").and_then(|after| after.parse().ok());
    let mut response = wires::json_response(200, &Value::Null, context);
    wires::put(
        &mut response.headers,
        "content-type",
        "text/event-stream; charset=utf-8",
    );
    response.stream = true;
    response.body = openai_responses::replay(stored, after);
    response
}

fn cancel_stored(stored: &Stored, context: &mut Context<'_>) -> Response {
    if stored.response["background"] != true {
        let error = ErrorReply::new(400)
            .message("Only responses created with background=true can be cancelled.");
        return wires::write_error(&error, context);
    }
    // What the mock answers is always finished by the time that somebody could cancel it.
    wires::json_response(200, &stored.response, context)
}
