//! A frame that is being changed.

use serde_json::Value;
use turnwire_spec::sse::{Frame, LineKind};

/// The lines of a frame, to be changed one by one and written again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Draft {
    /// Lines without their terminators, the blank one left out.
    lines: Vec<Vec<u8>>,
    /// What ends each line.
    terminator: &'static [u8],
}

impl Draft {
    /// The lines of a frame; all will end as the first one does.
    pub fn of(frame: &Frame) -> Self {
        let written = frame
            .lines
            .iter()
            .filter(|line| line.kind != LineKind::Blank);
        let terminator = frame
            .lines
            .first()
            .map_or(&b"\n"[..], |line| line.terminator.bytes());
        Self {
            lines: written.map(|line| line.raw.to_vec()).collect(),
            terminator: if terminator.is_empty() {
                b"\n"
            } else {
                terminator
            },
        }
    }

    /// A new frame: an event line unless the name is empty, then data lines.
    pub fn new(event: &str, data: &str) -> Self {
        let mut draft = Self {
            lines: Vec::new(),
            terminator: b"\n",
        };
        if !event.is_empty() {
            draft.append(&format!("event: {event}"));
        }
        draft.set_data(data);
        draft
    }

    /// The value of the last line of a field.
    pub fn line(&self, name: &str) -> Option<String> {
        self.lines
            .iter()
            .rev()
            .find_map(|line| value_of(line, name))
    }

    /// Puts a line in front of all others.
    pub fn prepend(&mut self, line: &str) {
        self.lines.insert(0, line.as_bytes().to_vec());
    }

    /// Puts a line after all others.
    pub fn append(&mut self, line: &str) {
        self.lines.push(line.as_bytes().to_vec());
    }

    /// Removes all lines of a field; `:` removes the comments.
    pub fn drop_line(&mut self, name: &str) {
        self.lines.retain(|line| !is_field(line, name));
    }

    /// Gives the lines of a field a new value. Adds no line.
    pub fn set_line(&mut self, name: &str, value: &str) {
        for line in self.lines.iter_mut().filter(|line| is_field(line, name)) {
            *line = format!("{name}: {value}").into_bytes();
        }
    }

    /// Replaces the data lines by those of this text, where the first of them stood, or else at the end.
    pub fn set_data(&mut self, text: &str) {
        let place = self
            .lines
            .iter()
            .position(|line| is_field(line, "data"))
            .unwrap_or(self.lines.len());
        self.drop_line("data");
        let data = text
            .split('\n')
            .map(|line| format!("data: {line}").into_bytes());
        self.lines.splice(place..place, data);
    }

    /// The data lines, joined.
    pub fn data(&self) -> Option<String> {
        let values: Vec<_> = self
            .lines
            .iter()
            .filter_map(|line| value_of(line, "data"))
            .collect();
        (!values.is_empty()).then(|| values.join("\n"))
    }

    /// The data as JSON, when it is.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.data()?).ok()
    }

    /// Changes the data as JSON; leaves data that is none.
    pub fn edit_json(&mut self, change: impl FnOnce(&mut Value)) {
        if let Some(mut document) = self.json() {
            change(&mut document);
            self.set_data(&document.to_string());
        }
    }

    /// The frame's bytes, with its blank line.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in self.lines.iter().map(Vec::as_slice).chain([&b""[..]]) {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(self.terminator);
        }
        bytes
    }
}

fn is_field(line: &[u8], name: &str) -> bool {
    let field = line.split(|byte| *byte == b':').next().unwrap_or_default();
    if name == ":" {
        field.is_empty()
    } else {
        field == name.as_bytes()
    }
}

fn value_of(line: &[u8], name: &str) -> Option<String> {
    if !is_field(line, name) {
        return None;
    }
    let value = line.get(name.len() + 1..).unwrap_or_default();
    Some(String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value)).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_spec::sse;

    use super::*;

    fn draft(text: &str) -> Draft {
        Draft::of(&sse::frames(text.as_bytes()).frames[0])
    }

    fn text(draft: &Draft) -> String {
        String::from_utf8(draft.to_bytes()).unwrap()
    }

    #[test]
    fn an_untouched_draft_writes_the_frame_again() {
        for frame in [
            "event: a\nid: 1\ndata: {}\n\n",
            "data:x\r\ndata: y\r\n\r\n",
            ": hi\n\n",
            "data\n\n",
        ] {
            assert_eq!(text(&draft(frame)), frame);
        }
    }

    #[test]
    fn lines_are_read_set_added_and_removed() {
        let mut frame = draft("event: a\nid:1\ndata: 5\n\n");
        assert_eq!(frame.line("id").as_deref(), Some("1"));
        frame.set_line("id", "2");
        frame.set_line("retry", "3");
        frame.drop_line("event");
        frame.prepend(": first");
        frame.append("retry: 9");
        assert_eq!(text(&frame), ": first\nid: 2\ndata: 5\nretry: 9\n\n");
        frame.drop_line(":");
        assert_eq!(text(&frame), "id: 2\ndata: 5\nretry: 9\n\n");
    }

    #[test]
    fn data_keeps_its_place_and_may_have_many_lines() {
        let mut frame = draft("data: {\"a\":\ndata: 1}\nid: 7\n\n");
        assert_eq!(frame.json(), Some(json!({"a": 1})));
        frame.edit_json(|document| document["b"] = json!(2));
        assert_eq!(text(&frame), "data: {\"a\":1,\"b\":2}\nid: 7\n\n");
        frame.set_data("x\ny");
        assert_eq!(text(&frame), "data: x\ndata: y\nid: 7\n\n");
        frame.edit_json(|document| *document = json!(null));
        assert_eq!(frame.data().as_deref(), Some("x\ny"));
    }

    #[test]
    fn a_new_frame_has_event_and_data() {
        assert_eq!(text(&Draft::new("a", "{}")), "event: a\ndata: {}\n\n");
        assert_eq!(text(&Draft::new("", "{}")), "data: {}\n\n");
    }
}
