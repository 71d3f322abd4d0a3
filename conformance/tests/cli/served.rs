//! The reference server in one process, the harness in another: as a developer has them, in two terminals.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::{
    servers::Served,
    support::{Ended, Place},
};

/// `turnwire serve`, with rates that are refused and a model of its own, a hundred times faster than real time.
struct Both {
    served: Served,
    lines: String,
}

impl Both {
    fn start() -> Self {
        let scaled = ["--store", "memory", "--time-scale", "0.01"];
        let ports = ["--session-update-port", "0"];
        let mut served = Served::start(&[&["serve"][..], &scaled, &ports].concat());
        let said = BufReader::new(served.said());
        let lines = said
            .lines()
            .map(Result::unwrap)
            .find_map(|line| Some(line.strip_prefix("session-update at ")?.to_owned()));
        Self {
            served,
            lines: lines.unwrap(),
        }
    }

    fn check(&self, suite: &str, url: &str) -> (Ended, Value) {
        let place = Place::new();
        let target = ["--url", url, "--time-scale", "0.01"];
        let plugins = ["--plugin", "story", "--plugin", "turnwire-fixtures"];
        let ended = place.run(
            &[
                &["server", "--suite", suite, "--format", "json"][..],
                &target,
                &plugins,
            ]
            .concat(),
        );
        let report = serde_json::from_str(&ended.stdout).unwrap_or_default();
        (ended, report)
    }
}

/// Why scenarios were left out.
fn left_out(report: &Value) -> Vec<(&str, &str)> {
    let scenarios = report["scenarios"].as_array().unwrap().iter();
    let left_out = scenarios.filter(|one| one["leftOut"] == true);
    left_out
        .map(|one| {
            (
                one["name"].as_str().unwrap(),
                one["stopped"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn a_server_that_refuses_requests_for_their_rate_is_checked_all_the_same() {
    let both = Both::start();
    let (ended, report) = both.check("covel-sse", &both.served.url);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("as the target asks"),
        "the rates are met: {}",
        ended.stderr
    );
    let refused: Vec<_> = left_out(&report)
        .into_iter()
        .filter(|(_, why)| why.contains("rate_limit_exceeded"))
        .collect();
    assert_eq!(refused, [], "every scenario waits as long as it is told");
    for noise in ["programs that connect to the harness", "left out: left out"] {
        assert!(!ended.stderr.contains(noise), "{}", ended.stderr);
    }
    let model = "is not known to call the mock model";
    assert_eq!(
        ended.stderr.matches(model).count(),
        1,
        "a long reason is said once: {}",
        ended.stderr
    );
    assert!(
        report["totals"]["pass"].as_u64().unwrap() > 75,
        "{}",
        report["totals"]
    );
}

#[test]
fn the_small_protocols_are_checked_by_a_url_with_whatever_model_the_server_has() {
    let both = Both::start();
    let socket = both.served.url.replace("http://", "ws://");
    for (suite, url) in [("session-update", &both.lines), ("chat-ws", &socket)] {
        let (ended, report) = both.check(suite, url);
        assert_eq!(
            ended.code,
            Some(0),
            "{suite}: {}{}",
            ended.stderr,
            ended.stdout
        );
        assert!(
            report["totals"]["pass"].as_u64().unwrap() > 10,
            "{suite}: {}",
            report["totals"]
        );
    }
}
