//! The events of a turn: narrative, forms, steps, and how an execution ends.

use serde_json::Value;

use super::{
    core::Core,
    shown::{Advance, Form, Group, Message, Status, Step},
};

/// One event, from either stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Event {
    /// Its id on the subscription.
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) turn: String,
    pub(super) request: String,
    pub(super) flow: String,
    pub(super) seq: u64,
    /// Whether it came on the stream of the client's own action.
    pub(super) in_turn: bool,
    pub(super) payload: Value,
}

impl Event {
    /// Reads the JSON of a frame; `None` when it is no event.
    pub(super) fn read(data: &str, in_turn: bool) -> Option<(Self, String)> {
        Self::of(&serde_json::from_str(data).ok()?, in_turn)
    }

    /// Reads an event that is JSON already; and the session that it belongs to.
    pub(super) fn of(frame: &Value, in_turn: bool) -> Option<(Self, String)> {
        let text = |key: &str| frame[key].as_str().unwrap_or_default().to_owned();
        let event = Self {
            id: text("id"),
            kind: frame["type"].as_str()?.to_owned(),
            turn: text("turnId"),
            request: text("requestId"),
            flow: text("flowId"),
            seq: frame["seq"].as_u64().unwrap_or_default(),
            in_turn,
            payload: frame["payload"].clone(),
        };
        Some((event, text("sessionId")))
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.payload[key].as_str().unwrap_or_default()
    }

    pub(super) fn owned(&self, key: &str) -> Option<String> {
        self.payload[key].as_str().map(str::to_owned)
    }

    /// The turn that the payload names, or else the frame's.
    pub(super) fn turn_of(&self) -> String {
        self.owned("turnId").unwrap_or_else(|| self.turn.clone())
    }
}

impl Core {
    /// Applies an event of a turn; whether it was one.
    pub(super) fn turn_event(&mut self, event: &Event) -> bool {
        match event.kind.as_str() {
            "execution.started" => self.started(event),
            "narrative.delta" => self.delta(event),
            "narrative.completed" => self.narrative(event),
            "interaction.requested" => self.form_requested(event),
            "interaction.submitted" => self.form_submitted(event),
            "event.emitted" => self.shown.events.push(event.payload.clone()),
            // COV-JOB-083: the worker of a job is no turn of its own.
            "runtime.started" | "runtime.completed" | "runtime.failed" | "runtime.skipped"
                if !event.in_turn && self.history.workers.contains_key(&event.turn_of()) => {}
            "runtime.started" => self.runtime_started(event),
            "runtime.deferred" => self.runtime_deferred(event),
            "runtime.completed" | "runtime.failed" | "runtime.skipped" => self.runtime_ended(event),
            "execution.round.completed" => self.round_completed(event),
            "execution.advance" => self.advance(event),
            "execution.completed" => self.completed(event),
            "error.occurred" => self.error(event),
            _ => return false,
        }
        self.regroup();
        true
    }

    /// COV-EVT-109 to 113: a step whose start named the setup makes the group one of the setup, for good; neither the
    /// session's phase nor a plugin's name does.
    pub(super) fn regroup(&mut self) {
        for group in &mut self.shown.groups {
            let steps = self
                .shown
                .steps
                .iter()
                .filter(|step| step.turn_id == group.turn_id);
            let (mut setup, mut failed) = (group.setup, false);
            for step in steps {
                setup |= step.stage.as_deref() == Some("setup");
                failed |= step.status == "failed";
            }
            group.setup = setup;
            group.task_retries = failed && !setup;
        }
    }

    fn started(&mut self, event: &Event) {
        if !event.in_turn {
            return;
        }
        self.ended_turns.remove(&event.turn);
        "running".clone_into(&mut self.group(&event.turn).status);
        if let Some(action) = &mut self.action {
            action.started = true;
            action.turns.push(event.turn.clone());
        }
        // COV-HOST-055: the echo belongs to the turn of the request that it was sent with.
        for message in &mut self.shown.messages {
            if message.turn_id.is_none() && message.request.as_deref() == Some(&event.request) {
                message.turn_id = Some(event.turn.clone());
            }
        }
    }

