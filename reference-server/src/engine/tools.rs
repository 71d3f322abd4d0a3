//! The tools that a model may call within an agent runtime.
//!
//! A tool gives an output, which the model reads, and proposals, which are written when the turn
//! commits; the kernel takes the two apart (COV-HOST-098, COV-HOST-099). Two tools are built in:
//! [`EmitEvent`] and [`PluginDataSet`].
//!
//! Source: seed 000, lines 92-94, 149-157 and 871.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use turnwire_spec::covel::limits::PLUGIN_DATA_VALUE_BYTES;
use turnwire_spec::covel::vocabulary::ToolErrorCode;

use super::ids::{PluginId, RuntimeId};
use super::jobs::NewJob;
use super::model::{Job, Object, Session};
use super::proposals::Proposal;

/// A tool.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The name that the model calls it by.
    fn name(&self) -> &str;

    /// What the model is told about it.
    fn description(&self) -> &str;

    /// The JSON Schema of its arguments.
    fn schema(&self) -> Value;

    /// Runs it.
    ///
    /// # Errors
    ///
    /// [`ToolError`]: the model reads it as the result of the call, and the loop goes on.
    async fn call(&self, call: ToolCall<'_>) -> Result<ToolOutput, ToolError>;
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct ToolCall<'a> {
    /// The session as of the start of the turn.
    pub session: &'a Session,
    /// The plugin of the runtime that calls.
    pub plugin_id: &'a PluginId,
    /// The runtime that calls.
    pub runtime_id: &'a RuntimeId,
    /// The arguments; always an object.
    pub arguments: &'a Object,
    /// What it can ask for while it works.
    pub host: &'a dyn ToolHost,
}

/// What a tool can ask for while it works.
#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Tells those who listen how far it is. Nothing of it is stored.
    fn progress(&self, payload: Object);

    /// Queues a background job, which outlives the call and its turn. The turn becomes its source.
    ///
    /// # Errors
    ///
    /// [`ToolErrorCode::Refused`] when the engine takes no job.
    async fn queue_job(&self, new: NewJob) -> Result<Job, ToolError>;
}

/// What a tool gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub output: Value,
    /// What is to be written when the turn commits.
    pub proposals: Vec<Proposal>,
}

/// Why a tool gave nothing.
///
/// Source: seed 000, line 1225: the codes are a closed set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// Its kind.
    pub code: ToolErrorCode,
    /// The complete message.
    pub message: String,
    /// How to correct the call, when there is advice.
    pub hint: Option<String>,
}

impl ToolError {
    /// An error without advice.
    #[must_use]
    pub fn new(code: ToolErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// The arguments do not fit.
    #[must_use]
    pub fn invalid(message: impl Into<String>, hint: &str) -> Self {
        let hint = Some(hint.to_owned());
        Self {
            code: ToolErrorCode::InvalidInput,
            message: message.into(),
            hint,
        }
    }
}

/// The built-in tools, in the order in which models see them.
#[must_use]
pub fn built_in() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(EmitEvent), Arc::new(PluginDataSet)]
}

/// `emit-event {topic, data}`: proposes a business event of the game.
#[derive(Clone, Copy, Debug)]
pub struct EmitEvent;

#[async_trait]
impl Tool for EmitEvent {
    fn name(&self) -> &'static str {
        "emit-event"
    }

    fn description(&self) -> &'static str {
        "Emit a business event of the game. It takes effect when the turn is saved."
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "topic": { "type": "string", "minLength": 1 },
                "data": { "type": "object" },
            },
            "required": ["topic"],
            "additionalProperties": false,
        })
    }

    async fn call(&self, call: ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        only_members(call.arguments, &["topic", "data"])?;
        let topic = text_member(call.arguments, "topic")?;
        let data = match call.arguments.get("data") {
            None => Object::new(),
            Some(Value::Object(data)) => data.clone(),
            Some(_) => {
                return Err(ToolError::invalid(
                    "data is no object",
                    "give data as an object",
                ));
            }
        };
        let proposal = Proposal::Event {
            plugin_id: call.plugin_id.clone(),
            topic: topic.to_owned(),
            data,
        };
        Ok(ToolOutput {
            output: json!({ "ok": true, "topic": topic }),
            proposals: vec![proposal],
        })
    }
}

/// `plugin_data_set {namespace, key, value}`: proposes one row of the calling plugin's data.
#[derive(Clone, Copy, Debug)]
pub struct PluginDataSet;

#[async_trait]
impl Tool for PluginDataSet {
    fn name(&self) -> &'static str {
        "plugin_data_set"
    }

    fn description(&self) -> &'static str {
        "Set one value of the plugin's data. It is saved with the turn."
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "namespace": { "type": "string", "minLength": 1 },
                "key": { "type": "string", "minLength": 1 },
                "value": {},
            },
            "required": ["namespace", "key", "value"],
            "additionalProperties": false,
        })
    }

    async fn call(&self, call: ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        only_members(call.arguments, &["namespace", "key", "value"])?;
        let namespace = text_member(call.arguments, "namespace")?;
        let key = text_member(call.arguments, "key")?;
        let value = call.arguments.get("value").cloned().unwrap_or_default();
        check_datum(namespace, &value)
            .map_err(|message| ToolError::new(ToolErrorCode::Refused, message))?;
        let proposal = Proposal::Datum {
            plugin_id: call.plugin_id.clone(),
            namespace: namespace.to_owned(),
            key: key.to_owned(),
            value,
        };
        let output = json!({ "ok": true, "namespace": namespace, "key": key });
        Ok(ToolOutput {
            output,
            proposals: vec![proposal],
        })
    }
}

/// Whether a plugin may set this value in this namespace.
///
/// # Errors
///
/// The reason why not: the namespace is the host's own, or the value is larger than
/// [`PLUGIN_DATA_VALUE_BYTES`].
pub fn check_datum(namespace: &str, value: &Value) -> Result<(), String> {
    if namespace.starts_with('_') {
        return Err(format!("namespace {namespace:?} is reserved"));
    }
    let size = value.to_string().len();
    if size > PLUGIN_DATA_VALUE_BYTES {
        return Err(format!(
            "value has {size} bytes, the limit is {PLUGIN_DATA_VALUE_BYTES}"
        ));
    }
    Ok(())
}

fn text_member<'a>(arguments: &'a Object, name: &str) -> Result<&'a str, ToolError> {
    match arguments.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(ToolError::invalid(
            format!("{name} is missing or no text"),
            "see the parameters of the tool",
        )),
    }
}

fn only_members(arguments: &Object, known: &[&str]) -> Result<(), ToolError> {
    match arguments
        .keys()
        .find(|name| !known.contains(&name.as_str()))
    {
        None => Ok(()),
        Some(name) => Err(ToolError::invalid(
            format!("unknown member {name:?}"),
            "leave out members that the tool does not name",
        )),
    }
}
