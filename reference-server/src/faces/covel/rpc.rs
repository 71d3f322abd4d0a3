//! Calls to plugins: `plugin-rpc` in its three kinds, and the approvals that calls may need.
//!
//! The plugins of this server are built in and trusted, so no call waits for an approval; they
//! register actions, manual runtimes and commands, and no events.
//!
//! Source: seed 000, lines 970-1066; covel.md of the fact collection, section 2.6.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use http::StatusCode;
use serde_json::{Value, json};
use turnwire_spec::covel::commands::plugins::{ApprovalDecision, PluginRpc};
use turnwire_spec::covel::limits::{COMMAND_CHARS, RUNTIME_ID_CHARS};
use turnwire_spec::covel::queries::Items;
use turnwire_spec::covel::queries::plugins::{ApprovalPending, RpcDone, RpcStatus};

use super::Covel;
use super::auth::Owned;
use super::errors::ApiError;
use super::request;
use crate::engine::Given;
use crate::engine::ids::{PluginId, RuntimeId};

/// The code of a call that makes no sense.
const INVALID: &str = "invalid_plugin_rpc";
/// Characters of a plugin, action, command or event id, at least 1.
const ID: (usize, usize) = (1, 200);

/// `POST /api/sessions/:id/plugin-rpc`.
pub(super) async fn call(
    State(face): State<Arc<Covel>>,
    owned: Owned,
    body: Body,
) -> Result<Json<RpcDone>, ApiError> {
    let call: PluginRpc = request::read(body, INVALID).await?;
    check(&call)?;
    let (engine, session) = (&face.engine, &owned.session.id);
    let result = match call {
        PluginRpc::Action {
            plugin_id,
            action,
            payload,
        } => {
            let plugin = PluginId::from(plugin_id);
            let payload = payload.unwrap_or_default();
            engine
                .plugin_action(session, &plugin, &action, payload)
                .await?
        }
        PluginRpc::Runtime {
            plugin_id,
            runtime_id,
            ..
        } => {
            let (plugin, runtime) = (PluginId::from(plugin_id), RuntimeId::from(runtime_id));
            engine.call_runtime(session, &plugin, &runtime).await?
        }
        PluginRpc::Command {
            command_id,
            input,
            args,
        } => {
            let given = input.map_or_else(|| Given::Args(args.unwrap_or_default()), Given::Line);
            engine.plugin_command(session, &command_id, given).await?
        }
        PluginRpc::Event { topic, .. } => return Err(not_here(&topic)),
    };
    Ok(Json(RpcDone {
        status: Some(RpcStatus::Ok),
        result: Some(result),
        environment: None,
    }))
}

/// Checks what the shape of a call does not tell.
fn check(call: &PluginRpc) -> Result<(), ApiError> {
    let id = |name, text: &str| request::within(name, text, ID, INVALID);
    match call {
        PluginRpc::Action {
            plugin_id, action, ..
        } => {
            id("pluginId", plugin_id)?;
            id("action", action)
        }
        PluginRpc::Runtime {
            plugin_id,
            runtime_id,
            ..
        } => {
            id("pluginId", plugin_id)?;
            request::within("runtimeId", runtime_id, (1, RUNTIME_ID_CHARS), INVALID)
        }
        PluginRpc::Event {
            plugin_id, topic, ..
        } => {
            id("pluginId", plugin_id)?;
            id("topic", topic)
        }
        PluginRpc::Command {
            command_id,
            input,
            args,
        } => {
            id("commandId", command_id)?;
            match (input, args) {
                (Some(input), None) => request::within("input", input, (1, COMMAND_CHARS), INVALID),
                (None, Some(args)) => request::within(
                    "args",
                    &json!(args).to_string(),
                    (0, COMMAND_CHARS),
                    INVALID,
                ),
                _ => Err(ApiError::bad(INVALID, "a command has either input or args")),
            }
        }
    }
}

/// The answer to an event that no plugin of this server declares.
fn not_here(topic: &str) -> ApiError {
    let error = format!("no active plugin declares an event {topic:?}");
    ApiError::new(StatusCode::NOT_FOUND, "event_not_declared", error)
}

/// `GET /api/sessions/:id/approvals`.
pub(super) async fn approvals(_: Owned) -> Json<Items<ApprovalPending>> {
    Json(Items { items: Vec::new() })
}

/// `DELETE /api/sessions/:id/approvals`.
pub(super) async fn clear_approvals(_: Owned) -> Json<Value> {
    Json(json!({ "ok": true, "cleared": 0 }))
}

/// `POST /api/approvals/:approvalId/decision`. Nothing is ever pending here.
pub(super) async fn decide(Path(id): Path<String>, body: Body) -> ApiError {
    match request::read::<ApprovalDecision>(body, "invalid_decision").await {
        Err(error) => error,
        Ok(_) => {
            let error = format!("no pending approval {id:?}");
            ApiError::new(StatusCode::NOT_FOUND, "approval_not_found", error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_json(call: Value) -> Result<(), ApiError> {
        let call = serde_json::from_value(call)
            .map_err(|error| ApiError::bad(INVALID, error.to_string()))?;
        check(&call)
    }

    #[test]
    fn a_kind_takes_its_own_members_only() {
        for bad in [
            json!({}),
            json!({ "kind": "sing", "pluginId": "p" }),
            json!({ "kind": "action", "pluginId": "p" }),
            json!({ "kind": "action", "pluginId": "p", "action": "" }),
            json!({ "kind": "action", "pluginId": "p", "action": "a", "runtimeId": "r" }),
            json!({ "kind": "runtime", "pluginId": "p", "runtimeId": "r", "action": "a" }),
            json!({ "kind": "command", "commandId": "c" }),
            json!({ "kind": "command", "commandId": "c", "input": "/c", "args": {} }),
            json!({ "kind": "command", "commandId": "c", "input": "/c", "pluginId": "p" }),
        ] {
            assert!(check_json(bad.clone()).is_err(), "{bad}");
        }
        for good in [
            json!({ "kind": "action", "pluginId": "p", "action": "a", "payload": [1] }),
            json!({ "kind": "command", "commandId": "c", "args": {} }),
            json!({ "kind": "runtime", "pluginId": "p", "runtimeId": "r" }),
        ] {
            assert_eq!(check_json(good), Ok(()));
        }
    }
}
