//! What the server says it has stored, merged with what is shown.

use serde_json::Value;

use super::{
    core::Core,
    shown::{Job, Message, Status, Unsaved},
    turn::form_of,
};

impl Core {
    /// Takes over a session view.
    pub(super) fn apply_view(&mut self, view: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let session = &view["session"];
        self.apply_session(session);
        self.apply_messages(view);
        self.shown.dimensions.extend(members(&view["dimensions"]));
        if let Some(receipts) = view["dimensionSettlements"].as_array() {
            for receipt in receipts {
                self.settlement(receipt);
            }
        }
        for character in view["characters"].as_array().into_iter().flatten() {
            if let Some(id) = character["id"].as_str() {
                self.shown
                    .characters
                    .insert(id.to_owned(), character.clone());
            }
        }
        if view["characterSchema"].is_object() {
            self.shown.character_schema = Some(view["characterSchema"].clone());
        }
        if let Some(plugins) = view["plugins"].as_array() {
            let paused = plugins.iter().filter_map(|plugin| {
                Some((text(&plugin["id"])?, text(&plugin["paused"]["reason"])?))
            });
            self.shown.paused_plugins = paused.collect();
        }
        self.dimension_recovery = (
            text(&view["dimensionProviderPluginId"]),
            view["dimensionRecovery"].clone(),
        );
        self.apply_steps(view);
        self.messages_cursor = text(&view["messagesCursor"]);
        self.world_id = text(&session["worldId"]).or(self.world_id.take());
        self.show_world();
        self.shown.retry_offered |= view["execution"]["retry"].is_object() && self.action.is_none();
    }

    /// Takes over a session record. Counts only rise: an older answer does not take a turn back.
    pub(super) fn apply_session(&mut self, session: &Value) {
        if let Some(phase) = session["phase"].as_str() {
            self.shown.phase = Some(phase.to_owned());
        }
        if let Some(count) = session["completedPlayerTurns"].as_u64() {
            self.shown.completed_player_turns = self.shown.completed_player_turns.max(count);
        }
    }

    /// The stored messages, in their order; what is not stored yet stays behind them.
    fn apply_messages(&mut self, view: &Value) {
        let Some(rows) = view["messages"].as_array() else {
            return;
        };
        let mut stored: Vec<Message> = rows.iter().map(message_of).collect();
        for message in &mut stored {
            let turn = message.turn_id.as_deref();
            if let Some(form) = &mut message.form {
                let known = self
                    .shown
                    .messages
                    .iter()
                    .filter_map(|message| message.form.as_ref());
                if let Some(known) = known
                    .into_iter()
                    .find(|known| known.block_id == form.block_id)
                {
                    form.clone_from(known);
                }
                submitted(form, turn, view);
            }
        }
        let is_stored = |shown: &Message| {
            stored.iter().any(|row| {
                let same_id = row.id.is_some() && row.id == shown.id;
                let same_form = row
                    .form
                    .as_ref()
                    .zip(shown.form.as_ref())
                    .is_some_and(|(a, b)| a.block_id == b.block_id);
                let same_echo = shown.role == "player"
                    && shown.id.is_none()
                    && row.role == "player"
                    && row.text == shown.text
                    && (row.turn_id == shown.turn_id || shown.turn_id.is_none());
                same_id || same_form || same_echo
            })
        };
        let first = stored.first().and_then(|row| row.id.clone());
        let place = first.and_then(|id| {
            self.shown
                .messages
                .iter()
                .position(|shown| shown.id.as_deref() == Some(&id))
        });
        // What was read before the window of this view stays in front of it.
        let older: Vec<_> = self.shown.messages.drain(..place.unwrap_or(0)).collect();
        let rest: Vec<_> = self
            .shown
            .messages
            .drain(..)
            .filter(|shown| !is_stored(shown) && is_unstored(shown))
            .collect();
        self.shown.messages = older;
        self.shown.messages.append(&mut stored);
        self.shown.messages.extend(rest);
        for message in &mut self.shown.messages {
            let turn = message.turn_id.clone();
            if let Some(form) = &mut message.form {
                submitted(form, turn.as_deref(), view);
            }
        }
    }

    /// Puts a page of older messages in front.
    pub(super) fn put_before(&mut self, page: &Value) {
        let rows = page["items"].as_array().into_iter().flatten();
        let known = |message: &Message| {
            self.shown
                .messages
                .iter()
                .any(|shown| shown.id.is_some() && shown.id == message.id)
        };
        let older: Vec<_> = rows
            .map(message_of)
            .filter(|message| !known(message))
            .collect();
        self.shown.messages.splice(0..0, older);
    }

