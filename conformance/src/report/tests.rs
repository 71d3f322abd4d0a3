//! Every form of a report, as a reader sees it.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use turnwire_spec::catalogue::{Catalogue, Entry};

use super::{
    EvidenceReport, Outcome, Report, RequirementReport, ScenarioReport, State, Totals,
    coverage::{Coverage, SuiteCoverage},
    excerpt,
    explained::{Explained, ExplainedScenario, LastVerdict, QuotedLine},
    human, junit,
    listing::{ListedArea, ListedRequirement, ListedScenario, ListedSuite, Listing},
    proof::ProofReport,
    schemas,
};
use crate::{
    prove::{Doubt, Proof, ProveReport, Verified},
    transcript::{ExchangeId, text},
    verdict::Evidence,
};

const TRANSCRIPT: &str = r#"
@+21s
> GET /api/events/stream?lastEventId=gone:7
>: authorization: Bearer sk-123456789
@+3ms
< 200
@+1ms
< event: system.connected
< data: {"cursor":"e2:41"}
<
@+1ms
< event: system.reset
< id: e2:41
< data: {"reason":"epoch-change"}
<
@+1ms
< event: system.heartbeat
< data: {}
<
@+1ms
< event: never.shown
< data: {}
<
"#;

fn evidence() -> Evidence {
    let mut evidence = Evidence::new("no id line", "id: e2:41");
    evidence.exchange = Some(ExchangeId(1));
    evidence.frame = Some(1);
    evidence
}

fn requirement(id: &str, title: &str, area: &str, state: State) -> RequirementReport {
    RequirementReport {
        id: id.to_owned(),
        title: title.to_owned(),
        statement: format!(
            "{title}, as the statement says in one testable sentence that is long enough to be wrapped."
        ),
        level: "must".to_owned(),
        binds: "server".to_owned(),
        area: area.to_owned(),
        state,
        red: false,
        judged: 0,
        why: None,
        evidence: Vec::new(),
    }
}

fn report() -> Report {
    let transcript = text::parse(TRANSCRIPT).unwrap();
    let failed = RequirementReport {
        red: true,
        judged: 7,
        evidence: vec![EvidenceReport {
            scenario: "resume-foreign-epoch".to_owned(),
            exchange: Some(1),
            request: Some("GET /api/events/stream?lastEventId=gone:7".to_owned()),
            at_micros: Some(5000),
            frame: Some(1),
            expected: "no id line".to_owned(),
            got: "id: e2:41".to_owned(),
            wire: excerpt::lines(&transcript, &evidence()),
        }],
        ..requirement(
            "COV-SUB-102",
            "system.reset carries no id line",
            "covel-subscription",
            State::Fail,
        )
    };
    let stale = RequirementReport {
        red: true,
        judged: 2,
        why: Some("known since version 2, issue 17".to_owned()),
        ..requirement(
            "COV-OVW-003",
            "Events come on two streams",
            "covel-overview",
            State::Pass,
        )
    };
    let unseen = RequirementReport {
        red: true,
        why: Some(
            "scenario restart was left out: the harness does not start the target".to_owned(),
        ),
        ..requirement(
            "COV-OVW-009",
            "Epoch changes on restart",
            "covel-overview",
            State::NotExercised,
        )
    };
    let excused = RequirementReport {
        why: Some("nothing in the run could show it".to_owned()),
        ..requirement(
            "COV-SUB-104",
            "Replay is bounded",
            "covel-subscription",
            State::NotExercised,
        )
    };
    let waived = RequirementReport {
        why: Some("a library call".to_owned()),
        ..requirement(
            "COV-SUB-105",
            "Store is injected",
            "covel-subscription",
            State::Waived,
        )
    };
    let absent = RequirementReport {
        why: Some("the profile says that the target has no media".to_owned()),
        ..requirement(
            "COV-SUB-106",
            "Media is pinned",
            "covel-subscription",
            State::NotApplicable,
        )
    };
    let passed = RequirementReport {
        judged: 12,
        ..requirement(
            "COV-SUB-103",
            "Cursor parses <at> all \"times\"",
            "covel-subscription",
            State::Pass,
        )
    };
    let open = requirement(
        "COV-SUB-107",
        "Nobody checks this yet",
        "covel-subscription",
        State::Open,
    );
    let mut report = Report {
        turnwire: "0.1.0".to_owned(),
        suite: "covel-sse".to_owned(),
        target: "reference".to_owned(),
        started: "2026-07-26T12:00:00Z".to_owned(),
        seconds: 4.25,
        time_scale: 0.01,
        outcome: Outcome::NotConformant,
        rerun: "turnwire server --requirement {id} --url http://127.0.0.1:4000".to_owned(),
        totals: Totals::default(),
        areas: Vec::new(),
        requirements: vec![stale, unseen, failed, passed, excused, waived, absent, open],
        scenarios: vec![
            ScenarioReport {
                name: "turn".to_owned(),
                seconds: 1.5,
                stopped: None,
                left_out: false,
            },
            ScenarioReport {
                name: "reset".to_owned(),
                seconds: 0.25,
                stopped: Some("POST /api/sessions: no response head within 10s".to_owned()),
                left_out: false,
            },
            ScenarioReport {
                name: "restart".to_owned(),
                seconds: 0.0,
                stopped: Some("the harness does not start the target".to_owned()),
                left_out: true,
            },
        ],
        files: Vec::new(),
        revision: None,
        observations: Vec::new(),
        harness_errors: vec![
            "harness: turn: POST /api/nowhere: the protocol has no such endpoint".to_owned(),
        ],
    };
    report.count();
    report
}

