//! Help, and everything that can be wrong with a command line.

use std::process::Stdio;

use crate::support::{Place, fails, turnwire};

#[test]
fn wrong_usage_is_one_line_with_the_nearest_name_and_ends_with_2() {
    let lines = [
        &["sever"][..],
        &[],
        &["server", "--sute", "covel-sse"],
        &["server", "--frobnicate"],
        &[
            "server",
            "--suite",
            "covel-see",
            "--url",
            "http://127.0.0.1:9",
        ],
        &["server", "--suite", "zzz", "--url", "http://127.0.0.1:9"],
        &[
            "server",
            "--requirement",
            "COV-SBU",
            "--url",
            "http://127.0.0.1:9",
        ],
        &[
            "server",
            "--require",
            "COV-SBU-102",
            "--url",
            "http://127.0.0.1:9",
        ],
        &[
            "server",
            "--scenario",
            "tunr",
            "--url",
            "http://127.0.0.1:9",
        ],
        &["server", "--binds", "sever", "--url", "http://127.0.0.1:9"],
        &["server", "--time-scale", "0", "--url", "http://127.0.0.1:9"],
        &["server", "--jobs", "none", "--url", "http://127.0.0.1:9"],
        &["server", "--timeout", "-1", "--url", "http://127.0.0.1:9"],
        &["server", "--format", "jason", "--url", "http://127.0.0.1:9"],
        &[
            "server",
            "--url",
            "http://127.0.0.1:9",
            "--profile",
            "turnwire.toml",
        ],
        &["server", "--url", "ftp://127.0.0.1"],
        &["server", "--url", "127.0.0.1:9"],
        &["server"],
        &["server", "--profile", "nowhere.toml"],
        &["explain", "COV-SUB-1020"],
        &["explain", "COV-SUB"],
        &["explain"],
        &["list", "scenario"],
        &["list", "--suite", "ssee"],
        &["serve", "--store", "postgres"],
        &["serve", "--tier", "free"],
        &["mock", "--script", "nowhere.yaml"],
        &["mock", "--port", "70000"],
        &["completions", "shell"],
    ];
    let mut said = String::new();
    for line in lines {
        said.push_str(&format!(
            "$ turnwire {}\n{}\n",
            line.join(" "),
            fails(line, 2)
        ));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn looking_for_a_fault_that_nobody_plants_is_wrong_usage_and_names_those_there_are() {
    for side in [
        "client --suite chat-ws",
        "server --reconnect",
        "server --envelopes",
    ] {
        let line = format!("fuzz {side} --prove --fault nosuch");
        let args: Vec<&str> = line.split(' ').collect();
        let error = fails(&args, 2);
        let begin = "turnwire: no planted fault has \"nosuch\" in its name; there are ";
        assert!(error.starts_with(begin), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_malformed_profile_is_named_with_file_line_and_column() {
    let place = Place::new();
    let cases = [
        ("name = \"a\"\n[target\n", "turnwire.toml:2:"),
        (
            "[target]\nurl = \"http://127.0.0.1:9\"\ncomand = [\"x\"]\n",
            "turnwire.toml:3:1: unknown key",
        ),
        (
            "time_scale = \"fast\"\n[target]\nurl = \"http://127.0.0.1:9\"\n",
            "turnwire.toml:1:",
        ),
    ];
    for (text, start) in cases {
        std::fs::write(place.path().join("turnwire.toml"), text).unwrap();
        // Without a flag the profile of the folder counts.
        for args in [&["server"][..], &["server", "--profile", "turnwire.toml"]] {
            let ended = place.run(args);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
            assert!(
                ended.stderr.starts_with(&format!("turnwire: {start}")),
                "{}",
                ended.stderr
            );
        }
    }
}

#[test]
fn a_malformed_script_is_named_with_file_line_and_column() {
    let place = Place::new();
    std::fs::write(
        place.path().join("script.yaml"),
        "name: a\nrules:\n  - whne: {}\n",
    )
    .unwrap();
    let ended = place.run(&["mock", "--script", "script.yaml"]);
    assert_eq!(
        (ended.code, ended.stderr.lines().count()),
        (Some(2), 1),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.starts_with("turnwire: script.yaml:3:"),
        "{}",
        ended.stderr
    );
}

#[test]
fn files_that_cannot_be_written_are_known_before_the_run() {
    let line = fails(&["demo", "--json", "no/such/folder/report.json"], 2);
    assert!(
        line.starts_with("turnwire: cannot write no/such/folder/report.json"),
        "{line}"
    );
}

#[test]
fn help_goes_to_standard_output() {
    for command in [
        "",
        "demo",
        "server",
        "provider",
        "prove",
        "list",
        "explain",
        "coverage",
        "serve",
        "mock",
        "completions",
    ] {
        let args: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        let ended = turnwire(&args);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let name = if command.is_empty() { "help" } else { command };
        insta::assert_snapshot!(format!("help_{name}"), ended.stdout);
    }
}

#[test]
fn the_version_is_one_line() {
    let ended = turnwire(&["--version"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.stdout,
        format!("turnwire {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = turnwire(&["completions", shell]);
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.contains("coverage"), "{shell}");
    }
}

#[test]
fn a_closed_output_is_no_panic() {
    let place = Place::new();
    let mut child = place
        .command(&["list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn pipes_and_no_color_get_no_colours() {
    let place = Place::new();
    let ended = place
        .command(&["explain", "COV-SUB-001"])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(!ended.stdout.contains(&0x1b) && !ended.stderr.contains(&0x1b));
    assert!(
        !turnwire(&["explain", "COV-SUB-001"])
            .stdout
            .contains('\u{1b}')
    );
}
