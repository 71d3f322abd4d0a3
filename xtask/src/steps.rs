//! The steps of `cargo xtask test`, in order.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::{ChoreError, alone, generate, matrix, needs, root, say, testees};

/// A named part of the tests.
struct Step {
    name: &'static str,
    run: Run,
}

enum Run {
    Chore(fn() -> Result<(), ChoreError>),
    /// Gives the names of the tests that passed only alone.
    Tests(fn() -> Result<Vec<String>, ChoreError>),
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: Run::Chore(|| cargo("format", &["fmt", "--all", "--check"])),
    },
    Step {
        name: "generated",
        run: Run::Chore(|| {
            generate::run(true)?;
            matrix::run(false, true)?;
            testees::run(false, true)
        }),
    },
    Step {
        name: "needs",
        run: Run::Chore(needs::install),
    },
    Step {
        name: "descriptions",
        run: Run::Chore(|| {
            let folder = root().join("docs/validators");
            run("descriptions", &folder, "node", &["validate.mjs"])
        }),
    },
    Step {
        name: "lint",
        run: Run::Chore(|| cargo("lint", LINT)),
    },
    Step {
        name: "test",
        run: Run::Tests(|| tests("test", &["--workspace", "--no-fail-fast"])),
    },
    Step {
        name: "browser",
        run: Run::Tests(browser),
    },
    Step {
        name: "book",
        run: Run::Chore(book),
    },
];

const LINT: &[&str] = &[
    "clippy",
    "--workspace",
    "--all-targets",
    "--",
    "-D",
    "warnings",
];

/// Runs all steps, or those named.
///
/// # Errors
///
/// The first step that fails, or a name that is no step's.
pub(crate) fn test(only: &[String]) -> Result<(), ChoreError> {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(ChoreError::NoStep(unknown.clone(), names.join(", ")));
    }
    let mut times = Vec::new();
    let mut only_alone = Vec::new();
    for step in STEPS
        .iter()
        .filter(|step| only.is_empty() || only.iter().any(|name| name == step.name))
    {
        say(&format!("== {}", step.name));
        let start = Instant::now();
        match step.run {
            Run::Chore(run) => run()?,
            Run::Tests(run) => only_alone.extend(run()?),
        }
        times.push((step.name, start.elapsed()));
    }
    if !only_alone.is_empty() {
        let names = only_alone.join(", ");
        say(&format!("green only when run alone, look into it: {names}"));
    }
    say(&summary(&times));
    Ok(())
}

/// Runs the tests of web pages, for which it installs Chromium.
fn browser() -> Result<Vec<String>, ChoreError> {
    needs::install_browser()?;
    let args = [
        "--package",
        "turnwire",
        "--test",
        "browser",
        "--no-fail-fast",
    ];
    tests("browser", &args)
}

fn tests(step: &str, args: &[&str]) -> Result<Vec<String>, ChoreError> {
    alone::test(step, &cargo_program(), &[&["test"], args].concat())
}

/// Builds the book.
///
/// # Errors
///
/// When it does not build or a link is broken.
pub(crate) fn book() -> Result<(), ChoreError> {
    cargo("book", &["run", "--quiet", "--package", "turnwire-docs"])
}

/// Plays the stories of the golden transcripts, and unless `check` writes the files that do not match.
///
/// # Errors
///
/// When a story cannot be told, breaks a requirement, or does not match its file.
pub(crate) fn golden(check: bool) -> Result<(), ChoreError> {
    let args = ["test", "--package", "turnwire", "--test", "golden"];
    let bless: &[(&str, &str)] = if check {
        &[]
    } else {
        &[("TURNWIRE_BLESS", "1")]
    };
    run_with("golden", &root(), &cargo_program(), &args, bless)
}

/// Runs a command in a folder, its output passed through.
///
/// # Errors
///
/// When it cannot be started or ends with a failure.
pub(crate) fn run(
    step: &str,
    folder: &Path,
    program: &str,
    args: &[&str],
) -> Result<(), ChoreError> {
    run_with(step, folder, program, args, &[])
}

fn run_with(
    step: &str,
    folder: &Path,
    program: &str,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Result<(), ChoreError> {
    let line = format!("{program} {}", args.join(" "));
    let status = Command::new(program)
        .args(args)
        .current_dir(folder)
        .envs(variables.iter().copied())
        .status()
        .map_err(|error| ChoreError::NotStarted {
            command: line.clone(),
            why: error.to_string(),
        })?;
    if status.success() {
        Ok(())
    } else {
        Err(ChoreError::Failed {
            step: step.to_owned(),
            command: line,
        })
    }
}

pub(crate) fn cargo(step: &str, args: &[&str]) -> Result<(), ChoreError> {
    run(step, &root(), &cargo_program(), args)
}

fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn summary(times: &[(&str, Duration)]) -> String {
    let parts: Vec<String> = times
        .iter()
        .map(|(name, time)| format!("{name} {:.0} s", time.as_secs_f64()))
        .collect();
    format!("all green: {}", parts.join(", "))
}
