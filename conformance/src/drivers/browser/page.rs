//! What is opened: a page on disk, or a URL.
//!
//! A page on disk is served from the origin of the server that it talks to, so that no request crosses origins.
//! Chromium asks the harness for the files, not the server: the server never sees a request for one.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use super::BrowserError;

/// Entries of a folder that are offered to the page; more make an error.
const MAX_ENTRIES: usize = 1000;
/// Longest file that is served, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// A page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Page {
    /// A file, and those in and below its folder.
    Files {
        /// The folder, without links.
        root: PathBuf,
        /// Name of the page in that folder.
        name: String,
    },
    /// A page that somebody serves.
    Url(String),
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { root, name } => write!(f, "{}", root.join(name).display()),
            Self::Url(url) => f.write_str(url),
        }
    }
}

/// A file as the page gets it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Served {
    pub(super) media_type: &'static str,
    pub(super) bytes: Vec<u8>,
}

impl Page {
    /// A page from what a person names: a URL, a file, or a folder with an `index.html`.
    ///
    /// # Errors
    ///
    /// [`BrowserError::Page`] when it is none of them.
    pub fn named(text: &str) -> Result<Self, BrowserError> {
        let wrong = |why: String| BrowserError::Page {
            page: text.to_owned(),
            why,
        };
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Url(text.to_owned()));
        }
        let path = Path::new(text).canonicalize();
        let mut path = path.map_err(|error| wrong(error.to_string()))?;
        if path.is_dir() {
            path.push("index.html");
            if !path.is_file() {
                return Err(wrong("the folder has no index.html".to_owned()));
            }
        }
        let name = path.file_name().and_then(|name| name.to_str());
        match (path.parent(), name) {
            (Some(root), Some(name)) if entries(root).len() <= MAX_ENTRIES => Ok(Self::Files {
                root: root.to_owned(),
                name: name.to_owned(),
            }),
            (Some(_), Some(_)) => Err(wrong(format!(
                "its folder has more than {MAX_ENTRIES} entries; give it a folder of its own"
            ))),
            _ => Err(wrong("its name is no text".to_owned())),
        }
    }

    /// Where the page is opened when the server is at this URL.
    pub(super) fn address(&self, server: &str) -> String {
        match self {
            Self::Files { name, .. } => format!("{}/{name}", origin(server)),
            Self::Url(url) => url.clone(),
        }
    }

    /// The URLs that Chromium asks the harness for, as patterns of its `Fetch` domain.
    pub(super) fn patterns(&self, server: &str) -> Vec<String> {
        let Self::Files { root, .. } = self else {
            return Vec::new();
        };
        let origin = origin(server);
        let mut patterns = vec![format!("{origin}/"), format!("{origin}/favicon.ico")];
        for name in entries(root) {
            let path = format!("{origin}/{}", escaped(&name));
            if root.join(&name).is_dir() {
                patterns.push(format!("{path}/*"));
            } else {
                patterns.push(format!("{path}\\?*"));
                patterns.push(path);
            }
        }
        patterns
    }

    /// The file of a URL; `None` when there is none.
    pub(super) fn serve(&self, url: &str) -> Option<Served> {
        let Self::Files { root, name } = self else {
            return None;
        };
        let path = url.split(['?', '#']).next()?.split_once("://")?.1;
        let path = path.split_once('/').map_or("", |(_, path)| path);
        let path = percent_decoded(path)?;
        let path = Path::new(if path.is_empty() { name } else { &path });
        // Nothing above the folder, whether by dots or by links.
        if !path
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return None;
        }
        let file = root.join(path).canonicalize().ok()?;
        let metadata = file.metadata().ok()?;
        if !file.starts_with(root) || !metadata.is_file() || metadata.len() > MAX_FILE {
            return None;
        }
        Some(Served {
            media_type: media_type(&file),
            bytes: std::fs::read(&file).ok()?,
        })
    }
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    let end = url[after..].find(['/', '?', '#']);
    end.map_or(url, |end| &url[..after + end])
}

/// Names in a folder, hidden ones left out.
fn entries(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names
        .filter(|name| !name.starts_with('.'))
        .take(MAX_ENTRIES + 1)
        .collect();
    names.sort_unstable();
    names
}

/// A name as Chromium writes it in a URL, with the signs that mean something in a pattern taken literally.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'*' => text.push_str("\\*"),
            b'!'
            | b'$'
            | b'&'..=b')'
            | b'+'..=b';'
            | b'='
            | b'@'..=b'Z'
            | b'_'
            | b'a'..=b'z'
            | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn media_type(file: &Path) -> &'static str {
    let extension = file.extension().and_then(|text| text.to_str());
    match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "js" | "mjs" | "cjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Page) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("site")).unwrap();
        let site = folder.path().join("site");
        std::fs::create_dir(site.join("assets")).unwrap();
        for (name, text) in [
            ("index.html", "<p>"),
            ("a b*.mjs", "1"),
            ("assets/x.css", "p {}"),
            ("../secret.txt", "s"),
            (".env", "s"),
        ] {
            std::fs::write(site.join(name), text).unwrap();
        }
        let page = Page::named(site.to_str().unwrap()).unwrap();
        (folder, page)
    }

    #[test]
    fn a_folder_is_served_from_the_origin_of_the_server() {
        let (_folder, page) = folder();
        let server = "http://127.0.0.1:80/path?x";
        assert_eq!(page.address(server), "http://127.0.0.1:80/index.html");
        let patterns = page.patterns(server);
        for pattern in [
            "/",
            "/index.html",
            "/index.html\\?*",
            "/assets/*",
            "/a%20b\\*.mjs",
        ] {
            let pattern = format!("http://127.0.0.1:80{pattern}");
            assert!(
                patterns.contains(&pattern),
                "{pattern} is not in {patterns:?}"
            );
        }
        let css = page.serve("http://127.0.0.1:80/assets/x.css?v=1").unwrap();
        assert_eq!(
            (css.media_type, &css.bytes[..]),
            ("text/css; charset=utf-8", &b"p {}"[..])
        );
        assert_eq!(page.serve("http://h/").unwrap().bytes, b"<p>");
        assert_eq!(page.serve("http://h/a%20b*.mjs").unwrap().bytes, b"1");
    }

    #[test]
    fn nothing_outside_of_the_folder_is_served() {
        let (folder, page) = folder();
        #[cfg(unix)]
        std::os::unix::fs::symlink(
            folder.path().join("secret.txt"),
            folder.path().join("site/link.txt"),
        )
        .unwrap();
        for path in [
            "../secret.txt",
            "%2e%2e/secret.txt",
            "assets/../../secret.txt",
            "link.txt",
            "assets",
            "%",
        ] {
            assert_eq!(page.serve(&format!("http://h/{path}")), None, "{path}");
        }
        drop(folder);
    }

    #[test]
    fn what_is_no_page_says_why() {
        let empty = tempfile::tempdir().unwrap();
        let error = Page::named(empty.path().to_str().unwrap()).unwrap_err();
        assert!(
            error.to_string().ends_with("the folder has no index.html"),
            "{error}"
        );
        let error = Page::named("/nowhere/page.html").unwrap_err();
        assert!(
            error.to_string().starts_with("page /nowhere/page.html: "),
            "{error}"
        );
    }
}
