//! Conversations in which a model writes a segmented story: JSON whose paragraphs have a kind, a speaker and a text.

use serde_json::{Value, json};
use turnwire_mock::Reply;

use super::{
    Scenario,
    events_turn::turn,
    watching::{read_session, watch},
};
use crate::{
    drivers::DriveError,
    scenarios::Act,
    stage::{CreateSession, Session, Stage, Subscribe},
};

/// The plugin whose story is segmented; it stands in for the plain story.
const SEGMENTS: &str = "turnwire-segments";
/// A name that is one character too long, and one that just fits.
const LONGEST: usize = 80;

/// The scenarios of segmented stories.
pub const SCENARIOS: &[Scenario] = &[Scenario {
    needs: &["fixture-segments"],
    ..Scenario::shared(
        "segmented-story",
        "stories whose model writes JSON with paragraphs, cut anywhere: speakers early and late, gaps, odd kinds, long names",
        Act::Server(|stage| Box::pin(segmented_story(stage))),
    )
}];

async fn segmented_story(stage: &Stage) -> Result<(), DriveError> {
    let plugins = vec![SEGMENTS.to_owned(), stage.profile().fixture_plugin.clone()];
    let wish = CreateSession {
        plugins: Some(plugins),
        ..CreateSession::default()
    };
    let session = stage.create_session(wish).await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    for (label, segments, size) in stories() {
        tell(stage, &session, label, &segments, size).await?;
    }
    read_session(stage, &session, "read-segments").await?;
    watcher.close().await;
    Ok(())
}

/// The label of each turn, what its model writes, and in pieces of how many characters.
fn stories() -> [(&'static str, Value, usize); 5] {
    let said =
        |speaker: &str, text: &str| json!({ "kind": "dialogue", "speaker": speaker, "text": text });
    let plain = json!([
        { "kind": "narration", "text": "The door opens." },
        { "kind": "dialogue", "speaker": "ZZSPEAKER", "cue": "ZZCUE", "text": "Who is there?" },
        { "kind": "narration", "text": "Nobody answers." },
    ]);
    let gaps = json!([
        { "kind": "narration", "text": "A quiet hall." },
        { "kind": "narration", "text": "   " },
        { "kind": "narration", "text": "" },
        { "kind": "narration", "text": "A voice." },
    ]);
    let odd = json!([
        { "kind": "shout", "speaker": "Ann", "text": "Somebody shouts." },
        { "kind": "narration", "speaker": "Ann", "text": "It echoes." },
        said(" Ann ", "Hear that?"),
        said(&"y".repeat(LONGEST + 1), "What a name."),
        said(&"z".repeat(LONGEST), "Mine is shorter."),
    ]);
    let names = json!([
        said("Zolbert", "One."),
        said("Arnika", "Two."),
        said("Zolbert", "Three."),
        said("Mipsi", "Four."),
    ]);
    [
        ("seg-plain", plain, 1),
        ("seg-gaps", gaps, 3),
        // Written as it stands, because the order of its members is what counts.
        ("seg-late", Value::Null, 4),
        ("seg-odd", odd, 5),
        ("seg-names", names, 40),
    ]
}

async fn tell(
    stage: &Stage,
    session: &Session,
    label: &str,
    segments: &Value,
    size: usize,
) -> Result<(), DriveError> {
    let written = match segments {
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(in_order).collect();
            format!("{{\"segments\": [{}]}}", list.join(", "))
        }
        _ => r#"{"segments": [{"text": "Go away!", "kind": "dialogue", "speaker": "Zolbert"}]}"#
            .to_owned(),
    };
    let letters: Vec<char> = written.chars().collect();
    let pieces = letters
        .chunks(size)
        .map(|piece| piece.iter().collect::<String>());
    turn(stage, session, label, [Reply::new().pieces(pieces)]).await
}

/// A segment whose kind and speaker stand before its text.
fn in_order(segment: &Value) -> String {
    let members = ["kind", "speaker", "cue", "text"]
        .iter()
        .filter_map(|name| {
            let value = segment.get(name)?;
            Some(format!("\"{name}\": {value}"))
        });
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}
