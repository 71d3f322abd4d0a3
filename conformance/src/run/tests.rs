//! Runs against small targets that are made for the test.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc::unbounded_channel,
};
use turnwire_spec::catalogue::{self, Catalogue, Entry};

use super::*;
use crate::{
    checks::Check,
    drivers::{
        http::BaseUrl,
        target::{Front, Intercept, Launch, Pending, url::UrlTarget},
    },
    profile::{Limits, Profile},
    scenarios::{Act, Isolation, Scenario},
    stage::Stage,
    suites::{Area, Suite},
    transcript::{ExchangeId, Fact, Side, Transcript},
    verdict::{Evidence, Findings, MAX_EVIDENCE, Verdict},
};

mod interrupted;
mod looks;
mod waits;

// The suite of these tests: what a scenario shows is what it puts into its labels.

static SUITE: Suite = Suite {
    id: catalogue::Suite::CovelSse,
    about: "for tests",
    probe: "/api/health",
    areas: &[
        Area {
            name: "covel-subscription",
            scenarios: &[SCENARIOS],
            checks: &[CHECKS],
        },
        Area {
            name: "covel-overview",
            scenarios: &[OTHERS],
            checks: &[],
        },
    ],
};

const CHECKS: &[Check] = &[
    Check::new("T-1", "judge_labels", judge_labels),
    Check::new("T-2", "none", |_| Findings::none()),
    Check::new("T-ANSWERS", "answers_are_good", answers_are_good),
];

fn answers_are_good(transcript: &Transcript) -> Findings {
    let answers = transcript
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::Response { head, .. } => Some(head.status),
            _ => None,
        });
    Findings::each(answers, |status| {
        (status != 200).then(|| Evidence::new("200", status.to_string()))
    })
}

fn judge_labels(transcript: &Transcript) -> Findings {
    let labels = transcript
        .entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::Label(text) => Some(text.as_str()),
            _ => None,
        });
    Findings::each(
        labels.filter(|text| ["good", "bad"].contains(text)),
        |text| (text == "bad").then(|| Evidence::new("a good label", text)),
    )
}

async fn label(stage: &Stage, text: &str) -> Result<(), DriveError> {
    stage.label(text);
    Ok(())
}

const fn scene(
    name: &'static str,
    run: for<'a> fn(&'a Stage) -> crate::scenarios::Running<'a>,
) -> Scenario {
    Scenario {
        name,
        about: "for tests",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(run),
    }
}

const SCENARIOS: &[Scenario] = &[
    scene("good", |stage| Box::pin(label(stage, "good"))),
    scene("bad", |stage| Box::pin(label(stage, "bad"))),
    scene("shows-nothing", |_| Box::pin(async { Ok(()) })),
    scene("asks-nonsense", |stage| {
        Box::pin(async {
            stage.label("good");
            stage.get("/api/nonsense").await.map(|_| ())
        })
    }),
    scene("needs-a-session", |stage| {
        Box::pin(async { stage.session().await.map(|_| ()) })
    }),
    scene("restarts", |stage| Box::pin(stage.restart())),
    scene("bad-then-restarts", |stage| {
        Box::pin(async {
            stage.label("bad");
            stage.restart().await
        })
    }),
    scene("asks-for-health", |stage| {
        Box::pin(async {
            stage.label("bad");
            stage.get("/api/health").await.map(|_| ())
        })
    }),
    scene("needs-health", |stage| {
        Box::pin(async { stage.get("/api/health").await?.success().map(|_| ()) })
    }),
    scene("hangs", |_| Box::pin(std::future::pending())),
    scene("panics", |_| Box::pin(async { panic!("of all things") })),
    Scenario {
        needs: &["jobs"],
        ..scene("needs-jobs", |_| Box::pin(async { Ok(()) }))
    },
    Scenario {
        variant: Some("demo"),
        ..scene("as-demo", |_| Box::pin(async { Ok(()) }))
    },
    Scenario {
        needs: &[MODEL],
        ..scene("needs-a-model", |_| Box::pin(async { Ok(()) }))
    },
];

const OTHERS: &[Scenario] = &[scene("elsewhere", |stage| Box::pin(label(stage, "good")))];

/// A requirement of the tests' own.
fn requirement(id: &str, needs: Option<&str>, scenario: &[&str]) -> &'static Entry {
    let model = Catalogue::embedded().get("COV-SUB-001").unwrap();
    Box::leak(Box::new(Entry {
        id: id.to_owned(),
        rule: None,
        rewrite: None,
        needs: needs.map(str::to_owned),
        scenario: scenario.iter().map(|name| (*name).to_owned()).collect(),
        ..model.clone()
    }))
}

/// A server that answers every request with the same text.
async fn answering(text: &'static str) -> BaseUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = socket.read(&mut [0; 4096]).await;
                let _ = socket.write_all(text.as_bytes()).await;
            });
        }
    });
    url
}

