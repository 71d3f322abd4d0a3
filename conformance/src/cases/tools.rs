//! Tool calls in a stream: whole, in pieces, side by side.

use serde_json::json;
use turnwire_mock::{Call, Reply};
use turnwire_spec::llm::Wire;

use super::{Ask, COST, Case, Group, truth::TrueCall, truth::Truth};

fn case(id: &str, about: &'static str, reply: Reply, truth: Truth) -> Case {
    Case::new(Group::Tools, id, about, reply.usage(COST))
        .ask(Ask::with_tools())
        .truth(truth)
}

/// The cases of this group.
pub fn cases(_: Wire) -> Vec<Case> {
    let paris = json!({ "city": "Paris" });
    let call = Call::new("get_weather", paris.clone()).id("call_weather_1");
    vec![case(
        "call-in-pieces",
        "the arguments of a call come piece by piece",
        Reply::new().calls([call]),
        Truth::calls([TrueCall::new("get_weather", paris)]),
    )]
}
