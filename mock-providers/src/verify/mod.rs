//! What a request may not say: each service's own rules, one file a wire.
//!
//! A [`Rule`] is a requirement of the catalogue (`llm-requests`) and a function that looks for breaches
//! of it. The mock answers the first breach as the service would, with the service's own error, and
//! journals all of them with their ids. A rule that a service does not enforce, though others do, is a
//! note: it is journalled and not refused.
//!
//! - `fault`: a breach, and how the service puts it.
//! - `schema`: what strict schemas and the OpenAPI subset demand.
//! - `shape`: what looking into JSON bodies has in common.
//!
//! Not here: limits of rates and money, and anything that needs a model to judge.

pub mod anthropic_messages;
mod fault;
pub mod gemini;
pub mod gemini_openai;
pub mod openai_chat;
pub mod openai_responses;
mod schema;
pub(crate) mod shape;

use http::HeaderMap;
use serde_json::Value;
use turnwire_spec::llm::Wire;

use crate::journal::Violation;
use crate::script::{Echo, ErrorReply};
use crate::wires::signatures::Signer;
pub use fault::{Fault, Faults};

/// What a rule may look at.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The wire.
    pub wire: Wire,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The query of the URL.
    pub query: Option<&'a str>,
    /// The body.
    pub body: &'a Value,
    /// The model that is asked.
    pub model: &'a str,
    /// Whether only tokens are to be counted: then a model's settings are not needed.
    pub count: bool,
    /// Keys that the mock accepts; none means that it asks for no key.
    pub keys: &'a [String],
    /// Whether thinking must come back in fields that are not the wire's own.
    pub echo: Option<Echo>,
    pub(crate) signer: Signer,
    pub(crate) memory: &'a dyn Memory,
}

impl<'a> Request<'a> {
    /// A member of the body; null when it is absent.
    fn member(&self, name: &str) -> &'a Value {
        shape::member(self.body, name)
    }
}

/// What the mock knows of what it sent.
pub trait Memory {
    /// Whether a script made this signature or these encrypted bytes itself.
    fn made(&self, signature: &str) -> bool;
    /// The thinking that came with an item: signatures, or ids of reasoning items.
    fn thinking_of(&self, item: &str) -> Option<Vec<String>>;
}

/// A requirement, and how to look for breaches of it.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The requirement.
    pub id: &'static str,
    /// Whether the service refuses a breach; otherwise it is only noted.
    pub refused: bool,
    /// Looks for breaches.
    pub check: fn(&Request<'_>, &mut Faults),
}

impl Rule {
    /// A rule whose breach the service refuses.
    const fn refused(id: &'static str, check: fn(&Request<'_>, &mut Faults)) -> Self {
        Self {
            id,
            refused: true,
            check,
        }
    }

    /// A rule whose breach is noted.
    const fn noted(id: &'static str, check: fn(&Request<'_>, &mut Faults)) -> Self {
        Self {
            id,
            refused: false,
            check,
        }
    }
}

/// The rules of a wire, in the order in which the service looks.
pub const fn rules(wire: Wire) -> &'static [Rule] {
    match wire {
        Wire::OpenaiChat => openai_chat::RULES,
        Wire::OpenaiResponses => openai_responses::RULES,
        Wire::AnthropicMessages => anthropic_messages::RULES,
        Wire::Gemini => gemini::RULES,
        Wire::GeminiOpenai => gemini_openai::RULES,
    }
}

/// A breach of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The requirement.
    pub id: &'static str,
    /// Whether the service refuses it.
    pub refused: bool,
    /// What is wrong, and how the service puts it.
    pub fault: Fault,
}

impl Finding {
    /// The service's answer.
    pub fn error(&self) -> ErrorReply {
        self.fault.error()
    }

    /// The journal's form.
    pub fn violation(&self) -> Violation {
        Violation {
            id: self.id.to_owned(),
            message: self.fault.message.clone(),
        }
    }
}

/// The requirement that a repeated request has the same body as the first attempt.
pub const SAME_BODY: &str = "LLM-REQ-001";

/// Every breach, in the order of the rules.
pub fn verify(request: &Request<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules(request.wire) {
        let mut faults = Faults::default();
        (rule.check)(request, &mut faults);
        if faults.list.is_empty() {
            continue;
        }
        let found = faults.list.into_iter();
        findings.extend(found.map(|fault| Finding {
            id: rule.id,
            refused: rule.refused,
            fault,
        }));
    }
    findings
}
