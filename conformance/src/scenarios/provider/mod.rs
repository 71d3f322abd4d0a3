//! Conversations with a server that claims to speak the wire of an LLM provider.
//!
//! One set of scenarios serves all wires; [`ask`] has what differs. Every request stands under a label that
//! begins with `provider-`, by which rules and checks find it. A model says what it likes, so nothing here
//! expects any particular text; a request that a server refuses stands in the transcript, and the scenario goes
//! on.
//!
//! - this file: the scenarios; [`ask`]: requests; `stage::provider`: keys and the model's name.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_spec::llm::Wire;

use super::{Act, Isolation, Scenario};
use crate::{
    drivers::{DriveError, http::Call, http::Reply},
    stage::Stage,
    transcript::End,
};

mod ask;

use ask::{Ask, DIGITS, FEW, LONG, STOP, TEXT, TOOLS, TRIP, gemini_path, results};
pub use ask::{MARKERS, NO_MODEL, TOOL, trip_schema};

/// How long a stream may take as a whole.
const STREAM: Duration = Duration::from_secs(60);

/// The scenarios of a wire. The functions are the same; a scenario cannot carry the wire otherwise.
macro_rules! scenarios {
    ($wire:expr) => {
        &[
            scenario!("provider-text", "one text, plain and streamed", |stage| {
                Box::pin(text(stage, $wire))
            }),
            scenario!(
                "provider-tools",
                "two calls, plain and streamed, and their results",
                |stage| Box::pin(tools(stage, $wire))
            ),
            scenario!(
                "provider-limits",
                "answers that reach a token limit, a stop sequence, a schema",
                |stage| Box::pin(limits(stage, $wire))
            ),
            scenario!(
                "provider-errors",
                "requests that no server can answer",
                |stage| Box::pin(errors(stage, $wire))
            ),
            scenario!(
                "provider-parallel",
                "six streams at the same time, each about a word of its own",
                |stage| Box::pin(parallel(stage, $wire))
            ),
            scenario!(
                "provider-lists",
                "the list of models, one of them, and the count of tokens",
                |stage| Box::pin(lists(stage, $wire))
            ),
        ]
    };
}

macro_rules! scenario {
    ($name:literal, $about:literal, $run:expr) => {
        Scenario {
            name: $name,
            about: $about,
            needs: &[],
            variant: None,
            isolation: Isolation::Shared,
            run: Act::Server($run),
        }
    };
}

/// Of Chat Completions.
pub const CHAT: &[Scenario] = scenarios!(Wire::OpenaiChat);
/// Of Gemini's OpenAI-compatible endpoint.
pub const COMPATIBLE: &[Scenario] = scenarios!(Wire::GeminiOpenai);
/// Of Responses.
pub const RESPONSES: &[Scenario] = scenarios!(Wire::OpenaiResponses);
/// Of Anthropic Messages.
pub const ANTHROPIC: &[Scenario] = scenarios!(Wire::AnthropicMessages);
/// Of Gemini.
pub const GEMINI: &[Scenario] = scenarios!(Wire::Gemini);

/// A conversation with one provider.
struct Talk<'a> {
    stage: &'a Stage,
    wire: Wire,
    model: String,
}

impl<'a> Talk<'a> {
    async fn new(stage: &'a Stage, wire: Wire) -> Result<Self, DriveError> {
        stage.label("provider-setup");
        stage.provider_stops()?;
        let model = stage.provider_model(wire).await?;
        Ok(Self { stage, wire, model })
    }

    fn call(&self, ask: &Ask) -> Call {
        self.stage
            .with_key(self.wire, ask.call(self.wire, &self.model))
    }

    async fn plain(&self, label: &str, ask: &Ask) -> Result<Reply, DriveError> {
        self.send(label, self.call(ask)).await
    }

    async fn send(&self, label: &str, call: Call) -> Result<Reply, DriveError> {
        self.stage.label(label);
        let reply = self.stage.send(call).await?;
        self.not_flooded(&reply.request, Some(&reply.end))?;
        Ok(reply)
    }

