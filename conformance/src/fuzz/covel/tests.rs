//! The fuzzer against the reference server, with small numbers.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::Instant,
};

use super::{CovelSse, faults::FAULTS, play::open};
use crate::{
    drivers::{
        http::BaseUrl,
        target::{Instance, Launch, url::UrlTarget},
    },
    fuzz::{
        Case, FuzzPlan, SCENARIO, Step, field::case_of, fuzz, oracle::Oracle, prove::prove,
        step::Place,
    },
    profile::Profile,
    stage::{Session, Setting, Stage, Subscribe},
    suites,
    transcript::{Header, record::Recorder, text},
};

fn plan(seed: u64, cases: u64) -> FuzzPlan {
    FuzzPlan::new(&CovelSse, Profile::reference(), seed, cases)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_passes_and_every_answer_comes_up() {
    let report = fuzz(plan(1, 150)).await.unwrap();
    assert!(report.holds(), "{}", report.render());
    assert_eq!(report.played, 150);
    for answer in ["none", "replay", "nothing-missed", "gap", "epoch-change"] {
        assert!(
            report.seen.answers.contains_key(answer),
            "{answer}: {:?}",
            report.seen
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_faults_are_found_and_their_counterexamples_are_red_offline() {
    let report = prove(plan(1, 400), Some("replay-off-by-one"))
        .await
        .unwrap();
    assert!(report.holds(), "{}", report.render());
    let oracle = Oracle::of(suites::find("covel-sse").unwrap());
    for found in report.details() {
        let failure = found.failure.as_ref().unwrap();
        let written = text::write(&failure.transcript);
        let read = text::parse(&written).unwrap();
        let ids: BTreeSet<_> = oracle.judge(&read).iter().map(|broken| broken.id).collect();
        let wanted: BTreeSet<_> = failure.broken.iter().map(|broken| broken.id).collect();
        assert_eq!(ids, wanted, "{}", found.fault.name);
        assert!(!ids.is_empty());
        assert_eq!(case_of(&read), Some(failure.case.clone()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_played_on_a_store_that_outlives_it() {
    let plan = plan(0, 0);
    let field = plan.field().await.unwrap();
    let case = Case {
        steps: vec![
            Step::connect(0, 0),
            Step::Write {
                session: 0,
                count: 2,
            },
            Step::Restart { kill: true },
            Step::Connect {
                client: 0,
                session: 0,
                query: Some(Place::Own),
                header: None,
                narrow: false,
                slow: false,
                cut: None,
                race: 0,
            },
        ],
    };
    let played = field.play(0, &case).await;
    assert_eq!(played.problem, None);
    let oracle = Oracle::of(suites::find("covel-sse").unwrap());
    assert_eq!(oracle.judge(&played.transcript), []);
    let text = text::write(&played.transcript);
    assert!(text.contains("target killed") && text.contains(r#""reason":"epoch-change""#));
}

#[test]
fn there_are_more_than_twelve_faults_and_their_names_are_unique() {
    let names: BTreeSet<_> = FAULTS.iter().map(|fault| fault.name).collect();
    assert!(names.len() >= 12);
    assert_eq!(names.len(), FAULTS.len());
}

/// A busy server learns late that connections were closed, so their places are taken for a while.
#[tokio::test]
async fn a_place_that_is_taken_is_asked_for_until_the_patience_is_over() {
    const FULL: &str =
        "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const STREAM: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    const FREE_AFTER: Duration = Duration::from_millis(1500);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let mut since = None;
        while let Ok((mut socket, _)) = listener.accept().await {
            let since = *since.get_or_insert_with(Instant::now);
            let _ = socket.read(&mut [0; 4096]).await;
            let is_free = since.elapsed() > FREE_AFTER;
            let answer = if is_free { STREAM } else { FULL };
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    let mut profile = Profile::reference();
    profile.limits.patience = Duration::from_secs(60);
    let launch: Arc<dyn Launch> = Arc::new(UrlTarget {
        url,
        variants: [].into(),
    });
    let instance = Instance::start(launch, "default", None, None).await;
    let stage = Stage::new(Setting {
        scenario: SCENARIO.to_owned(),
        seed: 1,
        recorder: Recorder::new(Header::default()),
        instance: Arc::new(instance.unwrap()),
        model: None,
        profile: Arc::new(profile),
    });
    let session = Session {
        id: "s".to_owned(),
        owner_token: None,
    };
    let stage = stage.await.unwrap();
    let stream = open(&stage, &Subscribe::to(&session)).await.unwrap();
    assert_eq!(stream.status, 200);
}
