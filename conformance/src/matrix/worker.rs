//! One adapter and one mock provider, which make one run after the other.

use serde_json::Value;
use tokio::time::Instant;

use super::MatrixPlan;
use crate::{
    cases::{self, Case},
    drivers::{
        DriveError,
        provider::Provider,
        testee::{About, Said, Testee},
    },
    stage::adapter::{KEY, script},
    transcript::{Header, record::Recorder, views::http::exchanges},
};

/// An adapter and the provider that it calls.
#[derive(Debug)]
pub(super) struct Worker {
    provider: Provider,
    about: About,
    /// Gone after a case that it did not survive.
    testee: Option<Testee>,
}

/// How a run went.
#[derive(Debug)]
pub(super) enum Ran {
    /// The report is right; the bytes of the answer, when it was not split.
    Right { body: Vec<u8> },
    /// The adapter cannot express the case.
    Unsupported(String),
    /// The report is wrong.
    Wrong { expected: String, got: String },
}

impl Worker {
    pub(super) async fn start(plan: &MatrixPlan) -> Result<Self, DriveError> {
        let testee = plan.launch.start().await?;
        testee.about().speaks(plan.wire.as_str())?;
        Ok(Self {
            provider: Provider::unrecorded().await?,
            about: testee.about().clone(),
            testee: Some(testee),
        })
    }

    pub(super) fn about(&self) -> &About {
        &self.about
    }

    /// Plays a case, split here or not at all.
    pub(super) async fn play(
        &mut self,
        plan: &MatrixPlan,
        case: &Case,
        split: Option<usize>,
    ) -> Result<Ran, DriveError> {
        let Some(split) = split else {
            return self.record(plan, case).await;
        };
        let mock = self.provider.mock();
        mock.reset();
        mock.load(script(case, &[split]));
        let base_url = format!(
            "{}{}",
            self.provider.root(),
            self.provider.path_of(plan.wire)
        );
        let report = self.ask(plan, case, &base_url).await?;
        Ok(judge(case, &report, Vec::new()))
    }

    /// Plays a case as it is, against a provider that records, for the bytes of the last answer.
    async fn record(&mut self, plan: &MatrixPlan, case: &Case) -> Result<Ran, DriveError> {
        let recorder = Recorder::new(Header::default());
        let provider = Provider::start(recorder.clone()).await?;
        provider.mock().load(script(case, &[]));
        let base_url = format!("{}{}", provider.root(), provider.path_of(plan.wire));
        let report = self.ask(plan, case, &base_url).await?;
        let transcript = recorder.transcript();
        let body = exchanges(&transcript)
            .last()
            .map(|exchange| exchange.body());
        Ok(judge(case, &report, body.unwrap_or_default()))
    }

    /// The report of a case; null when there is none, and then the adapter is ended.
    async fn ask(
        &mut self,
        plan: &MatrixPlan,
        case: &Case,
        base_url: &str,
    ) -> Result<Value, DriveError> {
        let mut testee = match self.testee.take() {
            Some(testee) => testee,
            None => plan.launch.start().await?,
        };
        let line = case.line(plan.wire, base_url, KEY);
        let until = Instant::now() + case.within.unwrap_or(plan.within);
        if !testee.send(&line, plan.within).await {
            return Ok(Value::Null);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(Said::Line(bytes)) = testee.hear(left).await else {
                return Ok(Value::Null);
            };
            let report: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if report["case"] == case.id.as_str() {
                self.testee = Some(testee);
                return Ok(report);
            }
        }
    }
}

fn judge(case: &Case, report: &Value, body: Vec<u8>) -> Ran {
    if let Some(why) = report.get("unsupported").filter(|why| !why.is_null()) {
        return Ran::Unsupported(why.as_str().unwrap_or_default().to_owned());
    }
    match cases::fault(&case.truths, report) {
        None => Ran::Right { body },
        Some((expected, _)) if report.is_null() => Ran::Wrong {
            expected,
            got: "no report".to_owned(),
        },
        Some((expected, got)) => Ran::Wrong { expected, got },
    }
}
