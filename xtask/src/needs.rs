//! What the tests need beyond cargo: Node.js with npm, Python, Chromium, and the packages of the interop tests.
//!
//! On a Debian machine where we are root, programs are installed; elsewhere the error says what to install.

use std::{path::Path, process::Command};

use crate::{ChoreError, root, steps::run};

/// A program and the Debian packages that bring it.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("node", &["nodejs", "npm"]),
    ("npm", &["nodejs", "npm"]),
    ("python3", &["python3", "python3-venv"]),
];

/// Names of Chromium and of what can stand in for it; `CHROMIUM` names any other.
const BROWSERS: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// Folders with a package-lock.json whose packages the tests use.
const NODE_FOLDERS: &[&str] = &[
    "conformance/tests/interop",
    "conformance/testees/sse",
    "docs/validators",
    "mock-providers/tests/sdks",
];

/// Folders with a requirements.txt whose packages the tests use, from a virtual environment `.venv`.
const PYTHON_FOLDERS: &[&str] = &["conformance/testees/sse", "mock-providers/tests/sdks"];

/// Installs what is missing.
///
/// # Errors
///
/// When something is missing and cannot be installed from here.
pub(crate) fn install() -> Result<(), ChoreError> {
    for (program, packages) in PROGRAMS {
        if !answers(program) {
            install_packages(program, packages)?;
        }
    }
    install_browser()?;
    for folder in NODE_FOLDERS {
        install_node_packages(&root().join(folder))?;
    }
    for folder in PYTHON_FOLDERS {
        install_python_packages(&root().join(folder))?;
    }
    Ok(())
}

/// Installs Chromium, unless there is a browser that the tests find by themselves.
///
/// # Errors
///
/// When there is none and none can be installed from here.
pub(crate) fn install_browser() -> Result<(), ChoreError> {
    let there = match std::env::var("CHROMIUM") {
        Ok(named) => answers(&named),
        Err(_) => BROWSERS.iter().any(|name| answers(name)),
    };
    if there {
        return Ok(());
    }
    install_packages("chromium, or a CHROMIUM that names it,", &["chromium"])
}

fn answers(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

fn install_packages(program: &str, packages: &[&str]) -> Result<(), ChoreError> {
    let how = format!("apt-get install {}", packages.join(" "));
    if !answers("apt-get") || !is_root() {
        return Err(ChoreError::Missing {
            what: program.to_owned(),
            how,
        });
    }
    run("needs", &root(), "apt-get", &["update"])?;
    let args: Vec<&str> = ["install", "--yes", "--no-install-recommends"]
        .iter()
        .chain(packages)
        .copied()
        .collect();
    run("needs", &root(), "apt-get", &args)
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn install_node_packages(folder: &Path) -> Result<(), ChoreError> {
    let installed = folder.join("node_modules/.package-lock.json");
    if !folder.join("package-lock.json").exists()
        || newer(&installed, &folder.join("package-lock.json"))
    {
        return Ok(());
    }
    run(
        "needs",
        folder,
        "npm",
        &["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
    )
}

fn install_python_packages(folder: &Path) -> Result<(), ChoreError> {
    // Written last, so that an installation that was broken off is done again.
    let installed = folder.join(".venv/installed.txt");
    let wanted = folder.join("requirements.txt");
    if newer(&installed, &wanted) {
        return Ok(());
    }
    if !can_make_environments() {
        install_packages("python3 -m venv", &["python3-venv"])?;
    }
    run("needs", folder, "python3", &["-m", "venv", ".venv"])?;
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    let args = [&install[..], &["--requirement", "requirements.txt"]].concat();
    run("needs", folder, ".venv/bin/python", &args)?;
    std::fs::copy(&wanted, &installed).map_err(|error| ChoreError::File {
        path: installed.display().to_string(),
        why: error.to_string(),
    })?;
    Ok(())
}

/// Debian ships Python without the module that puts pip into a virtual environment.
fn can_make_environments() -> bool {
    Command::new("python3")
        .args(["-c", "import ensurepip, venv"])
        .output()
        .is_ok_and(|output| output.status.success())
}

fn newer(file: &Path, than: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    matches!((time(file), time(than)), (Some(a), Some(b)) if a >= b)
}
