//! Commands and controls of plugins, interjections, and what a client keeps in a store of its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    core::{Core, encoded},
    inputs::{Ask, Command},
    shown::{Message, Status},
};

/// A call whose answer is still to come.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// An interjection.
    Steer(String),
    /// A command from the input box.
    Command(String),
    /// Something else that a plugin does.
    Plugin,
}

/// What the client's own store is taking.
#[derive(Clone, Debug)]
pub(super) enum Keeping {
    /// What the person said, and the id under which it is kept.
    Input(String, String),
    /// The session as it stands after an action.
    Checkpoint,
}

impl Core {
    fn post_call(&mut self, rest: &str, body: Value, call: Call) {
        let number = self.next_number();
        self.calls.insert(number, call);
        self.commands
            .push(Command::Call(number, self.path(rest), body));
    }

    /// A call was answered.
    pub(super) fn called(&mut self, number: u64, answer: Option<(u16, Value)>) {
        let Some(call) = self.calls.remove(&number) else {
            return self.plugin_answered(number, answer);
        };
        let taken = answer.is_some_and(|(status, _)| (200..300).contains(&status));
        match call {
            // COV-CTL-018: no event tells of an interjection.
            Call::Steer(text) if taken => {
                let turns = self.action.as_ref().and_then(|action| action.turns.last());
                self.shown.messages.push(Message {
                    role: "player".to_owned(),
                    text,
                    status: Status::Sending,
                    turn_id: turns.cloned(),
                    ..Message::default()
                });
            }
            Call::Steer(text) => {
                self.shown.notice = Some("not-steered".to_owned());
                if self.shown.input.is_empty() {
                    self.shown.input = text;
                }
            }
            Call::Command(text) if taken && self.shown.input == text => self.shown.input.clear(),
            Call::Command(_) | Call::Plugin => {}
        }
    }

    // ---- interjections ----

    pub(super) fn steer(&mut self, text: String) {
        if self.action.is_some() {
            self.post_call("/steer", json!({ "message": text }), Call::Steer(text));
        }
    }

    // ---- commands ----

    /// COV-CMD-132 to 136: a command that the session's catalog knows goes to its plugin; whether it does, or waits
    /// for the catalog.
    pub(super) fn command(&mut self, text: &str) -> bool {
        let Some(catalog) = &self.catalog else {
            self.slash = Some(text.to_owned());
            self.ask(Ask::Plugins, "/plugins");
            return true;
        };
        let name = text.split_whitespace().next().unwrap_or_default();
        let Some(id) = catalog.get(name.trim_start_matches('/')).cloned() else {
            return false;
        };
        let body = json!({ "kind": "command", "commandId": id, "input": text });
        self.post_call("/plugin-rpc", body, Call::Command(text.to_owned()));
        true
    }

    /// The plugins were answered, or will not be.
    pub(super) fn plugins(&mut self, body: Value) {
        self.apply_plugins(&body);
        let plugins = body["active"].as_array().into_iter().flatten();
        let commands =
            plugins.flat_map(|plugin| plugin["commands"].as_array().into_iter().flatten());
        let named = commands.filter_map(|command| {
            let name = command["name"].as_str()?.trim_start_matches('/');
            Some((name.to_owned(), command["id"].as_str()?.to_owned()))
        });
        self.catalog = Some(named.collect::<BTreeMap<_, _>>());
        if let Some(text) = self.slash.take() {
            self.begin(text);
        }
    }

    // ---- controls and choices ----

    /// COV-CMD-137, 143: a control that declares a command calls it with its arguments; another one is an action of
    /// its plugin.
    pub(super) fn press(&mut self, slot: &str, control: &str) {
        let Some(shown) = self.shown.slots.get(slot) else {
            return;
        };
        let press = &shown["elements"][control]["on"]["press"];
        let params = press["params"].clone();
        let body = match press["action"].as_str() {
            Some("invokeCommand") => json!({
                "kind": "command", "commandId": params["commandId"], "args": params["args"],
            }),
            Some("invokePluginAction") => json!({
                "kind": "action", "pluginId": params["pluginId"], "action": params["action"],
                "payload": params["payload"],
            }),
            _ => return,
        };
        self.post_call("/plugin-rpc", body, Call::Plugin);
    }