fn conformant() -> Report {
    let mut report = report();
    report.requirements.retain(|requirement| !requirement.red);
    report.outcome = Outcome::Conformant;
    report.harness_errors.clear();
    report.scenarios.clear();
    report.count();
    report
}

#[test]
fn people_see_failures_first_and_counts_last() {
    insta::assert_snapshot!(human::render(&report(), false));
}

#[test]
fn a_conformant_run_says_so_in_its_last_line() {
    insta::assert_snapshot!(human::render(&conformant(), false));
}

#[test]
fn colours_change_no_word() {
    let plain = human::render(&report(), false);
    let coloured = human::render(&report(), true);
    assert_ne!(plain, coloured);
    let mut stripped = String::new();
    for (index, part) in coloured.split('\u{1b}').enumerate() {
        let text = if index == 0 {
            part
        } else {
            part.split_once('m').map_or(part, |(_, text)| text)
        };
        stripped.push_str(text);
    }
    assert_eq!(stripped, plain);
}

#[test]
fn the_json_form_reads_back_as_the_same_report() {
    let text = report().to_json().unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report());
    insta::assert_snapshot!(text);
}

#[test]
fn continuous_integration_sees_one_suite_an_area() {
    insta::assert_snapshot!(junit::render(&report()).unwrap());
}

