//! The stories, one list a chapter.

use std::time::Duration;

use serde_json::Value;
use turnwire::{
    drivers::{
        DriveError,
        http::{Call, HttpClient, HttpLimits},
    },
    stage::{Session, Stage},
    transcript::{Header, record::Recorder},
};

use crate::machine::Story;

/// A story of `covel-sse` against the reference server as it starts by default.
macro_rules! story {
    ($name:literal, $about:literal, [$($id:literal),* $(,)?], $run:path $(,)?) => {
        $crate::machine::Story {
            suite: "covel-sse",
            name: $name,
            about: $about,
            shows: &[$($id),*],
            act: $crate::machine::reference(|stage| Box::pin($run(stage))),
        }
    };
    ($name:literal, $about:literal, [$($id:literal),* $(,)?], $variant:literal, $scale:literal, $run:path $(,)?) => {
        $crate::machine::Story {
            suite: "covel-sse",
            name: $name,
            about: $about,
            shows: &[$($id),*],
            act: $crate::machine::Act::Reference {
                variant: $variant,
                time_scale: $scale,
                run: |stage| Box::pin($run(stage)),
            },
        }
    };
}

/// A story of another protocol of the reference server, at this speed.
macro_rules! other {
    ($suite:literal, $name:literal, $about:literal, [$($id:literal),* $(,)?], $scale:literal, $run:path $(,)?) => {
        $crate::machine::Story {
            suite: $suite,
            name: $name,
            about: $about,
            shows: &[$($id),*],
            act: $crate::machine::Act::Reference {
                variant: turnwire::drivers::target::DEFAULT_VARIANT,
                time_scale: $scale,
                run: |stage| Box::pin($run(stage)),
            },
        }
    };
}

mod access;
mod actions;
mod chats;
mod clients;
mod live;
mod notes;
mod plugins;
mod queries;
mod rejections;
mod sessions;
mod subscriptions;
mod updates;
mod waiting;
mod wires;

/// All stories.
pub(crate) static STORIES: &[&[Story]] = &[
    sessions::STORIES,
    actions::STORIES,
    live::STORIES,
    rejections::STORIES,
    subscriptions::STORIES,
    queries::STORIES,
    plugins::STORIES,
    notes::STORIES,
    waiting::STORIES,
    access::STORIES,
    clients::STORIES,
    chats::STORIES,
    updates::STORIES,
    wires::OPENAI_CHAT,
    wires::OPENAI_RESPONSES,
    wires::ANTHROPIC_MESSAGES,
    wires::GEMINI,
    wires::GEMINI_OPENAI,
    wires::ALONE,
];

/// Time between two looks at what is stored.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often it is looked at most: on a busy machine, a moment is long.
const LOOKS: u32 = 1500;

/// Waits until what is stored at a path is as it is to be, and leaves no trace of it in the transcript.
async fn until(
    stage: &Stage,
    session: &Session,
    path: String,
    holds: impl Fn(&Value) -> bool,
) -> Result<(), DriveError> {
    let recorder = Recorder::new(Header::default());
    let client = HttpClient::new(stage.target_url().await?, recorder, HttpLimits::default());
    for _ in 0..LOOKS {
        let call = Call::get(path.clone()).bearer(session.owner_token.as_deref());
        let answer = client.send(call).await?.json();
        if answer.is_some_and(|answer| holds(&answer)) {
            break;
        }
        stage.pause(LOOK_EVERY).await;
    }
    client.finish().await;
    Ok(())
}

/// Waits until the trace of a session has an event of this type.
async fn traced(stage: &Stage, session: &Session, kind: &str) -> Result<(), DriveError> {
    let path = format!("/api/traces/{}", session.id);
    let has = |traces: &Value| {
        let events = traces["events"].as_array().into_iter().flatten();
        events.into_iter().any(|event| event["type"] == kind)
    };
    until(stage, session, path, has).await
}
