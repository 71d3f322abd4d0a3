//! The scenarios: conversations that stimulate a target. They assert nothing.
//!
//! A [`Scenario`] is an async function over a [`Stage`](crate::stage::Stage), or over a
//! [`TesteeStage`](crate::stage::TesteeStage) where the target connects to the harness: it opens sessions, acts,
//! subscribes, reconnects, restarts, and sets labels. Whatever comes back is recorded; a missing or wrong
//! answer is no error of the scenario but stands in the transcript for the checks. One file a catalogue area,
//! listed in that file's `SCENARIOS`; a scenario serves many requirements. `watching` is a step that several of them share.

use std::{future::Future, pin::Pin};

use crate::{
    drivers::DriveError,
    stage::{ClientStage, Stage, TesteeStage},
};

pub mod chat_ws;
pub mod client;
pub mod commands;
pub mod control;
pub mod conversations;
pub mod events_turn;
pub mod llm_content;
pub mod llm_requests;
pub mod llm_stream;
pub mod overview;
pub mod plugins;
pub mod provider;
pub mod queries;
pub mod segments;
pub mod session_update;
pub mod sse;
pub mod subscription;
pub mod suspend;
pub mod trace;
mod watching;

/// The future of one run of a scenario.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<(), DriveError>> + Send + 'a>>;

/// One conversation with the target.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Name, unique in its suite, such as `resume-foreign-epoch`.
    pub name: &'static str,
    /// One line for people: what is done.
    pub about: &'static str,
    /// Capabilities without which it is not run.
    pub needs: &'static [&'static str],
    /// Variant of the profile that the target is started as; `None` is the default one.
    pub variant: Option<&'static str>,
    /// Whether it may share its instance of the target with other scenarios.
    pub isolation: Isolation,
    /// Runs it.
    pub run: Act,
}

impl Scenario {
    /// One that needs nothing and may share its instance of the default variant.
    pub const fn shared(name: &'static str, about: &'static str, run: Act) -> Self {
        Self {
            name,
            about,
            needs: &[],
            variant: None,
            isolation: Isolation::Shared,
            run,
        }
    }
}

/// How a scenario runs, which also says what kind of target it needs.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// The target is a server; the harness connects to it.
    Server(for<'a> fn(&'a Stage) -> Running<'a>),
    /// The target is an adapter; it connects to the harness's mock providers.
    Testee(for<'a> fn(&'a TesteeStage) -> Running<'a>),
    /// The target is a client; it connects to a scripted server of the harness.
    Client(for<'a> fn(&'a ClientStage) -> Running<'a>),
}

/// Whether a scenario may share its instance of the target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Isolation {
    /// Uses sessions of its own and disturbs nobody.
    Shared,
    /// Restarts the target, fills its capacity or counts its connections: needs an instance of its own.
    Own,
}
