//! The page of the fixture contract: the tables in the comments of the reference server's fixture plugin, which is the one
//! that keeps to it.

use std::{fmt::Write as _, path::Path};

use crate::ChoreError;

const ACTIONS: &str = "reference-server/src/fixtures/mod.rs";
const TOOLS: &str = "reference-server/src/fixtures/tools.rs";

const HEAD: &str = "\
<!-- Written by `cargo xtask gen` from the comments in reference-server/src/fixtures. Change those. -->

# The fixture plugin

Some of what a protocol says happens to a server and not through its clients: a commit that fails, a job that starts by itself,
a burst of events. A server that wants these requirements exercised has a plugin for tests, which the harness asks to do it; the
[profile](../profile.md) names it (`session.fixture_plugin`, by default `turnwire-fixtures`) and has it among `session.plugins`.

Nobody has to have all of it: what answers 404 is not there, the scenarios that need it are left out, and what they would show is
not exercised. A server that real people use must not have it. The reference server has it unless it is started with
`--no-fixtures`; its source is in `reference-server/src/fixtures`.

";

/// The page.
///
/// # Errors
///
/// [`ChoreError::File`] when a source cannot be read.
pub(super) fn page(root: &Path) -> Result<String, ChoreError> {
    let read = |path: &str| {
        std::fs::read_to_string(root.join(path)).map_err(|error| ChoreError::File {
            path: path.to_owned(),
            why: error.to_string(),
        })
    };
    Ok(of(&read(ACTIONS)?, &read(TOOLS)?))
}

/// The page from the sources of the actions and of the tools.
pub(super) fn of(actions: &str, tools: &str) -> String {
    let mut text = String::from(HEAD);
    let _ = write!(
        text,
        "## Actions\n\n\
         Called over `covel-sse`: `POST /api/sessions/ID/plugin-rpc` with \
         `{{\"kind\":\"action\",\"pluginId\":\"turnwire-fixtures\",\"action\":ACTION,\"payload\":PAYLOAD}}`.\n\n{}\n",
        table(actions)
    );
    let _ = write!(
        text,
        "## Tools\n\n\
         Offered to the model in every session that has the plugin. The model is the harness's own, and calls them when a \
         scenario says so.\n\n{}\n",
        table(tools)
    );
    text
}

/// The first table in the comment at the head of a source.
fn table(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let rows = lines
        .map(str::trim)
        .skip_while(|line| !line.starts_with('|'));
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_tables_of_the_sources_and_nothing_else_of_them() {
        let source = |row: &str| {
            format!(
                "//! Says.\n//!\n//! | a | b |\n//! | --- | --- |\n//! | {row} | does |\n//!\n//! More.\n\n//! | no |\n"
            )
        };
        let page = of(&source("`burst`"), &source("`work`"));
        assert!(
            page.contains("| a | b |\n| --- | --- |\n| `burst` | does |\n\n## Tools"),
            "{page}"
        );
        assert!(page.ends_with("| `work` | does |\n\n"), "{page}");
        assert!(!page.contains("More") && !page.contains("| no |"), "{page}");
    }

    #[test]
    fn the_reference_server_has_what_the_page_says() {
        let page = page(&crate::root()).unwrap();
        for name in [
            "`burst`",
            "`fail-commit`",
            "`fixture_work`",
            "`fixture_task`",
        ] {
            assert!(page.contains(name), "{name}: {page}");
        }
    }
}
