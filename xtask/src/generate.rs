//! Generated files that are checked in: the JSON Schemas of `spec/schemas`, the protocol reference of the book, and the
//! descriptions for tools.

use std::path::Path;

use crate::{ChoreError, reference, root};

/// Writes the generated files, or with `check` compares them with what is there.
///
/// # Errors
///
/// [`ChoreError::Stale`] names the files that differ; [`ChoreError::File`] one that cannot be written.
pub(crate) fn run(check: bool) -> Result<(), ChoreError> {
    let schemas = turnwire_spec::schema::rendered().into_iter();
    let schemas = schemas.map(|(name, text)| (format!("spec/schemas/{name}"), text));
    let mut stale = Vec::new();
    for (name, text) in schemas.chain(reference::files()?) {
        let path = root().join(&name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            write(&path, &text)?;
        }
    }
    if stale.is_empty() {
        Ok(())
    } else {
        Err(ChoreError::Stale(stale))
    }
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), ChoreError> {
    let file_error = |error: std::io::Error| ChoreError::File {
        path: path.display().to_string(),
        why: error.to_string(),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(file_error)?;
    }
    std::fs::write(path, text).map_err(file_error)
}
