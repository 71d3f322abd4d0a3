//! What holds for every golden file, whoever made it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use turnwire::{
    offline::{self, Checked},
    profile::Profile,
    report::{Outcome, Report, State, examples},
    suites,
    transcript::text,
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

/// Whether a file is made from a story; the others are recordings of a run.
fn is_told(path: &Path) -> bool {
    let (suite, name) = (suite_of(path), name_of(path));
    let mut stories = STORIES.iter().copied().flatten();
    stories.any(|story| story.suite == suite && story.name == name)
}

fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn suite_of(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

/// The index of what the files are examples of, as it is checked in.
fn examples_text() -> String {
    let files = all();
    let read = files
        .iter()
        .map(|path| (name_of(path), offline::load(path).unwrap().transcript));
    examples::index(read)
}

/// Writes the index, when golden files are made.
pub(crate) fn write_examples() {
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        fs::write(root().join("examples.txt"), examples_text()).unwrap();
    }
}

/// Files that show what no requirement speaks of: requests of `session-update`, of which its sources say nothing.
const NAMELESS: [(&str, &str); 1] = [("session-update", "requests")];

#[test]
fn every_file_can_be_read_and_names_its_suite_and_what_it_shows() {
    for path in all() {
        let shown = path.display();
        let content = fs::read_to_string(&path).unwrap();
        let golden = text::parse(&content)
            .unwrap_or_else(|error| panic!("{}", error.in_file(shown.to_string())));
        assert_eq!(golden.header.suite, suite_of(&path), "{shown}");
        assert!(
            !golden.header.notes.is_empty(),
            "{shown}: a line says what it is about"
        );
        assert!(
            !golden.header.requirements.is_empty()
                || NAMELESS.contains(&(&suite_of(&path), &name_of(&path))),
            "{shown}: it names what it shows"
        );
        for id in &golden.header.requirements {
            assert!(Catalogue::embedded().get(id).is_some(), "{shown}: {id}");
        }
        assert!(
            content.len() < 60_000 || !is_told(&path),
            "{shown} is too long to be read: {} bytes",
            content.len()
        );
    }
}

/// Files that are recordings: of a scenario that a server or a client was checked with, or of the recording proxy.
const RECORDED: [&str; 2] = ["chat-ws", "session-update"];

#[test]
fn every_file_has_its_story() {
    for path in all() {
        let may_be_recorded = RECORDED.contains(&suite_of(&path).as_str());
        assert!(
            is_told(&path) || may_be_recorded,
            "{}: no story tells it",
            path.display()
        );
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
        if is_told(&path) {
            continue;
        }
        let content = fs::read_to_string(&path).unwrap();
        let golden = text::parse(&content).unwrap();
        assert_eq!(text::write(&golden), content, "{}", path.display());
    }
}

/// Suites whose checks judge golden files, and how many requirements these show at least.
const JUDGED: [(&str, usize); 3] = [("chat-ws", 70), ("covel-sse", 60), ("session-update", 35)];

/// Names of files in which no check finds anything to judge, and why.
const UNJUDGED: [(&str, &str); 8] = [
    (
        "requests",
        "the requirements of session updates are about updates, and no turn runs here that would cause one",
    ),
    (
        "error-in-stream",
        "what a service says when it fails is not judged, but what its clients make of it",
    ),
    (
        "rate-limited",
        "what a service says when it fails is not judged, but what its clients make of it",
    ),
    ("client-interface", BY_ACTS),
    ("client-rounds", BY_ACTS),
    ("client-world", BY_ACTS),
    ("client-plugins", BY_ACTS),
    ("client-providers", BY_ACTS),
];

/// Why no client is judged by what a story plays to it.
const BY_ACTS: &str =
    "what a client owes is judged by the acts of the scenarios, which have their names";

/// What the checks say about one file, the way `turnwire check` asks them.
fn checked(path: &Path) -> Report {
    let suite = suites::find(&suite_of(path)).unwrap();
    let profile = match suite_of(path).parse() {
        Ok(wire) => Profile::mock(wire),
        Err(_) => Profile::reference(),
    };
    let asked = Checked {
        suite,
        requirements: suite.entries(None).collect(),
        required: Vec::new(),
        profile: &profile,
        rerun: String::new(),
        revision: None,
        strict: false,
    };
    offline::check(&asked, vec![offline::load(path).unwrap()])
}

#[test]
fn every_file_is_judged_and_no_check_finds_a_fault_in_it() {
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        return;
    }
    for path in all() {
        let report = checked(&path);
        let excused = UNJUDGED.iter().any(|(name, _)| *name == name_of(&path));
        let expected = if excused {
            Outcome::NothingExercised
        } else {
            Outcome::Conformant
        };
        let red: Vec<_> = report
            .requirements
            .iter()
            .filter(|requirement| requirement.state == State::Fail)
            .collect();
        assert_eq!(report.outcome, expected, "{}: {red:#?}", path.display());
    }
}

#[test]
fn the_files_of_a_suite_show_many_requirements() {
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        return;
    }
    for (name, least) in JUDGED {
        let files = all();
        let own = files.iter().filter(|path| suite_of(path) == name);
        let passed: BTreeSet<String> = own
            .flat_map(|path| checked(path).requirements)
            .filter(|requirement| requirement.state == State::Pass)
            .map(|requirement| requirement.id)
            .collect();
        let passed = passed.len();
        assert!(
            passed >= least,
            "only {passed} requirements of {name} were judged"
        );
    }
}

#[test]
fn what_is_excused_from_having_an_example_has_none_and_is_known() {
    let shown: BTreeSet<String> = examples_text()
        .lines()
        .filter_map(|line| Some(line.rsplit_once('\t')?.0.to_owned()))
        .collect();
    let mut seen = BTreeSet::new();
    for excuse in examples::excuses() {
        let (kind, name) = &excuse.example;
        let line = format!("{}\t{kind}\t{name}", excuse.suite);
        assert!(!shown.contains(&line), "{line} has an example");
        assert!(
            examples::known(&excuse.suite).contains(&excuse.example),
            "{line} is in no table"
        );
        assert!(seen.insert(line.clone()), "{line} is excused twice");
    }
}

#[test]
fn whatever_can_be_shown_is_shown() {
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        return;
    }
    for suite in suites::SUITES {
        let missing = examples::coverage(suite.name()).map(|counts| counts.missing);
        assert_eq!(
            missing.unwrap_or_default(),
            Vec::<String>::new(),
            "{}: tell a story, or say why not in golden/not-shown.txt",
            suite.name()
        );
    }
}
