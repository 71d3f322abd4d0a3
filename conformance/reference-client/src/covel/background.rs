//! Events that need no turn: jobs, suspensions, data, slots, characters, dimensions, plugins, media, thinking.

use serde_json::{Value, json};

use super::{
    core::Core,
    shown::{Job, Suspension, Thought},
    turn::{Event, step_status},
};

impl Core {
    /// Applies an event that is not about narrative or steps. An event without meaning here changes nothing.
    pub(super) fn background_event(&mut self, event: &Event) {
        match event.kind.as_str() {
            "plugin-data.changed" => self.data_changed(event),
            "job-status.updated" => self.job_updated(event),
            "turn.suspended" => self.suspended(event),
            "turn.resumed" => self.resumed(event),
            "ui.slot.changed" => self.slot_changed(event),
            "ui.slot.preview" => self.slot_preview(event),
            "ui.slot.cleared" => self.drop_previews(event.text("turnId")),
            "character.upserted" => {
                let character = &event.payload["character"];
                if let Some(id) = character["id"].as_str() {
                    self.shown
                        .characters
                        .insert(id.to_owned(), character.clone());
                }
            }
            "character-schema.changed" => {
                self.shown.character_schema = Some(event.payload["schema"].clone());
            }
            "dimensions.changed" => self.dimensions_changed(event),
            "dimensions.settlement.changed" => self.settlement(&event.payload),
            "plugin.fault.latched" => {
                let (plugin, reason) = (event.text("pluginId"), event.text("reason"));
                self.shown
                    .paused_plugins
                    .insert(plugin.to_owned(), reason.to_owned());
                self.shown.notice = Some("plugin-paused".to_owned());
            }
            "plugin.fault.cleared" => {
                self.shown.paused_plugins.remove(event.text("pluginId"));
            }
            "state.snapshot.created" => {
                self.shown.snapshots.extend(event.owned("snapshotId"));
            }
            "asset.generated" => self.asset_generated(&event.payload["asset"]),
            "operation.failed" => self.shown.notice = Some("operation-failed".to_owned()),
            // COV-FWD-026, 027: the diagnostic copies on the action stream are for nobody to see.
            "llm.responded" | "gateway.responded" if !event.in_turn => self.thought(event),
            _ => {}
        }
    }

    fn data_changed(&mut self, event: &Event) {
        let plugin = event.text("pluginId").to_owned();
        let data = self.shown.plugin_data.entry(plugin).or_default();
        for change in event.payload["changes"].as_array().into_iter().flatten() {
            let text = |key: &str| change[key].as_str().unwrap_or_default().to_owned();
            let rows = data.entry(text("namespace")).or_default();
            if change["operation"] == "delete" {
                rows.remove(&text("key"));
            } else {
                rows.insert(text("key"), change["value"].clone());
            }
        }
    }

    /// COV-JOB-067 to 076: an event counts once, in the order of its job's own sequence, and nothing comes after
    /// the end but another end.
    fn job_updated(&mut self, event: &Event) {
        let id = event.text("jobId").to_owned();
        let sequence = event.payload["sequence"].as_u64().unwrap_or_default();
        let state = event.text("state").to_owned();
        let data = &event.payload["data"];
        let parent = data["runtimeJobId"].as_str().map(str::to_owned);
        let known = self.shown.jobs.get(&id);
        let ends = matches!(state.as_str(), "succeeded" | "failed" | "cancelled");
        let late =
            known.is_some_and(|known| sequence <= known.sequence || (known.is_final() && !ends));
        if late {
            return;
        }
        let turn = data["originTurnId"].as_str().map(str::to_owned);
        let before = known.cloned().unwrap_or_default();
        let job = Job {
            state: state.clone(),
            progress: event.payload["progress"].as_f64().or(before.progress),
            message: event.owned("message").or(before.message),
            turn_id: turn.or(before.turn_id),
            parent: parent.or(before.parent),
            sequence,
        };
        let (is_part, turn) = (job.parent.is_some(), job.turn_id.clone());
        self.shown.jobs.insert(id.clone(), job);
        if is_part {
            return;
        }
        // COV-QRY-053: the step stands in the turn where the job came from, whatever turn the event names.
        if let Some(turn) = turn {
            let runtime = event.text("runtimeId").to_owned();
            let step = self.step(&turn, &runtime);
            step.job_id = Some(id);
            step_status(&state).clone_into(&mut step.status);
        }
        if ends {
            // COV-LLM: what a detached task has changed is read, not guessed from its event.
            self.read_view();
        }
    }

    /// COV-SUSP-010, 011: a runtime waits for one thing at a time.
    fn suspended(&mut self, event: &Event) {
        let runtime = event.text("runtimeId").to_owned();
        self.shown
            .suspensions
            .retain(|open| open.runtime_id != runtime);
        let id = event.text("suspensionId").to_owned();
        self.shown.suspensions.push(Suspension {
            id,
            runtime_id: runtime,
        });
    }

