//! What it cost: in one model for all wires, never summed up, never invented.

use serde_json::json;
use turnwire_mock::script::{UsagePlace, Variation};
use turnwire_mock::{Edit, Reply, Usage};
use turnwire_spec::llm::Wire;

use super::{COST, Case, Group, TEXT, answer, truth::Truth};

fn case(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Usage, id, about, reply).truth(truth)
}

fn whole() -> Truth {
    Truth::text(TEXT).finish("stop")
}

/// The cases of this group.
pub fn cases(wire: Wire) -> Vec<Case> {
    let cached = Usage {
        input: 100,
        cached: 60,
        ..COST
    };
    let thought = Usage {
        output: 25,
        reasoning: 20,
        ..COST
    };
    let text = Reply::text(TEXT);
    let mut cases = vec![
        case(
            "usage-unknown",
            "no usage at all",
            text.clone().without_usage(),
            whole().unknown_usage(),
        ),
        case(
            "usage-cached",
            "a part of the input came from a cache",
            text.clone().usage(cached),
            whole().usage(cached).details(cached),
        ),
        case(
            "usage-thinking",
            "a part of the output was thinking",
            text.clone().usage(thought),
            whole().usage(thought).details(thought),
        ),
    ];
    cases.extend(match wire {
        Wire::OpenaiChat | Wire::GeminiOpenai => chat(),
        Wire::AnthropicMessages => anthropic(),
        Wire::Gemini => {
            let odd = Usage {
                total: Some(999),
                ..COST
            };
            vec![case(
                "usage-total",
                "a total that is not the sum",
                text.usage(odd),
                whole().usage(COST),
            )]
        }
        Wire::OpenaiResponses => Vec::new(),
    });
    cases
}

fn chat() -> Vec<Case> {
    let place = |usage| {
        answer().variation(Variation {
            usage,
            ..Variation::default()
        })
    };
    let counted = || whole().usage(COST);
    vec![
        case(
            "usage-places/empty-choices",
            "in a chunk without choices",
            place(UsagePlace::EmptyChoices),
            counted(),
        ),
        case(
            "usage-places/last-chunk",
            "in the chunk with the finish",
            place(UsagePlace::LastChunk),
            counted(),
        ),
        case(
            "usage-places/every-chunk",
            "in every chunk, as totals",
            place(UsagePlace::EveryChunk),
            counted(),
        ),
        case(
            "usage-places/then-null",
            "followed by a null usage",
            place(UsagePlace::ThenNull),
            counted(),
        ),
        case(
            "usage-of-others/in-choice",
            "in the choice",
            place(UsagePlace::InChoice),
            counted(),
        )
        .truth(whole().unknown_usage()),
        case(
            "usage-of-others/x-groq",
            "in x_groq",
            place(UsagePlace::XGroq),
            counted(),
        )
        .truth(whole().unknown_usage()),
    ]
}

fn anthropic() -> Vec<Case> {
    let cached = Usage {
        input: 100,
        cached: 60,
        cache_write: 20,
        ..COST
    };
    let with_cache = || Reply::text(TEXT).usage(cached);
    let delta = || Edit::on("message_delta");
    let read = "/usage/cache_read_input_tokens";
    vec![
        case(
            "usage-cache-write",
            "a part of the input was written to a cache",
            with_cache(),
            whole().usage(cached),
        ),
        case(
            "usage-null-later/cache",
            "null cache counts in message_delta",
            with_cache().edit(
                delta()
                    .set(read, json!(null))
                    .set("/usage/cache_creation_input_tokens", json!(null)),
            ),
            whole().usage(cached),
        ),
        case(
            "usage-null-later/input",
            "a null input count in message_delta",
            answer().edit(delta().set("/usage/input_tokens", json!(null))),
            whole().usage(COST),
        ),
        case(
            "usage-absent-later",
            "message_delta without usage",
            answer().edit(delta().remove("/usage")),
            whole(),
        ),
    ]
}
