//! Which module speaks which wire.

use turnwire_spec::llm::Wire;

use super::continuation::Origin;
use super::history::call_ids;
use super::http::{Endpoint, Outgoing};
use super::message::ChatMessage;
use super::read::Reader;
use super::refusal::Fault;
use super::request::ModelRequest;
use super::{anthropic_messages, gemini, gemini_openai, openai_chat, openai_responses};

/// All that a wire needs to know to write a request.
pub(super) struct Asking<'a> {
    pub(super) request: &'a ModelRequest,
    /// The conversation as this target gets it.
    pub(super) messages: &'a [ChatMessage],
    pub(super) origin: &'a Origin,
    pub(super) endpoint: &'a Endpoint,
    pub(super) key: Option<&'a str>,
}

impl Asking<'_> {
    pub(super) fn model(&self) -> &str {
        &self.origin.model
    }
}

/// Writes a request; nothing is sent yet.
pub(super) fn outgoing(asking: &Asking<'_>) -> Result<Outgoing, Fault> {
    match asking.origin.protocol {
        Wire::OpenaiChat => openai_chat::outgoing(asking),
        Wire::OpenaiResponses => openai_responses::outgoing(asking),
        Wire::AnthropicMessages => anthropic_messages::outgoing(asking),
        Wire::Gemini => gemini::outgoing(asking),
        Wire::GeminiOpenai => gemini_openai::outgoing(asking),
    }
}

/// Who reads the answer.
pub(super) fn reader(origin: &Origin, request: &ModelRequest) -> Box<dyn Reader> {
    let taken = call_ids(&request.messages);
    let origin = origin.clone();
    match origin.protocol {
        Wire::OpenaiChat => Box::new(openai_chat::reader(origin, taken)),
        Wire::OpenaiResponses => Box::new(openai_responses::reader(origin, taken)),
        Wire::AnthropicMessages => Box::new(anthropic_messages::reader(origin, taken)),
        Wire::Gemini => Box::new(gemini::reader(origin, taken)),
        Wire::GeminiOpenai => Box::new(gemini_openai::reader(origin, taken)),
    }
}
