//! Checks of area `llm-requests`: what a service demands of the requests of its clients.
//!
//! The rules are the mock's, module `verify`; what they said about each request stands in the transcript as a fact
//! (see `drivers::provider`), together with the rules that the request could have broken. So one function judges
//! all of them. Only the repeated request is judged here, from the requests themselves.

use serde_json::Value;

use super::Check;
use crate::{
    cases::is_of,
    transcript::{
        ExchangeId, Fact, Transcript,
        views::http::{Exchange, exchanges},
    },
    verdict::Findings,
};

/// The checks of requirements that the mock's rule of the same id judges.
macro_rules! rules {
    ($($id:literal)*) => {
        &[$(Check::new($id, "the_service_takes_every_request", |transcript| {
            the_service_takes_every_request(transcript, $id)
        })),*]
    };
}

/// What holds for the attempts of all wires.
pub const ATTEMPTS: &[Check] = &[check!("LLM-REQ-001", attempts_have_one_body)];

/// Of Chat Completions.
pub const CHAT: &[Check] = rules![
    "LLM-REQ-002"
    "LLM-REQ-003"
    "LLM-REQ-004"
    "LLM-REQ-005"
    "LLM-REQ-006"
    "LLM-REQ-007"
    "LLM-REQ-008"
    "LLM-REQ-009"
    "LLM-REQ-010"
    "LLM-REQ-011"
    "LLM-REQ-012"
    "LLM-REQ-013"
    "LLM-REQ-014"
    "LLM-REQ-015"
    "LLM-REQ-016"
    "LLM-REQ-017"
    "LLM-REQ-018"
    "LLM-REQ-019"
    "LLM-REQ-020"
    "LLM-REQ-021"
    "LLM-REQ-022"
    "LLM-REQ-023"
    "LLM-REQ-024"
    "LLM-REQ-025"
    "LLM-REQ-026"
    "LLM-REQ-027"
    "LLM-REQ-028"
    "LLM-REQ-029"
    "LLM-REQ-030"
    "LLM-REQ-031"
    "LLM-REQ-032"
    "LLM-REQ-033"
    "LLM-REQ-140"
    "LLM-REQ-141"
    "LLM-REQ-142"
    "LLM-REQ-143"
    "LLM-REQ-144"
    "LLM-REQ-145"
    "LLM-REQ-146"
    "LLM-REQ-147"
    "LLM-REQ-148"
    "LLM-REQ-149"
];

/// Of Responses.
pub const RESPONSES: &[Check] = rules![
    "LLM-REQ-034"
    "LLM-REQ-035"
    "LLM-REQ-036"
    "LLM-REQ-037"
    "LLM-REQ-038"
    "LLM-REQ-039"
    "LLM-REQ-040"
    "LLM-REQ-041"
    "LLM-REQ-042"
    "LLM-REQ-043"
    "LLM-REQ-044"
    "LLM-REQ-045"
    "LLM-REQ-046"
    "LLM-REQ-047"
    "LLM-REQ-048"
    "LLM-REQ-049"
    "LLM-REQ-050"
    "LLM-REQ-051"
    "LLM-REQ-052"
    "LLM-REQ-053"
    "LLM-REQ-054"
    "LLM-REQ-055"
    "LLM-REQ-056"
    "LLM-REQ-057"
    "LLM-REQ-058"
    "LLM-REQ-059"
    "LLM-REQ-060"
    "LLM-REQ-061"
    "LLM-REQ-062"
    "LLM-REQ-063"
    "LLM-REQ-064"
    "LLM-REQ-150"
    "LLM-REQ-151"
    "LLM-REQ-152"
    "LLM-REQ-153"
    "LLM-REQ-154"
    "LLM-REQ-155"
    "LLM-REQ-156"
];

