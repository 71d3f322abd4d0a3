//! Builds the book in `docs/` and fails on a broken link.
//!
//! The book is plain mdBook. This program exists so that a fresh machine needs no tool beyond cargo, and
//! because a link that leads nowhere is an error here, which mdBook alone does not find.

use std::{path::Path, process::ExitCode};

use mdbook_driver::MDBook;

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
}

fn build(root: &Path) -> Result<usize, BookError> {
    let render = |error: &dyn std::fmt::Debug| BookError::Render(format!("{error:?}"));
    let book = MDBook::load(root).map_err(|error| render(&error))?;
    book.build().map_err(|error| render(&error))?;
    let (pages, broken) = links::check(&root.join("book")).map_err(|error| render(&error))?;
    if broken.is_empty() {
        Ok(pages)
    } else {
        Err(BookError::Links(broken.join("\n")))
    }
}

#[expect(clippy::print_stderr, reason = "this is a command")]
fn report(line: &str) {
    eprintln!("{line}");
}