    /// After a lost stream: the texts of these turns that the server has stored take the place of what had been
    /// shown; of a turn that failed, what is left of the text goes to one side. COV-LIM-056 to 076.
    pub(super) fn settle_lost(&mut self, turns: &[String], ended: bool, failed: bool) {
        let saved: Vec<_> = self
            .shown
            .messages
            .iter()
            .filter(|message| message.status == Status::Completed && message.role != "player")
            .map(|message| (message.turn_id.clone(), message.runtime_id.clone()))
            .collect();
        let is_open = |message: &Message| {
            matches!(message.status, Status::Streaming | Status::Provisional)
                && message
                    .turn_id
                    .as_ref()
                    .is_some_and(|turn| turns.contains(turn))
        };
        self.shown.messages.retain(|message| {
            !is_open(message)
                || !saved.contains(&(message.turn_id.clone(), message.runtime_id.clone()))
        });
        if !(ended && failed) {
            return;
        }
        let has_story = |message: &Message| saved.iter().any(|(turn, _)| *turn == message.turn_id);
        let (lost, kept): (Vec<_>, Vec<_>) = self.shown.messages.drain(..).partition(is_open);
        self.shown.messages = kept;
        for message in lost
            .into_iter()
            .filter(|message| !has_story(message) && !message.text.is_empty())
        {
            let turn_id = message.turn_id.unwrap_or_default();
            self.shown.unsaved.push(Unsaved {
                turn_id,
                text: message.text,
            });
        }
    }

    /// Takes over the list of jobs. An event that came after the question wins, and so does an end.
    pub(super) fn apply_jobs(&mut self, items: &Value) {
        for row in items["items"].as_array().into_iter().flatten() {
            let Some(id) = row["jobId"].as_str() else {
                continue;
            };
            let state = public_state(row["status"].as_str().unwrap_or_default());
            self.worker_known(row);
            let known = self.shown.jobs.get(id).cloned().unwrap_or_default();
            let rank = |state: &str| match state {
                "" => 0,
                "queued" => 1,
                "running" => 2,
                "progress" | "waiting-input" => 3,
                _ => 4,
            };
            if rank(state) <= rank(&known.state) {
                continue;
            }
            let words = row["error"]
                .as_str()
                .or(row["reason"].as_str().map(|_| "the task failed"));
            let turn = row["origin"]["sourceTurnId"].as_str().map(str::to_owned);
            let job = Job {
                state: state.to_owned(),
                message: words.map(str::to_owned).or(known.message),
                turn_id: turn.or(known.turn_id),
                ..known
            };
            let turn = job.turn_id.clone();
            self.shown.jobs.insert(id.to_owned(), job);
            if let (Some(turn), Some(runtime)) = (turn, row["runtimeId"].as_str()) {
                // COV-JOB-086: how a task stands is told by its job.
                let step = self.step(&turn, runtime);
                step.job_id = Some(id.to_owned());
                super::turn::step_status(state).clone_into(&mut step.status);
            }
        }
    }

    /// Takes over the slots, but not those that have changed since they were asked for. COV-SLOT-021.
    pub(super) fn apply_slots(&mut self, items: &Value) {
        for row in items["items"].as_array().into_iter().flatten() {
            let name = super::background::slot_name(row);
            if !self.changed_slots.contains(&name) {
                self.committed_slots.insert(name, row["value"].clone());
            }
        }
        self.show_slots();
    }

    /// Takes over the open suspensions.
    pub(super) fn apply_suspensions(&mut self, items: &Value) {
        let rows = items["items"].as_array().into_iter().flatten();
        let open = rows.filter_map(|row| {
            let text = |key: &str| row[key].as_str().map(str::to_owned);
            Some(super::shown::Suspension {
                id: text("id")?,
                runtime_id: text("runtimeId")?,
            })
        });
        self.shown.suspensions = open.collect();
    }
}

fn is_unstored(message: &Message) -> bool {
    message.status != Status::Completed || (message.role == "player" && message.id.is_none())
}

fn message_of(row: &Value) -> Message {
    let text = |key: &str| row[key].as_str().map(str::to_owned);
    let role = match row["role"].as_str() {
        Some("user") => "player",
        other => other.unwrap_or("assistant"),
    };
    let segments = row["segments"].as_array().into_iter().flatten();
    Message {
        id: text("id"),
        role: role.to_owned(),
        text: text("content").unwrap_or_default(),
        status: Status::Completed,
        turn_id: text("turnId"),
        runtime_id: text("runtimeId"),
        kind: text("kind"),
        speakers: segments
            .map(|segment| segment["speaker"].as_str().map(str::to_owned))
            .collect(),
        form: row["block"].is_object().then(|| form_of(&row["block"])),
        request: None,
    }
}

/// Marks a form that the view says was answered, with the stored values.
fn submitted(form: &mut super::shown::Form, turn: Option<&str>, view: &Value) {
    let answers = view["submittedInteractions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut own = answers.filter(|answer| {
        let same_turn = turn.is_none() || answer["turnId"].as_str() == turn;
        same_turn && answer["interactionId"].as_str() == Some(&form.block_id)
    });
    if let Some(answer) = own.next() {
        form.submitted = true;
        form.values = Some(answer["values"].clone());
        form.issues.clear();
    }
}

/// The public state of a job, by its durable status.
fn public_state(status: &str) -> &'static str {
    match status {
        "queued" => "queued",
        "claimed" | "running" => "running",
        "committing" => "progress",
        "succeeded" => "succeeded",
        "cancelled" => "cancelled",
        _ => "failed",
    }
}

fn members(value: &Value) -> impl Iterator<Item = (String, Value)> + use<> {
    value.as_object().cloned().into_iter().flatten()
}
