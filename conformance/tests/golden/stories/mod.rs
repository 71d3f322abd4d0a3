//! The stories, one list a chapter.

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
