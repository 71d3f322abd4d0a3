//! The reference server is recorded while scenarios of the demo are played: the recording passes every check.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    drivers::{
        DriveError,
        http::BaseUrl,
        target::{Front, Intercept, Pending},
    },
    offline::{Checked, Source, check},
    profile::Profile,
    recording::{RecordOptions, RecordingProxy, Tape, written},
    report::{Outcome, State},
    run::{self, RunPlan, judge::is_timed},
    suites,
    transcript::{Header, text},
};

/// A recording proxy in front of every instance.
#[derive(Debug, Default)]
struct Recording {
    tapes: Mutex<Vec<Tape>>,
}

#[derive(Debug)]
struct InFront {
    /// Stops when it is dropped.
    _proxy: RecordingProxy,
    url: BaseUrl,
}

impl Front for InFront {
    fn base_url(&self) -> BaseUrl {
        self.url.clone()
    }
}

impl Intercept for Recording {
    fn before<'a>(
        &'a self,
        upstream: &'a BaseUrl,
    ) -> Pending<'a, Result<Box<dyn Front>, DriveError>> {
        Box::pin(async move {
            let harness = |error: &dyn std::fmt::Display| DriveError::Harness(error.to_string());
            let options = RecordOptions {
                listen: (Ipv4Addr::LOCALHOST, 0).into(),
                upstream: upstream.clone(),
                header: Header {
                    time_scale: Profile::reference().time_scale,
                    ..Header::default()
                },
                limit: 64 << 20,
            };
            let proxy = RecordingProxy::start(options)
                .await
                .map_err(|error| harness(&error))?;
            let mut tapes = self.tapes.lock().unwrap_or_else(PoisonError::into_inner);
            tapes.push(proxy.tape().clone());
            drop(tapes);
            let url = BaseUrl::parse(&proxy.url()).map_err(|error| harness(&error))?;
            Ok(Box::new(InFront { _proxy: proxy, url }) as Box<dyn Front>)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_proxy_records_of_the_demo_passes_every_check() {
    let suite = suites::find("covel-sse").unwrap();
    let profile = Profile::reference();
    let launch = profile.launcher();
    let recording = Arc::new(Recording::default());
    let mut plan = RunPlan::new(suite, profile, launch);
    let names = [
        "turn-on-both-streams",
        "changes-outside-turns",
        "session-lifecycle",
        "queries",
        "resume",
        "resume-unbridgeable",
    ];
    plan.scenarios = Some(names.map(|name| suite.scenario(name).unwrap()).to_vec());
    plan.intercept = Some(recording.clone());
    let report = run::run(plan).await.unwrap();
    // How soon something came says something about the machine, which others use as well.
    let timed = |id: &str| {
        let entry = suite.entries(None).find(|entry| entry.id == id);
        entry.is_some_and(|entry| is_timed(suite, entry))
    };
    let failed = |red: &&run::Red| red.why == run::RedReason::Failed && !timed(&red.id);
    let broken: Vec<_> = report
        .red
        .iter()
        .filter(failed)
        .map(|red| (&red.id, report.verdict(&red.id)))
        .collect();
    assert!(
        broken.is_empty(),
        "the proxy changes what the harness sees: {broken:#?}"
    );

    let tapes = recording
        .tapes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let sources: Vec<Source> = tapes
        .iter()
        .zip(1..)
        .map(|(tape, number)| {
            // As a file has it: through the text form, secrets replaced.
            let written = written(tape.transcript(), &[]);
            assert!(written.text.contains("suite: covel-sse"));
            assert!(
                written
                    .replaced
                    .iter()
                    .any(|found| found.places.contains(&"JSON member ownerToken".to_owned()))
            );
            Source {
                name: format!("recording-{number}.twire"),
                is_har: false,
                transcript: text::parse(&written.text).unwrap(),
            }
        })
        .collect();
    let asked = Checked {
        suite,
        requirements: suite
            .entries(None)
            .filter(|entry| !is_timed(suite, entry))
            .collect(),
        required: Vec::new(),
        profile: &Profile::reference(),
        rerun: String::new(),
        revision: None,
        strict: false,
    };
    let checked = check(&asked, sources);
    let failed: Vec<_> = checked
        .requirements
        .iter()
        .filter(|requirement| requirement.state == State::Fail)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(checked.outcome, Outcome::Conformant);
    assert!(checked.totals.pass >= 60, "{:?}", checked.totals);
}
