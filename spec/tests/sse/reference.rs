//! The standard's own algorithm, step by step and with no thought of speed or limits.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

use turnwire_spec::sse::properties::{Decoded, OwnedEvent};

/// Section 9.2.6 of the HTML standard. Its sentences stand beside the code.
#[derive(Default)]
pub(crate) struct Reference {
    data_buffer: String,
    event_type_buffer: String,
    last_event_id_buffer: String,
    /// Ours: the standard does not tie the reconnection time to an event.
    retry_of_block: Option<u64>,
    said: Decoded,
}

impl Reference {
    pub(crate) fn read(stream: &[u8]) -> Decoded {
        let mut reference = Self::default();
        // "Streams must be decoded using the UTF-8 decode algorithm", which strips one BOM.
        let text = String::from_utf8_lossy(stream);
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        let (lines, rest) = Self::lines(text);
        for line in &lines {
            reference.line(line);
        }
        let after_blank = lines.last().is_none_or(String::is_empty);
        reference.said.ended_inside = !after_blank || !rest.is_empty();
        reference.said
    }

    /// "Lines must be separated by either a CRLF pair, a single LF, or a single CR."
    fn lines(text: &str) -> (Vec<String>, String) {
        let mut lines = Vec::new();
        let mut line = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\r' => {
                    characters.next_if_eq(&'\n');
                    lines.push(std::mem::take(&mut line));
                }
                '\n' => lines.push(std::mem::take(&mut line)),
                other => line.push(other),
            }
        }
        (lines, line)
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            self.dispatch();
        } else if line.starts_with(':') {
            // "Ignore the line."
        } else if let Some((field, value)) = line.split_once(':') {
            self.field(field, value.strip_prefix(' ').unwrap_or(value));
        } else {
            self.field(line, "");
        }
    }

    fn field(&mut self, field: &str, value: &str) {
        match field {
            "event" => self.event_type_buffer = value.to_owned(),
            "data" => {
                self.data_buffer.push_str(value);
                self.data_buffer.push('\n');
            }
            "id" if !value.contains('\0') => self.last_event_id_buffer = value.to_owned(),
            "retry" if !value.is_empty() && value.chars().all(|c| c.is_ascii_digit()) => {
                let time = value.parse().unwrap_or(u64::MAX);
                self.retry_of_block = Some(time);
                self.said.reconnection_time = Some(time);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        self.said.last_event_id = self.last_event_id_buffer.clone();
        let retry = self.retry_of_block.take();
        let event_type = std::mem::take(&mut self.event_type_buffer);
        let data = std::mem::take(&mut self.data_buffer);
        let Some(data) = data.strip_suffix('\n') else {
            return;
        };
        self.said.events.push(Ok(OwnedEvent {
            event: if event_type.is_empty() {
                "message".to_owned()
            } else {
                event_type
            },
            data: data.to_owned(),
            last_event_id: self.said.last_event_id.clone(),
            retry,
        }));
    }
}