    /// Reads a stream to its end.
    async fn read(&self, label: &str, call: Call) -> Result<(), DriveError> {
        self.stage.label(label);
        let mut stream = self.stage.open(call).await?;
        stream.read_to_end(STREAM).await;
        self.not_flooded(&stream.request, stream.ended().as_ref())
    }

    /// Goes on after an answer that has an end: who floods one answer floods the next, and what came of each is kept.
    fn not_flooded(&self, request: &str, end: Option<&End>) -> Result<(), DriveError> {
        if end != Some(&End::TooLarge) {
            return Ok(());
        }
        self.stage.profile().provider.flooded.set();
        let most = self.stage.profile().limits.http.max_body;
        Err(DriveError::Unexpected {
            request: request.to_owned(),
            expected: format!("an answer of at most {most} bytes"),
            got: "more".to_owned(),
        })
    }

    /// Asks as everybody does; a server that does not answer that cannot be asked anything else.
    async fn ordinary(&self, label: &str, ask: &Ask) -> Result<(), DriveError> {
        let reply = self.plain(label, ask).await?;
        self.stage.provider_answered(&reply)
    }

    async fn stream(&self, label: &str, ask: Ask) -> Result<(), DriveError> {
        self.read(label, self.call(&ask.streamed())).await
    }

    /// Sends a wrong body to the path of plain answers.
    async fn wrong(&self, label: &str, why: &str, body: String) -> Result<(), DriveError> {
        let path = Ask::new(TEXT).path(self.wire, &self.model);
        let call = Call::post(path).body("application/json", body);
        let call = self.stage.with_key(self.wire, call);
        self.send(label, call.wrong_on_purpose(why)).await?;
        Ok(())
    }

    /// Sends the usual body with a change that makes it wrong.
    async fn wrong_body(
        &self,
        label: &str,
        why: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), DriveError> {
        let mut body = Ask::new(TEXT).body(self.wire, &self.model);
        change(&mut body);
        self.wrong(label, why, body.to_string()).await
    }
}

/// The same question plain and streamed, so that usage can be compared.
async fn text(stage: &Stage, wire: Wire) -> Result<(), DriveError> {
    let talk = Talk::new(stage, wire).await?;
    let ask = Ask::new(TEXT);
    talk.ordinary("provider-plain", &ask).await?;
    talk.stream("provider-stream", ask.clone()).await?;
    if wire == Wire::OpenaiChat {
        let bare = Ask {
            stream: true,
            ..ask.clone()
        };
        talk.read("provider-stream-bare", talk.call(&bare)).await?;
    }
    if wire == Wire::Gemini {
        let path = gemini_path(&talk.model, "streamGenerateContent");
        let call = Call::post(path).json(&ask.body(wire, &talk.model));
        talk.send("provider-array", stage.with_key(wire, call))
            .await?;
    }
    Ok(())
}

/// Asks for calls, and gives their results.
async fn tools(stage: &Stage, wire: Wire) -> Result<(), DriveError> {
    let talk = Talk::new(stage, wire).await?;
    let ask = Ask {
        tools: true,
        ..Ask::new(TOOLS)
    };
    let answer = talk.plain("provider-tools", &ask).await?;
    talk.stream("provider-tools-stream", ask.clone()).await?;
    if let Some(turns) = answer.json().and_then(|answer| results(wire, &answer)) {
        let ask = Ask { turns, ..ask };
        talk.plain("provider-results", &ask).await?;
    }
    Ok(())
}

/// A token limit, a stop sequence and a schema.
async fn limits(stage: &Stage, wire: Wire) -> Result<(), DriveError> {
    let talk = Talk::new(stage, wire).await?;
    let long = Ask {
        max: Some(FEW),
        ..Ask::new(LONG)
    };
    talk.plain("provider-max", &long).await?;
    talk.stream("provider-max-stream", long).await?;
    if wire != Wire::OpenaiResponses {
        let digits = Ask {
            stop: Some(STOP),
            ..Ask::new(DIGITS)
        };
        talk.plain("provider-stop", &digits).await?;
        talk.stream("provider-stop-stream", digits).await?;
    }
    let trip = Ask {
        schema: true,
        ..Ask::new(TRIP)
    };
    talk.plain("provider-schema", &trip).await?;
    Ok(())
}

