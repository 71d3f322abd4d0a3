//! The page about naive clients, docs/src/naive-clients.md, and the whole run of the example clients.
//!
//! `cargo xtask testees --measure` plays everything that there is to the clients in `conformance/testees/covel`: those that
//! are complete must pass, and what the naive ones fail on is kept beside them. `cargo xtask testees` writes the page
//! from that and from `mistakes.json`, which says why each failure hurts and what to do about it.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, de::DeserializeOwned};
use turnwire_spec::catalogue::Catalogue;

use crate::{
    ChoreError,
    generate::write,
    root,
    steps::{cargo, run as command},
};

const PAGE: &str = "docs/src/naive-clients.md";
const FOLDER: &str = "conformance/testees/covel";

/// The clients that pass.
const COMPLETE: &[&[&str]] = &[
    &["node", "conformance/testees/covel/testee.mjs"],
    &["python3", "conformance/testees/covel/client.py"],
];

/// The naive ones: name of the file with their failures, title, command.
const NAIVE: &[(&str, &str, &[&str])] = &[
    (
        "javascript",
        "JavaScript",
        &["node", "conformance/testees/covel/naive/client.mjs"],
    ),
    (
        "python",
        "Python",
        &["python3", "conformance/testees/covel/naive/client.py"],
    ),
];

/// A mistake, and the requirements that it breaks.
#[derive(Debug, Deserialize)]
struct Mistake {
    mistake: String,
    why: String,
    fix: String,
    requirements: Vec<String>,
}

/// What was seen, by requirement.
type Seen = BTreeMap<String, String>;

/// Measures when that is asked for, and writes the page, or compares it.
///
/// # Errors
///
/// [`ChoreError::Stale`] when the page differs from the results, or when a failure stands under no mistake or a mistake
/// names one that is none; [`ChoreError::File`] for a file that is missing or cannot be read; what goes wrong with a
/// command.
pub(crate) fn run(measure: bool, check: bool) -> Result<(), ChoreError> {
    if measure {
        measure_all()?;
    }
    let mistakes: Vec<Mistake> = read("mistakes")?;
    let seen: Vec<Seen> = NAIVE
        .iter()
        .map(|(name, _, _)| read(name))
        .collect::<Result<_, _>>()?;
    let strays = strays(&mistakes, &seen);
    if !strays.is_empty() {
        return Err(ChoreError::Stale(
            strays
                .iter()
                .map(|id| format!("{FOLDER}/naive/mistakes.json: {id}"))
                .collect(),
        ));
    }
    let page = page(&mistakes, &seen);
    let path = root().join(PAGE);
    if std::fs::read_to_string(&path).is_ok_and(|old| old == page) {
        return Ok(());
    }
    if check {
        return Err(ChoreError::Stale(vec![PAGE.to_owned()]));
    }
    write(&path, &page)
}

fn read<T: DeserializeOwned>(name: &str) -> Result<T, ChoreError> {
    let path = root()
        .join(FOLDER)
        .join("naive")
        .join(format!("{name}.json"));
    let error = |why: String| ChoreError::File {
        path: path.display().to_string(),
        why,
    };
    let text = std::fs::read_to_string(&path).map_err(|why| error(why.to_string()))?;
    serde_json::from_str(&text).map_err(|why| error(why.to_string()))
}

/// Failures that no mistake or more than one explains, and requirements of a mistake that nobody fails on.
fn strays(mistakes: &[Mistake], seen: &[Seen]) -> Vec<String> {
    let mut explained: BTreeMap<&str, usize> = BTreeMap::new();
    for id in mistakes.iter().flat_map(|mistake| &mistake.requirements) {
        *explained.entry(id).or_default() += 1;
    }
    let failed = seen.iter().flat_map(BTreeMap::keys);
    let mut strays: Vec<String> = failed
        .filter(|id| explained.get(id.as_str()) != Some(&1))
        .cloned()
        .collect();
    let nobody = |id: &&str| seen.iter().all(|seen| !seen.contains_key(*id));
    strays.extend(explained.keys().copied().filter(nobody).map(str::to_owned));
    strays.sort();
    strays.dedup();
    strays
}

