//! Which suite a requirement belongs to.
//!
//! A suite is what a run selects: one protocol, or one provider's wire. Areas map to suites by their
//! names; the areas of the LLM wires are shared by several suites, so there the title decides, and
//! an entry can name its suite itself.

use super::entry::Entry;
use crate::words::words;

words! {
    /// A protocol that a target can be checked for.
    "suite" enum Suite {
        /// The Covel event streams, commands and queries.
        CovelSse = "covel-sse",
        /// Session updates over lines of JSON.
        SessionUpdate = "session-update",
        /// Chat over WebSocket.
        ChatWs = "chat-ws",
        /// The wire of OpenAI Chat Completions.
        OpenaiChat = "openai-chat",
        /// The wire of OpenAI Responses.
        OpenaiResponses = "openai-responses",
        /// The wire of Anthropic Messages.
        AnthropicMessages = "anthropic-messages",
        /// The wire of Gemini.
        Gemini = "gemini",
        /// The wire of Gemini's OpenAI-compatible endpoint.
        GeminiOpenai = "gemini-openai",
        /// Reading of event streams, on which the others stand.
        Sse = "sse",
    }
}

/// The suite of an area whose name begins so. The first match counts.
const AREAS: &[(&str, Suite)] = &[
    ("covel-", Suite::CovelSse),
    ("session-update", Suite::SessionUpdate),
    ("chat-ws", Suite::ChatWs),
    ("openai-chat", Suite::OpenaiChat),
    ("openai-responses", Suite::OpenaiResponses),
    ("anthropic-messages", Suite::AnthropicMessages),
    ("gemini", Suite::Gemini),
    ("sse", Suite::Sse),
];

/// The suite of an entry in an area of the LLM wires whose title has this word. The first match
/// counts; without one, it is behaviour of every wire, judged on the first of them.
const TITLES: &[(&str, Suite)] = &[
    ("Gemini", Suite::Gemini),
    ("google", Suite::Gemini),
    ("Google", Suite::Gemini),
    ("Anthropic", Suite::AnthropicMessages),
    ("Responses", Suite::OpenaiResponses),
];

/// The suite of `entry`, which stands in the area of this name.
#[must_use]
pub fn suite_of(area: &str, entry: &Entry) -> Suite {
    let by_area = || AREAS.iter().find(|(name, _)| area.starts_with(name));
    let by_title = || TITLES.iter().find(|(word, _)| entry.title.contains(word));
    let suite = entry
        .suite
        .or_else(|| by_area().or_else(by_title).map(|(_, suite)| *suite));
    suite.unwrap_or(Suite::OpenaiChat)
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    use super::*;

    fn suite(id: &str) -> Suite {
        let catalogue = Catalogue::embedded();
        catalogue.suite_of(catalogue.get(id).unwrap())
    }

    #[test]
    fn an_area_belongs_to_the_suite_of_its_protocol() {
        assert_eq!(suite("COV-SUBAG-001"), Suite::CovelSse);
        assert_eq!(suite("SUP-001"), Suite::SessionUpdate);
        assert_eq!(suite("CWS-001"), Suite::ChatWs);
    }

    #[test]
    fn a_wire_is_told_by_the_title() {
        assert_eq!(suite("LLM-CONTENT-023"), Suite::AnthropicMessages);
        assert_eq!(suite("LLM-REASON-014"), Suite::OpenaiResponses);
        assert_eq!(suite("LLM-CONTENT-054"), Suite::Gemini);
        assert_eq!(suite("LLM-CONTENT-034"), Suite::OpenaiChat);
    }

    #[test]
    fn every_suite_but_the_event_stream_has_an_entry() {
        let catalogue = Catalogue::embedded();
        for suite in Suite::ALL.iter().filter(|suite| **suite != Suite::Sse) {
            assert!(
                catalogue
                    .entries()
                    .any(|entry| catalogue.suite_of(entry) == *suite),
                "{suite}"
            );
        }
    }
}
