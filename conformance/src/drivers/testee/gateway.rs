//! The adapters of our own gateway as a testee, in process but over real sockets like any other.
//!
//! All wires, and all options of the adapter protocol. `timeoutMs` is both the first-token and the idle
//! time; `firstTokenTimeoutMs` and `idleTimeoutMs` say them apart, `budgetMs` bounds the whole call.
//! `fallback` is a target or a list of them, each with what differs from the case: `wire`, `baseUrl`,
//! `apiKey`, `model`, `input`, `contextWindow`.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnwire_reference::gateway::{
    Client, ClientConfig, GatewayError, ModelEvent, ModelReply, ModelRequest, Outcome, RetryPolicy,
    TargetConfig,
};
use turnwire_spec::llm::Wire;

use super::{About, LaunchTestee, Said, Testee};
use crate::{
    cases::content::Feature,
    drivers::{DriveError, target::Pending},
};

/// Starts testees of our own gateway.
#[derive(Clone, Copy, Debug)]
pub struct GatewayTestee;

/// Name of our own gateway, in reports and profiles.
pub const NAME: &str = "turnwire-gateway";

impl LaunchTestee for GatewayTestee {
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>> {
        Box::pin(async {
            let said = json!({
                "ready": true,
                "name": NAME,
                "version": env!("CARGO_PKG_VERSION"),
                "wires": Wire::ALL.map(Wire::as_str),
                "features": Feature::ALL.map(Feature::name),
            });
            let about = About::read(&said).unwrap_or_default();
            Ok(Testee::in_process(about, serve))
        })
    }

    fn in_process(&self) -> bool {
        true
    }
}

async fn serve(mut lines: mpsc::Receiver<Bytes>, say: mpsc::Sender<Said>) {
    while let Some(line) = lines.recv().await {
        let case: Value = serde_json::from_slice(&line).unwrap_or_default();
        let mut report = play(&case).await;
        report["case"] = case["case"].clone();
        if say
            .send(Said::Line(report.to_string().into()))
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Plays a case; the report lacks only its id.
async fn play(case: &Value) -> Value {
    if !case["embed"].is_null() {
        let message = "this gateway writes texts; it has no embeddings on any wire";
        return json!({ "error": { "class": "config", "message": message } });
    }
    let built = client(case).and_then(|client| Ok((client, request(case)?)));
    match built {
        Ok((client, request)) => report(&client.ask(request).await),
        Err(message) => json!({ "error": { "class": "config", "message": message } }),
    }
}

fn client(case: &Value) -> Result<Client, String> {
    let options = &case["options"];
    let millis = |name: &str| options[name].as_u64().map(Duration::from_millis);
    let both = millis("timeoutMs");
    let fallbacks = match &options["fallback"] {
        Value::Null => Vec::new(),
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let mut config = ClientConfig::new(target(case, options)?);
    for fallback in &fallbacks {
        config = config.fallback(target(case, fallback)?);
    }
    let times = &mut config.timeouts;
    times.first = millis("firstTokenTimeoutMs")
        .or(both)
        .unwrap_or(times.first);
    times.idle = millis("idleTimeoutMs").or(both).unwrap_or(times.idle);
    config.budget = millis("budgetMs");
    let retries = options["retries"]
        .as_u64()
        .and_then(|retries| u32::try_from(retries).ok());
    config.retry = RetryPolicy {
        retries: retries.unwrap_or(config.retry.retries),
        backoff: millis("backoffMs").unwrap_or(config.retry.backoff),
        ..config.retry
    };
    Client::new(config).map_err(|error| error.to_string())
}

/// The target of the case, with what `own` says otherwise.
fn target(case: &Value, own: &Value) -> Result<TargetConfig, String> {
    let pick = |name: &str| match &own[name] {
        Value::Null => case[name].clone(),
        own => own.clone(),
    };
    let described = json!({
        "wire": pick("wire"),
        "provider": own["provider"].as_str().unwrap_or("mock"),
        "baseUrl": pick("baseUrl"),
        "apiKey": pick("apiKey"),
        "model": pick("model"),
        "input": own["input"],
        "contextWindow": own["contextWindow"],
    });
    TargetConfig::deserialize(&described).map_err(|error| error.to_string())
}

fn request(case: &Value) -> Result<ModelRequest, String> {
    fn read<T: Default + for<'de> serde::Deserialize<'de>>(value: &Value) -> Result<T, String> {
        match value {
            Value::Null => Ok(T::default()),
            value => T::deserialize(value).map_err(|error| error.to_string()),
        }
    }
    Ok(ModelRequest {
        messages: read(&case["messages"])?,
        tools: read(&case["tools"])?,
        tool_choice: read(&case["toolChoice"])?,
        streaming: case["stream"] == true,
        options: read(&case["options"])?,
        ..ModelRequest::default()
    })
}

fn report(played: &Outcome) -> Value {
    let attempts = played.sent.len();
    match &played.result {
        Ok(reply) => json!({ "outcome": outcome(reply, &played.events, attempts) }),
        Err(error) => json!({ "error": error_report(error, &played.events, attempts) }),
    }
}

fn outcome(reply: &ModelReply, events: &[ModelEvent], attempts: usize) -> Value {
    let mut outcome = json!({
        "text": reply.text,
        "reasoning": reply.reasoning,
        "toolCalls": reply.tool_calls,
        "finishReason": reply.finish.name(),
        "deltas": deltas(events),
        "attempts": attempts,
    });
    let optional = [
        ("responseId", reply.stored.as_ref().map(|id| json!(id))),
        (
            "usage",
            (!reply.usage.is_unknown()).then(|| json!(reply.usage)),
        ),
        ("object", reply.object.clone()),
        ("refusal", reply.refusal.as_ref().map(|text| json!(text))),
        (
            "continuation",
            reply.continuation.as_ref().map(|opaque| json!(opaque)),
        ),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            outcome[name] = value;
        }
    }
    outcome
}

fn deltas(events: &[ModelEvent]) -> Vec<Value> {
    let delta = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => Some(json!({ "kind": "text", "text": text })),
        ModelEvent::Reasoning(text) => Some(json!({ "kind": "reasoning", "text": text })),
        ModelEvent::ToolCall(piece) => {
            Some(json!({ "kind": "tool-call", "text": piece.arguments }))
        }
        ModelEvent::Done(_) => None,
    };
    events.iter().filter_map(delta).collect()
}

fn error_report(error: &GatewayError, events: &[ModelEvent], attempts: usize) -> Value {
    json!({
        "class": error.kind.class(),
        "code": error.code,
        "message": error.message,
        "status": error.status,
        "retryable": error.is_retryable(),
        "target": { "provider": error.target.provider, "model": error.target.model },
        "deltas": deltas(events),
        "attempts": attempts,
    })
}