/// Of Anthropic Messages.
pub const ANTHROPIC: &[Check] = rules![
    "LLM-REQ-065"
    "LLM-REQ-066"
    "LLM-REQ-067"
    "LLM-REQ-068"
    "LLM-REQ-069"
    "LLM-REQ-070"
    "LLM-REQ-071"
    "LLM-REQ-072"
    "LLM-REQ-073"
    "LLM-REQ-074"
    "LLM-REQ-075"
    "LLM-REQ-076"
    "LLM-REQ-077"
    "LLM-REQ-078"
    "LLM-REQ-079"
    "LLM-REQ-080"
    "LLM-REQ-081"
    "LLM-REQ-082"
    "LLM-REQ-083"
    "LLM-REQ-084"
    "LLM-REQ-085"
    "LLM-REQ-086"
    "LLM-REQ-087"
    "LLM-REQ-088"
    "LLM-REQ-089"
    "LLM-REQ-090"
    "LLM-REQ-091"
    "LLM-REQ-092"
    "LLM-REQ-093"
    "LLM-REQ-094"
    "LLM-REQ-095"
    "LLM-REQ-096"
    "LLM-REQ-097"
    "LLM-REQ-098"
    "LLM-REQ-158"
    "LLM-REQ-159"
    "LLM-REQ-160"
    "LLM-REQ-161"
    "LLM-REQ-162"
    "LLM-REQ-163"
    "LLM-REQ-164"
];

/// Of Gemini.
pub const GEMINI: &[Check] = rules![
    "LLM-REQ-099"
    "LLM-REQ-100"
    "LLM-REQ-101"
    "LLM-REQ-102"
    "LLM-REQ-103"
    "LLM-REQ-104"
    "LLM-REQ-105"
    "LLM-REQ-106"
    "LLM-REQ-107"
    "LLM-REQ-108"
    "LLM-REQ-109"
    "LLM-REQ-110"
    "LLM-REQ-111"
    "LLM-REQ-112"
    "LLM-REQ-113"
    "LLM-REQ-114"
    "LLM-REQ-115"
    "LLM-REQ-116"
    "LLM-REQ-117"
    "LLM-REQ-118"
    "LLM-REQ-119"
    "LLM-REQ-120"
    "LLM-REQ-121"
    "LLM-REQ-122"
    "LLM-REQ-123"
    "LLM-REQ-124"
    "LLM-REQ-165"
    "LLM-REQ-166"
    "LLM-REQ-167"
    "LLM-REQ-168"
];

/// Of Gemini's OpenAI-compatible endpoint.
pub const COMPATIBLE: &[Check] = rules![
    "LLM-REQ-125"
    "LLM-REQ-126"
    "LLM-REQ-127"
    "LLM-REQ-128"
    "LLM-REQ-129"
    "LLM-REQ-130"
    "LLM-REQ-131"
    "LLM-REQ-132"
    "LLM-REQ-133"
    "LLM-REQ-134"
    "LLM-REQ-135"
    "LLM-REQ-136"
    "LLM-REQ-137"
    "LLM-REQ-138"
    "LLM-REQ-139"
];

/// The mock's rule finds nothing wrong with any request that shows it.
fn the_service_takes_every_request(transcript: &Transcript, id: &str) -> Findings {
    let all = exchanges(transcript);
    let judged = transcript
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::State(fact) if lists(&fact["shows"], id) => Some(fact),
            _ => None,
        });
    Findings::each(judged, |fact| {
        let breach = fact["breaks"]
            .as_array()?
            .iter()
            .find(|one| one["id"] == id)?;
        let message = breach["message"].as_str().unwrap_or_default();
        let exchange = exchange_of(&all, fact)?;
        Some(exchange.evidence("a request that the service takes", message))
    })
}

fn lists(list: &Value, id: &str) -> bool {
    list.as_array()
        .is_some_and(|list| list.iter().any(|one| one == id))
}

fn exchange_of<'a, 't>(all: &'a [Exchange<'t>], fact: &Value) -> Option<&'a Exchange<'t>> {
    let number = u32::try_from(fact["request"].as_u64()?).ok()?;
    all.iter()
        .find(|exchange| exchange.id == ExchangeId(number))
}

/// LLM-REQ-001: a request that is sent again after an error has the body of the first attempt, byte for byte.
///
/// Judges the requests of the conversation about it that follow an error.
fn attempts_have_one_body(transcript: &Transcript) -> Findings {
    let attempts: Vec<_> = exchanges(transcript)
        .into_iter()
        .filter(|exchange| is_of(exchange.label, "requests/again"))
        .collect();
    let again = attempts.windows(2).filter_map(|pair| match pair {
        [first, second] if first.status().is_some_and(|status| status >= 500) => {
            Some((first, second))
        }
        _ => None,
    });
    Findings::each(again, |(first, second)| {
        let text =
            |exchange: &Exchange<'_>| String::from_utf8_lossy(&exchange.request.body).into_owned();
        (first.request.body != second.request.body)
            .then(|| second.evidence(text(first), text(second)))
    })
}
