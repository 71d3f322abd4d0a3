//! The text of a segmented story: what a player reads of the JSON that its model writes.
//!
//! The model writes `{"segments": [{"kind", "speaker", "text"}, ...]}`, with whatever else beside these. [`Segments`]
//! takes that in pieces, cut anywhere, and gives what has become readable: text, and the paragraph that it belongs to.
//! [`read`] takes the whole.
//!
//! Paragraphs are separated by one blank line, and so have none inside: white space around a text is dropped, and a
//! blank line in it becomes the end of a line. A segment without text is no paragraph.
//!
//! Nothing fails here: what is no such JSON has no paragraphs. Names are not resolved here.
//!
//! Source: seed 000, lines 133-136.

use serde_json::{Value, json};
use turnwire_spec::covel::payloads::narrative::Segment;

use super::partial::{self, Partial};

/// The kind of a paragraph that nobody says, and of one whose kind is unknown.
const NARRATION: &str = "narration";
/// The other kinds.
const SPOKEN: [&str; 2] = ["dialogue", "thought"];
/// Characters of a speaker's name.
const SPEAKER_CHARS: usize = 80;
/// What stands between two paragraphs.
const BLANK_LINE: &str = "\n\n";

/// What became readable: text that is appended, and the paragraph that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) delta: String,
    pub(super) segment: Segment,
}

/// A segmented story while it is written.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// What was written and is not done with.
    rest: String,
    /// Whether `rest` begins inside the list of segments.
    inside: bool,
    /// Paragraphs that are over.
    paragraphs: u64,
    /// Characters that were given of the present segment.
    given: usize,
    /// What was told of the present segment last.
    told: Option<Segment>,
}

impl Segments {
    /// Takes the next characters, and gives what they make readable.
    pub(super) fn feed(&mut self, text: &str) -> Vec<Piece> {
        self.rest.push_str(text);
        if !self.inside {
            let Some(at) = partial::list_of(&self.rest, "segments") else {
                return Vec::new();
            };
            self.rest.drain(..at);
            self.inside = true;
        }
        let mut pieces = Vec::new();
        while let Some(found) = partial::object(&self.rest) {
            pieces.extend(self.take(&found));
            let Some(end) = found.end else { break };
            self.rest.drain(..end);
            self.paragraphs += u64::from(self.told.is_some());
            self.given = 0;
            self.told = None;
        }
        pieces
    }

    /// What a segment makes readable, as far as it is written.
    fn take(&mut self, found: &Partial) -> Vec<Piece> {
        let visible = visible(&found.text);
        let new: String = visible.chars().skip(self.given).collect();
        let segment = Segment {
            index: self.paragraphs,
            ..told(found.kind.as_deref(), found.speaker.as_deref())
        };
        let mut pieces = Vec::new();
        if !new.is_empty() {
            let is_next = self.given == 0 && self.paragraphs > 0;
            self.given += new.chars().count();
            let gap = if is_next { BLANK_LINE } else { "" };
            self.told = Some(segment.clone());
            pieces.push(Piece {
                delta: format!("{gap}{new}"),
                segment: segment.clone(),
            });
        }
        let is_over = found.end.is_some();
        if is_over && self.told.as_ref().is_some_and(|told| *told != segment) {
            self.told = Some(segment.clone());
            pieces.push(Piece {
                delta: String::new(),
                segment,
            });
        }
        pieces
    }
}

/// What is told of a paragraph, its place aside: the rules are the same while it is written and at the commit.
fn told(kind: Option<&str>, speaker: Option<&str>) -> Segment {
    let kind = kind.filter(|kind| SPOKEN.contains(kind));
    let name: String = speaker
        .unwrap_or_default()
        .trim()
        .chars()
        .take(SPEAKER_CHARS)
        .collect();
    Segment {
        index: 0,
        kind: kind.unwrap_or(NARRATION).to_owned(),
        speaker: kind.and((!name.is_empty()).then_some(name)),
    }
}