    /// The group of a turn.
    pub(super) fn group(&mut self, turn: &str) -> &mut Group {
        let groups = &mut self.shown.groups;
        let place = groups.iter().position(|group| group.turn_id == turn);
        let place = place.unwrap_or_else(|| {
            groups.push(Group {
                turn_id: turn.to_owned(),
                ..Group::default()
            });
            groups.len() - 1
        });
        &mut groups[place]
    }

    /// The message that this runtime is writing in this turn.
    fn streaming(&mut self, event: &Event) -> Option<&mut Message> {
        let (turn, runtime) = (event.turn.clone(), event.owned("runtimeId"));
        self.shown.messages.iter_mut().find(|message| {
            message.status == Status::Streaming
                && message.turn_id.as_deref() == Some(&turn)
                && message.runtime_id == runtime
        })
    }

    fn delta(&mut self, event: &Event) {
        if !event.in_turn {
            return;
        }
        let place = (event.turn.clone(), event.text("runtimeId").to_owned());
        *self.trace.fragments.entry(place).or_default() += 1;
        if self.streaming(event).is_none() {
            self.shown.messages.push(Message {
                role: "assistant".to_owned(),
                status: Status::Streaming,
                turn_id: Some(event.turn.clone()),
                runtime_id: event.owned("runtimeId"),
                kind: event.owned("kind"),
                ..Message::default()
            });
        }
        let segment = event.payload["segment"].clone();
        let Some(message) = self.streaming(event) else {
            return;
        };
        // COV-EVT-023, 024: a reset takes text and paragraphs away, of this runtime alone.
        if event.payload["reset"] == true {
            message.text.clear();
            message.speakers.clear();
        }
        message.text.push_str(event.text("delta"));
        if let Some(index) = segment["index"]
            .as_u64()
            .and_then(|index| usize::try_from(index).ok())
        {
            let speaker = segment["speaker"].as_str().map(str::to_owned);
            let places = message
                .speakers
                .len()
                .max(index.saturating_add(1))
                .min(PARAGRAPHS);
            message.speakers.resize(places, None);
            if let (Some(place), true) = (message.speakers.get_mut(index), speaker.is_some()) {
                *place = speaker;
            }
        }
    }

    fn narrative(&mut self, event: &Event) {
        if !event.in_turn {
            return;
        }
        let speakers = event.payload["segments"].as_array().map(|segments| {
            let speaker = |segment: &Value| segment["speaker"].as_str().map(str::to_owned);
            segments.iter().map(speaker).collect()
        });
        let whole = Message {
            id: event.owned("messageId"),
            role: "assistant".to_owned(),
            text: event.text("content").to_owned(),
            status: Status::Provisional,
            turn_id: Some(event.turn.clone()),
            runtime_id: event.owned("runtimeId"),
            kind: event.owned("kind"),
            ..Message::default()
        };
        match self.streaming(event) {
            Some(message) => {
                let kept = std::mem::take(&mut message.speakers);
                *message = Message {
                    speakers: speakers.unwrap_or(kept),
                    ..whole
                };
            }
            None => self.shown.messages.push(Message {
                speakers: speakers.unwrap_or_default(),
                ..whole
            }),
        }
    }

    fn form_requested(&mut self, event: &Event) {
        let block = event.payload["block"].clone();
        let id = block["id"].as_str().unwrap_or_default().to_owned();
        // COV-SUSP-055, 056: both streams may bring it, and a replay; the block's id tells.
        if id.is_empty() || self.shown.form(&id).is_some() {
            return;
        }
        let status = if event.in_turn {
            Status::Provisional
        } else {
            Status::Completed
        };
        self.shown.messages.push(Message {
            role: "assistant".to_owned(),
            status,
            turn_id: Some(event.turn_of()),
            runtime_id: event.owned("runtimeId"),
            form: Some(form_of(&block)),
            ..Message::default()
        });
    }

