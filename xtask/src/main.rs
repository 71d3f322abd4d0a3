//! Chores of the project: `cargo xtask test` runs everything that must be green.
//!
//! A chore is a list of commands. It stops at the first that fails and says which. What the tests need
//! beyond cargo is installed by [`needs`]. No test logic lives here.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

mod alone;
mod freeze;
mod generate;
mod matrix;
mod needs;
mod reference;
mod steps;
mod testees;

/// Chores of Turnwire.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Runs all tests, installing what they need and is missing.
    Test {
        /// Only these steps, by name, in their usual order.
        #[arg(long = "step")]
        steps: Vec<String>,
    },
    /// Writes the generated files: JSON Schemas, the protocol reference, OpenAPI and AsyncAPI.
    Gen {
        /// Writes nothing; fails when a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Freezes the requirements of a suite as they stand, under a name: writes spec/revisions/SUITE-NAME.yaml.
    Freeze {
        /// The suite, such as `chat-ws`.
        suite: String,
        /// The name, unique in the suite, such as `2026-11`.
        name: String,
        /// What it is the set of, in one line.
        #[arg(long, default_value = "all requirements of the suite")]
        about: String,
    },
    /// Plays the stories of the golden transcripts and writes those that no longer match a live run.
    Golden {
        /// Writes nothing; fails when a live run does not match its golden transcript.
        #[arg(long)]
        check: bool,
    },
    /// Writes docs/src/adapters.md from the measured results in conformance/testees/results.
    Matrix {
        /// Measures every adapter anew first; takes minutes, and needs what `cargo xtask test` installs.
        #[arg(long)]
        measure: bool,
        /// Writes nothing; fails when the page is stale.
        #[arg(long, conflicts_with = "measure")]
        check: bool,
    },
    /// Writes docs/src/naive-clients.md from what the naive clients were seen to get wrong.
    Testees {
        /// Plays everything to the example clients first; takes minutes, and needs Node.js and Python.
        #[arg(long)]
        measure: bool,
        /// Writes nothing; fails when the page is stale.
        #[arg(long, conflicts_with = "measure")]
        check: bool,
    },
    /// Builds the book into docs/book and checks its links.
    Book,
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Test { steps } => steps::test(&steps),
        Chore::Gen { check } => generate::run(check),
        Chore::Freeze { suite, name, about } => freeze::run(&suite, &name, &about),
        Chore::Golden { check } => steps::golden(check),
        Chore::Matrix { measure, check } => matrix::run(measure, check),
        Chore::Testees { measure, check } => testees::run(measure, check),
        Chore::Book => steps::book(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Why a chore could not be done.
#[derive(Debug, thiserror::Error)]
enum ChoreError {
    /// A command ended with a failure.
    #[error("step {step:?} failed: {command}")]
    Failed {
        /// Name of the step.
        step: String,
        /// The command line.
        command: String,
    },
    /// A program could not be started.
    #[error("cannot run {command}: {why}")]
    NotStarted {
        /// The command line.
        command: String,
        /// The system's words.
        why: String,
    },
    /// Something is missing that cannot be installed here.
    #[error("{what} is missing; install it: {how}")]
    Missing {
        /// The program.
        what: String,
        /// A command that installs it.
        how: String,
    },
    /// No such step.
    #[error("no step named {0:?}; there are: {1}")]
    NoStep(String, String),
    /// Generated files differ from what is checked in.
    #[error("stale generated files: {}; run `cargo xtask gen`", .0.join(", "))]
    Stale(Vec<String>),
    /// There is a revision of this name, or no suite.
    #[error("cannot freeze: {0}")]
    NotFrozen(String),
    /// A file could not be read or written.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// The system's words.
        why: String,
    },
}

/// Root of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

#[expect(clippy::print_stderr, reason = "this is a command")]
fn say(line: &str) {
    eprintln!("{line}");
}