/// A text as it is read, from its beginning as from the whole: without white space around it or blank lines in it.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    let mut space = String::new();
    for letter in text.chars() {
        if letter.is_whitespace() {
            space.push(letter);
            continue;
        }
        if !shown.is_empty() {
            let is_blank_line = space.chars().filter(|space| *space == '\n').count() > 1;
            shown.push_str(if is_blank_line { "\n" } else { &space });
        }
        space.clear();
        shown.push(letter);
    }
    shown
}

/// A whole story: its text, and its paragraphs as messages have them. Without any when this is no segmented story.
pub(in crate::engine) fn read(text: &str) -> (String, Vec<Value>) {
    let written: Value = serde_json::from_str(text.trim()).unwrap_or_default();
    let segments = written.get("segments").and_then(Value::as_array);
    let mut texts = Vec::new();
    let mut paragraphs = Vec::new();
    for segment in segments.into_iter().flatten() {
        let member = |name: &str| segment.get(name).and_then(Value::as_str);
        let shown = visible(member("text").unwrap_or_default());
        if shown.is_empty() {
            continue;
        }
        let told = told(member("kind"), member("speaker"));
        let mut paragraph = json!({ "kind": told.kind, "text": shown });
        if let Some(speaker) = told.speaker {
            paragraph["speaker"] = speaker.into();
        }
        texts.push(shown);
        paragraphs.push(paragraph);
    }
    (texts.join(BLANK_LINE), paragraphs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in pieces of so many characters; what came of it.
    fn fed(text: &str, size: usize) -> Vec<Piece> {
        let letters: Vec<char> = text.chars().collect();
        let mut segments = Segments::default();
        letters
            .chunks(size)
            .flat_map(|chunk| segments.feed(&chunk.iter().collect::<String>()))
            .collect()
    }

    fn joined(pieces: &[Piece]) -> String {
        pieces.iter().map(|piece| piece.delta.as_str()).collect()
    }

    const STORY: &str = r#"{"title": "x [1]", "segments": [
        {"kind": "narration", "speaker": "Ann", "text": " The \"door\" opens.\n\n\nWide. "},
        {"kind": "narration", "text": "  "}, {"cue": {"a": ["}"]}},
        {"text": "Who \u00e4\ud83d\ude00?", "speaker": "  Bo ", "kind": "dialogue"},
        {"kind": "shout", "speaker": "Ann", "text": "Me."}
    ], "after": [{"text": "no"}]}"#;

    #[test]
    fn however_a_story_is_cut_its_pieces_make_the_whole_text() {
        let (content, paragraphs) = read(STORY);
        assert_eq!(content, "The \"door\" opens.\nWide.\n\nWho ä😀?\n\nMe.");
        assert_eq!(paragraphs.len(), 3);
        for size in 1..STORY.len() {
            let pieces = fed(STORY, size);
            assert_eq!(joined(&pieces), content, "in pieces of {size}");
            for (at, paragraph) in (0..).zip(&paragraphs) {
                let last = pieces.iter().rfind(|piece| piece.segment.index == at);
                let last = &last.unwrap().segment;
                assert_eq!(last.kind, paragraph["kind"], "in pieces of {size}");
                let speaker = last.speaker.clone().map_or(Value::Null, Value::from);
                assert_eq!(speaker, paragraph["speaker"], "in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_is_known_late_comes_once_without_text() {
        let late: Vec<Piece> = fed(STORY, 1)
            .into_iter()
            .filter(|piece| piece.delta.is_empty())
            .collect();

        assert_eq!(late.len(), 1);
        assert_eq!(late[0].segment.speaker.as_deref(), Some("Bo"));
    }

    #[test]
    fn a_speaker_has_80_characters_at_most() {
        let name = "ä".repeat(81);
        assert_eq!(
            told(Some("dialogue"), Some(&name)).speaker.unwrap(),
            "ä".repeat(80)
        );
        assert_eq!(told(None, Some("Ann")).speaker, None);
    }

    #[test]
    fn what_is_no_segmented_story_has_no_text() {
        for text in [
            "",
            "Once upon a time",
            "{\"segments\": 7}",
            "{\"segments\": [",
            "[]",
        ] {
            assert_eq!(read(text).0, "");
            assert_eq!(joined(&fed(text, 1)), "");
        }
    }
}
