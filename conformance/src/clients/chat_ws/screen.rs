//! What a client of the chat protocol shows, chat by chat: the frames of a server go in, and what a person sees stays.
//!
//! Here is no socket and no time; what the screen cannot do itself it wishes of the client.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// What a person sees, chat by chat.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Screen {
    pub(super) chats: BTreeMap<String, Chat>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Chat {
    bubbles: Vec<Bubble>,
    tools: Vec<Tool>,
    notices: Vec<Shown>,
    pub(super) queued: Option<String>,
    pub(super) running: bool,
    #[serde(skip)]
    pub(super) slug: String,
    #[serde(skip)]
    pub(super) job: Option<String>,
    /// The highest number of the present turn; -1 before its first frame.
    #[serde(skip)]
    pub(super) last_seq: i64,
    /// Whether text goes into the last bubble.
    #[serde(skip)]
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Bubble {
    role: &'static str,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    tool_use_id: String,
    tool_name: String,
    pending: bool,
    is_error: bool,
    output: String,
}

/// A notice, with the control that it offers.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Shown {
    kind: &'static str,
    text: String,
    /// Whether it offers to go on, or to try again.
    retry: bool,
    #[serde(skip)]
    timestamp: String,
}

/// What the screen asks of the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// The transcript of this chat is to be read again.
    Transcript(String),
}

impl Screen {
    /// Takes one frame of the server. Kinds that nobody knows are passed over.
    pub fn take(&mut self, frame: &Value) -> Option<Wish> {
        let payload = &frame["payload"];
        let text = |name: &str| payload[name].as_str().unwrap_or_default();
        let session = text("sessionId").to_owned();
        if session.is_empty() {
            return None;
        }
        let chat = self.chats.entry(session.clone()).or_default();
        if let Some(slug) = payload["projectSlug"].as_str() {
            slug.clone_into(&mut chat.slug);
        }
        if let Some(seq) = payload["seq"].as_i64() {
            chat.last_seq = chat.last_seq.max(seq);
        }
        match frame["type"].as_str().unwrap_or_default() {
            "chat:active" => chat.status(payload),
            "chat:response" => chat.write(text("chunk")),
            // Text after it goes into a bubble of its own (CWS-082).
            "chat:message_boundary" => chat.open = false,
            "chat:tool_start" => chat.tools.push(Tool {
                tool_use_id: text("toolUseId").to_owned(),
                tool_name: text("toolName").to_owned(),
                pending: true,
                is_error: false,
                output: String::new(),
            }),
            "chat:tool_call" => chat.finish_tool(payload),
            "chat:complete" => chat.open = false,
            "chat:queued_flushed" => {
                // With a text it is a bubble of the user; in any case the local copy is stale (CWS-098, CWS-099).
                chat.queued = None;
                if let Some(said) = payload["text"].as_str() {
                    chat.said(said);
                }
            }
            "chat:killed_task" => chat.killed(text("summary"), text("timestamp")),
            "chat:notice" => chat.notices.push(Shown {
                kind: "notice",
                text: payload["notice"]["message"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                retry: payload["notice"]["retryable"] == true,
                timestamp: String::new(),
            }),
            "chat:resync" => return Some(Wish::Transcript(session)),
            _ => {}
        }
        None
    }

    /// Shows a transcript in place of what was there.
    pub(super) fn rehydrate(&mut self, session: &str, transcript: &Value) {
        let chat = self.chats.entry(session.to_owned()).or_default();
        let items = transcript["items"].as_array().cloned().unwrap_or_default();
        chat.open = false;
        chat.bubbles = items
            .iter()
            .filter_map(|item| {
                let role = match item["role"].as_str()? {
                    "user" => "user",
                    "assistant" => "assistant",
                    _ => return None,
                };
                let text = item["content"].as_str()?.to_owned();
                Some(Bubble { role, text })
            })
            .collect();
    }
}

impl Chat {
    fn status(&mut self, payload: &Value) {
        let running = payload["running"] == true;
        if running && !self.running {
            self.last_seq = -1;
        }
        self.running = running;
        self.job = payload["jobId"].as_str().map(str::to_owned);
    }

    fn write(&mut self, chunk: &str) {
        match self.bubbles.last_mut().filter(|_| self.open) {
            Some(bubble) => bubble.text.push_str(chunk),
            None => self.bubbles.push(Bubble {
                role: "assistant",
                text: chunk.to_owned(),
            }),
        }
        self.open = true;
    }

    pub(super) fn said(&mut self, text: &str) {
        self.open = false;
        self.bubbles.push(Bubble {
            role: "user",
            text: text.to_owned(),
        });
    }

    /// The row of a tool is completed; a result without one gets its own (CWS-079).
    fn finish_tool(&mut self, payload: &Value) {
        let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
        let done = Tool {
            tool_use_id: text("toolUseId"),
            tool_name: text("toolName"),
            pending: false,
            is_error: payload["isError"] == true,
            output: text("output"),
        };
        let row = self
            .tools
            .iter_mut()
            .find(|row| row.pending && row.tool_use_id == done.tool_use_id);
        match row {
            Some(row) => *row = done,
            None => self.tools.push(done),
        }
    }

    /// A killed task is shown once, however often it is told (CWS-105).
    fn killed(&mut self, summary: &str, timestamp: &str) {
        let known = |shown: &Shown| shown.kind == "killed-task" && shown.timestamp == timestamp;
        if !self.notices.iter().any(known) {
            self.notices.push(Shown {
                kind: "killed-task",
                text: summary.to_owned(),
                retry: true,
                timestamp: timestamp.to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(kind: &str, payload: Value) -> Value {
        let mut payload = payload;
        payload["sessionId"] = json!("s");
        json!({ "type": kind, "payload": payload })
    }

    fn seen(frames: &[Value]) -> Value {
        let mut screen = Screen::default();
        for frame in frames {
            screen.take(frame);
        }
        json!(screen)["chats"]["s"].clone()
    }

    #[test]
    fn text_after_a_boundary_is_a_bubble_of_its_own() {
        let chunk = |text: &str| frame("chat:response", json!({ "chunk": text }));
        let shown = seen(&[
            chunk("a"),
            chunk("b"),
            frame("chat:message_boundary", json!({})),
            chunk("c"),
        ]);
        let texts: Vec<_> = shown["bubbles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bubble| bubble["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, ["ab", "c"]);
    }

    #[test]
    fn a_result_completes_its_row_and_an_orphan_gets_one() {
        let start = frame(
            "chat:tool_start",
            json!({ "toolUseId": "t", "toolName": "Read" }),
        );
        let end = |id: &str| {
            frame(
                "chat:tool_call",
                json!({ "toolUseId": id, "toolName": "Read", "output": "x", "isError": false }),
            )
        };
        let shown = seen(&[start, end("t"), end("u")]);
        let rows = shown["tools"].as_array().unwrap();
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row["pending"] == false));
    }

    #[test]
    fn a_killed_task_is_shown_once_and_a_flushed_queue_said_once() {
        let killed = |at: &str| {
            frame(
                "chat:killed_task",
                json!({ "summary": "x", "timestamp": at }),
            )
        };
        let flushed = frame("chat:queued_flushed", json!({ "text": "q" }));
        let shown = seen(&[killed("1"), killed("1"), killed("2"), flushed]);
        assert_eq!(shown["notices"].as_array().unwrap().len(), 2);
        assert_eq!(shown["bubbles"], json!([{ "role": "user", "text": "q" }]));
        assert_eq!(shown["queued"], Value::Null);
    }
}