fn page(mistakes: &[Mistake], seen: &[Seen]) -> String {
    let mut out = String::from(
        "# What naive clients get wrong\n\n\
         `conformance/testees/covel/naive/` has the clients that one writes first: they work on the desk, against a server\n\
         nearby, in a session where nothing goes wrong. This page is what `turnwire client --suite covel-sse` says about\n\
         them, mistake by mistake. It is written by `cargo xtask testees`, from what `cargo xtask testees --measure` saw;\n\
         the clients beside them, in JavaScript and Python, make none of these mistakes.\n",
    );
    for Mistake {
        mistake,
        why,
        fix,
        requirements,
    } in mistakes
    {
        let _ = write!(
            out,
            "\n## {mistake}\n\n{why}\n\n**What to do:** {fix}\n\n\
             | requirement | what it asks for | JavaScript | Python |\n| --- | --- | --- | --- |\n"
        );
        for id in requirements {
            let title = Catalogue::embedded()
                .get(id)
                .map_or("", |entry| entry.title.as_str());
            let _ = write!(out, "| {id} | {title} |");
            for seen in seen {
                let cell = seen
                    .get(id)
                    .map_or_else(|| "–".to_owned(), |seen| code(seen));
                let _ = write!(out, " {cell} |");
            }
            out.push('\n');
        }
    }
    out
}

/// Text as code in the cell of a table.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r', '`'], " ").replace('|', "\\|");
    format!("`{text}`")
}

/// What is needed of a report.
#[derive(Debug, Deserialize)]
struct Report {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Deserialize)]
struct Requirement {
    id: String,
    red: bool,
    evidence: Vec<Evidence>,
}

#[derive(Debug, Deserialize)]
struct Evidence {
    got: String,
}

fn measure_all() -> Result<(), ChoreError> {
    cargo("testees", &["build", "--quiet", "--package", "turnwire"])?;
    let program = root().join("target/debug/turnwire");
    let program = program.display().to_string();
    let suite = ["client", "--suite", "covel-sse"];
    for client in COMPLETE {
        let args = [&suite[..], &["--"], client].concat();
        command("testees", &root(), &program, &args)?;
    }
    for (name, _, client) in NAIVE {
        let file = root().join(format!("target/naive-{name}.json"));
        let path = file.display().to_string();
        let args = [
            &suite[..],
            &["--time-scale", "0.1", "--json", &path, "--"],
            client,
        ]
        .concat();
        // It fails, and that is what is measured.
        if command("testees", &root(), &program, &args).is_ok() {
            return Err(ChoreError::Stale(vec![format!(
                "{name}: the naive client passes"
            )]));
        }
        let error = |why: String| ChoreError::File {
            path: path.clone(),
            why,
        };
        let text = std::fs::read_to_string(&file).map_err(|why| error(why.to_string()))?;
        let report: Report = serde_json::from_str(&text).map_err(|why| error(why.to_string()))?;
        let red = report.requirements.iter().filter(|one| one.red);
        let seen: Seen = red.map(|one| (one.id.clone(), saw(one))).collect();
        let json = serde_json::to_string_pretty(&seen).map_err(|why| error(why.to_string()))?;
        let kept = root()
            .join(FOLDER)
            .join("naive")
            .join(format!("{name}.json"));
        write(&kept, &format!("{json}\n"))?;
    }
    Ok(())
}

/// The first thing that was seen, without what was asked for.
fn saw(requirement: &Requirement) -> String {
    /// Characters of it that are kept.
    const MOST: usize = 150;
    let got = requirement.evidence.first().map_or("", |first| &first.got);
    let shown = got
        .rsplit_once("; it shows ")
        .map(|(_, shown)| format!("it shows {shown}"));
    let text = shown.unwrap_or_else(|| got.to_owned());
    match text.char_indices().nth(MOST) {
        None => text,
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}