    fn resumed(&mut self, event: &Event) {
        let id = event.text("suspensionId");
        self.shown.suspensions.retain(|open| open.id != id);
        self.read_view();
    }

    fn slot_changed(&mut self, event: &Event) {
        let name = slot_name(&event.payload);
        self.committed_slots
            .insert(name.clone(), event.payload["value"].clone());
        self.changed_slots.insert(name);
        self.show_slots();
    }

    /// COV-SLOT-019, 020: a preview of a turn that is over is late, unless the turn runs again.
    fn slot_preview(&mut self, event: &Event) {
        let turn = event.text("turnId").to_owned();
        if self.ended_turns.contains(&turn) {
            return;
        }
        let value = event.payload["value"].clone();
        self.previews
            .insert(slot_name(&event.payload), (turn, value));
        self.show_slots();
    }

    pub(super) fn drop_previews(&mut self, turn: &str) {
        self.previews.retain(|_, (of, _)| of != turn);
        self.show_slots();
    }

    pub(super) fn show_slots(&mut self) {
        let mut slots = self.committed_slots.clone();
        let previews = self
            .previews
            .iter()
            .map(|(name, (_, value))| (name.clone(), value.clone()));
        slots.extend(previews);
        self.shown.slots = slots;
        self.load_media();
    }

    fn dimensions_changed(&mut self, event: &Event) {
        let changed = event.payload["dimensions"]
            .as_object()
            .into_iter()
            .flatten();
        for (id, dimension) in changed {
            self.shown.dimensions.insert(id.clone(), dimension.clone());
        }
        if event.payload["settlement"].is_object() {
            let settlement = event.payload["settlement"].clone();
            self.settlement(&settlement);
        }
    }

    pub(super) fn settlement(&mut self, receipt: &Value) {
        let id = receipt["source"]["resultId"].as_str().unwrap_or_default();
        let version = |receipt: &Value| receipt["version"].as_u64().unwrap_or_default();
        let newer = self
            .shown
            .settlements
            .get(id)
            .is_none_or(|known| version(receipt) >= version(known));
        if newer {
            self.shown
                .settlements
                .insert(id.to_owned(), receipt.clone());
        }
    }

    /// COV: LLM-REASON-037 to 042: one entry a call, told apart by turn, runtime, type, flow and position.
    pub(super) fn thought(&mut self, event: &Event) {
        let text = event.text("reasoningContent").to_owned();
        let turn = event.turn_of();
        // COV-JOB-082: a worker's turn is shown as its job's task, in the turn where the job came from.
        let (turn_id, job_id) = match self.history.workers.get(&turn) {
            Some((origin, job)) => (origin.clone(), Some(job.clone())),
            None => (turn.clone(), None),
        };
        let thought = Thought {
            turn_id,
            runtime_id: event.text("runtimeId").to_owned(),
            text,
            job_id,
            identity: (event.kind.clone(), event.flow.clone(), event.seq, turn),
        };
        if self.think(thought) {
            self.keep_history();
        }
    }

    /// Adds a thought that is not known; whether it was added.
    fn think(&mut self, thought: Thought) -> bool {
        let same = |known: &Thought| {
            known.identity == thought.identity && known.runtime_id == thought.runtime_id
        };
        let fresh = !thought.text.is_empty() && !self.shown.thinking.iter().any(same);
        if fresh {
            self.shown.thinking.push(thought);
        }
        fresh
    }

    /// Keeps what models thought, for the next visit. LLM-REASON-043.
    fn keep_history(&mut self) {
        let of = |thought: &Thought| {
            let (kind, flow, seq, turn) = &thought.identity;
            json!({
                "turnId": thought.turn_id, "runtimeId": thought.runtime_id, "text": thought.text,
                "jobId": thought.job_id, "type": kind, "flowId": flow, "seq": seq, "namedTurnId": turn,
            })
        };
        let thinking: Vec<_> = self.shown.thinking.iter().map(of).collect();
        let history = json!({ "sessionId": self.shown.session, "thinking": thinking });
        self.keep_aside("/history", history);
    }

    /// What was kept of this session is shown again.
    pub(super) fn recalled(&mut self, kept: &Value) {
        if kept["sessionId"] != self.shown.session.as_str() {
            return;
        }
        for row in kept["thinking"].as_array().into_iter().flatten() {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let seq = row["seq"].as_u64().unwrap_or_default();
            self.think(Thought {
                turn_id: text("turnId"),
                runtime_id: text("runtimeId"),
                text: text("text"),
                job_id: row["jobId"].as_str().map(str::to_owned),
                identity: (text("type"), text("flowId"), seq, text("namedTurnId")),
            });
        }
    }
}

/// The name under which a slot is shown.
pub(super) fn slot_name(payload: &Value) -> String {
    let slot = payload["slot"].as_str().unwrap_or_default();
    match payload["key"].as_str() {
        Some(key) => format!("{slot}/{key}"),
        None => slot.to_owned(),
    }
}