#[test]
fn junit_holds_whatever_a_target_sends() {
    let mut report = report();
    if let Some(evidence) = report
        .requirements
        .iter_mut()
        .find_map(|r| r.evidence.first_mut())
    {
        evidence.got = "\u{0}\u{1b}[31m ]]> <&> \u{ffff}".to_owned();
    }
    let text = junit::render(&report).unwrap();
    assert!(
        text.contains("]]&gt;") && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[test]
fn an_excerpt_shows_the_frame_that_is_meant_and_its_neighbours() {
    let transcript = text::parse(TRANSCRIPT).unwrap();
    insta::assert_snapshot!(excerpt::lines(&transcript, &evidence()).join("\n"), @r#"
    > GET /api/events/stream?lastEventId=gone:7
    >: authorization: Bearer {{secret-1}}
    @+3ms
    < 200
    @+1ms
    # frame 0
    < event: system.connected
    < data: {"cursor":"e2:41"}
    <
    @+1ms
    # frame 1, this one
    < event: system.reset
    < id: e2:41
    < data: {"reason":"epoch-change"}
    <
    @+1ms
    # frame 2
    < event: system.heartbeat
    < data: {}
    <
    "#);
}

#[test]
fn an_excerpt_is_short_whatever_the_target_sends() {
    let lines = "< a line\n".repeat(500);
    let wide = "x".repeat(5000);
    let transcript = text::parse(&format!(
        "> GET /\n< 200\n<: content-type: text/plain\n< {wide}\n{lines}"
    ))
    .unwrap();
    let excerpt = excerpt::lines(
        &transcript,
        &Evidence {
            frame: None,
            ..evidence()
        },
    );
    assert_eq!(excerpt.len(), 31);
    assert!(excerpt.iter().all(|line| line.chars().count() <= 161));
    assert_eq!(excerpt.last().map(String::as_str), Some("… 474 lines more"));
}

#[test]
fn evidence_without_an_exchange_has_no_excerpt() {
    let transcript = text::parse(TRANSCRIPT).unwrap();
    let nowhere = Evidence {
        exchange: None,
        ..evidence()
    };
    let foreign = Evidence {
        exchange: Some(ExchangeId(9)),
        ..evidence()
    };
    assert!(excerpt::lines(&transcript, &nowhere).is_empty());
    assert!(excerpt::lines(&transcript, &foreign).is_empty());
}

fn coverage() -> Coverage {
    let counts = SuiteCoverage {
        requirements: 10,
        observable: 9,
        checked: 8,
        proven: 7,
        waived: 1,
        open: vec!["COV-SUB-001".to_owned(), "COV-SUB-002".to_owned()],
    };
    Coverage {
        suites: [("covel-sse".to_owned(), counts)].into(),
        ..Coverage::default()
    }
}

#[test]
fn coverage_is_one_object_by_suite() {
    let expected = json!({"suites": {"covel-sse": {
        "requirements": 10, "observable": 9, "checked": 8, "proven": 7, "waived": 1,
        "open": ["COV-SUB-001", "COV-SUB-002"],
    }}});
    assert_eq!(serde_json::to_value(coverage()).unwrap(), expected);
}

fn evidence_of(scenario: &str) -> Evidence {
    Evidence {
        scenario: scenario.to_owned(),
        ..evidence()
    }
}

fn proof() -> ProofReport {
    let proofs = [
        (
            "COV-SUB-001",
            Proof::Proven {
                scenario: "turn".to_owned(),
                evidence: Box::new(evidence_of("turn")),
                also: vec!["COV-SUB-002".to_owned()],
                unneeded: Vec::new(),
            },
        ),
        (
            "COV-SUB-002",
            Proof::NotProven(Doubt::ConformantRed(vec![evidence_of("turn")])),
        ),
        (
            "COV-SUB-004",
            Proof::NotProven(Doubt::AlsoRed {
                scenario: "turn".to_owned(),
                red: vec![("COV-SUB-005".to_owned(), evidence_of("turn"))],
            }),
        ),
        (
            "COV-SUB-005",
            Proof::NotProven(Doubt::StillGreen(vec![
                "turn".to_owned(),
                "reset".to_owned(),
            ])),
        ),
        ("COV-OVW-001", Proof::NotChecked),
        ("COV-OVW-002", Proof::Waived("a library call".to_owned())),
    ];
    let requirements = proofs.into_iter().map(|(id, proof)| Verified {
        id: id.to_owned(),
        title: format!("Title of {id}"),
        proof,
        took: Duration::from_millis(200),
    });
    let report = ProveReport {
        suite: "covel-sse".to_owned(),
        requirements: requirements.collect(),
        conformant: None,
        took: Duration::from_millis(12_345),
    };
    let entries: Vec<Entry> = report
        .requirements
        .iter()
        .map(|verified| Entry {
            waiver: (verified.id == "COV-OVW-002").then(|| "a library call".to_owned()),
            ..Catalogue::embedded().get(&verified.id).unwrap().clone()
        })
        .collect();
    let started = "2026-07-26T12:00:00Z".to_owned();
    ProofReport::of(
        &report,
        &entries.iter().collect::<Vec<_>>(),
        started,
        "turnwire prove --requirement {id}".to_owned(),
    )
}

#[test]
fn a_proof_says_first_what_is_not_proven() {
    insta::assert_snapshot!(proof().render(false));
}

#[test]
fn a_proof_is_one_suite_an_area_for_continuous_integration() {
    insta::assert_snapshot!(proof().junit().unwrap());
}

#[test]
fn a_proof_counts_each_requirement_once() {
    let counts = &proof().coverage.suites["covel-sse"];
    assert_eq!(
        (
            counts.requirements,
            counts.checked,
            counts.proven,
            counts.waived
        ),
        (6, 4, 1, 1)
    );
    assert_eq!(
        counts.open,
        ["COV-SUB-002", "COV-SUB-004", "COV-SUB-005", "COV-OVW-001"]
    );
    assert!(!proof().holds());
}

fn explained() -> Explained {
    Explained {
        id: "COV-SUB-102".to_owned(),
        title: "system.reset carries no id line".to_owned(),
        suite: "covel-sse".to_owned(),
        area: "covel-subscription".to_owned(),
        level: "must".to_owned(),
        binds: "server".to_owned(),
        observe: "wire".to_owned(),
        statement: "A system.reset frame is a named event without an id line, so it never moves the subscriber's \
                    Last-Event-ID."
            .to_owned(),
        source: "000_a.txt:741-742".to_owned(),
        quote: vec![
            QuotedLine { line: 741, text: "system.reset has no id,".to_owned() },
            QuotedLine { line: 742, text: "so the cursor stays.".to_owned() },
        ],
        check: "Subscribe with a cursor from another epoch.".to_owned(),
        rule: Some(json!({"frames": {"type": ["system.reset"], "lines": {"id": 0}}})),
        functions: vec!["reset_carries_no_id".to_owned()],
        sabotage: "Emit an id.".to_owned(),
        rewrite: Some(json!({"frames": {"do": [{"append_line": "id: x"}]}})),
        also: vec!["COV-SUB-167".to_owned()],
        needs: Some("subscriptions".to_owned()),
        scenarios: vec![ExplainedScenario { name: "reset".to_owned(), about: "reconnects".to_owned() }],
        last: Some(LastVerdict {
            target: "reference".to_owned(),
            started: "2026-07-26T12:00:00Z".to_owned(),
            verdict: report().requirement("COV-SUB-102").unwrap().clone(),
        }),
        proven: Some(true),
        ..Explained::default()
    }
}

#[test]
fn an_explanation_leads_from_the_source_to_the_last_verdict() {
    insta::assert_snapshot!(explained().render(false));
}

#[test]
fn an_explanation_says_what_is_not_known() {
    let bare = Explained {
        id: "X-001".to_owned(),
        title: "Nothing is known".to_owned(),
        ..Explained::default()
    };
    insta::assert_snapshot!(bare.render(false));
}

fn listing() -> Listing {
    Listing {
        requirements: Some(vec![ListedRequirement {
            id: "COV-SUB-102".to_owned(),
            title: "system.reset carries no id line".to_owned(),
            suite: "covel-sse".to_owned(),
            area: "covel-subscription".to_owned(),
            level: "must".to_owned(),
            binds: "server".to_owned(),
            observe: "wire".to_owned(),
            checked: true,
            waived: false,
        }]),
        scenarios: Some(vec![ListedScenario {
            name: "reset".to_owned(),
            suite: "covel-sse".to_owned(),
            about: "reconnects".to_owned(),
            needs: vec!["restart".to_owned()],
            variant: None,
        }]),
        areas: Some(vec![ListedArea {
            name: "covel-subscription".to_owned(),
            prefix: "COV-SUB".to_owned(),
            requirements: 190,
            checked: 7,
        }]),
        suites: Some(vec![ListedSuite {
            name: "covel-sse".to_owned(),
            requirements: 2000,
            checked: 170,
            scenarios: 20,
            revisions: vec!["2026-11".to_owned()],
        }]),
    }
}

#[test]
fn lists_are_columns() {
    insta::assert_snapshot!(listing().render());
}

#[test]
fn what_is_printed_as_json_satisfies_its_schema() {
    let printed = [
        ("report", serde_json::to_value(report()).unwrap()),
        ("coverage", serde_json::to_value(coverage()).unwrap()),
        ("proof", serde_json::to_value(proof()).unwrap()),
        ("explain", serde_json::to_value(explained()).unwrap()),
        ("list", serde_json::to_value(listing()).unwrap()),
    ];
    for (name, value) in printed {
        let (_, schema) = schemas::all()
            .into_iter()
            .find(|(found, _)| *found == name)
            .unwrap();
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert!(
            !validator.is_valid(&Value::from(1)),
            "{name} allows anything"
        );
    }
}

#[test]
fn the_checked_in_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for (name, schema) in schemas::all() {
        let path = folder.join(format!("{name}.json"));
        let text = format!("{:#}\n", schema.as_value());
        if std::env::var_os("TURNWIRE_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            found,
            text,
            "stale; run the tests with TURNWIRE_BLESS=1: {}",
            path.display()
        );
    }
}
