//! Takes thinking out of text in which a model wrote it between tags, as `<think>…</think>`.
//!
//! The method is that of the AI SDK's `extractReasoningMiddleware`: tags are taken by their exact letters,
//! every section is taken out, sections do not nest, a closing tag alone is text, and a newline stands
//! between two sections of the same kind. A section that is never closed reaches to the end. Plain and
//! streamed answers go the same way, so they give the same result wherever a stream is cut.
//!
//! Source: seed 000, lines 1166-1173.

/// A piece of a text, told apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Said {
    Text(String),
    Thinking(String),
}

/// Tells thinking and text apart while they come in. What may be the start of a tag is held back.
#[derive(Debug)]
pub(super) struct ThinkSplitter {
    /// The names of the tags.
    names: &'static [&'static str],
    /// The tag whose section this is.
    open: Option<&'static str>,
    /// What may be the start of a tag.
    held: String,
    said_text: bool,
    said_thinking: bool,
    /// The kind has changed since something was said.
    switched: bool,
    found: bool,
}

impl ThinkSplitter {
    pub(super) fn new(names: &'static [&'static str]) -> Self {
        Self {
            names,
            open: None,
            held: String::new(),
            said_text: false,
            said_thinking: false,
            switched: false,
            found: false,
        }
    }

    /// Whether there was a section.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Takes the next piece of the text.
    pub(super) fn push(&mut self, piece: &str) -> Vec<Said> {
        let mut out = Vec::new();
        let mut rest = std::mem::take(&mut self.held);
        rest.push_str(piece);
        loop {
            match self.next_tag(&rest) {
                Tag::Whole { at, len, name } => {
                    self.say(&rest[..at], &mut out);
                    self.open = if self.open.is_some() {
                        None
                    } else {
                        Some(name)
                    };
                    self.switched = true;
                    self.found = true;
                    rest.drain(..at + len);
                }
                Tag::Perhaps { at } => {
                    self.say(&rest[..at], &mut out);
                    rest.drain(..at);
                    self.held = rest;
                    return out;
                }
                Tag::None => {
                    self.say(&rest, &mut out);
                    return out;
                }
            }
        }
    }

    /// The text has ended: what was held back is no tag.
    pub(super) fn end(&mut self) -> Vec<Said> {
        let mut out = Vec::new();
        let held = std::mem::take(&mut self.held);
        self.say(&held, &mut out);
        out
    }

    fn say(&mut self, text: &str, out: &mut Vec<Said>) {
        if text.is_empty() {
            return;
        }
        let thinking = self.open.is_some();
        let said = if thinking {
            &mut self.said_thinking
        } else {
            &mut self.said_text
        };
        let again = std::mem::replace(said, true);
        let between = if std::mem::take(&mut self.switched) && again {
            "\n"
        } else {
            ""
        };
        let text = format!("{between}{text}");
        out.push(if thinking {
            Said::Thinking(text)
        } else {
            Said::Text(text)
        });
    }

    /// The first tag that counts here, or the place where one may begin.
    fn next_tag(&self, text: &str) -> Tag {
        for (at, _) in text.match_indices('<') {
            for name in self.names {
                let tag = match self.open {
                    None => format!("<{name}>"),
                    Some(open) if open == *name => format!("</{name}>"),
                    Some(_) => continue,
                };
                let rest = &text[at..];
                if rest.starts_with(&tag) {
                    let len = tag.len();
                    return Tag::Whole { at, len, name };
                }
                if tag.starts_with(rest) {
                    return Tag::Perhaps { at };
                }
            }
        }
        Tag::None
    }
}

enum Tag {
    Whole {
        at: usize,
        len: usize,
        name: &'static str,
    },
    Perhaps {
        at: usize,
    },
    None,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::new(&["think"]);
        let mut said: Vec<Said> = pieces
            .iter()
            .flat_map(|piece| splitter.push(piece))
            .collect();
        said.extend(splitter.end());
        let (mut text, mut thinking) = (String::new(), String::new());
        for one in said {
            match one {
                Said::Text(piece) => text.push_str(&piece),
                Said::Thinking(piece) => thinking.push_str(&piece),
            }
        }
        (text, thinking)
    }

    #[test]
    fn sections_are_taken_out_of_the_text() {
        for (input, text, thinking) in [
            ("<think>plan</think>Hello", "Hello", "plan"),
            ("Hello", "Hello", ""),
            ("<think>a</think>X<think>b</think>Y", "X\nY", "a\nb"),
            ("Intro <think>half a pl", "Intro ", "half a pl"),
            ("<think></think>Hi", "Hi", ""),
            ("a </think> b", "a </think> b", ""),
            (
                "<think>a<think>b</think>c</think>",
                "c</think>",
                "a<think>b",
            ),
            ("<THINK>a</THINK>", "<THINK>a</THINK>", ""),
            ("a <thinking>b < c <th", "a <thinking>b < c <th", ""),
            ("<think>a</thin", "", "a</thin"),
        ] {
            assert_eq!(
                split(&[input]),
                (text.to_owned(), thinking.to_owned()),
                "{input}"
            );
        }
    }

    #[test]
    fn a_tag_that_is_cut_is_held_back_until_it_is_whole() {
        let expected = ("Hi".to_owned(), "plan".to_owned());
        assert_eq!(split(&["<th", "ink>pl", "an</think>Hi"]), expected);
        assert_eq!(split(&["<think>plan</", "think>", "Hi"]), expected);

        let mut splitter = ThinkSplitter::new(&["think"]);
        assert_eq!(splitter.push("a <th"), [Said::Text("a ".into())]);
        assert_eq!(splitter.push("ree> b"), [Said::Text("<three> b".into())]);
    }

    #[test]
    fn another_name_of_the_tag_closes_no_section() {
        let mut splitter = ThinkSplitter::new(&["think", "thought"]);
        let said = splitter.push("<thought>a</think>b</thought>c");
        assert_eq!(
            said,
            [Said::Thinking("a</think>b".into()), Said::Text("c".into())]
        );
    }

    proptest! {
        #[test]
        fn where_a_text_is_cut_does_not_matter(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("<think>"), Just("</think>"), Just("<"), Just("</"), Just("th"), Just("ink>"),
                    Just("<thi"), Just("a"), Just("é"), Just("\n"), Just("<think/>"),
                ], 0..12),
            cuts in prop::collection::vec(0_usize..80, 0..10),
        ) {
            let whole = parts.concat();
            let mut cuts: Vec<usize> =
                cuts.into_iter().filter(|cut| whole.is_char_boundary(*cut)).collect();
            cuts.extend([0, whole.len()]);
            cuts.retain(|cut| *cut <= whole.len());
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(&pieces), split(&[&whole]));
        }

        #[test]
        fn text_without_tags_is_kept_as_it_is(text in "[a-z <>/é\n]{0,40}") {
            prop_assume!(!text.contains("<think>"));
            prop_assert_eq!(split(&[&text]), (text, String::new()));
        }
    }
}