    pub(super) fn select(&mut self, block: &str, values: Value) {
        let choice = json!({ "blockId": block, "values": values });
        self.shown.selections.push(choice);
    }

    /// The choices that wait, as actions.
    pub(super) fn selected(&self) -> Vec<Value> {
        let choices = self.shown.selections.iter();
        let action = |choice: &Value| {
            let submission = json!({
                "interactionId": choice["blockId"], "type": "choice", "values": choice["values"],
            });
            json!({ "type": "interaction", "submissions": [submission] })
        };
        choices.map(action).collect()
    }

    // ---- recovery ----

    pub(super) fn retry_task(&mut self, turn: &str, runtime: &str) {
        let payload = json!({ "runtimeId": runtime, "retryFromTurnId": turn });
        self.act(json!({ "type": "retry_runtime", "payload": payload }), None);
    }

    /// COV-DIM-060: a settlement is looked after by the runtime that the view names, not by an action.
    pub(super) fn recover(&mut self, result: &str) {
        let (plugin, runtimes) = &self.dimension_recovery;
        let body = json!({
            "kind": "runtime", "pluginId": plugin, "runtimeId": runtimes["trackerRuntimeId"],
            "payload": { "resultId": result },
        });
        self.post_call("/plugin-rpc", body, Call::Plugin);
    }

    // ---- media ----

    /// COV-MEDIA-029, 030: components name a medium by its reference; where it is loaded from is for the client.
    pub(super) fn load_media(&mut self) {
        let elements = self.shown.slots.values();
        let elements = elements.flat_map(|slot| slot["elements"].as_object().into_iter().flatten());
        let media = elements
            .filter(|(_, element)| matches!(element["type"].as_str(), Some("Image" | "Media")));
        let ids: Vec<_> = media
            .filter_map(|(_, element)| element["props"]["ref"]["id"].as_str().map(str::to_owned))
            .collect();
        for id in ids {
            if !self.shown.media.contains_key(&id) {
                self.shown.media.insert(id.clone(), false);
                let path = format!("/api/media/{}", encoded(&id));
                self.commands.push(Command::Load(id, path));
            }
        }
    }

    // ---- the client's own store ----

    /// Keeps something of which nobody waits to hear.
    pub(super) fn keep_aside(&mut self, path: &str, body: Value) {
        if self.local {
            let number = self.next_number();
            self.commands
                .push(Command::Keep(number, path.to_owned(), body));
        }
    }

    fn keep(&mut self, path: String, body: Value, keeping: Keeping) {
        let number = self.next_number();
        self.keeping = Some((number, keeping));
        self.commands.push(Command::Keep(number, path, body));
    }

    /// COV-CMD-114: what was said is kept first, and sent with its id afterwards.
    pub(super) fn keep_input(&mut self, text: String) {
        let number = self.next_number();
        let id = format!("input-{}-{number}", self.page);
        let body = json!({ "id": id, "sessionId": self.shown.session, "content": text });
        self.keep(format!("/inputs/{id}"), body, Keeping::Input(text, id));
    }

    /// COV-FAULT-116: why plugins are paused is no part of it.
    pub(super) fn keep_checkpoint(&mut self) {
        let stored = self.shown.messages.iter();
        let stored: Vec<_> = stored
            .filter(|message| message.status == Status::Completed)
            .collect();
        let body = json!({
            "sessionId": self.shown.session, "phase": self.shown.phase,
            "completedPlayerTurns": self.shown.completed_player_turns, "messages": stored,
            "characters": self.shown.characters, "pluginData": self.shown.plugin_data,
            "dimensions": self.shown.dimensions,
        });
        self.keep("/checkpoint".to_owned(), body, Keeping::Checkpoint);
    }

    /// The store has answered.
    pub(super) fn kept(&mut self, number: u64, kept: bool) {
        let Some((_, keeping)) = self.keeping.take_if(|(asked, _)| *asked == number) else {
            return;
        };
        match keeping {
            Keeping::Input(text, id) if kept => self.submit(text, Some(id)),
            Keeping::Checkpoint if kept => {
                if let Some(text) = self.next.take() {
                    self.begin(text);
                }
            }
            _ => {
                self.next = None;
                self.shown.notice = Some("not-kept".to_owned());
            }
        }
    }
}
