//! Holds the catalogue against the sources of the workspace.

#![expect(clippy::unwrap_used, reason = "this whole file is a test")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use turnwire_spec::catalogue::Catalogue;

/// Every Rust file of the workspace that is not a build product.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of all functions in this text.
fn functions(text: &str) -> impl Iterator<Item = String> {
    text.split("fn ").skip(1).filter_map(|rest| {
        let name = rest
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()?;
        (!name.is_empty()).then(|| name.to_owned())
    })
}

#[test]
fn every_test_that_the_catalogue_names_exists() {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut files,
    );
    let names: HashSet<_> = files
        .iter()
        .flat_map(|file| functions(&fs::read_to_string(file).unwrap()).collect::<Vec<_>>())
        .collect();
    assert!(names.contains("every_test_that_the_catalogue_names_exists"));

    let missing: Vec<_> = Catalogue::embedded()
        .entries()
        .filter_map(|entry| Some((entry.id.as_str(), entry.test.as_deref()?)))
        .filter(|(_, test)| !names.contains(test.rsplit("::").next().unwrap_or(test)))
        .collect();
    assert_eq!(missing, []);
}
