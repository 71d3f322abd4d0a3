//! Conversations that go on after a call: with the model that asked for it, with another model, at another address,
//! on another wire.
//!
//! Each is about one thing that an adapter keeps of an answer (its `continuation`), and asks for a model of its own,
//! by which the catalogue's sabotages in `llm-reasoning` find its requests. The rules there find them by the id.

use serde_json::{Value, json};
use turnwire_mock::{
    Call, Reasoning, Reply, Rule, Script, Variation, When,
    script::{Echo, ReasoningField, Service, SignaturePlace},
};
use turnwire_spec::llm::Wire;

use super::{
    Truth,
    content::Feature,
    hazard_of,
    requests::{Talk, Turn, look, result, user},
};

/// What the model thinks, where it is one thing.
const THOUGHT: &str = "THOUGHT-1";
/// What it says beside its calls.
const SAYS: &str = "Calling";
/// What it says in the end.
const DONE: &str = "Done.";
/// A signature.
const SIGNATURE: &str = "SIG-1";

/// Thinking on Chat Completions, and the member in which it goes back.
pub(super) fn members() -> Vec<Talk> {
    use ReasoningField::{Reasoning, ReasoningContent, ThinkTags};
    use Wire::OpenaiChat;
    let chat = |id, field, turns| talk(id, OpenaiChat, [spoken(field, THOUGHT)], turns);
    vec![
        chat("back-tags", ThinkTags, [asks(), goes_on()]),
        talk(
            "back-field",
            OpenaiChat,
            [spoken(Reasoning, THOUGHT)],
            [asks()],
        ),
        chat("back-reasoning", Reasoning, [asks(), goes_on()]),
        talk(
            "back-each",
            OpenaiChat,
            [spoken(Reasoning, "r1"), spoken(Reasoning, "r2")],
            [asks(), calls_again(), goes_on()],
        ),
        chat("back-model", Reasoning, [asks(), to_model("back-model-b")]),
        chat("back-address", Reasoning, [asks(), to_address(1)]),
        chat("back-generic", ReasoningContent, [asks(), goes_on()]),
        refusing(),
        endpoints(),
    ]
}

/// What a service gave in a form of its own, in the suite of what holds on each wire.
pub(super) fn native() -> Vec<Talk> {
    use Wire::{AnthropicMessages, Gemini, OpenaiChat, OpenaiResponses};
    let own = |id, wire, reply| talk(id, wire, [reply], [asks(), goes_on()]);
    vec![
        own("back-order/anthropic", AnthropicMessages, signed()),
        own("back-order/responses", OpenaiResponses, encrypted()),
        own("back-signed", AnthropicMessages, signed()),
        own(
            "back-redacted/anthropic",
            AnthropicMessages,
            redacted("ENC-1"),
        ),
        own(
            "back-redacted/responses",
            OpenaiResponses,
            redacted("ENC-2"),
        ),
        talk(
            "back-native-model",
            AnthropicMessages,
            [signed()],
            [asks(), to_model("back-native-model-b")],
        ),
        talk(
            "back-native-address",
            OpenaiResponses,
            [encrypted()],
            [asks(), to_address(1)],
        ),
        talk(
            "back-native-wire",
            AnthropicMessages,
            [signed()],
            [asks(), to_wire(OpenaiChat)],
        ),
        talk(
            "back-switch",
            Gemini,
            [parts()],
            [asks_twice(), both(to_wire(OpenaiChat))],
        ),
    ]
}

/// What Gemini signs.
pub(super) fn gemini() -> Vec<Talk> {
    let signed = |id, turn| talk(id, Wire::Gemini, [parts()], [asks_twice(), both(turn)]);
    let refused = |turn| Turn {
        truths: vec![Truth::error(&["config"])],
        ..turn
    };
    let unsigned = Reply::new().calls([call("look")]).variation(Variation {
        signature: SignaturePlace::Absent,
        ..Variation::default()
    });
    vec![
        signed("back-parts", goes_on()),
        signed(
            "back-signed-model",
            refused(to_model("back-signed-model-b")),
        ),
        signed("back-signed-address", refused(to_address(1))),
        talk(
            "back-unsigned",
            Wire::Gemini,
            [unsigned],
            [
                calls(&["look"], vec![user("Look.")]),
                to_model("back-unsigned-b"),
            ],
        ),
        signed("back-elsewhere", to_wire(Wire::OpenaiChat)),
    ]
}

