//! From frames to bytes: event streams in every form, JSON arrays, plain bodies.

use std::fmt::Write as _;

use serde_json::Value;

use super::out::{Frame, Frames, Mark, MarkKind, Rendered, What};
use super::route::Form;
use crate::script::{Done, Escape, Framing, LineEnd};

/// The end marker of Chat Completions, as a line.
const DONE: &str = "data: [DONE]";

/// How the real service of a wire frames its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct House {
    pub(crate) line_end: LineEnd,
    /// Whether events have an `event:` line.
    pub(crate) event_lines: bool,
}

/// Frames the events of an answer.
pub(crate) fn render(frames: &Frames, form: Form, framing: &Framing, house: House) -> Rendered {
    match form {
        Form::Plain | Form::AsBody => plain(frames, framing),
        Form::Array => array(frames, framing),
        Form::Events => Writer::new(frames, framing, house).write(),
    }
}

fn plain(frames: &Frames, framing: &Framing) -> Rendered {
    let mut bytes = Vec::with_capacity(frames.data.len());
    for frame in &frames.list {
        push_data(&mut bytes, frames, &frame.what, framing);
    }
    Rendered::whole(bytes)
}

/// `[{…}\n,\r\n{…}\n]\n`, as the service sends it element by element.
fn array(frames: &Frames, framing: &Framing) -> Rendered {
    let (mut bytes, mut marks) = (Vec::new(), Vec::new());
    let mut first = true;
    for frame in &frames.list {
        if matches!(frame.what, What::Event { .. }) {
            bytes.extend_from_slice(if first { b"[" } else { b",\r\n" });
            first = false;
            push_data(&mut bytes, frames, &frame.what, framing);
            bytes.push(b'\n');
        } else {
            push_data(&mut bytes, frames, &frame.what, framing);
        }
        marks.push(Mark {
            end: bytes.len(),
            kind: frame.kind.clone(),
        });
    }
    if framing.done != Some(Done::Absent) {
        bytes.extend_from_slice(if first { b"[]\n" } else { b"]\n" });
        marks.push(Mark {
            end: bytes.len(),
            kind: MarkKind::Tail,
        });
    }
    Rendered {
        bytes: bytes.into(),
        marks,
    }
}

fn push_data(bytes: &mut Vec<u8>, frames: &Frames, what: &What, framing: &Framing) {
    match what {
        What::Event { from, to, .. } => {
            let data = frames.data.get(*from..*to).unwrap_or_default();
            match framing.escape {
                Escape::Ascii => bytes.extend_from_slice(ascii(data).as_bytes()),
                Escape::Utf8 | Escape::SplitSurrogates => bytes.extend_from_slice(data),
            }
        }
        What::Bytes(text) => bytes.extend_from_slice(text.as_bytes()),
        What::Comment(_) | What::Silence => {}
    }
}

/// JSON with every character outside of ASCII as `\uXXXX`; such characters stand in strings only.
fn ascii(data: &[u8]) -> String {
    let mut text = String::with_capacity(data.len());
    for character in String::from_utf8_lossy(data).chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

struct Writer<'a> {
    frames: &'a Frames,
    framing: &'a Framing,
    /// Behind a field, and as an empty line.
    ends: (&'static str, &'static str),
    event_lines: Option<&'static str>,
    blanks: &'static str,
    count: usize,
    bytes: Vec<u8>,
    marks: Vec<Mark>,
}

impl<'a> Writer<'a> {
    fn new(frames: &'a Frames, framing: &'a Framing, house: House) -> Self {
        let event_lines = match (framing.event_lines, house.event_lines) {
            (Some(false), _) | (None, false) => None,
            (Some(true), false) => Some("message"),
            (_, true) => Some(""),
        };
        Self {
            frames,
            framing,
            ends: framing.line_end.unwrap_or(house.line_end).ends(),
            event_lines,
            blanks: match framing.blanks {
                Some(0) => "",
                None | Some(1) => " ",
                Some(_) => "  ",
            },
            count: 0,
            bytes: Vec::with_capacity(frames.data.len() + 16 * frames.list.len()),
            marks: Vec::with_capacity(frames.list.len()),
        }
    }