    fn form_submitted(&mut self, event: &Event) {
        // COV-QRY-047: only who submitted a form shows the answer.
        let Some(form) = self.action.as_ref().and_then(|action| action.form.clone()) else {
            return;
        };
        if !event.in_turn {
            return;
        }
        let results = event.payload["results"].as_array().into_iter().flatten();
        let values = results.map(|result| result["values"].clone()).next();
        if let Some(form) = self.shown.form(&form) {
            form.submitted = true;
            form.values = values;
            form.draft = None;
            form.issues.clear();
        }
        let message = &event.payload["message"];
        if let (Some(id), Some(content)) = (message["id"].as_str(), message["content"].as_str()) {
            self.shown.messages.push(Message {
                id: Some(id.to_owned()),
                role: "player".to_owned(),
                text: content.to_owned(),
                status: Status::Sending,
                request: Some(event.request.clone()),
                ..Message::default()
            });
        }
    }

    /// The step of a runtime in a turn: one, however often it runs (COV-TRACE-147).
    pub(super) fn step(&mut self, turn: &str, runtime: &str) -> &mut Step {
        let steps = &mut self.shown.steps;
        let place = steps
            .iter()
            .position(|step| step.turn_id == turn && step.runtime_id == runtime);
        let place = place.unwrap_or_else(|| {
            steps.push(Step {
                turn_id: turn.to_owned(),
                runtime_id: runtime.to_owned(),
                ..Step::default()
            });
            steps.len() - 1
        });
        &mut steps[place]
    }

    fn runtime_started(&mut self, event: &Event) {
        let step = self.step(&event.turn_of(), event.text("runtimeId"));
        // A nested run of the same runtime is no step of its own.
        if step.run_id.is_some() && step.status == "running" {
            return;
        }
        step.run_id = event.owned("runId");
        "running".clone_into(&mut step.status);
        // COV-EVT-108: what ends the runtime says nothing of the stage, so the start's stays.
        step.stage = event.owned("stage").or(step.stage.take());
    }

    fn runtime_deferred(&mut self, event: &Event) {
        let job = event.owned("jobId");
        let known = job
            .as_ref()
            .and_then(|job| self.shown.jobs.get(job))
            .map(|job| job.state.clone());
        let step = self.step(event.text("sourceTurnId"), event.text("runtimeId"));
        step.job_id = job;
        // COV-STOP-113, 114: the job may have begun, or ended, before this came.
        step.status = known
            .map_or("pending", |state| step_status(&state))
            .to_owned();
    }

    pub(super) fn runtime_ended(&mut self, event: &Event) {
        let step = self.step(&event.turn_of(), event.text("runtimeId"));
        let run = event.owned("runId");
        let nested = step.status == "running"
            && run.is_some()
            && step.run_id.is_some()
            && run != step.run_id;
        if nested {
            return;
        }
        step.status = match (event.kind.as_str(), event.text("status")) {
            ("runtime.failed", _) | (_, "failed") => "failed",
            ("runtime.skipped", _) | (_, "skipped") => "skipped",
            (_, "suspended") => "suspended",
            _ => "completed",
        }
        .to_owned();
        step.duration_ms = event.payload["durationMs"].as_f64().or(step.duration_ms);
        step.error = event.owned("error");
        step.error_kind = event.owned("errorKind");
        step.failure_target = event.payload.get("failureTarget").cloned();
    }

    fn round_completed(&mut self, event: &Event) {
        if !self.is_own(event) {
            return;
        }
        let turn = event.turn_of();
        self.settle(&turn, event.payload["committed"] == true);
    }

    fn advance(&mut self, event: &Event) {
        let Some(action) = self
            .action
            .as_mut()
            .filter(|action| action.request == event.text("requestId"))
        else {
            return;
        };
        let round = event.payload["round"].as_u64().unwrap_or_default();
        let phase = event.text("phase").to_owned();
        // COV-ADV-059: what is over does not come back.
        let running = phase == "running";
        let over = phase == "stopped";
        let newer = action.round.is_none_or(|before| {
            // The end of a round comes after its running.
            (round, running || over) >= before
        });
        if action.advance_over || !newer {
            return;
        }
        action.round = Some((round, running));
        action.advance_over = over;
        self.shown.advance = (phase != "stopped").then_some(Advance { phase, round });
    }

    /// Whether an event belongs to the action that runs.
    fn is_own(&self, event: &Event) -> bool {
        event.in_turn
            && self
                .action
                .as_ref()
                .is_some_and(|action| action.request == event.request)
    }

