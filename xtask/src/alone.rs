//! Running tests, and once more alone what failed beside all the others.
//!
//! Many tests play over real sockets, and all of them share the machine. One that fails in the crowd is run again by itself: when it
//! fails again it is broken, and so is the step; when it passes it was short of time, and the summary names it so that somebody looks.
//! A program that ends without naming a failed test, and more failures than [`MOST`], are never forgiven.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    thread,
};

use crate::{ChoreError, root, say};

/// More failed tests than this are no matter of time.
const MOST: usize = 4;

/// What a run of `cargo test` came to.
#[derive(Debug, Default)]
struct Outcome {
    success: bool,
    /// Names of the tests that passed.
    passed: BTreeSet<String>,
    /// Names of the tests that failed.
    failed: BTreeSet<String>,
    /// Programs that failed.
    programs: usize,
    /// Programs that failed and said so themselves, instead of dying.
    summaries: usize,
}

/// Runs `cargo test` with these arguments, and alone what failed. Gives the names of the tests that passed only alone.
///
/// # Errors
///
/// When cargo cannot be started, something does not compile, a test fails twice, or too many fail.
pub(crate) fn test(step: &str, program: &str, args: &[&str]) -> Result<Vec<String>, ChoreError> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let first = cargo_test(program, &args)?;
    if first.success {
        return Ok(Vec::new());
    }
    let failed = || ChoreError::Failed {
        step: step.to_owned(),
        command: format!("{program} {}", args.join(" ")),
    };
    if !is_worth_another_look(&first) {
        return Err(failed());
    }
    say(&format!(
        "failed beside others, run alone now: {}",
        list(&first.failed)
    ));
    let alone = cargo_test(program, &again(&args, &first.failed))?;
    if !alone.success || alone.passed != first.failed {
        return Err(failed());
    }
    Ok(alone.passed.into_iter().collect())
}

/// Whether every program that failed named the tests that did, and these are few.
fn is_worth_another_look(outcome: &Outcome) -> bool {
    (1..=MOST).contains(&outcome.failed.len()) && outcome.summaries == outcome.programs
}

/// The same arguments, so that nothing is compiled anew, and only some tests, one after the other.
fn again(args: &[String], tests: &BTreeSet<String>) -> Vec<String> {
    let only = ["--", "--exact", "--test-threads=1"].map(str::to_owned);
    args.iter()
        .cloned()
        .chain(only)
        .chain(tests.iter().cloned())
        .collect()
}

fn cargo_test(program: &str, args: &[String]) -> Result<Outcome, ChoreError> {
    let not_started = |error: std::io::Error| ChoreError::NotStarted {
        command: format!("{program} {}", args.join(" ")),
        why: error.to_string(),
    };
    let mut child = Command::new(program)
        .args(args)
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let errors = thread::spawn(move || passed_on(stderr, std::io::stderr()));
    let output = passed_on(stdout, std::io::stdout());
    let errors = errors.join().unwrap_or_default();
    let status = child.wait().map_err(not_started)?;
    Ok(Outcome {
        success: status.success(),
        passed: tests(&output, "ok"),
        failed: tests(&output, "FAILED"),
        programs: programs(&errors),
        summaries: output
            .iter()
            .filter(|line| line.starts_with("test result: FAILED"))
            .count(),
    })
}

/// Writes each line on as it comes, and keeps them all.
fn passed_on(from: Option<impl Read>, mut to: impl Write) -> Vec<String> {
    let Some(from) = from else { return Vec::new() };
    let mut lines = Vec::new();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // Nobody may be listening any more: what the tests came to counts all the same.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    lines
}

/// Names of the tests that ended so, from lines such as `test names::of::it ... ok`.
fn tests(output: &[String], end: &str) -> BTreeSet<String> {
    let name = |line: &String| {
        let line = line.strip_prefix("test ")?;
        let (name, came_to) = line.rsplit_once(" ... ")?;
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        (came_to == end).then(|| name.to_owned())
    };
    output.iter().filter_map(name).collect()
}

/// How many programs failed, by cargo's list of them: lines such as "    `-p turnwire --lib`".
fn programs(errors: &[String]) -> usize {
    let failed = errors.iter().filter(|line| line.trim().starts_with("`-p "));
    failed.count()
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_failed_and_what_passed_is_read_from_the_output() {
        let output = lines(
            "running 4 tests\n\
             test a::fine ... ok\n\
             test a::broken ... FAILED\n\
             test src/lib.rs - Decoder (line 51) ... ok\n\
             test a::dies - should panic ... FAILED\n\
             test result: FAILED. 2 passed; 2 failed",
        );
        let passed = tests(&output, "ok");
        assert!(
            passed
                .iter()
                .eq(&["a::fine", "src/lib.rs - Decoder (line 51)"])
        );
        let failed = tests(&output, "FAILED");
        assert!(failed.iter().eq(&["a::broken", "a::dies"]));
    }

    #[test]
    fn only_the_tests_that_failed_are_run_again_and_nothing_is_compiled_anew() {
        let args = lines("test\n--workspace\n--no-fail-fast");
        let args = again(&args, &BTreeSet::from(["a::broken".to_owned()]));
        let line = "test --workspace --no-fail-fast -- --exact --test-threads=1 a::broken";
        assert_eq!(args.join(" "), line);
    }

    #[test]
    fn programs_that_failed_are_counted() {
        let errors =
            "error: 2 targets failed:\n    `-p turnwire --lib`\n    `-p turnwire --test cli`";
        assert_eq!(programs(&lines(errors)), 2);
    }

    #[test]
    fn what_does_not_compile_or_dies_without_a_name_gets_no_second_chance() {
        let ended = |names: &[&str], programs: usize, summaries: usize| Outcome {
            failed: names.iter().map(|name| (*name).to_owned()).collect(),
            programs,
            summaries,
            ..Outcome::default()
        };
        assert!(is_worth_another_look(&ended(&["a"], 1, 1)));
        assert!(!is_worth_another_look(&ended(&[], 1, 1)), "no name");
        assert!(!is_worth_another_look(&ended(&["a"], 2, 1)), "one died");
        let many = ["a", "b", "c", "d", "e"];
        assert!(!is_worth_another_look(&ended(&many, 1, 1)));
    }
}