    fn write(mut self) -> Rendered {
        if self.framing.bom {
            self.push("\u{feff}");
        }
        if let Some(retry) = self.framing.retry {
            let line = format!("retry: {retry}{}{}", self.ends.0, self.ends.1);
            self.push(&line);
            self.mark(MarkKind::Event);
        }
        for frame in &self.frames.list {
            self.frame(frame);
        }
        match self.framing.done {
            Some(Done::Extra) => self.line(DONE),
            Some(Done::Line(_)) if !self.frames.list.iter().any(|frame| frame.terminal) => {
                self.own_end();
            }
            _ => {}
        }
        if self.framing.no_last_blank {
            self.drop_last_blank();
        }
        Rendered {
            bytes: self.bytes.into(),
            marks: self.marks,
        }
    }

    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn mark(&mut self, kind: MarkKind) {
        self.marks.push(Mark {
            end: self.bytes.len(),
            kind,
        });
    }

    /// A line and an empty line.
    fn line(&mut self, line: &str) {
        self.push(line);
        self.push(self.ends.0);
        self.push(self.ends.1);
        self.mark(MarkKind::Tail);
    }

    /// The end marker as the script has it.
    fn own_end(&mut self) {
        if let Some(Done::Line(line)) = &self.framing.done {
            self.line(&line.clone());
        }
    }

    fn frame(&mut self, frame: &Frame) {
        match &frame.what {
            What::Silence => self.mark(frame.kind.clone()),
            What::Bytes(text) => {
                self.push(text);
                self.mark(frame.kind.clone());
            }
            What::Comment(text) => {
                self.comment(text);
                self.mark(frame.kind.clone());
            }
            What::Event { name, from, to } if frame.terminal => match self.framing.done {
                Some(Done::Absent) => {}
                Some(Done::Line(_)) => self.own_end(),
                Some(Done::Twice) => {
                    self.event(name.as_deref(), *from, *to, frame.kind.clone());
                    self.event(name.as_deref(), *from, *to, frame.kind.clone());
                }
                Some(Done::Extra) | None => {
                    self.event(name.as_deref(), *from, *to, frame.kind.clone());
                }
            },
            What::Event { name, from, to } => {
                self.event(name.as_deref(), *from, *to, frame.kind.clone());
            }
        }
    }

    fn comment(&mut self, text: &str) {
        self.push(":");
        if !text.is_empty() {
            self.push(" ");
            self.push(text);
        }
        self.push(self.ends.0);
        self.push(self.ends.1);
    }

    fn event(&mut self, name: Option<&str>, from: usize, to: usize, kind: MarkKind) {
        self.noise();
        if let Some(default) = self.event_lines {
            self.field("event", name.unwrap_or(default));
        }
        if self.framing.ids {
            self.field("id", &self.count.to_string());
        }
        if let Some(comment) = &self.framing.comment_inside {
            let line = format!(": {comment}{}", self.ends.0);
            self.push(&line);
        }
        let data = self.frames.data.get(from..to).unwrap_or_default();
        if self.framing.multi_line || self.framing.escape == Escape::Ascii {
            self.changed_data(data);
        } else {
            self.bytes.extend_from_slice(b"data:");
            self.push(self.blanks);
            self.bytes.extend_from_slice(data);
            self.push(self.ends.0);
        }
        self.push(self.ends.1);
        self.mark(kind);
        self.count += 1;
    }

    /// What stands before an event.
    fn noise(&mut self) {
        if let Some(comment) = &self.framing.comment {
            self.comment(&comment.clone());
        }
        if self.framing.nameless_pings {
            self.field("event", "ping");
            self.push(self.ends.1);
        }
        if self.framing.empty_events {
            self.push("data:");
            self.push(self.ends.0);
            self.push(self.ends.1);
        }
    }

    fn field(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.push(name);
        self.push(":");
        self.push(self.blanks);
        self.push(value);
        self.push(self.ends.0);
    }

