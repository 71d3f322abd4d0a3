//! Where Chromium is: a path that was given, or a name that it usually has.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::BrowserError;

/// Names of Chromium and its relatives on the search path, and where macOS has them.
pub const NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "microsoft-edge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/// The executable at this path or of this name; without one, the first of [`NAMES`].
///
/// # Errors
///
/// [`BrowserError::NotFound`] when there is none.
pub fn chromium(named: Option<&Path>) -> Result<PathBuf, BrowserError> {
    let search = env::var_os("PATH").unwrap_or_default();
    if let Some(named) = named {
        let found = at(named, &search);
        return found.ok_or_else(|| BrowserError::NotFound(named.display().to_string()));
    }
    let mut names = NAMES.iter().map(Path::new);
    let found = names.find_map(|name| at(name, &search));
    found.ok_or_else(|| BrowserError::NotFound(format!("any of {}", NAMES[..5].join(", "))))
}

/// The file of a name: on the search path when it is a bare name, else where it says.
fn at(name: &Path, search: &OsStr) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    env::split_paths(search)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_that_is_not_there_is_one_line_with_a_remedy() {
        let error = chromium(Some(Path::new("/nowhere/chromium"))).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("no Chromium at /nowhere/chromium; install it"),
            "{text}"
        );
        assert!(
            text.contains("--chromium PATH") && !text.contains('\n'),
            "{text}"
        );
    }

    #[test]
    fn a_bare_name_is_looked_for_on_the_search_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a-browser");
        std::fs::write(&file, "").unwrap();
        let search = folder.path().as_os_str();
        assert_eq!(at(Path::new("a-browser"), search), Some(file.clone()));
        assert_eq!(at(Path::new("another"), search), None);
        assert_eq!(at(&file, OsStr::new("")), Some(file));
    }
}
