//! The protocol reference of the book, and the descriptions of the interfaces for tools: written from the tables of
//! `spec/` and from golden transcripts, never by hand.
//!
//! - [`covel`], [`update`], [`chat`], [`wires`]: the pages of each protocol; [`limits`]: sizes and periods;
//! - [`requirements`]: every requirement under an anchor of its own; [`schemas`]: a schema as a table;
//! - [`fixtures`]: the contract of the fixture plugin;
//! - [`golden`]: examples, cut from golden transcripts;
//! - [`openapi`], [`asyncapi`]: the same tables as OpenAPI 3.1 and AsyncAPI 3; [`components`]: their schemas.
//!
//! A page is a function of rows, so that a test can show that another row gives another page.

mod asyncapi;
mod chat;
mod components;
mod covel;
mod fixtures;
mod golden;
mod limits;
mod openapi;
mod requirements;
mod schemas;
#[cfg(test)]
mod tests;
mod update;
mod wires;

use turnwire_spec::{catalogue::Catalogue, covel as spec};

use crate::{ChoreError, root};

/// A first line that tells where a page comes from.
const MADE: &str =
    "<!-- Written by `cargo xtask gen` from spec/ and golden/. Change those. -->\n\n";

/// Every generated file, path from the root of the workspace and text.
///
/// # Errors
///
/// When a golden transcript, or a source of limits or fixtures, cannot be read.
pub(crate) fn files() -> Result<Vec<(String, String)>, ChoreError> {
    let golden = golden::Golden::read(&root().join("golden"))?;
    let page = |name: &str, text: String| {
        let text = format!("{MADE}{}\n", text.trim_end());
        (format!("docs/src/reference/{name}.md"), text)
    };
    let json = |path: &str, value: &serde_json::Value| (path.to_owned(), format!("{value:#}\n"));
    let mut files = vec![
        page("endpoints", covel::endpoints(spec::ENDPOINTS, &golden)),
        page("events", covel::events(spec::EVENTS, &golden)),
        page("frames", covel::frames(&golden)),
        page("errors", covel::errors(spec::errors::ERROR_CODES, &golden)),
        page("session-update", update::page(&golden)),
        page("chat-ws", chat::page(&golden)),
        page("wires", wires::page(&golden)),
        page("limits", limits::page(&root())?),
        fixtures(&root())?,
        json("spec/openapi.json", &openapi::document(spec::ENDPOINTS)),
        json("spec/asyncapi.json", &asyncapi::document(spec::EVENTS)),
    ];
    for area in Catalogue::embedded().areas() {
        let name = format!("requirements/{}", area.name);
        files.push(page(&name, requirements::page(area)));
    }
    Ok(files)
}

/// The page of fixtures, which is made from another place than the others.
fn fixtures(root: &std::path::Path) -> Result<(String, String), ChoreError> {
    let text = fixtures::page(root)?;
    let name = "docs/src/reference/fixtures.md".to_owned();
    Ok((name, format!("{}\n", text.trim_end())))
}

/// The page of endpoints without examples, of these rows.
#[cfg(test)]
pub(crate) fn endpoints(rows: &[spec::Endpoint]) -> String {
    covel::endpoints(rows, &golden::Golden::default())
}
