//! The page about well-known adapters, docs/src/adapters.md: written from measured results, never by hand.
//!
//! `cargo xtask matrix --measure` puts every adapter of `conformance/testees` through the torture matrix and keeps the
//! result in `conformance/testees/results`; `cargo xtask matrix` writes the page from what is there.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    ChoreError,
    generate::write,
    root, say,
    steps::{cargo, run as command},
};

const PAGE: &str = "docs/src/adapters.md";
const RESULTS: &str = "conformance/testees/results";
const PYTHON: &str =
    "mock-providers/tests/sdks/.venv/bin/python conformance/testees/python/adapter.py";
const NODE: &str = "node conformance/testees/javascript/adapter.mjs";
/// Splits a case of third-party adapters, at most: interpreters take their time.
const MOST: &str = "8";
/// Longest wait for a report, in seconds: a busy machine must accuse nobody.
const PATIENCE: &str = "40";
/// Splits a case of our own gateway, at most. The page is no place to wait for every byte; `turnwire adapter --matrix`
/// tries more by itself.
const MOST_OF_OURS: &str = "64";

/// Every adapter that is measured: wire, title, and command; none is our own gateway.
const ADAPTERS: &[(&str, &str, &str, &str)] = &[
    ("openai-chat", "Turnwire's gateway", "", ""),
    ("openai-chat", "openai (Python)", PYTHON, "openai"),
    ("openai-chat", "openai (JavaScript)", NODE, "openai"),
    ("openai-chat", "AI SDK, @ai-sdk/openai", NODE, "ai-sdk"),
    (
        "openai-chat",
        "AI SDK, @ai-sdk/openai-compatible",
        NODE,
        "ai-sdk-compatible",
    ),
    ("openai-responses", "Turnwire's gateway", "", ""),
    ("openai-responses", "openai (Python)", PYTHON, "openai"),
    ("openai-responses", "openai (JavaScript)", NODE, "openai"),
    ("openai-responses", "AI SDK, @ai-sdk/openai", NODE, "ai-sdk"),
    ("anthropic-messages", "Turnwire's gateway", "", ""),
    (
        "anthropic-messages",
        "anthropic (Python)",
        PYTHON,
        "anthropic",
    ),
    (
        "anthropic-messages",
        "@anthropic-ai/sdk (JavaScript)",
        NODE,
        "anthropic",
    ),
    (
        "anthropic-messages",
        "AI SDK, @ai-sdk/anthropic",
        NODE,
        "ai-sdk",
    ),
    ("gemini", "Turnwire's gateway", "", ""),
    ("gemini", "google-genai (Python)", PYTHON, "google-genai"),
    ("gemini", "@google/genai (JavaScript)", NODE, "google-genai"),
    ("gemini", "AI SDK, @ai-sdk/google", NODE, "ai-sdk"),
    ("gemini-openai", "Turnwire's gateway", "", ""),
    ("gemini-openai", "openai (Python)", PYTHON, "openai"),
    ("gemini-openai", "openai (JavaScript)", NODE, "openai"),
    (
        "gemini-openai",
        "AI SDK, @ai-sdk/openai-compatible",
        NODE,
        "ai-sdk-compatible",
    ),
];

/// What the page needs of a result; `turnwire adapter --matrix --schema` has all of it.
#[derive(Debug, Deserialize)]
struct Measured {
    turnwire: String,
    adapter: String,
    version: String,
    runs: usize,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    #[serde(default)]
    unsupported: Option<String>,
    #[serde(default)]
    failures: Vec<Failure>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    #[serde(default)]
    split: Option<usize>,
    expected: String,
    got: String,
}

/// Measures when that is asked for, and writes the page, or compares it.
///
/// # Errors
///
/// [`ChoreError::Stale`] when the page differs from the results; [`ChoreError::File`] for a result that is missing or
/// cannot be read; what goes wrong with a command.
pub(crate) fn run(measure: bool, check: bool) -> Result<(), ChoreError> {
    if measure {
        measure_all()?;
    }
    let page = page()?;
    let path = root().join(PAGE);
    if std::fs::read_to_string(&path).is_ok_and(|old| old == page) {
        return Ok(());
    }
    if check {
        return Err(ChoreError::Stale(vec![PAGE.to_owned()]));
    }
    write(&path, &page)
}

