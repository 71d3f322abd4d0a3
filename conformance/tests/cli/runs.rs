//! What runs leave behind.

use serde_json::Value;

use crate::support::Place;

#[test]
fn a_run_leaves_its_result_in_every_form() {
    let place = Place::new();
    let args = ["demo", "--requirement", "COV-SUB-001", "--format", "json"];
    let files = [
        "--json",
        "a.json",
        "--junit",
        "a.xml",
        "--transcripts",
        "kept",
    ];
    let ended = place.run(&[&args[..], &files].concat());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&report["outcome"], &report["requirements"][0]["state"]),
        (&"conformant".into(), &"pass".into())
    );
    let kept = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&kept("a.json")).unwrap(),
        report
    );
    assert_eq!(
        serde_json::from_str::<Value>(&kept("kept/report.json")).unwrap(),
        report
    );
    assert!(
        kept("a.xml").contains("<testsuite name=\"covel-subscription\" tests=\"1\""),
        "{}",
        kept("a.xml")
    );
    for scenario in report["scenarios"].as_array().unwrap() {
        let text = kept(&format!(
            "kept/{}.twire",
            scenario["name"].as_str().unwrap()
        ));
        let transcript = turnwire::transcript::text::parse(&text).unwrap();
        assert_eq!(transcript.header.suite, "covel-sse");
        assert_eq!(turnwire::transcript::text::write(&transcript), text);
    }
    let explained = place.run(&["explain", "COV-SUB-001"]).stdout;
    assert!(explained.contains("pass on reference"), "{explained}");
}

#[test]
fn a_proof_is_kept_for_coverage_and_explain() {
    let place = Place::new();
    let ended = place.run(&[
        "prove",
        "--requirement",
        "COV-SUB-001",
        "--format",
        "json",
        "--json",
        "proof.json",
    ]);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let expected = serde_json::json!({"suites": {"covel-sse": {
        "requirements": 1, "observable": 1, "checked": 1, "proven": 1, "waived": 0, "open": [],
    }}});
    assert_eq!(
        serde_json::from_str::<Value>(&ended.stdout).unwrap(),
        expected
    );
    let ended = place.run(&[
        "coverage",
        "--requirement",
        "COV-SUB-001",
        "--format",
        "json",
    ]);
    assert_eq!(
        serde_json::from_str::<Value>(&ended.stdout).unwrap()["suites"],
        expected["suites"]
    );
    let explained = place.run(&["explain", "COV-SUB-001"]).stdout;
    assert!(
        explained.contains("proven: green on a conformant peer, red on its saboteur"),
        "{explained}"
    );
    let details = std::fs::read_to_string(place.path().join("proof.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&details).unwrap()["requirements"][0]["proof"],
        "proven"
    );
}