const JSON: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
const HTML: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<h1>";

fn plan_at(url: BaseUrl, names: &[&str]) -> RunPlan {
    let launch: Arc<dyn Launch> = Arc::new(UrlTarget {
        url: url.clone(),
        variants: [].into(),
    });
    let mut profile = Profile::for_url(url);
    profile.limits = Limits {
        scenario: Duration::from_millis(500),
        ..profile.limits
    };
    profile.limits.http.head = Duration::from_millis(500);
    let scenarios = names
        .iter()
        .map(|name| SUITE.scenario(name).unwrap())
        .collect();
    RunPlan {
        scenarios: Some(scenarios),
        requirements: vec![requirement("T-1", None, &[])],
        ..RunPlan::new(&SUITE, profile, launch)
    }
}

async fn plan(names: &[&str]) -> RunPlan {
    plan_at(answering(JSON).await, names)
}

fn profile(plan: &mut RunPlan) -> &mut Profile {
    Arc::get_mut(&mut plan.profile).unwrap()
}

async fn verdict(names: &[&str]) -> Verdict {
    run(plan(names).await).await.unwrap().verdicts.remove(0).1
}

#[tokio::test]
async fn what_is_judged_and_right_passes() {
    assert_eq!(verdict(&["good"]).await, Verdict::Pass { judged: 1 });
}

#[tokio::test]
async fn one_fault_in_one_scenario_fails_the_requirement() {
    let Verdict::Fail { judged, evidence } = verdict(&["good", "bad"]).await else {
        panic!()
    };
    assert_eq!((judged, evidence.len()), (2, 1));
    assert_eq!(evidence[0].scenario, "bad");
}

#[tokio::test]
async fn what_nothing_shows_is_not_exercised() {
    let expected = Verdict::NotExercised {
        why: "nothing in the run could show it".to_owned(),
    };
    assert_eq!(verdict(&["shows-nothing"]).await, expected);
}

#[test]
fn evidence_is_kept_up_to_its_bound() {
    let findings = Findings {
        judged: 9,
        faults: vec![Evidence::default(); 9],
    };
    let entry = requirement("T-1", None, &[]);
    let merged = judge::merge(entry, [&findings, &findings].into_iter(), false, "");
    let Verdict::Fail { judged, evidence } = merged else {
        panic!()
    };
    assert_eq!((judged, evidence.len()), (18, MAX_EVIDENCE));
}

#[tokio::test]
async fn a_capability_that_is_declared_absent_is_not_applicable_whatever_was_found() {
    let mut plan = plan(&["bad"]).await;
    plan.requirements = vec![requirement("T-1", Some("jobs"), &[])];
    profile(&mut plan)
        .capabilities
        .insert("jobs".to_owned(), false);
    let report = run(plan).await.unwrap();
    assert_eq!(
        report.verdict("T-1"),
        Some(&Verdict::NotApplicable {
            needs: "jobs".to_owned()
        })
    );
    assert_eq!(report.outcome(), Outcome::NothingExercised);
}