/// Where the result of an adapter on a wire is kept.
fn result(wire: &str, command: &str, sdk: &str) -> PathBuf {
    let language = match command {
        "" => "turnwire-gateway",
        PYTHON => "-python",
        _ => "-javascript",
    };
    root()
        .join(RESULTS)
        .join(format!("{wire}.{sdk}{language}.json"))
}

fn measure_all() -> Result<(), ChoreError> {
    cargo("matrix", &["build", "--package", "turnwire"])?;
    for (wire, title, program, sdk) in ADAPTERS {
        say(&format!("== {title} on {wire}"));
        let file = result(wire, program, sdk);
        let file_text = file.display().to_string();
        let mut words = vec![
            "adapter", "--suite", wire, "--matrix", "--json", &file_text, "--quiet",
        ];
        if program.is_empty() {
            words.extend(["--most", MOST_OF_OURS]);
        } else {
            words.extend(["--most", MOST, "--timeout", PATIENCE, "--"]);
            words.extend(program.split(' '));
            words.push(sdk);
        }
        // An adapter that fails somewhere is what is to be measured.
        let ended = command("matrix", &root(), "target/debug/turnwire", &words);
        if let Err(error) = ended
            && read(&file).is_err()
        {
            return Err(error);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Measured, ChoreError> {
    let broken = |why: String| ChoreError::File {
        path: path.display().to_string(),
        why,
    };
    let text = std::fs::read_to_string(path).map_err(|error| broken(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| broken(error.to_string()))
}

/// One row of the page: what an adapter did with the hazards of a wire.
struct Row {
    title: &'static str,
    command: String,
    measured: Measured,
}

impl Row {
    /// The cases that failed, by hazard.
    fn failed(&self) -> BTreeMap<&str, Vec<&Case>> {
        let mut failed: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
        for case in self
            .measured
            .cases
            .iter()
            .filter(|case| !case.failures.is_empty())
        {
            failed.entry(hazard(&case.id)).or_default().push(case);
        }
        failed
    }

    fn hazards(&self, wanted: impl Fn(&Case) -> bool) -> usize {
        let cases = self.measured.cases.iter().filter(|case| wanted(case));
        let hazards: std::collections::BTreeSet<_> = cases.map(|case| hazard(&case.id)).collect();
        hazards.len()
    }
}

fn hazard(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}

fn page() -> Result<String, ChoreError> {
    let mut wires: Vec<(&str, Vec<Row>)> = Vec::new();
    for (wire, title, program, sdk) in ADAPTERS {
        let command = match *program {
            "" => String::new(),
            program => format!(" -- {program} {sdk}"),
        };
        let row = Row {
            title,
            command,
            measured: read(&result(wire, program, sdk))?,
        };
        match wires.last_mut().filter(|(last, _)| last == wire) {
            Some((_, rows)) => rows.push(row),
            None => wires.push((wire, vec![row])),
        }
    }
    let mut page = HEAD
        .replace("{ours}", MOST_OF_OURS)
        .replace("{others}", MOST);
    for (wire, rows) in &wires {
        summary(&mut page, wire, rows);
    }
    for (wire, rows) in &wires {
        for row in rows {
            details(&mut page, wire, row);
        }
    }
    Ok(page)
}

const HEAD: &str = "\
<!-- Written by `cargo xtask matrix` from conformance/testees/results. Do not edit. -->

# Adapters measured

What the official SDKs, and the gateway of this project, end up with when a provider's answer takes every turn that
services are known to take. Each hazard is one or more cases; each case is played as it is, and again with its bytes
split at places that can matter: here {ours} of them at most for the gateway of this project, {others} for the SDKs. That is a
sample, for the page to be measured in minutes; `turnwire adapter --matrix` splits a case at up to 1024 places by itself
(`--most`), which makes more than ten times as many runs as the table counts. An adapter fails a hazard when it reports something other than what was sent: a
part of an answer as a whole one, another text, a lost call, an error where there is an answer.

The SDKs are used as their documentation shows them, streaming helpers included, by the small programs in
`conformance/testees`; nothing is repaired around them. Some hazards are what compatible services do and not the
SDK's own provider: an SDK that fails these may still be right for its provider. `cargo xtask matrix --measure`
measures again.

";

/// The table of a wire. Writing to a string cannot fail.
fn summary(page: &mut String, wire: &str, rows: &[Row]) {
    let _ = writeln!(page, "## {wire}\n");
    let _ = writeln!(
        page,
        "| adapter | version | hazards failed | not applicable | runs in the sample |"
    );
    let _ = writeln!(page, "|---|---|---:|---:|---:|");
    for row in rows {
        let Measured { version, runs, .. } = &row.measured;
        let (all, failed) = (row.hazards(|_| true), row.failed().len());
        let unsupported = row.hazards(|case| case.unsupported.is_some());
        let _ = writeln!(
            page,
            "| {} | {version} | {failed} of {all} | {unsupported} | {runs} |",
            row.title
        );
    }
    page.push('\n');
}

/// What an adapter fails on a wire, each with the command that shows it.
fn details(page: &mut String, wire: &str, row: &Row) {
    let failed = row.failed();
    if failed.is_empty() {
        return;
    }
    let Measured {
        adapter,
        version,
        turnwire,
        ..
    } = &row.measured;
    let _ = writeln!(page, "## {} on {wire}\n", row.title);
    let _ = writeln!(
        page,
        "`{adapter}` {version}, measured by Turnwire {turnwire}. One failure shows with\n"
    );
    let _ = writeln!(
        page,
        "```sh\nturnwire adapter --suite {wire} --case CASE{}\n```\n",
        row.command
    );
    let _ = writeln!(page, "| hazard | CASE | expected | reported |");
    let _ = writeln!(page, "|---|---|---|---|");
    for (hazard, cases) in failed {
        for (nth, case) in cases.iter().enumerate() {
            let Some(failure) = case.failures.first() else {
                continue;
            };
            let split = failure
                .split
                .map(|at| format!(" --split {at}"))
                .unwrap_or_default();
            let name = if nth == 0 { hazard } else { "" };
            let (expected, got) = (cell(&failure.expected), cell(&shown(&failure.got)));
            let _ = writeln!(
                page,
                "| {name} | `{}{split}` | {expected} | {got} |",
                case.id
            );
        }
    }
    page.push('\n');
}

/// A report without what only machines want to know.
fn shown(got: &str) -> String {
    let report: serde_json::Value = serde_json::from_str(got).unwrap_or_default();
    match (&report["error"], &report["outcome"]) {
        (serde_json::Value::Null, serde_json::Value::Null) => got.to_owned(),
        (serde_json::Value::Null, outcome) => {
            format!(
                "an answer: text {}, finish {}",
                outcome["text"], outcome["finishReason"]
            )
        }
        (error, _) => {
            let text = |key: &str| error[key].as_str().unwrap_or_default();
            format!("{}: {}", text("class"), text("message"))
        }
    }
}

/// A text as a cell of a table: short, in one line, as code.
fn cell(text: &str) -> String {
    const LONGEST: usize = 120;
    let line: String = text
        .chars()
        .map(|c| {
            if c.is_control() || c == '`' || c == '|' {
                ' '
            } else {
                c
            }
        })
        .collect();
    match line.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("`{}…`", line[..cut].trim()),
        None => format!("`{}`", line.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_how_much_of_the_matrix_it_has_measured() {
        let page = page().unwrap();
        let said = format!("{MOST_OF_OURS} of them at most for the gateway");
        assert!(page.contains(&said), "{page:.1200}");
        assert!(
            page.contains(&format!("{MOST} for the SDKs")),
            "{page:.1200}"
        );
    }
}
