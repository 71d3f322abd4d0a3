//! The golden transcripts read back as what they are, and no check finds a fault in them.

use std::{fs, path::PathBuf};

use turnwire::{
    profile::Profile,
    run::judge,
    suites,
    transcript::{Transcript, text},
    verdict::Verdict,
};

/// The suites that have golden files, and how many requirements these show at least.
const SUITES: [(&str, usize); 2] = [("covel-sse", 30), ("session-update", 35)];

/// The files of one suite, with their texts.
fn files(suite: &str) -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../golden")
        .join(suite);
    let paths = fs::read_dir(folder)
        .expect("the suite has golden files")
        .map(|entry| entry.expect("it is readable").path());
    let mut files: Vec<_> = paths
        .map(|path| {
            let text = fs::read_to_string(&path).expect("it is UTF-8");
            (path, text)
        })
        .collect();
    files.sort();
    files
}

fn parsed(suite: &str) -> Vec<Transcript> {
    let read = |(path, text): (PathBuf, String)| match text::parse(&text) {
        Ok(transcript) => transcript,
        Err(error) => panic!("{}", error.in_file(path.display().to_string())),
    };
    files(suite).into_iter().map(read).collect()
}

#[test]
fn golden_files_are_written_as_they_were_read() {
    for (path, text) in SUITES.iter().flat_map(|(suite, _)| files(suite)) {
        let transcript = text::parse(&text).expect("it parses");
        assert_eq!(text::write(&transcript), text, "{}", path.display());
    }
}

#[test]
fn no_check_finds_a_fault_in_a_golden_file_and_many_judge_it() {
    for (name, least) in SUITES {
        let suite = suites::find(name).expect("the suite exists");
        let selection: Vec<_> = suite.entries(None).collect();
        let verdicts = judge(&parsed(name), suite, &selection, &Profile::reference());
        let faults: Vec<_> = verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Fail { .. }))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
        let passed = verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Pass { .. }))
            .count();
        assert!(
            passed >= least,
            "only {passed} requirements of {name} were judged"
        );
    }
}
