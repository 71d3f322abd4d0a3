//! Turns the requirement catalogue from YAML into JSON, and lists the seed documents.
//!
//! Reading the YAML takes ten times as long as reading the JSON, and every start of the command line
//! reads the whole catalogue. Only the form changes here: what the entries mean is read in
//! `src/catalogue`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("catalogue.json"),
        catalogue(&list("requirements", "yaml")?)?,
    )?;
    fs::write(
        out.join("revisions.json"),
        revisions(&list("revisions", "yaml")?)?,
    )?;
    fs::write(out.join("seeds.rs"), seeds(&list("seeds", "txt")?)?)?;
    Ok(())
}

/// The files of a folder with this extension, in the order of their names.
fn list(folder: &str, extension: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={folder}");
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// One JSON array: `{ "area": <file name without extension>, "entries": [..] }` for every file.
fn catalogue(files: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut areas = Vec::new();
    for path in files {
        let entries: serde_json::Value = serde_saphyr::from_str(&fs::read_to_string(path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let area = path.file_stem().unwrap_or_default().to_string_lossy();
        areas.push(serde_json::json!({ "area": area, "entries": entries }));
    }
    Ok(serde_json::to_string(&areas)?)
}

/// One JSON array with the content of every file.
fn revisions(files: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut all = Vec::new();
    for path in files {
        let revision: serde_json::Value = serde_saphyr::from_str(&fs::read_to_string(path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        all.push(revision);
    }
    Ok(serde_json::to_string(&all)?)
}

/// A Rust array expression: the name of every file, and its text.
fn seeds(files: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut code = String::from("&[\n");
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        writeln!(
            code,
            "    ({name:?}, include_str!({:?})),",
            path.to_string_lossy()
        )?;
    }
    code.push(']');
    Ok(code)
}
