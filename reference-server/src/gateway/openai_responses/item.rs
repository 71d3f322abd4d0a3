//! One item of an answer, filled by pieces or taken whole.
//!
//! The same text comes up to four times: as deltas, and whole when the part, the item and the response are
//! done. It counts once: what came as deltas is not taken again, what did not is taken from the first event
//! that has it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::gateway::draft::{CallDraft, Text, bounded, opening_of, piece_of};
use crate::gateway::json::{filled, items};
use crate::gateway::refusal::Fault;
use crate::gateway::reply::ModelEvent;
use crate::gateway::think::{Said, ThinkSplitter};

/// Parts of one item.
const PARTS: usize = 1_024;
/// What stands between two summaries.
const BREAK: &str = "\n\n";

/// An item while it comes in.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// The item as it was last shown; complete when it is done.
    shown: Value,
    parts: BTreeMap<u64, Part>,
    summaries: BTreeMap<u64, Text>,
    /// Thinking of an open-weight model.
    thoughts: BTreeMap<u64, Text>,
    /// Which call of the answer this is.
    call: Option<usize>,
    /// Pieces of the arguments.
    arguments: String,
    /// The arguments whole.
    whole: Option<String>,
    /// `response.output_item.done` has come: this is how it stays.
    closed: bool,
}

/// A part of a message while it comes in.
#[derive(Debug)]
struct Part {
    splitter: ThinkSplitter,
    text: Text,
    thinking: Text,
    refusal: String,
    begun: bool,
    ended: bool,
}

impl Default for Part {
    fn default() -> Self {
        Self {
            splitter: ThinkSplitter::new(&["think"]),
            text: Text::default(),
            thinking: Text::default(),
            refusal: String::new(),
            begun: false,
            ended: false,
        }
    }
}

impl Part {
    fn say(&mut self, piece: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.begun |= !piece.is_empty();
        let said = self.splitter.push(piece);
        self.hand_on(said, out)
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.ended = true;
        let held = self.splitter.end();
        self.hand_on(held, out)
    }

    fn hand_on(&mut self, said: Vec<Said>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        for piece in said {
            match piece {
                Said::Text(text) => self.text.say(&text, out)?,
                Said::Thinking(text) => self.thinking.think(&text, out)?,
            }
        }
        Ok(())
    }
}

impl Item {
    pub(super) fn kind(&self) -> &str {
        self.shown["type"].as_str().unwrap_or_default()
    }

    pub(super) fn id(&self) -> Option<&str> {
        filled(&self.shown["id"])
    }

    /// Whether it is a call that is to be run: the service marks the others.
    pub(super) fn is_call(&self) -> bool {
        self.call.is_some() && self.shown["status"] != "incomplete"
    }

