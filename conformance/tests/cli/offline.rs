//! Files in place of a target: `check`, `diff` and `replay`.

use std::{
    fs::{self, File},
    path::Path,
};

use crate::support::Place;

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../golden/covel-sse/resume-unbridgeable.twire"
);

fn edited(place: &Place, from: &str, to: &str) -> String {
    let text = fs::read_to_string(GOLDEN).unwrap();
    assert!(text.contains(from), "{from}");
    let path = place.path().join("edited.twire");
    fs::write(&path, text.replace(from, to)).unwrap();
    path.display().to_string()
}

#[test]
fn a_golden_file_passes_and_an_edited_one_fails_with_the_frame() {
    let place = Place::new();
    let good = place.run(&["check", GOLDEN]);
    assert_eq!(good.code, Some(0), "{}{}", good.stdout, good.stderr);
    assert!(
        good.stdout.contains("covel-sse in 1 files: conformant"),
        "{}",
        good.stdout
    );

    let bad = edited(
        &place,
        "<8 event: system.reset\n",
        "<8 event: system.reset\n<8 id: x:1\n",
    );
    let failed = place.run(&["check", &bad, "--format", "json", "--junit", "out.xml"]);
    assert_eq!(failed.code, Some(1), "{}{}", failed.stdout, failed.stderr);
    let report: serde_json::Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!(report["outcome"], "not-conformant");
    assert_eq!(report["files"][0]["name"], bad.as_str());
    assert!(
        fs::read_to_string(place.path().join("out.xml"))
            .unwrap()
            .contains("<failure")
    );
}

#[test]
fn what_must_be_exercised_and_is_not_makes_it_red() {
    let place = Place::new();
    let ended = place.run(&["check", GOLDEN, "--require", "COV-SUB-011"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("UNSEEN COV-SUB-011"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_file_that_shows_nothing_ends_with_4_and_a_bad_one_with_2() {
    let place = Place::new();
    fs::write(
        place.path().join("empty.twire"),
        "twire 1\nsuite: covel-sse\n",
    )
    .unwrap();
    assert_eq!(place.run(&["check", "empty.twire"]).code, Some(4));
    fs::write(place.path().join("bad.har"), "{\"log\":{\"entries\":[{}]}}").unwrap();
    let bad = place.run(&["check", "bad.har"]);
    assert_eq!(bad.code, Some(2));
    assert!(
        bad.stderr
            .contains("bad.har: log.entries[0]: expected a member \"startedDateTime\""),
        "{}",
        bad.stderr
    );
    assert_eq!(place.run(&["check", "nowhere.twire"]).code, Some(2));
    fs::write(place.path().join("page.twire"), "> GET /\n").unwrap();
    let page = place.run(&["check", "page.twire"]);
    assert!(
        page.stderr.contains("name the suite with --suite"),
        "{}",
        page.stderr
    );
}

#[test]
fn a_folder_stands_for_its_files_and_each_is_written_under_a_name_of_its_own() {
    let place = Place::new();
    for folder in ["a", "b"] {
        let folder = place.path().join(folder);
        fs::create_dir(&folder).unwrap();
        fs::copy(GOLDEN, folder.join("run.twire")).unwrap();
        fs::write(folder.join("report.json"), "{}").unwrap();
    }
    let ended = place.run(&["check", "a", "b", "--transcripts", "out"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("in 2 files"), "{}", ended.stdout);
    for name in ["run.twire", "run-2.twire"] {
        assert!(place.path().join("out").join(name).exists(), "{name}");
    }
    fs::create_dir(place.path().join("none")).unwrap();
    let none = place.run(&["check", "none"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr
            .contains("none is a folder without a .twire or .har file"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_file_may_come_on_standard_input() {
    let place = Place::new();
    let mut command = place.command(&["check", "-"]);
    let ended = command.stdin(File::open(GOLDEN).unwrap()).output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(said.contains("covel-sse in 1 files: conformant"), "{said}");
}

#[test]
fn a_replay_without_an_exchange_ends_with_2_and_one_that_reaches_nobody_with_3() {
    let place = Place::new();
    fs::write(place.path().join("empty.twire"), "twire 1\n").unwrap();
    for words in [
        &["--to-client", "--once"][..],
        &["--to-server", "http://127.0.0.1:9"],
    ] {
        let ended = place.run(&[&["replay", "empty.twire"], words].concat());
        assert_eq!(ended.code, Some(2), "{}", ended.stdout);
        assert!(
            ended
                .stderr
                .contains("empty.twire: there is no exchange to play"),
            "{}",
            ended.stderr
        );
    }
    let alone = "> GET /a\n< 200\n< ok\nend complete\n";
    fs::write(place.path().join("one.twire"), alone).unwrap();
    let ended = place.run(&["replay", "one.twire", "--to-server", "http://127.0.0.1:9"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    assert!(
        ended
            .stderr
            .contains("http://127.0.0.1:9 cannot be reached"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_diff_ends_with_0_for_the_same_and_1_for_another() {
    let place = Place::new();
    let same = place.run(&["diff", GOLDEN, GOLDEN]);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    assert!(same.stdout.starts_with("same: "), "{}", same.stdout);
    let other = edited(&place, "epoch-change", "trimmed");
    let differs = place.run(&["diff", GOLDEN, &other, "--format", "json"]);
    assert_eq!(differs.code, Some(1));
    let diff: serde_json::Value = serde_json::from_str(&differs.stdout).unwrap();
    assert_eq!(diff["same"], false);
    assert_eq!(diff["differences"][0]["kind"], "changed");
    assert_eq!(diff["differences"][0]["changes"][0]["at"], "data /reason");
    assert!(Path::new(GOLDEN).exists());
}

#[test]
fn a_replay_stands_in_for_a_program_and_another_one_asks_it() {
    let place = Place::new();
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../golden/session-update/turns.twire"
    );
    let program = env!("CARGO_BIN_EXE_turnwire");
    let agent = ["--", program, "replay"];
    let played = |recorded: &str| {
        let mut words = vec!["replay", golden, "--format", "json"];
        words.extend(agent);
        words.extend([recorded, "--to-client", "--stdio", "--lenient"]);
        place.run(&words)
    };
    let same = played(golden);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    let diff: serde_json::Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!(diff["same"], true);
    assert!(diff["alike"].as_u64().unwrap() > 20, "{diff}");

    let text = fs::read_to_string(golden).unwrap();
    let edited = place.path().join("edited.twire");
    fs::write(
        &edited,
        text.replacen("\"text\":\"rain \"", "\"text\":\"snow \"", 1),
    )
    .unwrap();
    let other = played(&edited.display().to_string());
    assert_eq!(other.code, Some(1), "{}{}", other.stdout, other.stderr);
    let diff: serde_json::Value = serde_json::from_str(&other.stdout).unwrap();
    assert_eq!(diff["differences"][0]["what"], "line from the server");
    assert_eq!(
        diff["differences"][0]["changes"][0]["at"], "/event/text",
        "{diff:#}"
    );
}
