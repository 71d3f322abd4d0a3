//! What is run, against what.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;
use turnwire_spec::catalogue::Entry;

use super::RunEvent;
use crate::{
    drivers::{
        target::{Intercept, Launch},
        testee::{LaunchTestee, client::LaunchClient},
    },
    profile::Profile,
    scenarios::Scenario,
    stage::Cases,
    suites::Suite,
};

/// Everything that a run needs to know.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The protocol.
    pub suite: &'static Suite,
    /// The requirements that get a verdict, in catalogue order.
    pub requirements: Vec<&'static Entry>,
    /// The frozen set that the requirements were taken from, by name.
    pub revision: Option<String>,
    /// The scenarios that are played; `None` plays those that may show the requirements.
    pub scenarios: Option<Vec<&'static Scenario>>,
    /// What is known about the target.
    pub profile: Arc<Profile>,
    /// How the target is started, when it is a server.
    pub launch: Arc<dyn Launch>,
    /// How the target is started, when it is an adapter.
    pub testee: Option<Arc<dyn LaunchTestee>>,
    /// How the target is started, when it is a client.
    pub client: Option<Arc<dyn LaunchClient>>,
    /// Which cases an adapter, or a client, is put through, and how.
    pub cases: Cases,
    /// Something between the harness and every instance of the target.
    pub intercept: Option<Arc<dyn Intercept>>,
    /// Scenarios that are played at the same time; at least 1.
    pub jobs: usize,
    /// Tells the tokens of this run from those of other runs against the same target.
    pub seed: u64,
    /// Whether every requirement that has a check must be exercised, as the demo and the proof ask.
    pub require_all: bool,
    /// Who is told what happens.
    pub events: Option<UnboundedSender<RunEvent>>,
    /// Ends the run early: what is being played is given up, the rest is left out, and what was seen is judged.
    pub interrupt: CancellationToken,
}

impl RunPlan {
    /// A whole suite against the target of a profile. Scenarios mostly wait, so there are more jobs than
    /// processors.
    pub fn new(suite: &'static Suite, profile: Profile, launch: Arc<dyn Launch>) -> Self {
        let jobs = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            suite,
            requirements: suite.entries(None).collect(),
            revision: None,
            scenarios: None,
            profile: Arc::new(profile),
            launch,
            testee: None,
            client: None,
            cases: Cases::default(),
            intercept: None,
            jobs: jobs.clamp(2, 8) * 4,
            seed: 0,
            require_all: false,
            events: None,
            interrupt: CancellationToken::new(),
        }
    }

    /// Whether one of the texts of the profile's `requires` names the requirement, or all are required.
    pub(super) fn requires(&self, entry: &Entry) -> bool {
        let declared = |need: &String| self.profile.capabilities.get(need) == Some(&true);
        self.require_all
            || entry.needs.as_ref().is_some_and(declared)
            || self
                .profile
                .requires
                .iter()
                .any(|text| self.names(text, entry))
    }

    fn names(&self, text: &str, entry: &Entry) -> bool {
        let named = turnwire_spec::catalogue::Catalogue::embedded().select(text);
        named.is_ok_and(|named| named.iter().any(|found| found.id == entry.id))
    }

    /// Tells whoever wants to know.
    pub(super) fn tell(&self, event: RunEvent) {
        if let Some(events) = &self.events {
            // Nobody has to listen.
            let _ = events.send(event);
        }
    }

    /// Tells that a scenario is left out; gives the reason back.
    pub(super) fn tell_skipped(&self, scenario: &Scenario, why: &str) -> String {
        let name = scenario.name.to_owned();
        self.tell(RunEvent::ScenarioSkipped {
            name,
            why: why.to_owned(),
        });
        why.to_owned()
    }
}
