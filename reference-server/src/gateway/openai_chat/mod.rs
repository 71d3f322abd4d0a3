//! The wire of OpenAI Chat Completions, and of the many services that imitate it.
//!
//! `answer` puts an answer together, chunk by chunk, without I/O; `request` writes a request; `refusal`
//! reads error answers.
//! What compatible services do otherwise is accepted: missing indexes and ids of tool calls, arguments
//! as objects, thinking under `reasoning_content` or `reasoning`, an error inside the stream.
//!
//! A stream is complete when it gave a reason to finish; `[DONE]` alone says nothing.
//!
//! Source: [`turnwire_spec::llm::openai_chat`].

mod answer;
mod refusal;
mod request;

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use turnwire_spec::llm::openai_chat as wire;
use turnwire_spec::sse::{Decoder, Limits};

use self::answer::{Assembler, Fault, plain_reply};
use self::refusal::{error_of, kind_of};
use self::request::to_wire;
use super::http::{Answer, BadBaseUrl, Endpoint, HttpError, post};
use super::{
    ErrorKind, Gateway, GatewayError, GatewayTimeouts, ModelEvent, ModelRequest, ModelStream,
    Target,
};

/// Bytes of an error body that are read.
const ERROR_BYTES: usize = 64 << 10;
/// Bytes of a plain answer, and of all text of a streamed one.
const ANSWER_BYTES: usize = 16 << 20;

/// One service that speaks this wire.
#[derive(Clone)]
pub struct OpenAiChat {
    endpoint: Endpoint,
    key: Option<String>,
    provider: String,
    model: String,
    timeouts: GatewayTimeouts,
}

impl OpenAiChat {
    /// A service at this base URL, `https://api.openai.com/v1` for instance.
    ///
    /// # Errors
    ///
    /// [`BadBaseUrl`] when it is no absolute http or https URL.
    pub fn new(
        provider: &str,
        base_url: &str,
        key: Option<String>,
        model: &str,
        timeouts: GatewayTimeouts,
    ) -> Result<Self, BadBaseUrl> {
        let endpoint = Endpoint::parse(base_url)?;
        let key = key.filter(|key| !key.is_empty());
        Ok(Self {
            endpoint,
            key,
            provider: provider.to_owned(),
            model: model.to_owned(),
            timeouts,
        })
    }

    fn error(&self, kind: ErrorKind, message: &str, target: &Target) -> GatewayError {
        let message = match &self.key {
            Some(key) => message.replace(key.as_str(), "[key]"),
            None => message.to_owned(),
        };
        GatewayError {
            kind,
            message,
            target: target.clone(),
            status: None,
            retry_after: None,
        }
    }

    fn http_error(&self, error: &HttpError, target: &Target) -> GatewayError {
        let kind = match error {
            HttpError::Silent(_) => ErrorKind::Timeout,
            HttpError::Connect(_) | HttpError::Broken(_) => ErrorKind::Network,
            HttpError::TooLarge(_) => ErrorKind::BadAnswer,
        };
        self.error(kind, &error.to_string(), target)
    }

    /// What an answer of an error status says.
    async fn refusal(&self, mut answer: Answer, target: &Target) -> GatewayError {
        let status = answer.response.status();
        let retry_after = answer
            .response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| {
                let seconds: f64 = value.to_str().ok()?.trim().parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            });
        let body = answer.whole(ERROR_BYTES).await.unwrap_or_default();
        let (message, code) = error_of(&body);
        let message = message.unwrap_or_else(|| format!("the provider answered {status}"));
        let kind = kind_of(status, code.as_deref());
        let status = Some(status.as_u16());
        GatewayError {
            status,
            retry_after,
            ..self.error(kind, &message, target)
        }
    }
}

impl std::fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiChat")
            .field("endpoint", &self.endpoint)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Gateway for OpenAiChat {
    fn target(&self, _slot: &str) -> Target {
        Target {
            provider: self.provider.clone(),
            model: Some(self.model.clone()),
        }
    }

    async fn call(&self, request: ModelRequest) -> Result<Box<dyn ModelStream>, GatewayError> {
        let target = request.target.clone();
        if self.endpoint.secure && self.key.is_none() {
            let message = format!("there is no key for {}", self.provider);
            return Err(self.error(ErrorKind::MissingKey, &message, &target));
        }
        let body = serde_json::to_vec(&to_wire(&request))
            .map_err(|error| self.error(ErrorKind::Unknown, &error.to_string(), &target))?;
        let key = self.key.as_deref();
        let sent = post(
            &self.endpoint,
            "/chat/completions",
            key,
            Bytes::from(body),
            self.timeouts,
        )
        .await;
        let answer = sent.map_err(|error| self.http_error(&error, &target))?;
        if !answer.response.status().is_success() {
            return Err(self.refusal(answer, &target).await);
        }
        let content_type = answer.response.headers().get(CONTENT_TYPE);
        let streams = content_type
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                value
                    .trim_start()
                    .to_ascii_lowercase()
                    .starts_with("text/event-stream")
            });
        Ok(Box::new(Reading {
            service: self.clone(),
            target,
            answer,
            streams,
            decoder: Decoder::new(Limits::bytes(ANSWER_BYTES)),
            assembler: Assembler::default(),
            ready: VecDeque::new(),
            over: false,
        }))
    }
}

/// An answer while it is read.
struct Reading {
    service: OpenAiChat,
    target: Target,
    answer: Answer,
    streams: bool,
    decoder: Decoder,
    assembler: Assembler,
    ready: VecDeque<Result<ModelEvent, Fault>>,
    /// Nothing more is read.
    over: bool,
}

#[async_trait]
impl ModelStream for Reading {
    async fn next(&mut self) -> Option<Result<ModelEvent, GatewayError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event.map_err(|fault| {
                    self.over = true;
                    self.ready.clear();
                    self.service.error(fault.kind, &fault.message, &self.target)
                }));
            }
            if self.over {
                return None;
            }
            let read = if self.streams {
                self.read_chunk().await
            } else {
                self.read_whole().await
            };
            if let Err(error) = read {
                self.over = true;
                return Some(Err(self.service.http_error(&error, &self.target)));
            }
        }
    }
}

impl Reading {
    async fn read_chunk(&mut self) -> Result<(), HttpError> {
        let Some(bytes) = self.answer.chunk().await? else {
            self.over = true;
            self.ready
                .push_back(self.assembler.finish().map(ModelEvent::Done));
            return Ok(());
        };
        let (assembler, ready, over) = (&mut self.assembler, &mut self.ready, &mut self.over);
        let fed = self.decoder.feed(&bytes, |event| {
            if *over || event.data.is_empty() {
                return;
            }
            if event.data.trim() == wire::DONE {
                *over = true;
                ready.push_back(assembler.finish().map(ModelEvent::Done));
                return;
            }
            match assembler.push(event.data) {
                Ok(events) => ready.extend(events.into_iter().map(Ok)),
                Err(fault) => {
                    *over = true;
                    ready.push_back(Err(fault));
                }
            }
        });
        fed.map_err(|_| HttpError::TooLarge(ANSWER_BYTES))
    }

    async fn read_whole(&mut self) -> Result<(), HttpError> {
        self.over = true;
        let body = self.answer.whole(ANSWER_BYTES).await?;
        match plain_reply(&body) {
            Err(fault) => self.ready.push_back(Err(fault)),
            Ok(reply) => {
                if !reply.text.is_empty() {
                    self.ready
                        .push_back(Ok(ModelEvent::Text(reply.text.clone())));
                }
                self.ready.push_back(Ok(ModelEvent::Done(reply)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
