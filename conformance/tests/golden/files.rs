//! What holds for every golden file, whoever made it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use turnwire::{
    offline, profile::Profile, report::examples, run::judge, suites, transcript::text,
    verdict::Verdict,
};
use turnwire_spec::catalogue::Catalogue;

use crate::stories::STORIES;

/// The folder of the golden files.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../golden"))
}

/// All files, by suite and name.
fn all() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for suite in fs::read_dir(root()).unwrap() {
        let folder = suite.unwrap().path();
        if folder.is_dir() {
            files.extend(
                fs::read_dir(folder)
                    .unwrap()
                    .map(|file| file.unwrap().path()),
            );
        }
    }
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "twire")
    });
    files.sort();
    files
}

/// Suites whose files are made from stories; the files of others are recordings of a run.
fn told_by_stories() -> BTreeSet<&'static str> {
    let stories = STORIES.iter().copied().flatten();
    stories.map(|story| story.suite).collect()
}

fn suite_of(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

/// The index of what the files are examples of, as it is checked in.
fn examples_text() -> String {
    let files = all();
    let read = files.iter().map(|path| {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        (name, offline::load(path).unwrap().transcript)
    });
    examples::index(read)
}

/// Writes the index, when golden files are made.
pub(crate) fn write_examples() {
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        fs::write(root().join("examples.txt"), examples_text()).unwrap();
    }
}

#[test]
fn every_file_can_be_read_and_names_its_suite_and_what_it_shows() {
    for path in all() {
        let shown = path.display();
        let content = fs::read_to_string(&path).unwrap();
        let golden = text::parse(&content)
            .unwrap_or_else(|error| panic!("{}", error.in_file(shown.to_string())));
        assert_eq!(golden.header.suite, suite_of(&path), "{shown}");
        if !told_by_stories().contains(suite_of(&path).as_str()) {
            continue;
        }
        assert!(
            !golden.header.notes.is_empty(),
            "{shown}: a line says what it is about"
        );
        assert!(
            !golden.header.requirements.is_empty(),
            "{shown}: it names what it shows"
        );
        for id in &golden.header.requirements {
            assert!(Catalogue::embedded().get(id).is_some(), "{shown}: {id}");
        }
        assert!(
            content.len() < 60_000,
            "{shown} is too long to be read: {} bytes",
            content.len()
        );
    }
}

#[test]
fn every_file_has_its_story() {
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        return;
    }
    let told: BTreeSet<(String, String)> = STORIES
        .iter()
        .copied()
        .flatten()
        .map(|story| (story.suite.to_owned(), story.name.to_owned()))
        .collect();
    let suites: BTreeSet<&String> = told.iter().map(|(suite, _)| suite).collect();
    for path in all() {
        let suite = suite_of(&path);
        if suites.contains(&suite) {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            assert!(
                told.contains(&(suite, name)),
                "{}: no story tells it",
                path.display()
            );
        }
    }
}

#[test]
fn the_index_of_examples_is_the_one_of_the_files() {
    if std::env::var_os("TURNWIRE_BLESS").is_none() {
        let checked_in = fs::read_to_string(root().join("examples.txt")).unwrap_or_default();
        assert_eq!(checked_in, examples_text(), "see `cargo xtask golden`");
    }
}

#[test]
fn a_file_that_is_a_recording_is_written_as_it_was_read() {
    for path in all() {
        if told_by_stories().contains(suite_of(&path).as_str()) {
            continue;
        }
        let content = fs::read_to_string(&path).unwrap();
        let golden = text::parse(&content).unwrap();
        assert_eq!(text::write(&golden), content, "{}", path.display());
    }
}

/// Suites whose checks judge golden files, and how many requirements these show at least.
const JUDGED: [(&str, usize); 3] = [("chat-ws", 70), ("covel-sse", 60), ("session-update", 35)];

#[test]
fn no_check_finds_a_fault_in_a_golden_file_and_many_judge_it() {
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        return;
    }
    for (name, least) in JUDGED {
        let suite = suites::find(name).unwrap();
        let files = all();
        let own = files.iter().filter(|path| suite_of(path) == name);
        let transcripts: Vec<_> = own
            .map(|path| offline::load(path).unwrap().transcript)
            .collect();
        let selection: Vec<_> = suite.entries(None).collect();
        let verdicts = judge(&transcripts, suite, &selection, &Profile::reference());
        let failed = verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Fail { .. }));
        let failed: Vec<_> = failed.collect();
        assert!(failed.is_empty(), "{failed:#?}");
        let passed = verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Pass { .. }));
        let passed = passed.count();
        assert!(
            passed >= least,
            "only {passed} requirements of {name} were judged"
        );
    }
}
