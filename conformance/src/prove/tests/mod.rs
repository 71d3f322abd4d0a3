//! Proofs against a small peer, with requirements made for the test.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc::unbounded_channel,
};
use turnwire_spec::catalogue::{self, Catalogue, Observe};

use super::*;
use crate::{
    drivers::{
        DriveError,
        http::{BaseUrl, Call},
        target::url::UrlTarget,
    },
    profile::Profile,
    scenarios::{Act, Isolation, Running},
    stage::Stage,
    suites::{Area, Suite},
};

mod reference;

static SUITE: Suite = Suite {
    id: catalogue::Suite::CovelSse,
    about: "for tests",
    probe: "/api/health",
    areas: &[Area {
        name: "covel-overview",
        scenarios: &[SCENARIOS],
        checks: &[],
    }],
};

const fn scene(name: &'static str, run: for<'a> fn(&'a Stage) -> Running<'a>) -> Scenario {
    Scenario {
        name,
        about: "for tests",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(run),
    }
}

async fn ask(stage: &Stage, path: &str) -> Result<(), DriveError> {
    stage.send(Call::get(path)).await.map(|_| ())
}

const SCENARIOS: &[Scenario] = &[
    scene("asks-both", |stage| {
        Box::pin(async {
            ask(stage, "/test/slow").await?;
            ask(stage, "/test/item").await
        })
    }),
    scene("asks-item", |stage| Box::pin(ask(stage, "/test/item"))),
    scene("asks-nothing", |_| Box::pin(async { Ok(()) })),
];

/// A peer that answers every request with `{"id":"a","n":1}`, and takes its time at `/test/slow`.
async fn peer() -> BaseUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let read = socket.read(&mut request).await.unwrap_or_default();
                if String::from_utf8_lossy(&request[..read]).contains("/test/slow") {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"id\":\"a\",\"n\":1}";
                let _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    url
}

/// A requirement of the tests' own, by its executable halves.
fn requirement(id: &str, members: Value) -> Entry {
    let field = |name: &str| members.get(name).cloned().unwrap_or_default();
    let model = Catalogue::embedded().get("COV-OVW-001").unwrap().clone();
    Entry {
        id: id.to_owned(),
        rule: serde_json::from_value(field("rule")).unwrap(),
        rewrite: serde_json::from_value(field("rewrite")).unwrap(),
        also: serde_json::from_value(members.get("also").cloned().unwrap_or(json!([]))).unwrap(),
        scenario: serde_json::from_value(members.get("scenario").cloned().unwrap_or(json!([])))
            .unwrap(),
        waiver: None,
        test: None,
        ..model
    }
}

/// The body of `/test/item` has these members.
fn has(members: &[&str]) -> Value {
    json!({"responses": {"path": ["/test/item"], "body": {"required": members}}})
}

/// The body of `/test/item` loses a member.
fn loses(pointer: &str) -> Value {
    json!({"response": {"path": ["/test/item"], "json": [{"remove": pointer}]}})
}

async fn plan(entries: Vec<Entry>) -> ProvePlan {
    let url = peer().await;
    let launch = Arc::new(UrlTarget {
        url: url.clone(),
        variants: [].into(),
    });
    let run = RunPlan {
        requirements: entries
            .into_iter()
            .map(|entry| &*Box::leak(Box::new(entry)))
            .collect(),
        ..RunPlan::new(&SUITE, Profile::for_url(url), launch)
    };
    ProvePlan::new(run)
}

async fn proofs(entries: Vec<Entry>) -> Vec<Proof> {
    let report = prove(plan(entries).await).await.unwrap();
    report
        .requirements
        .into_iter()
        .map(|verified| verified.proof)
        .collect()
}

fn in_words(proofs: &[Proof]) -> Vec<String> {
    proofs.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_requirement_that_its_saboteur_alone_turns_red_is_proven() {
    let proofs = proofs(vec![
        requirement(
            "T-1",
            json!({"rule": has(&["id"]), "rewrite": loses("/id"), "scenario": ["asks-item"]}),
        ),
        requirement(
            "T-2",
            json!({"rule": has(&["n"]), "rewrite": loses("/n"), "scenario": ["asks-item"]}),
        ),
    ])
    .await;
    assert_eq!(
        in_words(&proofs),
        ["proven in asks-item", "proven in asks-item"]
    );
    let Proof::Proven { evidence, .. } = &proofs[0] else {
        panic!()
    };
    assert!(
        evidence.got.contains("\"id\" is a required property"),
        "{}",
        evidence.got
    );
}

#[tokio::test]
async fn a_neighbour_that_turns_red_must_be_named() {
    let one = |also: Value| {
        requirement(
            "T-1",
            json!({"rule": has(&["id"]), "rewrite": loses("/id"), "also": also}),
        )
    };
    let both = || {
        requirement(
            "T-2",
            json!({"rule": has(&["id", "n"]), "rewrite": loses("/n")}),
        )
    };
    let unnamed = proofs(vec![one(json!([])), both()]).await;
    assert_eq!(
        in_words(&unnamed),
        [
            "not proven: in asks-item also red: T-2",
            "proven in asks-item"
        ]
    );
    let named = proofs(vec![one(json!(["T-2"])), both()]).await;
    assert_eq!(
        in_words(&named)[0],
        "proven in asks-item, together with T-2"
    );
    let other = || requirement("T-3", json!({"rule": has(&["n"]), "rewrite": loses("/n")}));
    // T-4 is of another suite: nobody asks whether it turns red.
    let unneeded = proofs(vec![one(json!(["T-2", "T-3", "T-4"])), both(), other()]).await;
    let Proof::Proven { also, unneeded, .. } = &unneeded[0] else {
        panic!()
    };
    assert_eq!(
        (also.as_slice(), unneeded.as_slice()),
        (&["T-2".to_owned()][..], &["T-3".to_owned()][..])
    );
}

#[tokio::test]
async fn a_saboteur_that_breaks_nothing_proves_nothing() {
    let rewrite = json!({"response": {"path": ["/test/other"], "status": 500}});
    let proofs = proofs(vec![requirement(
        "T-1",
        json!({"rule": has(&["id"]), "rewrite": rewrite}),
    )])
    .await;
    assert_eq!(
        in_words(&proofs),
        ["not proven: still green under its saboteur in asks-item, asks-both"]
    );
}

#[tokio::test]
async fn a_saboteur_that_hides_what_is_judged_proves_nothing() {
    let rule = json!({"responses": {"path": ["/test/item"], "when_status": [200], "body": {"required": ["id"]}}});
    let rewrite = json!({"response": {"path": ["/test/item"], "status": 500}});
    let proofs = proofs(vec![requirement(
        "T-1",
        json!({"rule": rule, "rewrite": rewrite, "scenario": ["asks-item"]}),
    )])
    .await;
    assert_eq!(
        in_words(&proofs),
        ["not proven: not exercised: sabotaged, scenario asks-item does not show it"]
    );
}

#[tokio::test]
async fn what_has_no_saboteur_no_check_or_no_scenario_is_told_apart() {
    let waived = Entry {
        waiver: Some("nobody can see it".into()),
        ..requirement("T-3", json!({}))
    };
    let covered = Entry {
        observe: Observe::Library,
        test: Some("it_holds".into()),
        ..requirement("T-4", json!({}))
    };
    let proofs = proofs(vec![
        requirement("T-1", json!({"rule": has(&["id"])})),
        requirement("T-2", json!({"rewrite": loses("/id")})),
        waived,
        covered,
        requirement(
            "T-5",
            json!({"rule": has(&["id"]), "rewrite": loses("/id"), "scenario": ["asks-nothing"]}),
        ),
    ])
    .await;
    assert_eq!(
        in_words(&proofs),
        [
            "not proven: no saboteur",
            "not checked",
            "waived: nobody can see it",
            "waived: covered by the test it_holds",
            "not proven: not exercised: sabotaged, scenario asks-nothing does not show it",
        ]
    );
}

#[tokio::test]
async fn what_no_scenario_shows_is_not_exercised() {
    let entry = || {
        requirement(
            "T-1",
            json!({"rule": has(&["id"]), "rewrite": loses("/id"), "scenario": ["asks-nothing"]}),
        )
    };
    let proofs = proofs(vec![entry()]).await;
    assert_eq!(
        in_words(&proofs),
        ["not proven: not exercised: nothing in the run could show it"]
    );
}

#[tokio::test]
async fn what_is_red_without_sabotage_proves_nothing_and_hinders_nobody() {
    let proofs = proofs(vec![
        requirement(
            "T-1",
            json!({"rule": has(&["id", "absent"]), "rewrite": loses("/id")}),
        ),
        requirement(
            "T-2",
            json!({"rule": has(&["id"]), "rewrite": loses("/id")}),
        ),
    ])
    .await;
    let words = in_words(&proofs);
    assert!(
        words[0].starts_with("not proven: red on the conformant peer: expected a JSON body"),
        "{}",
        words[0]
    );
    assert_eq!(words[1], "proven in asks-item");
}

#[tokio::test]
async fn the_cheapest_scenario_that_showed_it_is_sabotaged_first() {
    let rule =
        json!({"responses": {"path": ["/test/item", "/test/slow"], "body": {"required": ["id"]}}});
    let rewrite = json!({"response": {"path": ["/test/slow"], "json": [{"remove": "/id"}]}});
    let proofs = proofs(vec![requirement(
        "T-1",
        json!({"rule": rule, "rewrite": rewrite}),
    )])
    .await;
    assert_eq!(in_words(&proofs), ["proven in asks-both"]);
}

#[tokio::test]
async fn events_tell_each_sabotage() {
    let mut plan = plan(vec![requirement(
        "T-1",
        json!({"rule": has(&["id"]), "rewrite": loses("/id")}),
    )])
    .await;
    let (sender, mut events) = unbounded_channel();
    plan.events = Some(sender);
    let report = prove(plan).await.unwrap();
    assert_eq!(report.proven(), ["T-1".to_owned()].into());
    assert_eq!(report.doubts().count(), 0);
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        told.push(match event {
            ProveEvent::Sabotaging { sabotages } => format!("sabotaging {sabotages}"),
            ProveEvent::Sabotaged(verified) => format!("{} {}", verified.id, verified.proof),
            ProveEvent::Finished { proven, .. } => format!("finished {proven}"),
        });
    }
    assert_eq!(
        told,
        ["sabotaging 1", "T-1 proven in asks-item", "finished 1"]
    );
}

#[tokio::test]
async fn without_checks_there_is_nothing_to_run() {
    let report = prove(plan(vec![requirement("T-1", json!({}))]).await)
        .await
        .unwrap();
    assert!(report.conformant.is_none());
    assert_eq!(report.requirements[0].proof, Proof::NotChecked);
}
