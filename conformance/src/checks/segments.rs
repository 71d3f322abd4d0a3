//! What the pieces of a segmented story make together.

use serde_json::Value;
use turnwire_spec::catalogue::rule::StreamKind;

use crate::{
    checks::Check,
    transcript::{
        Transcript,
        views::stream::{Stream, StreamFrame, streams_of},
    },
    verdict::{Evidence, Findings},
};

/// The checks of this area.
pub const CHECKS: &[Check] = &[
    check!("COV-EVT-029", pieces_are_the_texts_alone),
    check!("COV-EVT-030", a_blank_line_separates_the_texts),
    check!("COV-EVT-031", pieces_make_the_content),
    check!("COV-EVT-033", speakers_are_in_no_piece),
    check!("COV-EVT-034", cues_are_in_no_piece),
    check!("COV-EVT-039", the_index_counts_the_blank_lines_before),
];

/// Labels of turns with a segmented story, and the one whose texts are [`TEXTS`].
const STORIES: &str = "seg-";
const PLAIN: &str = "seg-plain";
const TEXTS: [&str; 3] = ["The door opens.", "Who is there?", "Nobody answers."];
const BLANK_LINE: &str = "\n\n";

/// A stream and the pieces since its last reset.
struct Told<'a> {
    stream: Stream<'a>,
    text: String,
}

fn told<'a>(transcript: &'a Transcript, label: &str) -> Vec<Told<'a>> {
    let streams = streams_of(transcript, StreamKind::Action).into_iter();
    let labelled = streams.filter(|stream| stream.exchange.label.starts_with(label));
    labelled
        .map(|stream| {
            let text = joined(&stream);
            Told { stream, text }
        })
        .filter(|told| !told.text.is_empty())
        .collect()
}

fn joined(stream: &Stream<'_>) -> String {
    let mut text = String::new();
    for frame in deltas(stream) {
        if frame.pointer("/payload/reset") == Some(&Value::Bool(true)) {
            text.clear();
        }
        text.push_str(delta(frame));
    }
    text
}

fn deltas<'a>(stream: &'a Stream<'_>) -> impl Iterator<Item = &'a StreamFrame> {
    stream
        .events()
        .filter(|frame| frame.event_type() == "narrative.delta")
}

fn delta(frame: &StreamFrame) -> &str {
    let delta = frame.pointer("/payload/delta").and_then(Value::as_str);
    delta.unwrap_or_default()
}

fn each(
    transcript: &Transcript,
    label: &str,
    fault: impl Fn(&Told<'_>) -> Option<Evidence>,
) -> Findings {
    Findings::each(told(transcript, label), |told| fault(&told))
}

/// COV-EVT-029: the pieces hold the texts of the segments and nothing else; how they are set apart is another matter.
fn pieces_are_the_texts_alone(transcript: &Transcript) -> Findings {
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    let expected = TEXTS.concat();
    each(transcript, PLAIN, |told| {
        (letters(&told.text) != letters(&expected))
            .then(|| told.stream.exchange.evidence(TEXTS.join(" / "), &told.text))
    })
}

/// COV-EVT-030: split at blank lines, the pieces give the texts in order.
fn a_blank_line_separates_the_texts(transcript: &Transcript) -> Findings {
    each(transcript, PLAIN, |told| {
        let paragraphs: Vec<&str> = told.text.split(BLANK_LINE).map(str::trim).collect();
        (paragraphs != TEXTS).then(|| told.stream.exchange.evidence(TEXTS.join(" / "), &told.text))
    })
}

/// COV-EVT-031: the pieces match the content of `narrative.completed`.
fn pieces_make_the_content(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for told in told(transcript, STORIES) {
        let completed = told
            .stream
            .events()
            .find(|frame| frame.event_type() == "narrative.completed");
        let content = completed.and_then(|frame| frame.pointer("/payload/content")?.as_str());
        if let Some(content) = content {
            findings.judge(
                (content != told.text).then(|| told.stream.exchange.evidence(content, &told.text)),
            );
        }
    }
    findings
}

/// COV-EVT-033: a speaker's name is in no piece, wherever the pieces were cut.
fn speakers_are_in_no_piece(transcript: &Transcript) -> Findings {
    lacks(transcript, "ZZSPEAKER")
}

/// COV-EVT-034: a cue is in no piece.
fn cues_are_in_no_piece(transcript: &Transcript) -> Findings {
    lacks(transcript, "ZZCUE")
}

fn lacks(transcript: &Transcript, word: &str) -> Findings {
    each(transcript, PLAIN, |told| {
        told.text.contains(word).then(|| {
            told.stream
                .exchange
                .evidence(format!("no {word}"), &told.text)
        })
    })
}

/// COV-EVT-039: the text of a piece lies in the paragraph that its `index` names, when what came so far is split at
/// blank lines.
///
/// Judges pieces that show something and have a segment.
fn the_index_counts_the_blank_lines_before(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for told in told(transcript, STORIES) {
        let mut text = String::new();
        for frame in deltas(&told.stream) {
            text.push_str(delta(frame));
            let index = frame
                .pointer("/payload/segment/index")
                .and_then(Value::as_u64);
            let Some(index) = index.filter(|_| !delta(frame).trim().is_empty()) else {
                continue;
            };
            let place = text.matches(BLANK_LINE).count() as u64;
            findings.judge((place != index).then(|| {
                told.stream
                    .evidence(frame, format!("index {place}"), index.to_string())
            }));
        }
    }
    findings
}