    fn changed_data(&mut self, data: &[u8]) {
        let pretty = serde_json::from_slice::<Value>(data)
            .ok()
            .filter(|_| self.framing.multi_line)
            .and_then(|value| serde_json::to_string_pretty(&value).ok());
        let text = pretty.unwrap_or_else(|| String::from_utf8_lossy(data).into_owned());
        let text = match self.framing.escape {
            Escape::Ascii => ascii(text.as_bytes()),
            Escape::Utf8 | Escape::SplitSurrogates => text,
        };
        for line in text.split('\n') {
            self.field("data", line);
        }
    }

    fn drop_last_blank(&mut self) {
        let blank = self.ends.1;
        if self.bytes.ends_with(blank.as_bytes()) {
            let length = self.bytes.len() - blank.len();
            self.bytes.truncate(length);
            for mark in &mut self.marks {
                mark.end = mark.end.min(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        let mut frames = Frames::default();
        frames.event(Some("a"), "{\"x\":\"é🚀\"}", MarkKind::Token);
        frames.other(What::Comment("ping".into()), MarkKind::Event);
        frames.push("[DONE]");
        frames.end_terminal(None);
        frames
    }

    fn shown(framing: &Framing) -> String {
        let house = House {
            line_end: LineEnd::Lf,
            event_lines: false,
        };
        let body = render(&frames(), Form::Events, framing, house);
        assert_eq!(
            body.marks.last().map(|mark| mark.end),
            Some(body.bytes.len())
        );
        body.text().replace('\r', "R").replace('\n', "N")
    }

    #[test]
    fn every_form_of_a_stream_can_be_written() {
        let plain = "data: {\"x\":\"é🚀\"}NN: pingNNdata: [DONE]NN";
        assert_eq!(shown(&Framing::default()), plain);
        let framing = Framing {
            line_end: Some(LineEnd::CrLf),
            ..Framing::default()
        };
        assert_eq!(shown(&framing), plain.replace("NN", "RNRN"));
        let framing = Framing {
            line_end: Some(LineEnd::Mixed),
            ..Framing::default()
        };
        assert_eq!(shown(&framing), plain.replace("NN", "NRN"));
        let framing = Framing {
            no_last_blank: true,
            bom: true,
            ..Framing::default()
        };
        assert_eq!(
            shown(&framing),
            format!("\u{feff}{}", &plain[..plain.len() - 1])
        );
        let framing = Framing {
            done: Some(Done::Absent),
            blanks: Some(0),
            ..Framing::default()
        };
        assert_eq!(shown(&framing), "data:{\"x\":\"é🚀\"}NN: pingNN");
        let framing = Framing {
            done: Some(Done::Line("data:  [DONE]".into())),
            ..framing
        };
        assert_eq!(
            shown(&framing),
            "data:{\"x\":\"é🚀\"}NN: pingNNdata:  [DONE]NN"
        );
        let framing = Framing {
            multi_line: true,
            escape: Escape::Ascii,
            done: Some(Done::Absent),
            ..Framing::default()
        };
        assert_eq!(
            shown(&framing),
            "data: {Ndata:   \"x\": \"\\u00e9\\ud83d\\ude80\"Ndata: }NN: pingNN"
        );
        let framing = Framing {
            event_lines: Some(true),
            ids: true,
            retry: Some(3000),
            comment: Some(String::new()),
            comment_inside: Some("c".into()),
            done: Some(Done::Absent),
            ..Framing::default()
        };
        assert_eq!(
            shown(&framing),
            "retry: 3000NN:NNevent: aNid: 0N: cNdata: {\"x\":\"é🚀\"}NN: pingNN"
        );
    }

    #[test]
    fn an_array_is_sent_element_by_element() {
        let mut frames = Frames::default();
        frames.event(None, "{}", MarkKind::Token);
        frames.event(None, "{}", MarkKind::Tail);
        let house = House {
            line_end: LineEnd::CrLf,
            event_lines: false,
        };
        let body = render(&frames, Form::Array, &Framing::default(), house);
        assert_eq!(body.text(), "[{}\n,\r\n{}\n]\n");
        assert_eq!(body.marks.len(), 3);
        let empty = render(&Frames::default(), Form::Array, &Framing::default(), house);
        assert_eq!(empty.text(), "[]\n");
    }
}
