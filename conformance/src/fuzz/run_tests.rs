//! When a case that fails is believed, on a paused clock: a target that answers after so many seconds.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{sync::mpsc::unbounded_channel, time::sleep};

use super::{
    Abilities, Case, FuzzEvent, FuzzPlan, PlantedFault, Protocol, fuzz, random::Random,
    report::Seen,
};
use crate::{
    drivers::{
        DriveError,
        http::BaseUrl,
        target::{Launch, Pending, Running, Start},
    },
    profile::Profile,
    stage::Stage,
    transcript::Transcript,
};

/// A protocol whose cases wait for one answer, which comes after the next of these times.
#[derive(Debug)]
struct Slow(Mutex<Vec<Duration>>);

impl Protocol for Slow {
    fn suite(&self) -> &'static str {
        "session-update"
    }

    fn case(&self, _: &mut Random, _: &Abilities) -> Case {
        Case::default()
    }

    fn play<'a>(&self, stage: &'a Stage, _: &'a Case) -> Pending<'a, Result<(), DriveError>> {
        let mut answers = self.0.lock().unwrap();
        let comes = answers.pop().unwrap_or_default();
        Box::pin(async move {
            let waited = stage.patience(Duration::ZERO);
            sleep(comes.min(waited)).await;
            let request = "a question".to_owned();
            if comes > waited {
                return Err(DriveError::Silent { request, waited });
            }
            Ok(())
        })
    }

    fn seen(&self, _: &Transcript) -> Seen {
        Seen::default()
    }

    fn faults(&self) -> &'static [PlantedFault] {
        &[]
    }
}

/// A target that is nothing but an address.
#[derive(Debug)]
struct Nothing;

impl Launch for Nothing {
    fn start<'a>(&'a self, _: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>> {
        Box::pin(async { Ok(Box::new(Self) as Box<dyn Running>) })
    }

    fn offers(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn restarts(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Running for Nothing {
    fn base_url(&self) -> BaseUrl {
        BaseUrl::parse("http://127.0.0.1:9").unwrap()
    }

    fn output(&self) -> Vec<String> {
        Vec::new()
    }

    fn stop(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async { Ok(()) })
    }

    fn kill(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Cases one after the other, whose answers come after so many seconds each.
fn plan(cases: u64, seconds: &[u64]) -> FuzzPlan {
    let answers = seconds.iter().rev().copied().map(Duration::from_secs);
    let protocol = Box::leak(Box::new(Slow(Mutex::new(answers.collect()))));
    let mut plan = FuzzPlan::new(protocol, Profile::reference(), 1, cases);
    plan.launch = Arc::new(Nothing);
    plan.jobs = 1;
    plan
}

#[tokio::test(start_paused = true)]
async fn a_case_that_was_short_of_time_and_passes_with_more_does_not_fail() {
    // The second case runs out of time, and is played again.
    let report = fuzz(plan(3, &[1, 30, 30, 1])).await.unwrap();
    assert!(report.holds(), "{}", report.render());
    assert_eq!((report.played, report.hurried), (3, 1));
    assert!(report.render().contains("1 cases ran out of time"));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_does_not_answer_fails_and_is_given_more_time_for_a_while_only() {
    const NEVER: u64 = 10_000;
    let mut plan = plan(5, &[NEVER; 5000]);
    let (events, mut heard) = unbounded_channel();
    plan.events = Some(events);
    let begun = tokio::time::Instant::now();
    let report = fuzz(plan).await.unwrap();
    assert_eq!((report.failures.len(), report.hurried), (5, 0));
    let mut waits = Vec::new();
    while let Some(event) = heard.recv().await {
        if let FuzzEvent::Failed { what, .. } = event {
            waits.push(
                what.split_whitespace()
                    .last()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    assert_eq!(waits, ["60s", "60s", "60s", "10s", "10s"]);
    assert!(
        begun.elapsed() < Duration::from_secs(400),
        "{:?}",
        begun.elapsed()
    );
}
