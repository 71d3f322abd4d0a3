//! What a scripted server plays to the reference client: the events that our own server has no cause to send.
//!
//! The acts are in `acts/`, one file a story. Every payload in them is whole, so that readers see what there is; a test
//! holds them against the schemas. What the client made of them is the state at the end.

use crate::machine::{Act, Story};

/// Acts, played as those of a scenario with a client under test.
macro_rules! acts {
    ($name:literal, $scenario:literal, $about:literal, [$($id:literal),* $(,)?]) => {
        Story {
            suite: "covel-sse",
            name: $name,
            about: $about,
            shows: &[$($id),*],
            act: Act::Client {
                scenario: $scenario,
                acts: include_str!(concat!("../acts/", $name, ".yaml")),
            },
        }
    };
}

pub(crate) const STORIES: &[Story] = &[
    acts!(
        "client-interface",
        "client-slots",
        "a scripted server asks the player, draws blocks and fills slots of the interface",
        [
            "COV-EVT-061",
            "COV-EVT-082",
            "COV-SLOT-001",
            "COV-SLOT-004",
            "COV-SLOT-008",
            "COV-TRACE-070"
        ]
    ),
    acts!(
        "client-rounds",
        "client-ends",
        "a scripted server plays automatic rounds, defers a runtime, and drops operations",
        ["COV-ADV-008", "COV-ADV-015", "COV-EVT-090", "COV-SUSP-094"]
    ),
    acts!(
        "client-world",
        "client-state",
        "a scripted server changes dimensions and characters",
        ["COV-DIM-009", "COV-SUSP-061", "COV-SUSP-063"]
    ),
    acts!(
        "client-plugins",
        "client-state",
        "a scripted server makes an asset, pauses plugins, suspends a turn, and writes a snapshot",
        [
            "COV-MEDIA-014",
            "COV-SUSP-001",
            "COV-SUSP-014",
            "COV-SUSP-027",
            "COV-SUSP-032"
        ]
    ),
    acts!(
        "client-providers",
        "client-ends",
        "a scripted server tells of a plugin's own calls of models",
        ["COV-FWD-051", "COV-FWD-053", "COV-TRACE-060"]
    ),
];

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use turnwire::{
        offline, schema,
        transcript::views::stream::{StreamFrame, streams},
    };
    use turnwire_spec::schema::for_event;

    use super::*;

    /// The payload of an event, on either stream.
    fn payload(frame: &StreamFrame) -> Option<&Value> {
        frame.json.as_ref()?.get("payload")
    }

    #[test]
    fn payloads_of_scripted_frames_fit_their_schemas() {
        if std::env::var_os("TURNWIRE_BLESS").is_some() {
            return;
        }
        let mut judged = 0;
        for story in STORIES {
            let path = crate::files::root().join(format!("covel-sse/{}.twire", story.name));
            let transcript = offline::load(&path).unwrap().transcript;
            for stream in streams(&transcript) {
                for frame in stream.events() {
                    let Some(payload) = payload(frame) else {
                        continue;
                    };
                    let kind = frame.event_type();
                    let schema = for_event(kind).unwrap_or_else(|| panic!("{kind}"));
                    let fault = schema::fault(schema.as_value(), payload);
                    assert_eq!(fault, None, "{}: {kind}", story.name);
                    judged += 1;
                }
            }
        }
        assert!(judged > 40, "{judged}");
    }
}
