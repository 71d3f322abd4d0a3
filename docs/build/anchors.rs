//! Finds requirements that cannot be linked to: each heading of `reference/requirements` has an anchor of its id.

use std::{io, path::Path};

/// Requirements of the sources below `root` whose page in the rendered book has no anchor for them.
///
/// # Errors
///
/// When a page cannot be read.
pub(crate) fn missing(root: &Path) -> io::Result<Vec<String>> {
    let place = Path::new("reference/requirements");
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(root.join("src").join(place))? {
        let source = entry?.path();
        let page = source.file_stem().map(|stem| place.join(stem));
        let Some(page) = page.map(|page| page.with_extension("html")) else {
            continue;
        };
        let html = std::fs::read_to_string(root.join("book").join(&page))?;
        let lacks = without_anchor(&std::fs::read_to_string(&source)?, &html);
        missing.extend(
            lacks
                .into_iter()
                .map(|id| format!("{}: {id}", page.display())),
        );
    }
    Ok(missing)
}

/// Headings of the second level that have no anchor in the page.
fn without_anchor(source: &str, html: &str) -> Vec<String> {
    let ids = source.lines().filter_map(|line| line.strip_prefix("## "));
    ids.filter(|id| !html.contains(&format!(" id=\"{}\"", id.to_lowercase())))
        .map(str::to_owned)
        .collect()
}

/// Whether there is an index for the search box.
///
/// # Errors
///
/// When the folder cannot be read.
pub(crate) fn has_search_index(book: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(book)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("searchindex") && name.ends_with(".js") {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_without_an_anchor_is_named() {
        let source = "# Area\n\n## SSE-001\n\ntext\n\n## SSE-002\n";
        let html = "<h2 id=\"sse-001\">";
        assert_eq!(without_anchor(source, html), ["SSE-002"]);
        assert!(without_anchor(source, "<h2 id=\"sse-001\"><h2 id=\"sse-002\">").is_empty());
    }
}
