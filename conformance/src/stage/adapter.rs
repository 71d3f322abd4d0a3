//! What a scenario does with an adapter: it plays cases against the recorded mock providers.
//!
//! A case has a mock of its own script, the line that the adapter gets, and the truth; the transcript holds all
//! three, so that a check needs nothing else.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::{Rule, Script};
use turnwire_spec::llm::Wire;

use super::testee::TesteeStage;
use crate::{
    cases::{self, Case},
    drivers::{DriveError, http::BaseUrl, provider::Provider},
};

/// The mock providers of a stage, and where the testee finds them.
#[derive(Debug)]
pub struct Provided {
    provider: Provider,
    /// The root, behind the saboteur when there is one; without a slash at its end.
    root: String,
}

pub use crate::cases::KEY;

impl TesteeStage {
    /// The wire that the suite is about.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] for a suite that is about no wire.
    pub fn wire(&self) -> Result<Wire, DriveError> {
        let suite = self.suite().name();
        cases::wire(suite).ok_or_else(|| DriveError::Harness(format!("{suite} is no wire")))
    }

    /// The mock providers, started when they are first asked for.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is no free port.
    pub async fn provided(&self) -> Result<&Provided, DriveError> {
        self.provided.get_or_try_init(|| self.started()).await
    }

    /// The same at another address.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is no free port.
    pub(super) async fn elsewhere(&self) -> Result<&Provided, DriveError> {
        self.elsewhere.get_or_try_init(|| self.started()).await
    }

    async fn started(&self) -> Result<Provided, DriveError> {
        let provider = Provider::start(self.recorder().clone()).await?;
        self.behind_saboteur(provider).await
    }

    /// Puts the saboteur in front of mock providers.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when the saboteur's proxy does not start.
    pub(super) async fn behind_saboteur(&self, provider: Provider) -> Result<Provided, DriveError> {
        let root = BaseUrl::parse(&provider.root())
            .map_err(|error| DriveError::Harness(error.to_string()))?;
        let root = self.front(&root).await?.to_string();
        Ok(Provided { provider, root })
    }

    /// Plays the cases of a group that the run asks for, one after the other.
    ///
    /// # Errors
    ///
    /// When the adapter cannot be started. What it does with a case is no error.
    pub async fn play_group(&self, group: cases::Group) -> Result<(), DriveError> {
        let wire = self.wire()?;
        for case in cases::of(wire).iter().filter(|case| case.group == group) {
            if self.setting.cases.wants(&case.id) {
                self.play(wire, case).await?;
            }
        }
        Ok(())
    }

    /// Plays one case. A conversation of several turns goes on with what the adapter reported.
    ///
    /// # Errors
    ///
    /// When the adapter cannot be started.
    pub async fn play(&self, wire: Wire, case: &Case) -> Result<(), DriveError> {
        let provided = self.provided().await?;
        provided.load(case, &self.setting.cases.splits);
        self.label(&case.id);
        self.state(json!({ "case": case.id, "truth": case.truths }));
        let line = case.line(wire, &provided.base_url(wire), KEY);
        self.tell(&line).await?;
        let within = case.within.unwrap_or(self.patience());
        self.report_of(&case.id, within).await;
        if !self.setting.cases.splits.is_empty() {
            self.setting.cases.longest.count(provided.longest());
        }
        Ok(())
    }

    /// The report of this case; reports of others are late and count for nothing.
    pub(super) async fn report_of(&self, case: &str, within: Duration) -> Option<Value> {
        let until = tokio::time::Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let report = self.report(left).await?;
            if report["case"] == case {
                return Some(report);
            }
        }
    }
}

impl Provided {
    /// The mock providers.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The base URL that clients of a wire are given.
    pub fn base_url(&self, wire: Wire) -> String {
        format!(
            "{}{}",
            self.root.trim_end_matches('/'),
            self.provider.path_of(wire)
        )
    }

    /// The root of the mock, without a slash at its end.
    pub fn root(&self) -> &str {
        self.root.trim_end_matches('/')
    }

    /// Answers with this script, and with nothing else.
    pub fn answer_with(&self, script: Script) {
        self.provider.mock().reset();
        self.provider.mock().load(script);
    }

    /// Bytes of the longest body that was to be sent since the last [`Provided::answer_with`].
    fn longest(&self) -> u64 {
        let journal = self.provider.mock().journal();
        let lengths = journal.iter().map(|entry| entry.body_bytes);
        lengths.max().unwrap_or_default()
    }

    /// Answers with what a case says, and with nothing else.
    pub fn load(&self, case: &Case, splits: &[usize]) {
        self.answer_with(script(case, splits));
    }
}

/// The script of a case, its answers split at these bytes.
pub fn script(case: &Case, splits: &[usize]) -> Script {
    let replies = case.replies.iter().cloned().map(|mut reply| {
        reply.faults.split_at.extend(splits);
        reply
    });
    replies
        .fold(Rule::new(case.id.clone()).lenient(), Rule::reply)
        .into()
}
