//! Finds links of the rendered book that lead nowhere: to a missing file, or to a missing anchor.
//!
//! Reads the HTML as text; external links are not followed.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

/// Checks every page below `book`. Returns the number of pages and a line for each broken link.
///
/// # Errors
///
/// When a page cannot be read.
pub(crate) fn check(book: &Path) -> io::Result<(usize, Vec<String>)> {
    let mut pages = BTreeMap::new();
    collect(book, &mut pages)?;
    let mut broken = Vec::new();
    for (page, html) in &pages {
        // These two repeat other pages' content under another address.
        if page.ends_with("print.html") || page.ends_with("404.html") || page.ends_with("toc.html")
        {
            continue;
        }
        for target in attribute_values(html, "href") {
            if let Some(why) = fault(page, target, &pages) {
                broken.push(format!("{}: {target}: {why}", page.display()));
            }
        }
    }
    Ok((pages.len(), broken))
}

fn collect(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let html = std::fs::read_to_string(&path)?;
            pages.insert(path, html);
        }
    }
    Ok(())
}

fn fault(page: &Path, target: &str, pages: &BTreeMap<PathBuf, String>) -> Option<&'static str> {
    let external =
        target.contains("://") || target.starts_with("mailto:") || target.starts_with("data:");
    if external || target.is_empty() {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        page.to_owned()
    } else {
        normal(&page.parent()?.join(file))
    };
    match pages.get(&path) {
        None if path.exists() => None,
        None => Some("no such file"),
        Some(html) if anchor.is_empty() || anchors(html).contains(anchor) => None,
        Some(_) => Some("no such anchor"),
    }
}

fn anchors(html: &str) -> BTreeSet<&str> {
    attribute_values(html, "id")
        .chain(attribute_values(html, "name"))
        .collect()
}

fn attribute_values<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let start = format!(" {name}=\"");
    let mut rest = html;
    std::iter::from_fn(move || {
        let after = rest.split_once(start.as_str())?.1;
        let (value, next) = after.split_once('"')?;
        rest = next;
        Some(value)
    })
}

fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(list: &[(&str, &str)]) -> BTreeMap<PathBuf, String> {
        list.iter()
            .map(|(path, html)| (PathBuf::from(path), (*html).to_owned()))
            .collect()
    }

    #[test]
    fn a_link_to_a_page_that_does_not_exist_is_broken() {
        let pages = pages(&[("book/a.html", "")]);
        assert_eq!(
            fault(Path::new("book/a.html"), "b.html", &pages),
            Some("no such file")
        );
    }

    #[test]
    fn a_link_to_an_anchor_that_does_not_exist_is_broken() {
        let pages = pages(&[("book/a.html", ""), ("book/c/b.html", "<h2 id=\"here\">")]);
        assert_eq!(
            fault(Path::new("book/a.html"), "c/b.html#there", &pages),
            Some("no such anchor")
        );
        assert_eq!(
            fault(Path::new("book/a.html"), "c/b.html#here", &pages),
            None
        );
    }

    #[test]
    fn external_links_are_not_followed() {
        assert_eq!(
            fault(
                Path::new("book/a.html"),
                "https://example.org/x",
                &pages(&[])
            ),
            None
        );
    }
}
