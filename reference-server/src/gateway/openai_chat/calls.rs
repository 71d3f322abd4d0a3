//! Puts the pieces of tool calls together.
//!
//! The wire tells calls apart by `index`. Services leave it out, always say 0, or begin at 1; some have no
//! ids either, and some repeat id and name in every piece. So a piece belongs, in this order: to the call
//! of its index, unless it has another id; to the call of its id; with a new id, to a new call; without
//! both, to the last call, unless that is whole and the piece opens another. Of one index and id, a whole
//! call and a piece that names another tool are two calls.

use serde_json::{Value, json};

use crate::gateway::draft::{CallDraft, TOOL_CALLS, opening_of};
use crate::gateway::json::{filled, index};
use crate::gateway::refusal::Fault;
use crate::gateway::reply::ModelEvent;

/// The tool calls of one answer while they come in.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    index: Option<i64>,
    draft: CallDraft,
    /// Members of the service's own, such as a signature.
    extra: Value,
}

impl Calls {
    /// Takes a `tool_calls` entry, of a delta or of a whole message.
    pub(super) fn take(&mut self, piece: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let custom = &piece["custom"];
        let function = if custom.is_object() {
            custom
        } else {
            &piece["function"]
        };
        let arguments = [&function["arguments"], &custom["input"]]
            .into_iter()
            .find(|value| !value.is_null());
        let name = filled(&function["name"]);
        let at = self.place(piece, name, arguments)?;
        let call = &mut self.0[at];
        let id = filled(&piece["id"]).filter(|_| call.draft.id.is_none());
        if let Some(id) = id {
            call.draft.id = Some(id.to_owned());
        }
        if !piece["extra_content"].is_null() {
            call.extra = piece["extra_content"].clone();
        }
        let name = name.filter(|name| call.wants(name));
        call.draft.name.push_str(name.unwrap_or_default());
        if id.is_some() || name.is_some() {
            out.push(opening_of(at, id, name));
        }
        match arguments {
            None => Ok(()),
            Some(Value::String(text)) => call.draft.write(at, text, out),
            Some(whole) => {
                call.draft.arguments.clear();
                call.draft.write(at, &whole.to_string(), out)
            }
        }
    }

    /// A signature that came without a call belongs to the first one that has none.
    pub(super) fn sign(&mut self, extra: &Value) -> bool {
        match self.0.iter_mut().find(|call| call.extra.is_null()) {
            Some(call) => {
                call.extra = extra.clone();
                true
            }
            None => false,
        }
    }

    /// The calls in the order of their indexes; of one index in the order in which they came. With each
    /// the service's own members.
    pub(super) fn finish(mut self) -> Vec<(CallDraft, Value)> {
        self.0.sort_by_key(|call| call.index);
        self.0
            .into_iter()
            .map(|call| (call.draft, call.extra))
            .collect()
    }

    fn place(
        &mut self,
        piece: &Value,
        name: Option<&str>,
        arguments: Option<&Value>,
    ) -> Result<usize, Fault> {
        let (index, id) = (index(&piece["index"]), filled(&piece["id"]));
        let writes = arguments.is_some_and(|arguments| arguments.as_str() != Some(""));
        let opens_another = |call: &Call| match id {
            Some(id) if call.draft.id.as_deref() == Some(id) => {
                name.is_some_and(|name| name != call.draft.name) && writes && call.is_whole()
            }
            Some(_) => call.draft.id.is_some(),
            None => name.is_some() && writes && call.is_whole(),
        };
        let known = match (index, id) {
            (Some(index), _) => self.0.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => {
                let is_same = |call: &Call| call.draft.id.as_deref() == Some(id);
                return match self.0.iter().rposition(is_same) {
                    Some(at) => Ok(at),
                    None => self.open(None),
                };
            }
            (None, None) => self.0.len().checked_sub(1),
        };
        match known {
            Some(at) if !opens_another(&self.0[at]) => Ok(at),
            _ => self.open(index),
        }
    }

    fn open(&mut self, index: Option<i64>) -> Result<usize, Fault> {
        if self.0.len() >= TOOL_CALLS {
            return Err(Fault::bad("the answer has too many tool calls"));
        }
        self.0.push(Call {
            index,
            ..Call::default()
        });
        Ok(self.0.len() - 1)
    }
}

impl Call {
    /// Whether a name adds to what is there: services repeat it, and services cut it in two.
    fn wants(&self, name: &str) -> bool {
        self.draft.arguments.is_empty() && self.draft.name != name
    }

    fn is_whole(&self) -> bool {
        let parsed = serde_json::from_str::<Value>(&self.draft.arguments);
        parsed.is_ok_and(|arguments| arguments.is_object())
    }
}

/// The service's own members of a call, to send them back with it.
pub(super) fn entry(id: &str, extra: &Value) -> Option<Value> {
    (!extra.is_null()).then(|| json!({ "id": id, "extra_content": extra }))
}
