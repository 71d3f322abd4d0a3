//! The tables decide what the book says.

use turnwire_spec::{
    catalogue::Catalogue,
    covel::{ENDPOINTS, EVENTS, errors::ERROR_CODES},
};

use super::{covel, files, golden::Golden, limits, openapi, requirements, schemas};

#[test]
fn another_row_gives_another_page_and_another_description() {
    let golden = Golden::default();
    let mut rows = ENDPOINTS.to_vec();
    rows[0].doc = "Says what nobody else says.";
    rows[0].path = "/api/elsewhere/:id";
    let pages = |rows: &[_]| (covel::endpoints(rows, &golden), openapi::document(rows));
    let (page, document) = pages(&rows);
    assert_ne!(pages(ENDPOINTS), (page.clone(), document.clone()));
    assert!(page.contains("## POST /api/elsewhere/:id\n\nSays what nobody else says."));
    assert!(document["paths"]["/api/elsewhere/{id}"]["post"].is_object());

    let mut events = EVENTS.to_vec();
    events.remove(0);
    assert_ne!(
        covel::events(&events, &golden),
        covel::events(EVENTS, &golden)
    );
    let mut codes = ERROR_CODES.to_vec();
    codes[0].status = 418;
    assert!(covel::errors(&codes, &golden).contains("| 418 |"));
}

#[test]
fn an_example_is_cut_from_a_golden_transcript() {
    let golden = Golden::of(
        "covel-sse",
        "one",
        "> GET /api/health\n< 200\n< {\"status\":\"ok\"}\nend complete\n>2 GET /api/worlds\n<2 500\n",
    );
    let row = ENDPOINTS
        .iter()
        .find(|row| row.path == "/api/health")
        .unwrap();
    let shown = golden.exchange("covel-sse", row);
    assert!(
        shown.starts_with("```text\n> GET /api/health\n< 200\n< {\"status\":\"ok\"}\n```"),
        "{shown}"
    );
    assert!(shown.ends_with("From `golden/covel-sse/one.twire`.\n"));
}

#[test]
fn a_limit_is_read_with_its_comment_and_shown_with_its_unit() {
    let cases = [
        ("MOST: usize = 7", "| `MOST` | 7 | Longest. |"),
        ("CHARS: usize = 100_000", "| `CHARS` | 100,000 | Longest. |"),
        (
            "EVERY: Duration = secs(30)",
            "| `EVERY` | 30 s | Longest. |",
        ),
        (
            "AGE: Duration = secs(60 * 60)",
            "| `AGE` | 60 min | Longest. |",
        ),
        (
            "FIRST: Duration = Duration::from_millis(250)",
            "| `FIRST` | 250 ms | Longest. |",
        ),
        (
            "STEPS: [Duration; 2] = [secs(3), secs(6)]",
            "| `STEPS` | 3 s, 6 s | Longest. |",
        ),
        (
            "BODY_BYTES: u64 = 20 * 1024 * 1024",
            "| `BODY_BYTES` | 20 MiB | Longest. |",
        ),
        (
            "LINE_BYTES: u64 = 1 << 20",
            "| `LINE_BYTES` | 1 MiB | Longest. |",
        ),
        (
            "FRAME_BYTES: u64 = 7500",
            "| `FRAME_BYTES` | 7,500 B | Longest. |",
        ),
        ("OTHER: u64 = MOST", "| `OTHER` | `MOST` | Longest. |"),
    ];
    for (constant, row) in cases {
        let table = limits::table(&format!("/// Longest.\npub const {constant};\n"));
        assert_eq!(table.lines().last(), Some(row), "{constant}");
    }
}

#[test]
fn every_source_of_limits_has_some() {
    let page = limits::page(&crate::root()).unwrap();
    for section in page.split("\n## ").skip(1) {
        assert!(section.contains("| `"), "{section}");
    }
}

#[test]
fn links_of_the_source_are_left_out_of_cells() {
    let text = "as [`A`](super::A) or [`B`] | <c>";
    assert_eq!(schemas::cell(text), "as `A` or `B` \\| &lt;c>");
}

#[test]
fn each_requirement_stands_once_under_a_heading_of_its_id() {
    let mut count = 0;
    for area in Catalogue::embedded().areas() {
        let page = requirements::page(area);
        for entry in &area.entries {
            let heading = format!("## {}", entry.id);
            let own = page.lines().filter(|line| *line == heading);
            assert_eq!(own.count(), 1, "{heading}");
            count += 1;
        }
    }
    assert!(count > 2000, "{count}");
}

#[test]
fn each_generated_page_is_a_chapter_of_the_book() {
    let summary = std::fs::read_to_string(crate::root().join("docs/src/SUMMARY.md")).unwrap();
    for (path, _) in files().unwrap() {
        if let Some(page) = path.strip_prefix("docs/src/") {
            assert!(summary.contains(&format!("({page})")), "{page}");
        }
    }
}
