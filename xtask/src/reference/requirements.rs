//! Every requirement of an area, each under an anchor that is its id, and links to them.

use std::{fmt::Write as _, sync::OnceLock};

use turnwire_spec::catalogue::{Area, Catalogue, Entry};

use super::schemas::cell;

/// Links of one row of a table, at most.
const LINKS: usize = 12;

/// The page of an area.
pub(super) fn page(area: &Area) -> String {
    let mut text = format!("# Requirements: {}\n\n", area.name);
    for entry in &area.entries {
        let _ = writeln!(
            text,
            "## {}\n\n**{}.** {}\n",
            entry.id,
            cell(&entry.title),
            cell(&entry.statement)
        );
        let _ = writeln!(
            text,
            "- {}, {}; seen: {}",
            entry.level, entry.binds, entry.observe
        );
        if let Some(seed) = &entry.seed {
            let _ = writeln!(text, "- source: seed {seed}");
        }
        if let Some(source) = &entry.source {
            let _ = writeln!(text, "- source: {}", cell(source));
        }
        if let Some(waiver) = &entry.waiver {
            let _ = writeln!(text, "- not checked from outside: {}", cell(waiver));
        }
        text.push('\n');
    }
    text
}

/// Links to the requirements that these lines of a seed state.
pub(super) fn of_lines(document: &str, from: u32, to: u32) -> String {
    let own = located().iter().filter(|place| {
        place
            .lines
            .iter()
            .any(|(first, last)| place.document == document && *first >= from && *last <= to)
    });
    let links: Vec<_> = own
        .take(LINKS)
        .map(|place| {
            let id = &place.entry.id;
            format!(
                "[{id}](requirements/{}.md#{})",
                place.area,
                id.to_lowercase()
            )
        })
        .collect();
    links.join(", ")
}

struct Place {
    entry: &'static Entry,
    area: &'static str,
    document: String,
    lines: Vec<(u32, u32)>,
}

/// Where in the seeds each requirement stands.
fn located() -> &'static [Place] {
    static PLACES: OnceLock<Vec<Place>> = OnceLock::new();
    PLACES.get_or_init(|| {
        let areas = Catalogue::embedded().areas().iter();
        areas
            .flat_map(|area| area.entries.iter().map(move |entry| (area, entry)))
            .filter_map(|(area, entry)| {
                let seed = entry.seed.as_ref()?.to_string();
                let numbers: Vec<u32> = entry.seed_text().map(|(line, _)| line).collect();
                Some(Place {
                    entry,
                    area: &area.name,
                    document: seed.get(..3)?.to_owned(),
                    lines: vec![(*numbers.first()?, *numbers.last()?)],
                })
            })
            .collect()
    })
}
