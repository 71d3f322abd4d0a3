//! The commands that run nothing: lists, explanations, counts.

use serde_json::Value;

use crate::support::turnwire;

#[test]
fn lists_can_be_narrowed_and_read_by_machines() {
    let ended = turnwire(&["list", "--requirement", "COV-SUB-102", "--format", "json"]);
    let list: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(list["requirements"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["requirements"][0]["id"], "COV-SUB-102");
    let ended = turnwire(&["list", "suites", "--format", "json"]);
    let list: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(
        list["suites"]
            .as_array()
            .is_some_and(|suites| suites.iter().any(|suite| suite["name"] == "chat-ws"))
    );
    for what in ["scenarios", "areas", "requirements", "suites"] {
        let ended = turnwire(&["list", what, "--suite", "covel-sse"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.lines().count() > 1, "{}", ended.stdout);
    }
}

#[test]
fn an_explanation_quotes_its_source() {
    let ended = turnwire(&["explain", "COV-SUB-001"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    for words in [
        "Action frames hold data lines only",
        "  637 | ",
        "How it is checked",
        "never run here",
    ] {
        assert!(
            ended.stdout.contains(words),
            "{words} is missing:\n{}",
            ended.stdout
        );
    }
    let ended = turnwire(&["explain", "COV-SUB-001", "--format", "json"]);
    let explained: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(explained["quote"][0]["line"], 637);
}

#[test]
fn coverage_adds_up() {
    let ended = turnwire(&["coverage", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let coverage: Value = serde_json::from_str(&ended.stdout).unwrap();
    let suites = coverage["suites"].as_object().unwrap();
    assert!(suites.contains_key("covel-sse") && suites.contains_key("gemini"));
    for (name, counts) in suites {
        let count = |key: &str| counts[key].as_u64().unwrap();
        let open = counts["open"].as_array().unwrap().len() as u64;
        assert_eq!(
            count("proven") + count("waived") + open,
            count("requirements"),
            "{name}"
        );
        assert_eq!(count("proven"), 0, "nothing was proven in this place");
    }
    assert!(
        ended.stderr.contains("never proven here"),
        "{}",
        ended.stderr
    );
    let keys: Vec<&String> = suites["covel-sse"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "requirements",
            "observable",
            "checked",
            "proven",
            "waived",
            "open"
        ]
    );
}

#[test]
fn every_json_has_a_schema() {
    for command in ["demo", "server", "prove", "list", "coverage", "explain X"] {
        let args: Vec<&str> = command.split(' ').chain(["--schema"]).collect();
        let ended = turnwire(&args);
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), ""),
            "{command}"
        );
        let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{command}");
    }
}