#[test]
fn a_feature_that_the_adapter_does_not_name_is_absent() {
    let said = |features: &str| Transcript {
        entries: vec![crate::transcript::Entry {
            at: Duration::ZERO,
            fact: Fact::Line {
                exchange: ExchangeId(1),
                from: Side::Client,
                bytes: format!(r#"{{"ready":true,"features":[{features}]}}"#).into(),
            },
        }],
        ..Transcript::default()
    };
    let profile = Profile::reference();
    let absent = |needs: &str, transcript: &Transcript| {
        judge::is_absent(requirement("T-1", Some(needs), &[]), &profile, [transcript])
    };
    assert!(absent("think-tags", &said(r#""content""#)));
    assert!(!absent("think-tags", &said(r#""content","think-tags""#)));
    assert!(
        !absent("think-tags", &Transcript::default()),
        "nobody said anything"
    );
    assert!(!absent("relay", &said("")), "no feature of adapters");
}

#[tokio::test]
async fn a_capability_that_is_declared_present_must_be_shown() {
    let mut plan = plan(&["shows-nothing"]).await;
    plan.requirements = vec![requirement("T-1", Some("jobs"), &[])];
    profile(&mut plan)
        .capabilities
        .insert("jobs".to_owned(), true);
    let report = run(plan).await.unwrap();
    assert!(
        matches!(
            report.red[..],
            [Red {
                why: RedReason::NotExercised(_),
                ..
            }]
        ),
        "{:?}",
        report.red
    );
    assert_eq!(report.outcome(), Outcome::NotConformant);
}

#[tokio::test]
async fn a_capability_that_is_not_mentioned_need_not_be_shown() {
    let mut plan = plan(&["shows-nothing"]).await;
    plan.requirements = vec![requirement("T-1", Some("jobs"), &[])];
    let report = run(plan).await.unwrap();
    assert_eq!((report.red, report.problems), (vec![], vec![]));
}

#[tokio::test]
async fn a_failure_that_is_expected_is_not_red_and_a_stale_one_is() {
    for (scenario, red) in [
        ("bad", vec![]),
        ("good", vec![RedReason::Stale("issue 7".to_owned())]),
    ] {
        let mut plan = plan(&[scenario]).await;
        profile(&mut plan)
            .expected_failures
            .insert("T-1".to_owned(), "issue 7".to_owned());
        let report = run(plan).await.unwrap();
        assert_eq!(
            report
                .red
                .into_iter()
                .map(|red| red.why)
                .collect::<Vec<_>>(),
            red,
            "{scenario}"
        );
        assert_eq!(report.expected.contains_key("T-1"), scenario == "bad");
    }
}

#[tokio::test]
async fn a_run_that_requires_all_is_red_for_what_is_not_exercised_and_not_for_what_has_no_check() {
    let mut plan = plan(&["good"]).await;
    plan.require_all = true;
    plan.requirements = ["T-1", "T-2", "T-3"]
        .map(|id| requirement(id, None, &[]))
        .to_vec();
    let report = run(plan).await.unwrap();
    assert_eq!(
        report
            .red
            .iter()
            .map(|red| red.id.as_str())
            .collect::<Vec<_>>(),
        ["T-2"]
    );
    assert_eq!(report.unchecked, [("T-3".to_owned(), None)]);
    assert_eq!(report.exercised["T-1"], ["good"]);
}

#[tokio::test]
async fn a_target_that_is_down_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let error = run(plan_at(url, &["good"])).await.unwrap_err();
    assert!(
        matches!(
            error,
            RunError::Unreachable(DriveError::NotConnected { .. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_target_that_hangs_or_speaks_no_http_is_unreachable() {
    let error = run(plan_at(
        answering("220 mail.example ESMTP\r\n").await,
        &["good"],
    ))
    .await
    .unwrap_err();
    assert!(
        matches!(error, RunError::Unreachable(DriveError::NotHttp { .. })),
        "{error}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let error = run(plan_at(url, &["good"])).await.unwrap_err();
    assert!(
        matches!(error, RunError::Unreachable(DriveError::Silent { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_of_lines_that_answers_under_another_id_is_told_so_in_one_line() {
    for (answer, got) in [
        (
            r#"{"kind":"response","request_id":2,"result":{}}"#,
            r#"{"kind":"response","request_id":2,"result":{}}"#,
        ),
        (
            r#"{"kind":"response","request_id":1,"error":{"type":"no","message":"no"}}"#,
            r#"{"kind":"response","request_id":1,"error":{"type":"no","message":"no"}}"#,
        ),
        ("hello", "null"),
    ] {
        let url = answering(Box::leak(format!("{answer}\n").into_boxed_str())).await;
        let url = BaseUrl::parse(&url.to_string().replace("http://", "tcp://")).unwrap();
        let mut plan = plan_at(url.clone(), &["good"]);
        profile(&mut plan).limits.http.head = Duration::from_millis(200);
        let error = run(plan).await.unwrap_err();
        let expected = RunError::NotTheProtocol {
            url: url.to_string(),
            got: got.to_owned(),
        };
        assert_eq!(error, expected);
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

#[tokio::test]
async fn a_web_site_is_not_the_api() {
    let error = run(plan_at(answering(HTML).await, &["good"]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, RunError::NotTheApi { status: 200, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_scenario_that_cannot_go_on_is_a_problem_and_the_others_go_on() {
    let report = run(plan(&["needs-a-session", "good"]).await).await.unwrap();
    insta::assert_snapshot!(
        report.problems[0],
        @r#"needs-a-session: POST /api/sessions: expected a success status and a string at /id, got 200 (application/json) "{}""#
    );
    assert_eq!(report.verdict("T-1"), Some(&Verdict::Pass { judged: 1 }));
    assert_eq!(
        report.outcome(),
        Outcome::Unknown,
        "what could not be played is not known to be right"
    );
}

#[tokio::test]
async fn a_scenario_that_hangs_or_panics_is_a_problem_of_its_own() {
    let report = run(plan(&["hangs", "panics", "good"]).await).await.unwrap();
    let problems: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "hangs: it was still going on after 500ms; see [limits] scenario in the profile",
            "panics: harness: the scenario panicked: of all things",
        ]
    );
    assert_eq!(
        report.transcripts.len(),
        3,
        "what they had recorded is kept"
    );
}

#[tokio::test]
async fn what_the_target_cannot_do_leaves_the_scenario_out_with_the_reason() {
    let mut plan = plan(&["restarts", "needs-jobs", "as-demo", "needs-a-model"]).await;
    plan.requirements = vec![requirement("T-1", None, &["restarts"])];
    profile(&mut plan)
        .capabilities
        .insert("jobs".to_owned(), false);
    let report = run(plan).await.unwrap();
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    insta::assert_snapshot!(skipped.join("\n"), @r#"
    restarts: stop is not possible: the target is a URL; a profile with [target] command lets the harness start it
    needs-jobs: the profile declares the capability "jobs" absent
    as-demo: the target is a URL; name a server that runs so under [variants.demo] url
    needs-a-model: the target is not known to call the mock model: {model_url} in a profile, or --model for a target that already runs
    "#);
    let Some(Verdict::NotExercised { why }) = report.verdict("T-1") else {
        panic!()
    };
    assert!(
        why.starts_with("scenario restarts was left out: stop is not possible"),
        "{why}"
    );
}

#[tokio::test]
async fn what_was_recorded_before_the_obstacle_is_not_judged() {
    let report = run(plan(&["bad-then-restarts"]).await).await.unwrap();
    assert!(
        matches!(report.verdict("T-1"), Some(Verdict::NotExercised { .. })),
        "{report:?}"
    );
    assert_eq!(report.outcome(), Outcome::NothingExercised);
}

#[tokio::test]
async fn a_harness_that_breaks_the_protocol_accuses_nobody() {
    let report = run(plan(&["asks-nonsense", "bad"]).await).await.unwrap();
    assert_eq!(
        report.harness_errors[0].to_string(),
        "harness: asks-nonsense: GET /api/nonsense: the protocol has no such endpoint"
    );
    assert_eq!(report.outcome(), Outcome::Unknown);
}

#[tokio::test]
async fn scenarios_of_other_areas_are_played_only_while_something_is_not_exercised() {
    let mut plan = plan(&[]).await;
    plan.scenarios = None;
    plan.requirements = vec![requirement("T-1", None, &["good"])];
    let report = run(plan.clone()).await.unwrap();
    assert_eq!(
        report
            .timing
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["good"]
    );
    plan.requirements = vec![requirement("T-1", None, &["shows-nothing"])];
    let report = run(plan).await.unwrap();
    assert!(
        report.exercised["T-1"].contains(&"elsewhere".to_owned()),
        "{:?}",
        report.exercised
    );
}

#[tokio::test]
async fn a_run_tells_what_happens() {
    let mut plan = plan(&["good", "as-demo"]).await;
    let (events, mut heard) = unbounded_channel();
    plan.events = Some(events);
    run(plan).await.unwrap();
    let mut kinds = Vec::new();
    while let Ok(event) = heard.try_recv() {
        let text = format!("{event:?}");
        kinds.push(text.split(' ').next().unwrap_or_default().to_owned());
    }
    assert_eq!(
        kinds,
        [
            "TargetUp",
            "Started",
            "ScenarioSkipped",
            "ScenarioStarted",
            "ScenarioFinished",
            "ScenarioJudged",
            "Finished",
        ]
    );
}

/// Leads everybody to another server.
#[derive(Debug)]
struct Elsewhere(BaseUrl);

impl Intercept for Elsewhere {
    fn before<'a>(&'a self, _: &'a BaseUrl) -> Pending<'a, Result<Box<dyn Front>, DriveError>> {
        Box::pin(async { Ok(Box::new(Elsewhere(self.0.clone())) as Box<dyn Front>) })
    }
}

impl Front for Elsewhere {
    fn base_url(&self) -> BaseUrl {
        self.0.clone()
    }
}

#[tokio::test]
async fn what_stands_in_front_of_the_target_is_what_scenarios_meet() {
    let mut plan = plan(&["needs-a-session"]).await;
    let session = "HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\n{\"id\":\"s\"}";
    plan.intercept = Some(Arc::new(Elsewhere(answering(session).await)));
    assert_eq!(run(plan).await.unwrap().problems, []);
}

#[test]
fn transcripts_from_files_are_judged_the_same_way() {
    let mut transcript = Transcript::default();
    transcript.header.scenario = "recorded".to_owned();
    for label in ["good", "bad"] {
        let fact = Fact::Label(label.to_owned());
        transcript.entries.push(crate::transcript::Entry {
            at: Duration::ZERO,
            fact,
        });
    }
    let selection = [requirement("T-1", None, &[]), requirement("T-3", None, &[])];
    let verdicts = judge(&[transcript], &SUITE, &selection, &Profile::reference());
    let [
        (
            id,
            Verdict::Fail {
                judged: 2,
                evidence,
            },
        ),
    ] = &verdicts[..]
    else {
        panic!("{verdicts:?}")
    };
    assert_eq!(
        (id.as_str(), evidence[0].scenario.as_str()),
        ("T-1", "recorded")
    );
}