/// A conversation with a model named after it. Its replies come in the order of the steps since the user spoke, at
/// each address; then comes [`DONE`].
fn talk<const N: usize, const M: usize>(
    id: &'static str,
    wire: Wire,
    replies: [Reply; N],
    turns: [Turn; M],
) -> Talk {
    let steps = replies.into_iter().chain([Reply::text(DONE)]).enumerate();
    let script = steps.fold(Script::new("continuations"), |script, (step, reply)| {
        script.rule(at(step).lenient().reply(reply))
    });
    Talk {
        id,
        wire,
        model: hazard_of(id),
        feature: Some(Feature::Continuation),
        script,
        more: json!({ "stream": true, "tools": [look(), take()],
            "options": { "thinking": true, "retries": 0 } }),
        stored: false,
        turns: turns.into(),
    }
}

fn at(step: usize) -> Rule {
    Rule::new(format!("step-{step}")).when(When::new().step(step))
}

/// A service such as Groq: it answers with `reasoning`, and refuses `reasoning_content`.
fn refusing() -> Talk {
    let call = || spoken(ReasoningField::Reasoning, THOUGHT).service(Service::Groq);
    let replies = [call(), call(), Reply::text(DONE)].into_iter().enumerate();
    let script = replies.fold(Script::new("continuations"), |script, (step, reply)| {
        script.rule(at(step).echo(Echo::Refused).reply(reply))
    });
    let turns = [asks(), calls_again(), goes_on()];
    Talk {
        script,
        ..talk("back-refused", Wire::OpenaiChat, [], turns)
    }
}

/// Two services, at two addresses, that a list of providers would not tell apart.
fn endpoints() -> Talk {
    let asked = |text: &str| {
        Rule::new(text)
            .when(When::new().last_user(text).step(0))
            .lenient()
    };
    let script = Script::new("continuations")
        .rule(asked("Look here.").reply(spoken(ReasoningField::Reasoning, THOUGHT)))
        .rule(asked("Look there.").reply(spoken(ReasoningField::ReasoningContent, THOUGHT)))
        .rule(Rule::new("rest").lenient().reply(DONE));
    let there = Turn {
        place: 1,
        anew: true,
        ..calls(&["look"], vec![user("Look there.")])
    };
    let here = calls(&["look"], vec![user("Look here.")]);
    let turns = [here, goes_on(), there, to_address(1)];
    Talk {
        script,
        ..talk("back-endpoints", Wire::OpenaiChat, [], turns)
    }
}

fn take() -> Value {
    json!({ "name": "take", "description": "Takes.", "parameters": { "type": "object", "properties": {} } })
}

fn call(name: &str) -> Call {
    Call::new(name, json!({ "at": 1 }))
}

/// A Chat answer with a call, and with thinking in this place.
fn spoken(field: ReasoningField, thinking: &str) -> Reply {
    let variation = Variation {
        reasoning_field: field,
        ..Variation::default()
    };
    Reply::new()
        .reasoning(thinking)
        .say(SAYS)
        .calls([call("look")])
        .variation(variation)
}

/// Thinking with a signature, a text and a call.
fn signed() -> Reply {
    natively(Reasoning {
        signature: Some(SIGNATURE.to_owned()),
        ..Reasoning::from(THOUGHT)
    })
    .say(SAYS)
    .calls([call("look")])
}

/// The same, encrypted.
fn encrypted() -> Reply {
    natively(Reasoning {
        encrypted: Some("ENC-2".to_owned()),
        ..Reasoning::from(THOUGHT)
    })
    .say(SAYS)
    .calls([call("look")])
}