/// What is wrong with the requests goes by the wire; a server may ignore a model's name or a key.
async fn errors(stage: &Stage, wire: Wire) -> Result<(), DriveError> {
    let talk = Talk::new(stage, wire).await?;
    talk.ordinary("provider-ordinary", &Ask::new(TEXT)).await?;
    talk.wrong(
        "provider-bad-json",
        "the body is no JSON",
        "{\"model\": ".to_owned(),
    )
    .await?;
    let said = match wire {
        Wire::OpenaiResponses => "input",
        Wire::Gemini => "contents",
        _ => "messages",
    };
    talk.wrong_body(
        "provider-nothing-said",
        "there is no conversation",
        |body| {
            remove(body, said);
        },
    )
    .await?;
    if wire != Wire::Gemini {
        talk.wrong_body("provider-no-model", "there is no model", |body| {
            remove(body, "model")
        })
        .await?;
    }
    if wire == Wire::AnthropicMessages {
        talk.wrong_body("provider-no-max-tokens", "there is no max_tokens", |body| {
            remove(body, "max_tokens");
        })
        .await?;
    }
    talk.wrong_body("provider-bad-role", "nobody has this role", |body| {
        let path = match wire {
            Wire::Gemini => "/contents/0/role",
            Wire::OpenaiResponses => "/input/0/role",
            _ => "/messages/0/role",
        };
        if let Some(role) = body.pointer_mut(path) {
            *role = json!("turnwire");
        }
    })
    .await?;
    if wire != Wire::Gemini {
        talk.wrong_body("provider-bad-stream", "there is no conversation", |body| {
            remove(body, said);
            body["stream"] = json!(true);
        })
        .await?;
    }
    stage.label("provider-unknown-model");
    let unknown = Ask::new(TEXT).call(wire, NO_MODEL);
    stage
        .send(
            stage
                .with_key(wire, unknown)
                .wrong_on_purpose("nobody has this model"),
        )
        .await?;
    stage.label("provider-wrong-key");
    let call = Ask::new(TEXT).call(wire, &talk.model);
    let call = stage.with_other_key(wire, call, "turnwire-wrong-key");
    stage
        .send(call.wrong_on_purpose("nobody has this key"))
        .await?;
    Ok(())
}

fn remove(body: &mut Value, name: &str) {
    if let Some(members) = body.as_object_mut() {
        members.remove(name);
    }
}

/// Six streams that are open at the same time.
async fn parallel(stage: &Stage, wire: Wire) -> Result<(), DriveError> {
    let talk = Talk::new(stage, wire).await?;
    stage.label("provider-parallel");
    let mut open = Vec::new();
    for marker in MARKERS {
        let prompt = format!("Say this word and nothing else: {marker} [turnwire-parallel]");
        open.push(
            stage
                .open(talk.call(&Ask::new(prompt).streamed()))
                .await?
                .keep_reading(),
        );
    }
    for reading in open {
        reading.wait_end(STREAM).await;
    }
    Ok(())
}

/// What a server lists and counts.
async fn lists(stage: &Stage, wire: Wire) -> Result<(), DriveError> {
    let talk = Talk::new(stage, wire).await?;
    stage.label("provider-models");
    stage
        .send(stage.with_key(wire, Call::get("/models")))
        .await?;
    stage.label("provider-model");
    let id = talk.model.strip_prefix("models/").unwrap_or(&talk.model);
    stage
        .send(stage.with_key(wire, Call::get(format!("/models/{id}"))))
        .await?;
    let path = match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => return Ok(()),
        Wire::OpenaiResponses => "/responses/input_tokens".to_owned(),
        Wire::AnthropicMessages => "/messages/count_tokens".to_owned(),
        Wire::Gemini => gemini_path(&talk.model, "countTokens"),
    };
    let mut body = Ask::new(TEXT).body(wire, &talk.model);
    for name in ["max_tokens", "store"] {
        remove(&mut body, name);
    }
    stage.label("provider-count");
    stage
        .send(stage.with_key(wire, Call::post(path).json(&body)))
        .await?;
    talk.plain("provider-counted", &Ask::new(TEXT)).await?;
    Ok(())
}
