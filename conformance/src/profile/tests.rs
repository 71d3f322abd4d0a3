//! Profiles as people write them, and what is said of those that are wrong.

use super::*;
use crate::{
    cases::content::Feature,
    run::{MODEL, RESTART},
    suites::SUITES,
};

fn parse(text: &str) -> Result<Profile, ProfileError> {
    Profile::parse(text, Path::new("conf/turnwire.toml"))
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_profile_of_the_documentation_is_read() {
    let source = include_str!("../profile.rs");
    let text: String = source
        .lines()
        .skip_while(|line| *line != "//! ```toml")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| format!("{}\n", line.strip_prefix("//!").unwrap()))
        .collect();
    let profile = parse(&text).unwrap();
    assert_eq!(
        (profile.name.as_str(), profile.time_scale),
        ("my-server", 0.05)
    );
    assert!(profile.reaches_model());
    assert_eq!(profile.expected_failures["COV-SUB-102"], "issue 12");
    let Target::Command(command) = &profile.target else {
        panic!("{:?}", profile.target)
    };
    assert_eq!(command.cwd.as_deref(), Some(Path::new("conf/server")));
    assert_eq!(command.variants["demo-tier"].env["DEPLOYMENT_TIER"], "demo");
}

#[test]
fn a_url_alone_is_a_profile() {
    let profile = parse("target.url = \"http://127.0.0.1:8080\"").unwrap();
    assert_eq!(profile.name, "turnwire");
    assert!(
        !profile.reaches_model(),
        "nobody tells it where the model is"
    );
    assert!(matches!(profile.target, Target::Url(_)));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_name() {
    insta::assert_snapshot!(
        refused("[target]\ncomand = [\"x\"]\nurl = \"http://x\"\n"),
        @r#"conf/turnwire.toml:2:1: unknown key "target.comand"; did you mean "command"?"#
    );
    insta::assert_snapshot!(
        refused("target.url = \"http://x\"\n[limits]\nbananas = 3\n"),
        @r#"conf/turnwire.toml:3:1: unknown key "limits.bananas"; expected one of connect, head, idle, max_body, max_head, patience, retry_after, scenario, total"#
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_with_its_place() {
    insta::assert_snapshot!(
        refused("target.url = \"http://x\"\n[capabilities]\njobs = \"yes\"\n"),
        @r#"conf/turnwire.toml:3:8: capabilities.jobs: expected true or false, got a string"#
    );
    insta::assert_snapshot!(
        refused("[target]\ncommand = [\"x\", 7]\n"),
        @"conf/turnwire.toml:2:17: target.command: expected a string, got an integer"
    );
    insta::assert_snapshot!(
        refused("target = 3\n"),
        @"conf/turnwire.toml:1:10: target: expected a table, got an integer"
    );
}

#[test]
fn a_value_without_sense_is_refused_with_what_was_expected() {
    insta::assert_snapshot!(
        refused("time_scale = -1\ntarget.url = \"http://x\"\n"),
        @"conf/turnwire.toml:1:14: time_scale: expected a number above 0, got -1"
    );
    insta::assert_snapshot!(
        refused("target.url = \"http://x\"\nlimits.scenario = \"5 parsecs\"\n"),
        @r#"conf/turnwire.toml:2:19: limits.scenario: expected a duration such as "250ms", "5s" or "2m", got "5 parsecs""#
    );
    insta::assert_snapshot!(
        refused("target.url = \"x:1\"\n"),
        @r#"conf/turnwire.toml:1:14: target.url: "x:1" is no base URL: it does not begin with http:// or https://"#
    );
    insta::assert_snapshot!(
        refused("target.command = []\n"),
        @"conf/turnwire.toml:1:18: target.command: expected a program and its arguments, got nothing"
    );
}

#[test]
fn what_belongs_to_the_other_kind_of_target_is_explained() {
    insta::assert_snapshot!(
        refused("[target]\nurl = \"http://x\"\ncwd = \".\"\n"),
        @"conf/turnwire.toml:3:7: target.cwd: only a target with a command has this"
    );
    insta::assert_snapshot!(
        refused("target.url = \"http://x\"\n[variants.demo]\nargs = [\"-d\"]\n"),
        @"conf/turnwire.toml:3:8: variants.demo.args: only a target with a command has this; a URL target has url"
    );
}

#[test]
fn a_missing_target_is_named() {
    insta::assert_snapshot!(
        refused("name = \"x\"\n"),
        @"conf/turnwire.toml:1:1: target is missing: a [target] table with a command or a url"
    );
    insta::assert_snapshot!(
        refused("[target]\n"),
        @"conf/turnwire.toml:1:1: target.url is missing: the base URL of the target, or a command that starts it"
    );
}

#[test]
fn requirements_that_do_not_exist_get_the_nearest_name() {
    insta::assert_snapshot!(
        refused("target.url = \"http://x\"\nrequires = [\"COV-SBU\"]\n"),
        @r#"conf/turnwire.toml:2:13: requires: no requirement is named "COV-SBU"; did you mean "COV-SUB"?"#
    );
    insta::assert_snapshot!(
        refused("target.url = \"http://x\"\n[[expected_failures]]\nid = \"COV-SUB-102\"\n"),
        @"conf/turnwire.toml:2:1: expected_failures.reason is missing: why it fails, for readers"
    );
}

#[test]
fn what_is_no_toml_is_refused_with_its_place() {
    insta::assert_snapshot!(
        refused("target.url = \"http://x\"\nname = \n"),
        @"conf/turnwire.toml:2:8: no TOML: string values must be quoted, expected literal string"
    );
}

#[test]
fn a_profile_that_is_not_there_is_named() {
    let error = Profile::load(Path::new("no/such/turnwire.toml")).unwrap_err();
    assert!(matches!(error, ProfileError::Unreadable { .. }), "{error}");
}

#[test]
fn the_reference_server_has_every_capability_that_something_needs() {
    let declared = Profile::reference().capabilities;
    for suite in SUITES {
        let scenarios = suite
            .scenarios()
            .flat_map(|scenario| scenario.needs)
            .copied();
        let judged = suite.entries(None).filter(|entry| suite.judges(entry));
        let entries = judged.filter_map(|entry| entry.needs.as_deref());
        for need in scenarios
            .chain(entries)
            // What adapters have, they say themselves.
            .filter(|need| ![RESTART, MODEL].contains(need) && Feature::named(need).is_none())
        {
            assert_eq!(declared.get(need), Some(&true), "{need}");
        }
    }
}

#[test]
fn the_profiles_of_the_book_are_read() {
    let page = include_str!("../../../docs/src/profile.md");
    let blocks: Vec<_> = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        parse(block).unwrap();
    }
}