/// Thinking that nobody but the service can read, a text and a call.
fn redacted(secret: &str) -> Reply {
    natively(Reasoning {
        encrypted: Some(secret.to_owned()),
        ..Reasoning::default()
    })
    .say(SAYS)
    .calls([call("look")])
}

fn natively(reasoning: Reasoning) -> Reply {
    Reply::new().reasoning(reasoning)
}

/// A Gemini turn: a thought and two calls, each with a signature.
fn parts() -> Reply {
    let signed = |name: &str, signature: &str| Call {
        signature: Some(signature.to_owned()),
        ..call(name)
    };
    Reply::new()
        .reasoning(THOUGHT)
        .calls([signed("look", SIGNATURE), signed("take", "SIG-2")])
}

/// The first turn, which one call answers.
fn asks() -> Turn {
    calls(&["look"], vec![user("Look.")])
}

/// The first turn, which two calls answer.
fn asks_twice() -> Turn {
    calls(&["look", "take"], vec![user("Look.")])
}

/// A turn in the middle: the result of a call, which another call answers.
fn calls_again() -> Turn {
    calls(&["look"], vec![result("@0", "a cat")])
}

fn calls(names: &[&str], added: Vec<Value>) -> Turn {
    let called = names
        .iter()
        .map(|name| super::truth::TrueCall::new(name, json!({ "at": 1 })));
    Turn {
        truths: vec![Truth::calls(called)],
        ..added.into()
    }
}

/// The last turn: the result of a call.
fn goes_on() -> Turn {
    Turn {
        truths: vec![Truth::text(DONE)],
        ..vec![result("@0", "a cat")].into()
    }
}

/// The same with the results of two calls.
fn both(mut turn: Turn) -> Turn {
    turn.added.push(result("@1", "a dog"));
    turn
}

fn to_model(model: &'static str) -> Turn {
    Turn {
        model: Some(model),
        ..goes_on()
    }
}

fn to_address(place: usize) -> Turn {
    Turn { place, ..goes_on() }
}

fn to_wire(wire: Wire) -> Turn {
    Turn {
        wire: Some(wire),
        ..goes_on()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use turnwire_spec::catalogue::Rule as Judges;

    use super::*;
    use crate::{cases::is_of, suites};

    /// Which turns a rule is about.
    fn subjects(rule: &Judges) -> Vec<String> {
        match rule {
            Judges::All(rules) => rules.iter().flat_map(subjects).collect(),
            Judges::Asked(asked) => asked.label.clone(),
            Judges::Outcome(outcome) => vec![outcome.hazard.clone()],
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_conversation_is_judged_and_every_rule_has_its_turn() {
        for (name, talks) in [
            ("openai-chat", [members(), native()].concat()),
            ("gemini", gemini()),
        ] {
            let ids: BTreeSet<_> = talks.iter().map(|talk| talk.id).collect();
            assert_eq!(ids.len(), talks.len(), "{name}: an id is there twice");
            let turns: Vec<String> = talks
                .iter()
                .flat_map(|talk| (0..talk.turns.len()).map(|turn| format!("{}/{turn}", talk.id)))
                .collect();
            let entries = suites::find(name).unwrap().entries(None);
            let scenarios = ["reasoning-back", "reasoning-native"];
            let entries = entries.filter(|entry| {
                let named = |name: &String| scenarios.contains(&name.as_str());
                entry.scenario.iter().any(named)
            });
            let subjects: Vec<_> = entries
                .filter_map(|entry| entry.rule.as_ref())
                .flat_map(subjects)
                .collect();
            for subject in &subjects {
                let has_turn = turns.iter().any(|turn| is_of(turn, subject));
                assert!(has_turn, "{name}: {subject}");
            }
            for talk in &talks {
                let judged = subjects.iter().any(|subject| is_of(subject, talk.id));
                assert!(judged, "{name}: {}", talk.id);
            }
        }
    }
}
