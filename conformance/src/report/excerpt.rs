//! The part of a transcript that shows a piece of evidence: the exchange's request and head, and the frames
//! around the one that is meant, in the transcript's own text form.

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

fn part(transcript: &Transcript, exchange: ExchangeId, frame: Option<usize>) -> Option<Vec<Entry>> {
    let found = http::exchanges(transcript)
        .into_iter()
        .find(|found| found.id == exchange)?;
    let mut entries = vec![Entry {
        at: found.opened,
        fact: Fact::Request {
            exchange,
            request: found.request.clone(),
        },
    }];
    if let Some((at, head)) = found.head {
        entries.push(Entry {
            at,
            fact: Fact::Response {
                exchange,
                head: head.clone(),
            },
        });
    }
    match frame {
        Some(frame) => entries.extend(frames(transcript, exchange, frame)),
        None => entries.extend(found.chunks.iter().map(|(at, bytes)| Entry {
            at: *at,
            fact: Fact::Chunk {
                exchange,
                bytes: (*bytes).clone(),
            },
        })),
    }
    if let Some((at, how)) = found.end.filter(|_| frame.is_none()) {
        entries.push(Entry {
            at,
            fact: Fact::End {
                exchange,
                how: how.clone(),
            },
        });
    }
    Some(entries)
}

fn frames(transcript: &Transcript, exchange: ExchangeId, frame: usize) -> Vec<Entry> {
    let streams = stream::streams(transcript);
    let Some(stream) = streams.iter().find(|stream| stream.exchange.id == exchange) else {
        return Vec::new();
    };
    let near = frame.saturating_sub(AROUND)..=frame.saturating_add(AROUND);
    let shown = stream
        .frames
        .iter()
        .filter(|shown| near.contains(&shown.index));
    shown
        .flat_map(|shown| {
            let this = format!(
                "frame {}{}",
                shown.index,
                if shown.index == frame {
                    ", this one"
                } else {
                    ""
                }
            );
            let bytes = shown.frame.to_bytes().into();
            [Fact::Note(this), Fact::Chunk { exchange, bytes }]
                .map(|fact| Entry { at: shown.at, fact })
        })
        .collect()
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        None => line.to_owned(),
        Some((cut, _)) => format!("{}…", &line[..cut]),
    }
}
