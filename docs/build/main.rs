//! Builds the book in `docs/` and fails on a broken link.
//!
//! The book is plain mdBook. This program exists so that a fresh machine needs no tool beyond cargo, and
//! because a link that leads nowhere is an error here, which mdBook alone does not find. So are a requirement that has
//! no anchor and a book that cannot be searched.

use std::{path::Path, process::ExitCode};

use mdbook_driver::MDBook;

mod anchors;
mod links;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    match build(root) {
        Ok(pages) => {
            report(&format!("book: {pages} pages in docs/book"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            report(&format!("book: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Why there is no book.
#[derive(Debug, thiserror::Error)]
enum BookError {
    /// mdBook could not read or render it.
    #[error("{0}")]
    Render(String),
    /// Links that lead nowhere, one a line.
    #[error("broken links:\n{0}")]
    Links(String),
    /// Requirements that cannot be linked to or found, one a line.
    #[error("requirements without an anchor:\n{0}")]
    Anchors(String),
    /// There is no index to search in.
    #[error("the book has no search index")]
    NoSearch,
}

fn build(root: &Path) -> Result<usize, BookError> {
    let render = |error: &dyn std::fmt::Debug| BookError::Render(format!("{error:?}"));
    let book = MDBook::load(root).map_err(|error| render(&error))?;
    book.build().map_err(|error| render(&error))?;
    let (pages, broken) = links::check(&root.join("book")).map_err(|error| render(&error))?;
    if !broken.is_empty() {
        return Err(BookError::Links(broken.join("\n")));
    }
    let missing = anchors::missing(root).map_err(|error| render(&error))?;
    if !missing.is_empty() {
        return Err(BookError::Anchors(missing.join("\n")));
    }
    if anchors::has_search_index(&root.join("book")).map_err(|error| render(&error))? {
        Ok(pages)
    } else {
        Err(BookError::NoSearch)
    }
}

#[expect(clippy::print_stderr, reason = "this is a command")]
fn report(line: &str) {
    eprintln!("{line}");
}