    /// What a turn showed becomes final or goes away.
    pub(super) fn settle(&mut self, turn: &str, committed: bool) {
        let of_turn = |message: &Message| message.turn_id.as_deref() == Some(turn);
        if !committed {
            self.shown.messages.retain(|message| {
                message.role == "player" || !of_turn(message) || message.status == Status::Completed
            });
        }
        for message in self
            .shown
            .messages
            .iter_mut()
            .filter(|message| of_turn(message))
        {
            message.status = Status::Completed;
        }
        // COV-SUSP-102: an execution that was not saved is not complete.
        let ended = if committed { "completed" } else { "failed" };
        if let Some(group) = self.shown.groups.iter_mut().find(|it| it.turn_id == turn) {
            ended.clone_into(&mut group.status);
        }
        self.ended_turns.insert(turn.to_owned());
        self.drop_previews(turn);
    }

    fn completed(&mut self, event: &Event) {
        if !self.is_own(event) {
            return;
        }
        let Some(action) = self.action.take() else {
            return;
        };
        let committed = event.payload["committed"] == true;
        let stopped = event.payload["abortReason"] == "aborted-by-player";
        // COV-EVT-118: earlier rounds were committed; only the last execution can fail.
        for turn in action.turns.iter().filter(|turn| **turn != event.turn) {
            self.settle(turn, true);
        }
        self.settle(&event.turn, committed);
        if stopped {
            self.stopped(&action);
        } else if !committed {
            let error = event.owned("error").or_else(|| event.owned("abortReason"));
            self.shown.execution_error =
                Some(error.unwrap_or_else(|| "the turn failed".to_owned()));
        }
        let reread = event.payload["resync"] == true;
        self.action_over(reread || committed, reread);
    }

    /// The player stopped the action. COV-CTL-037 to 047.
    fn stopped(&mut self, action: &super::core::Action) {
        self.shown.notice = Some("stopped".to_owned());
        if action.started {
            self.shown.retry_offered = true;
            return;
        }
        let echo = |message: &Message| message.request.as_deref() == Some(&action.request);
        let text = self
            .shown
            .messages
            .iter()
            .find(|message| echo(message))
            .map(|message| message.text.clone());
        self.shown.messages.retain(|message| !echo(message));
        if let (Some(text), true) = (text, self.shown.input.is_empty()) {
            self.shown.input = text;
        }
    }

    fn error(&mut self, event: &Event) {
        if !self.is_own(event) {
            return;
        }
        let form = self.action.as_ref().and_then(|action| action.form.clone());
        match (event.text("code"), form) {
            // COV-CMD-159 to 163: the issues stand at their fields, and it is no error.
            ("form_rejected", Some(form)) => {
                if let Some(form) = self.shown.form(&form) {
                    let issues = event.payload["details"]["issues"].as_array();
                    form.issues = issues.cloned().unwrap_or_default();
                }
                self.refused();
            }
            // COV-CMD-165 to 167: somebody else answered it; what is stored is read, and nothing is sent again.
            ("interaction_already_submitted", Some(_)) => {
                self.refused();
                self.read_view();
                self.ask_execution();
            }
            _ => {
                let message = event.owned("message").unwrap_or_default();
                self.shown.execution_error = Some(message);
            }
        }
    }

    /// The action was refused before anything ran: a stream like this may end without a completion.
    fn refused(&mut self) {
        if self.action.take().is_some() {
            self.action_over(false, false);
        }
    }
}

/// Paragraphs of one message whose speakers are kept.
const PARAGRAPHS: usize = 10_000;

/// What a block asks for.
pub(super) fn form_of(block: &Value) -> Form {
    let notice = block["data"]["notice"]
        .as_str()
        .or(block["meta"]["notice"].as_str());
    Form {
        block_id: block["id"].as_str().unwrap_or_default().to_owned(),
        notice: notice.map(str::to_owned),
        block: block.clone(),
        ..Form::default()
    }
}

/// The status of a step whose work is a job in this state.
pub(super) fn step_status(state: &str) -> &'static str {
    match state {
        "succeeded" => "completed",
        "failed" => "failed",
        "cancelled" => "skipped",
        "queued" => "pending",
        _ => "running",
    }
}
