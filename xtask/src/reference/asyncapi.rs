//! AsyncAPI 3 of the streams of the three protocols, from their tables.

use serde_json::{Map, Value, json};
use turnwire_spec::{
    catalogue::messages::Sender,
    chat_ws::KINDS,
    covel::{ActionStream, EventMeta},
};

use super::components::Components;

/// The description.
pub(super) fn document(events: &[EventMeta]) -> Value {
    let mut draft = Draft::default();
    let own = |filter: &dyn Fn(&EventMeta) -> bool| -> Vec<&'static str> {
        events
            .iter()
            .filter(|row| filter(row))
            .map(|row| row.name)
            .collect()
    };
    let controls = ["system.connected", "system.heartbeat", "system.reset"];
    let subscribed = own(&EventMeta::on_subscription);
    let of_action = own(&|row| row.action_stream != ActionStream::Never);
    let all = controls.iter().copied().chain(subscribed);
    let all: Vec<_> = all.map(|name| (name.to_owned(), name.to_owned())).collect();
    draft.channel("subscription", "/api/events/stream", "send", &all);
    let action: Vec<_> = of_action
        .iter()
        .map(|name| ((*name).to_owned(), (*name).to_owned()))
        .collect();
    draft.channel("action", "/api/actions", "send", &action);
    for (name, action, sender) in [
        ("chatToServer", "receive", Sender::Client),
        ("chatToClient", "send", Sender::Server),
    ] {
        let kinds = KINDS.iter().filter(|kind| kind.from == sender);
        let kinds: Vec<_> = kinds
            .map(|kind| (kind.name.to_owned(), kind.schema_name().into_owned()))
            .collect();
        draft.channel(name, "/ws", action, &kinds);
    }
    let line = |name: &str| (name.to_owned(), format!("session-update.{name}"));
    draft.channel("lineToServer", "lines", "receive", &[line("request")]);
    draft.channel(
        "lineToClient",
        "lines",
        "send",
        &[line("response"), line("envelope")],
    );
    draft.finish()
}

#[derive(Default)]
struct Draft {
    components: Components,
    channels: Map<String, Value>,
    operations: Map<String, Value>,
    messages: Map<String, Value>,
}

impl Draft {
    /// A channel with messages: name and schema of each.
    fn channel(&mut self, name: &str, address: &str, action: &str, messages: &[(String, String)]) {
        let mut own = Map::new();
        let mut named = Vec::new();
        for (message, schema) in messages {
            let key = message.replace(
                |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.',
                "_",
            );
            let payload = self.components.schema(schema);
            let written =
                json!({ "name": message, "contentType": "application/json", "payload": payload });
            self.messages.insert(key.clone(), written);
            own.insert(
                key.clone(),
                json!({ "$ref": format!("#/components/messages/{key}") }),
            );
            named.push(json!({ "$ref": format!("#/channels/{name}/messages/{key}") }));
        }
        self.channels.insert(
            name.to_owned(),
            json!({ "address": address, "messages": own }),
        );
        self.operations.insert(
            format!("{action}.{name}"),
            json!({
                "action": action,
                "channel": { "$ref": format!("#/channels/{name}") },
                "messages": named,
            }),
        );
    }

    fn finish(self) -> Value {
        json!({
            "asyncapi": "3.0.0",
            "info": {
                "title": "Streams of covel-sse, session-update and chat-ws",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "As a server sends (send) and receives (receive) them.",
            },
            "defaultContentType": "application/json",
            "channels": self.channels,
            "operations": self.operations,
            "components": { "messages": self.messages, "schemas": self.components.into_value() },
        })
    }
}
