//! What the readers of all wires put together in the same way.

use std::collections::BTreeSet;

use super::message::ToolRequest;
use super::read::ANSWER_BYTES;
use super::refusal::Fault;
use super::reply::{FinishReason, ModelEvent, ToolPiece};

/// Tool calls of one answer.
pub(super) const TOOL_CALLS: usize = 128;

/// Text or thinking that is handed on as it comes.
#[derive(Debug, Default)]
pub(super) struct Text(pub(super) String);

impl Text {
    /// Adds text for the reader.
    pub(super) fn say(&mut self, piece: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.add(piece, out, ModelEvent::Text)
    }

    /// Adds thinking.
    pub(super) fn think(&mut self, piece: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.add(piece, out, ModelEvent::Reasoning)
    }

    fn add(
        &mut self,
        piece: &str,
        out: &mut Vec<ModelEvent>,
        event: fn(String) -> ModelEvent,
    ) -> Result<(), Fault> {
        if piece.is_empty() {
            return Ok(());
        }
        bounded(self.0.len() + piece.len())?;
        self.0.push_str(piece);
        out.push(event(piece.to_owned()));
        Ok(())
    }
}

/// Refuses what grows without end.
pub(super) fn bounded(len: usize) -> Result<(), Fault> {
    if len > ANSWER_BYTES {
        return Err(Fault::bad("the provider's answer is too long"));
    }
    Ok(())
}

/// A tool call while it comes in.
#[derive(Clone, Debug, Default)]
pub(super) struct CallDraft {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl CallDraft {
    /// Adds to the arguments.
    pub(super) fn write(
        &mut self,
        index: usize,
        piece: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        bounded(self.arguments.len() + piece.len())?;
        self.arguments.push_str(piece);
        out.push(piece_of(index, piece));
        Ok(())
    }
}

/// A piece of a call's arguments.
pub(super) fn piece_of(index: usize, arguments: &str) -> ModelEvent {
    ModelEvent::ToolCall(ToolPiece {
        index,
        arguments: arguments.to_owned(),
        ..ToolPiece::default()
    })
}

/// A call begins, or more is known of it.
pub(super) fn opening_of(index: usize, id: Option<&str>, name: Option<&str>) -> ModelEvent {
    ModelEvent::ToolCall(ToolPiece {
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: String::new(),
    })
}

/// Makes the calls of an answer ready: nothing written means `{}`, and each has an id of its own, that
/// no call of the conversation has when it had to be made.
///
/// Of an answer that was cut by its length only the calls with whole arguments are left.
pub(super) fn ready(
    drafts: impl IntoIterator<Item = CallDraft>,
    finish: &FinishReason,
    taken: &BTreeSet<String>,
) -> Vec<ToolRequest> {
    let whole = |draft: &CallDraft| {
        *finish != FinishReason::Length
            || serde_json::from_str::<serde_json::Value>(&draft.arguments).is_ok()
    };
    let drafts: Vec<CallDraft> = drafts.into_iter().filter(whole).collect();
    let given: Vec<&str> = drafts
        .iter()
        .filter_map(|draft| draft.id.as_deref())
        .collect();
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut ids = Vec::new();
    for draft in &drafts {
        let own = draft.id.clone().filter(|id| !used.contains(id));
        let id = own.unwrap_or_else(|| {
            let free = |id: &String| {
                !taken.contains(id) && !used.contains(id) && !given.contains(&id.as_str())
            };
            (taken.len()..)
                .map(|number| format!("call_{number}"))
                .find(free)
                .unwrap_or_default()
        });
        used.insert(id.clone());
        ids.push(id);
    }
    drafts
        .into_iter()
        .zip(ids)
        .map(|(draft, id)| ToolRequest {
            id,
            name: draft.name,
            arguments: if draft.arguments.trim().is_empty() {
                "{}".to_owned()
            } else {
                draft.arguments
            },
        })
        .collect()
}

/// The finish of an answer with or without calls: some services end calls as `stop`, some say calls and
/// have none.
pub(super) fn settled(finish: FinishReason, calls: &[ToolRequest]) -> FinishReason {
    match finish {
        FinishReason::Stop if !calls.is_empty() => FinishReason::ToolCalls,
        FinishReason::ToolCalls if calls.is_empty() => FinishReason::Stop,
        finish => finish,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(id: Option<&str>, arguments: &str) -> CallDraft {
        CallDraft {
            id: id.map(str::to_owned),
            name: "f".to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    fn ids(drafts: &[CallDraft], taken: &[&str]) -> Vec<String> {
        let taken = taken.iter().map(|id| (*id).to_owned()).collect();
        let calls = ready(drafts.to_vec(), &FinishReason::ToolCalls, &taken);
        calls.into_iter().map(|call| call.id).collect()
    }

    #[test]
    fn calls_without_an_id_get_one_that_nobody_has() {
        let drafts = [draft(None, ""), draft(Some("call_1"), ""), draft(None, "")];
        assert_eq!(ids(&drafts, &["call_0"]), ["call_2", "call_1", "call_3"]);
    }

    #[test]
    fn the_second_call_with_an_id_gets_another() {
        let drafts = [draft(Some("a"), ""), draft(Some("a"), "")];
        assert_eq!(ids(&drafts, &[]), ["a", "call_0"]);
    }

    #[test]
    fn what_the_length_cut_is_not_run() {
        let drafts = [
            draft(Some("a"), "{}"),
            draft(Some("b"), "{\"x\":"),
            draft(Some("c"), ""),
        ];
        let calls = ready(drafts.to_vec(), &FinishReason::Length, &BTreeSet::new());
        assert_eq!(calls.len(), 1);
        let calls = ready(drafts, &FinishReason::ToolCalls, &BTreeSet::new());
        let texts: Vec<_> = calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(texts, ["{}", "{\"x\":", "{}"]);
    }
}
