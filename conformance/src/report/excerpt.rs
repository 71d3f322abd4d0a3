//! The part of a transcript that shows a piece of evidence: the exchange's request and head, and the frames
//! around the one that is meant, in the transcript's own text form.

use std::time::Duration;

use crate::{
    transcript::{
        Entry, ExchangeId, Fact, Transcript, text,
        views::{http, stream},
    },
    verdict::Evidence,
};

/// Frames shown before and after the one that is meant.
const AROUND: usize = 1;
/// Longest excerpt, in lines.
const LINES: usize = 30;
/// Longest line, in characters.
const WIDTH: usize = 160;

/// The lines that show the evidence; none when it names no exchange of the transcript.
pub fn lines(transcript: &Transcript, evidence: &Evidence) -> Vec<String> {
    let Some(entries) = evidence
        .exchange
        .and_then(|exchange| part(transcript, exchange, evidence.frame))
    else {
        return Vec::new();
    };
    let written = text::write(&Transcript {
        header: Default::default(),
        entries,
    });
    // The first line is the version, the second is empty.
    let lines: Vec<&str> = written
        .lines()
        .skip(1)
        .filter(|line| !line.is_empty())
        .collect();
    let left = lines.len().saturating_sub(LINES);
    let mut shown: Vec<String> = lines.into_iter().take(LINES).map(shorten).collect();
    if left > 0 {
        shown.push(format!("… {left} lines more"));
    }
    shown
}

/// What is shown of the exchange, as if it were the only one and began the transcript.
fn part(transcript: &Transcript, exchange: ExchangeId, frame: Option<usize>) -> Option<Vec<Entry>> {
    let stream = || {
        Some(
            stream::streams(transcript)
                .into_iter()
                .find(|stream| stream.exchange.id == exchange)?
                .frames,
        )
    };
    let found = http::exchanges(transcript)
        .into_iter()
        .find(|found| found.id == exchange)?;
    let exchange = ExchangeId(1);
    let entry = |at: Duration, fact| Entry {
        at: at.saturating_sub(found.opened),
        fact,
    };
    let mut entries = vec![entry(
        found.opened,
        Fact::Request {
            exchange,
            request: found.request.clone(),
        },
    )];
    if let Some((at, head)) = found.head {
        entries.push(entry(
            at,
            Fact::Response {
                exchange,
                head: head.clone(),
            },
        ));
    }
    let Some(frame) = frame else {
        let chunks = found.chunks.iter();
        entries.extend(chunks.map(|(at, bytes)| {
            entry(
                *at,
                Fact::Chunk {
                    exchange,
                    bytes: (*bytes).clone(),
                },
            )
        }));
        entries.extend(found.end.map(|(at, how)| {
            entry(
                at,
                Fact::End {
                    exchange,
                    how: how.clone(),
                },
            )
        }));
        return Some(entries);
    };
    let near = frame.saturating_sub(AROUND)..=frame.saturating_add(AROUND);
    for shown in stream()
        .unwrap_or_default()
        .iter()
        .filter(|shown| near.contains(&shown.index))
    {
        let this = if shown.index == frame {
            ", this one"
        } else {
            ""
        };
        entries.push(entry(
            shown.at,
            Fact::Note(format!("frame {}{this}", shown.index)),
        ));
        let bytes = shown.frame.to_bytes().into();
        entries.push(entry(shown.at, Fact::Chunk { exchange, bytes }));
    }
    Some(entries)
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        None => line.to_owned(),
        Some((cut, _)) => format!("{}…", &line[..cut]),
    }
}
