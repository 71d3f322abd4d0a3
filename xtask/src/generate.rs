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
    let files = files()?;
    if check {
        return compare(&root(), &files);
    }
    for (name, text) in &files {
        let path = root().join(name);
        if !is_current(&path, text) {
            write(&path, text)?;
        }
    }
    Ok(())
}

/// Every generated file, path from the root of the workspace and text.
fn files() -> Result<Vec<(String, String)>, ChoreError> {
    let schemas = turnwire_spec::schema::rendered().into_iter();
    let schemas = schemas.map(|(name, text)| (format!("spec/schemas/{name}"), text));
    Ok(schemas.chain(reference::files()?).collect())
}

/// Compares files with what lies below a folder.
///
/// # Errors
///
/// [`ChoreError::Stale`] names those that differ or are not there.
fn compare(root: &Path, files: &[(String, String)]) -> Result<(), ChoreError> {
    let stale = files
        .iter()
        .filter(|(name, text)| !is_current(&root.join(name), text));
    let stale: Vec<String> = stale.map(|(name, _)| name.clone()).collect();
    if stale.is_empty() {
        Ok(())
    } else {
        Err(ChoreError::Stale(stale))
    }
}

fn is_current(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|old| old == text)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stale(root: &Path, files: &[(String, String)]) -> Vec<String> {
        match compare(root, files) {
            Ok(()) => Vec::new(),
            Err(ChoreError::Stale(names)) => names,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_checked_in_is_what_the_tables_say() {
        assert_eq!(stale(&root(), &files().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_table_that_changed_makes_its_page_stale_until_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let page = |rows: &[turnwire_spec::covel::Endpoint]| {
            let text = reference::endpoints(rows);
            vec![("docs/src/reference/endpoints.md".to_owned(), text)]
        };
        let rows = turnwire_spec::covel::ENDPOINTS.to_vec();
        let before = page(&rows);
        write(&folder.path().join(&before[0].0), &before[0].1).unwrap();
        assert_eq!(stale(folder.path(), &before), Vec::<String>::new());

        let mut rows = rows;
        rows[0].doc = "Says what nobody else says.";
        let after = page(&rows);
        assert_eq!(stale(folder.path(), &after), [after[0].0.clone()]);
        write(&folder.path().join(&after[0].0), &after[0].1).unwrap();
        assert_eq!(stale(folder.path(), &after), Vec::<String>::new());
        assert_eq!(stale(folder.path(), &before), [before[0].0.clone()]);
    }
}