    /// It has been shown whole.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_done(&self) -> bool {
        self.closed
    }

    /// The item was opened.
    pub(super) fn open(&mut self, item: &Value) {
        if self.shown.is_null() {
            self.shown = item.clone();
        }
    }

    /// Makes it the call of this number, when it is one and was none.
    pub(super) fn number(&mut self, number: usize, out: &mut Vec<ModelEvent>) -> bool {
        let calls = matches!(self.kind(), "function_call" | "custom_tool_call");
        if !calls || self.call.is_some() {
            return false;
        }
        self.call = Some(number);
        let (id, name) = (filled(&self.shown["call_id"]), filled(&self.shown["name"]));
        out.push(opening_of(number, id, name));
        true
    }

    pub(super) fn say(
        &mut self,
        at: u64,
        piece: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        self.part(at)?.say(piece, out)
    }

    /// The text of a part, whole.
    pub(super) fn said(
        &mut self,
        at: u64,
        text: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let part = self.part(at)?;
        if !part.begun {
            part.say(text, out)?;
        }
        if part.ended { Ok(()) } else { part.end(out) }
    }

    pub(super) fn refuse(&mut self, at: u64, piece: &str) -> Result<(), Fault> {
        let part = self.part(at)?;
        bounded(part.refusal.len() + piece.len())?;
        part.refusal.push_str(piece);
        Ok(())
    }

    /// A refusal, whole.
    pub(super) fn refused(&mut self, at: u64, text: &str) -> Result<(), Fault> {
        text.clone_into(&mut self.part(at)?.refusal);
        Ok(())
    }

    pub(super) fn summarize(
        &mut self,
        at: u64,
        piece: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        think(&mut self.summaries, at, piece, out)
    }

    /// A summary, whole.
    pub(super) fn summarized(
        &mut self,
        at: u64,
        text: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        match self.summaries.contains_key(&at) {
            true => Ok(()),
            false => think(&mut self.summaries, at, text, out),
        }
    }

    pub(super) fn think(
        &mut self,
        at: u64,
        piece: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        think(&mut self.thoughts, at, piece, out)
    }

    /// Thinking, whole. Where there is a summary, it is the summary that is shown.
    pub(super) fn thought(
        &mut self,
        at: u64,
        text: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if self.thoughts.contains_key(&at) || !self.summaries.is_empty() {
            return Ok(());
        }
        think(&mut self.thoughts, at, text, out)
    }

    pub(super) fn write(&mut self, piece: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        bounded(self.arguments.len() + piece.len())?;
        self.arguments.push_str(piece);
        if let Some(call) = self.call {
            out.push(piece_of(call, piece));
        }
        Ok(())
    }

    /// The arguments, whole.
    pub(super) fn written(&mut self, text: &str, out: &mut Vec<ModelEvent>) {
        if self.arguments.is_empty()
            && self.whole.is_none()
            && let Some(call) = self.call
        {
            out.push(piece_of(call, text));
        }
        self.whole = Some(text.to_owned());
    }

    /// The item, whole.
    pub(super) fn done(&mut self, item: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.shown = item.clone();
        for (at, part) in (0..).zip(items(&item["content"])) {
            let text = part["text"].as_str().unwrap_or_default();
            match part["type"].as_str().unwrap_or_default() {
                "output_text" | "text" => self.said(at, text, out)?,
                "refusal" => self.refused(at, part["refusal"].as_str().unwrap_or_default())?,
                _ => {}
            }
        }
        if item["type"] == "message"
            && let Some(text) = item["content"].as_str()
        {
            self.said(0, text, out)?;
        }
        for (at, summary) in (0..).zip(items(&item["summary"])) {
            self.summarized(at, summary["text"].as_str().unwrap_or_default(), out)?;
        }
        if item["type"] == "reasoning" {
            for (at, part) in (0..).zip(items(&item["content"])) {
                self.thought(at, part["text"].as_str().unwrap_or_default(), out)?;
            }
        }
        Ok(())
    }

    /// The arguments of a call that is done, and what it began with.
    pub(super) fn take_arguments(&mut self, out: &mut Vec<ModelEvent>) {
        let item = std::mem::take(&mut self.shown);
        let given = [&item["arguments"], &item["input"]];
        let given = given.into_iter().find(|given| !given.is_null());
        match given {
            Some(Value::String(text)) if !text.is_empty() => self.written(text, out),
            Some(Value::Object(object)) => self.written(&json!(object).to_string(), out),
            _ => {}
        }
        self.shown = item;
    }

    /// Hands on what was held back.
    pub(super) fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let mut open = self.parts.values_mut().filter(|part| !part.ended);
        open.try_for_each(|part| part.end(out))
    }

    pub(super) fn text(&self) -> String {
        self.parts
            .values()
            .map(|part| part.text.0.as_str())
            .collect()
    }

    /// Whether a part held thinking within tags.
    pub(super) fn is_tagged(&self) -> bool {
        self.parts.values().any(|part| part.splitter.found())
    }

    pub(super) fn refusal(&self) -> String {
        self.parts
            .values()
            .map(|part| part.refusal.as_str())
            .collect()
    }

    /// The thinking of this item, which may be of several kinds.
    pub(super) fn thinking(&self) -> String {
        let listed = self.summaries.values().chain(self.thoughts.values());
        let tagged = self.parts.values().map(|part| &part.thinking);
        listed.chain(tagged).map(|text| text.0.as_str()).collect()
    }

    pub(super) fn draft(&self) -> CallDraft {
        CallDraft {
            id: filled(&self.shown["call_id"]).map(str::to_owned),
            name: filled(&self.shown["name"]).unwrap_or_default().to_owned(),
            arguments: match &self.whole {
                Some(whole) => whole.clone(),
                None if self.arguments.is_empty() => filled(&self.shown["arguments"])
                    .unwrap_or_default()
                    .to_owned(),
                None => self.arguments.clone(),
            },
        }
    }

    /// As it goes back. Thinking that was written into the text stays out of it.
    pub(super) fn entry(&self) -> Option<Value> {
        let mut entry = self.shown.clone();
        match self.kind() {
            "" => return None,
            "message" if self.is_tagged() || items(&entry["content"]).is_empty() => {
                let text = self.text();
                if text.is_empty() {
                    return None;
                }
                entry["content"] =
                    json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            }
            "function_call" => {
                let draft = self.draft();
                let valid = serde_json::from_str::<Value>(&draft.arguments).is_ok();
                entry["arguments"] = if valid {
                    draft.arguments.into()
                } else {
                    json!("{}")
                };
            }
            "reasoning" if !entry["summary"].is_array() => entry["summary"] = json!([]),
            _ => {}
        }
        if entry["status"] == "in_progress" {
            entry["status"] = json!("completed");
        }
        Some(entry)
    }

    fn part(&mut self, at: u64) -> Result<&mut Part, Fault> {
        if self.parts.len() >= PARTS {
            return Err(Fault::bad("the answer has too many parts"));
        }
        Ok(self.parts.entry(at).or_default())
    }
}

fn think(
    texts: &mut BTreeMap<u64, Text>,
    at: u64,
    piece: &str,
    out: &mut Vec<ModelEvent>,
) -> Result<(), Fault> {
    if texts.len() >= PARTS {
        return Err(Fault::bad("the answer has too many parts"));
    }
    let follows = texts.range(..at).any(|(_, text)| !text.0.is_empty());
    let text = texts.entry(at).or_default();
    if follows && text.0.is_empty() && !piece.is_empty() {
        text.think(BREAK, out)?;
    }
    text.think(piece, out)
}
