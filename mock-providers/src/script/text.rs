//! Texts and how they are cut into events.

use serde::de::{Error, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize};

use super::forms::{self, Form};

/// A text, whole or as the pieces in which it is streamed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Text {
    /// Cut as [`Answer::chunk`] says.
    Whole(String),
    /// One event for each.
    Pieces(Vec<String>),
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        forms::read(from)
    }
}

impl<'de> Form<'de> for Text {
    const WANTS: &'static str =
        "a text (in quotes when it looks like a number), or a list of texts";

    fn of_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Whole(text.to_owned()))
    }

    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        forms::list(list).map(Self::Pieces)
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// How a text is cut into events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// A word and the blanks before it.
    #[default]
    Words,
    /// So many characters.
    Chars(usize),
    /// Everything at once.
    Whole,
}

impl Chunking {
    /// Cuts `text`. Joined, the pieces are the text; none is empty.
    pub fn cut<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match *self {
            Self::Whole if text.is_empty() => Vec::new(),
            Self::Whole => vec![text],
            Self::Words => cut_words(text),
            Self::Chars(size) => cut_chars(text, size.max(1)),
        }
    }
}

fn cut_words(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, character) in text.char_indices() {
        let blank = character.is_whitespace();
        if blank && in_word {
            pieces.push(&text[start..at]);
            start = at;
        }
        in_word = !blank;
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

fn cut_chars(text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

impl Text {
    /// The whole text.
    pub fn whole(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Pieces(pieces) => pieces.concat(),
        }
    }

    /// The events in which it is streamed.
    pub fn pieces(&self, chunking: Chunking) -> Vec<&str> {
        match self {
            Self::Whole(text) => chunking.cut(text),
            Self::Pieces(pieces) => pieces.iter().map(String::as_str).collect(),
        }
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::Whole(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_text_join_to_the_text() {
        let text = " Hé  llo,\n你好 👩‍🚀 x ";
        for chunking in [
            Chunking::Words,
            Chunking::Chars(1),
            Chunking::Chars(0),
            Chunking::Whole,
        ] {
            let pieces = chunking.cut(text);
            assert_eq!(pieces.concat(), text, "{chunking:?}");
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
            assert!(chunking.cut("").is_empty());
        }
        assert_eq!(Chunking::Words.cut("a bc  d"), ["a", " bc", "  d"]);
    }
}
