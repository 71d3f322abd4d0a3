//! The events that the engine sends, one small function each.
//!
//! Pure translation: facts in, event out. The payloads' types, which topic an event has and which
//! stream it reaches are in [`turnwire_spec::covel`]; when it is sent is decided by the callers.
//!
//! - [`life`]: executions, runtimes, narrative;
//! - [`steps`]: the diagnostics of tool loops;
//! - [`changes`]: hooks, proposals, committed changes, jobs.

pub(super) mod changes;
pub(super) mod life;
pub(super) mod steps;

use serde::Serialize;
use turnwire_spec::covel::payloads::EventPayload;
use turnwire_spec::covel::payloads::conceal::conceal;
use turnwire_spec::covel::{EventMeta, event};

use super::ids::{PluginId, RunId, RuntimeId, TurnId};
use super::model::{Object, Source};

/// One event before it has a time and a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Emission {
    /// The name of a row of [`turnwire_spec::covel::EVENTS`].
    pub(super) kind: &'static str,
    /// The runtime that causes it.
    pub(super) source: Option<Source>,
    /// What there is to know.
    pub(super) payload: Object,
}

impl Emission {
    /// An event that no runtime causes.
    pub(super) fn new<P: EventPayload>(payload: &P) -> Self {
        Self {
            kind: P::EVENT,
            source: None,
            payload: payload.payload(),
        }
    }

    /// An event that this runtime causes.
    fn of<P: EventPayload>(plugin_id: &PluginId, runtime_id: &RuntimeId, payload: &P) -> Self {
        let source = Source {
            plugin_id: plugin_id.clone(),
            runtime_id: runtime_id.clone(),
        };
        Self {
            source: Some(source),
            ..Self::new(payload)
        }
    }

    /// An event of this run.
    ///
    /// A diagnostic of a concealed run keeps nothing of its content, before it is saved or sent.
    fn by<P: EventPayload>(run: &Run, payload: &P) -> Self {
        let mut emission = Self::of(&run.plugin_id, &run.runtime_id, payload);
        if run.concealed && event(P::EVENT).is_some_and(EventMeta::is_diagnostic) {
            conceal(P::EVENT, &mut emission.payload);
        }
        emission
    }
}

/// Which run of which runtime an event is about.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// Its plugin.
    pub plugin_id: PluginId,
    /// The turn.
    pub turn_id: TurnId,
    /// The run.
    pub run_id: RunId,
    /// Whether its content stays out of its diagnostics.
    #[serde(skip)]
    pub concealed: bool,
}
