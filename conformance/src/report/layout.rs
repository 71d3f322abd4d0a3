//! Text in columns and paragraphs, with colours or without.

use owo_colors::{OwoColorize as _, Style};

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) fn bad(self, text: &str) -> String {
        self.styled(text, Style::new().red().bold())
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.styled(text, Style::new().green())
    }

    pub(crate) fn doubtful(self, text: &str) -> String {
        self.styled(text, Style::new().yellow())
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.styled(text, Style::new().dimmed())
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.styled(text, Style::new().bold())
    }

    fn styled(self, text: &str, style: Style) -> String {
        if self.0 {
            text.style(style).to_string()
        } else {
            text.to_owned()
        }
    }
}

/// Widest line of a paragraph, in characters.
const WIDTH: usize = 100;

/// A paragraph, each line with this in front.
pub(crate) fn paragraph(text: &str, indent: &str) -> String {
    let width = WIDTH.saturating_sub(indent.chars().count());
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
        .iter()
        .map(|line| format!("{indent}{line}\n"))
        .collect()
}

/// How a column is set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells in columns; the first row is the heading. The last column is not padded on its right.
pub(crate) fn table(aligns: &[Align], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..aligns.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(aligns)
            .zip(&widths)
            .map(|((cell, align), width)| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
