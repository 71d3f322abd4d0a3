//! A diff of two transcripts as text: one block an exchange, one line a difference.

use std::fmt::Write as _;

use super::layout::Paint;
use crate::transcript::diff::{Change, Diff, Difference, DifferenceKind, Piece};

/// The whole diff; `a` and `b` are the names of the transcripts.
pub fn render(diff: &Diff, a: &str, b: &str, colour: bool) -> String {
    let paint = Paint(colour);
    let mut out = String::new();
    if !diff.same {
        let _ = writeln!(out, "{} {a}\n{} {b}\n", paint.bad("-"), paint.good("+"));
    }
    let mut before: Option<(&Option<String>, Option<u32>)> = None;
    for difference in &diff.differences {
        let side = difference.a.as_ref().or(difference.b.as_ref());
        let place = (&difference.request, side.and_then(|piece| piece.exchange));
        if before != Some(place) && difference.request.is_some() {
            let _ = writeln!(out, "{}", paint.strong(&heading(difference)));
        }
        before = Some(place);
        lines(&mut out, difference, paint);
    }
    if !diff.same {
        out.push('\n');
    }
    out.push_str(&summary(diff, paint));
    out
}

fn heading(difference: &Difference) -> String {
    let number = |piece: &Option<Piece>| {
        let exchange = piece.as_ref().and_then(|piece| piece.exchange);
        exchange.map(|exchange| exchange.to_string())
    };
    let numbers: Vec<String> = [number(&difference.a), number(&difference.b)]
        .into_iter()
        .flatten()
        .collect();
    let request = difference.request.as_deref().unwrap_or_default();
    format!("{request} (exchange {})", numbers.join(" and "))
}

fn lines(out: &mut String, difference: &Difference, paint: Paint) {
    let what = &difference.what;
    let line = |sign: String, piece: &Piece, moved: &str| {
        let at = piece.line.map(|line| format!(", line {line}"));
        format!(
            "  {sign} {what} {}{}{moved}: {}",
            number(what, piece),
            at.unwrap_or_default(),
            piece.text
        )
    };
    let (minus, plus) = (paint.bad("-"), paint.good("+"));
    match (difference.kind, &difference.a, &difference.b) {
        (DifferenceKind::Moved, Some(a), Some(b)) => {
            let moved = format!(" is {what} {} there", number(what, b));
            let _ = writeln!(out, "{}", line(paint.doubtful("~"), a, &moved));
        }
        (DifferenceKind::Changed, Some(a), _) if !difference.changes.is_empty() => {
            let at = a.line.map(|line| format!(", line {line}"));
            let _ = writeln!(
                out,
                "  {} {what} {}{}",
                paint.doubtful("~"),
                a.index,
                at.unwrap_or_default()
            );
            for change in &difference.changes {
                change_lines(out, change, paint);
            }
        }
        (_, a, b) => {
            if let Some(a) = a {
                let _ = writeln!(out, "{}", line(minus, a, ""));
            }
            if let Some(b) = b {
                let _ = writeln!(out, "{}", line(plus, b, ""));
            }
        }
    }
}

/// An exchange by its number in the transcript, anything else by its place among its like.
fn number(what: &str, piece: &Piece) -> usize {
    let exchange = piece.exchange.filter(|_| what == "exchange");
    exchange
        .and_then(|exchange| usize::try_from(exchange).ok())
        .unwrap_or(piece.index)
}

fn change_lines(out: &mut String, change: &Change, paint: Paint) {
    let at = match change.at.as_str() {
        "" => String::new(),
        at => format!("{at}: "),
    };
    let (a, b) = (
        change.a.as_deref().unwrap_or("nothing"),
        change.b.as_deref().unwrap_or("nothing"),
    );
    let _ = writeln!(out, "      {at}{} -> {}", paint.bad(a), paint.good(b));
}

fn summary(diff: &Diff, paint: Paint) -> String {
    let count = |kind| {
        diff.differences
            .iter()
            .filter(|difference| difference.kind == kind)
            .count()
    };
    let compared = format!(
        "{} exchanges with {} pieces alike, {} ids paired",
        diff.exchanges,
        diff.alike,
        diff.ids.len()
    );
    if diff.same {
        return format!("{}: {compared}\n", paint.good("same"));
    }
    let words = [
        (DifferenceKind::Missing, "missing"),
        (DifferenceKind::Extra, "extra"),
        (DifferenceKind::Changed, "changed"),
        (DifferenceKind::Moved, "moved"),
    ];
    let counts: Vec<String> = words
        .iter()
        .filter_map(|(kind, word)| {
            let count = count(*kind);
            (count > 0).then(|| format!("{count} {word}"))
        })
        .collect();
    format!(
        "{}: {}; {compared}\n",
        paint.bad("different"),
        counts.join(", ")
    )
}
