//! What was traced, and failed tasks with what became of them.
//!
//! Traces fill in what no stream replays: the stages of steps, diagnostics, the thinking of background workers. They
//! never take back what is shown. Traces and the list of jobs may be answered in either order; a trace is taken
//! over when both are there, because only the jobs tell which turns are those of workers (COV-JOB-082 to 087).
//!
//! A failed task waits to be tried again until an attempt has run and was committed; what runs meanwhile, is rolled
//! back or breaks off changes nothing (COV-CMD-092 to 112).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    core::Core,
    shown::{Diagnostic, Task},
    turn::Event,
};

/// What is known from traces and attempts.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Turns of background workers: the turn where the job came from, and the job.
    pub(super) workers: BTreeMap<String, (String, String)>,
    jobs_known: bool,
    /// The newest answer of the trace, until it is taken over.
    traced: Vec<Event>,
    /// Attempts to recover, by their own turn.
    attempts: BTreeMap<String, Attempt>,
    /// Events about failures that have counted.
    counted: BTreeSet<(String, String, u64)>,
}

/// An attempt to recover failed tasks.
#[derive(Debug, Default)]
struct Attempt {
    succeeded: BTreeSet<String>,
    /// It was committed; what is told of its beginning is late.
    settled: bool,
}

/// Prefixes of the types of diagnostic events.
const DIAGNOSTIC: &[&str] = &[
    "tool.",
    "llm.",
    "gateway.",
    "hook.",
    "step.",
    "function.",
    "message.",
    "block.",
    "utils.",
    "context.",
];

/// Diagnostic events that are kept.
const TIMELINE: usize = 5_000;

impl Core {
    /// Adds a diagnostic event to the timeline. COV-FWD-027: the copies on the action stream are not meant.
    pub(super) fn diagnosed(&mut self, event: &Event) {
        let is_diagnostic = DIAGNOSTIC.iter().any(|it| event.kind.starts_with(it));
        let identity = identity(event);
        let known = || {
            let mut timeline = self.shown.timeline.iter();
            !event.flow.is_empty() && timeline.any(|it| it.identity == identity)
        };
        if is_diagnostic && self.shown.timeline.len() < TIMELINE && !known() {
            self.shown.timeline.push(Diagnostic {
                kind: event.kind.clone(),
                turn_id: event.turn_of(),
                runtime_id: event.owned("runtimeId"),
                identity,
            });
        }
    }

    /// The trace was answered.
    pub(super) fn traced(&mut self, body: &Value) {
        let events = body["events"].as_array().into_iter().flatten();
        let read = events.filter_map(|event| Event::of(event, false));
        self.history.traced = read.map(|(event, _)| event).collect();
        self.take_over();
    }

    /// The jobs were answered, or will not be.
    pub(super) fn jobs_known(&mut self) {
        self.history.jobs_known = true;
        self.take_over();
    }

    /// A job whose worker has a turn of its own.
    pub(super) fn worker_known(&mut self, row: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let worker = text(&row["backgroundTurnId"]);
        let origin = text(&row["origin"]["sourceTurnId"]);
        let (Some(worker), Some(origin), Some(job)) = (worker, origin, text(&row["jobId"])) else {
            return;
        };
        for thought in &mut self.shown.thinking {
            if thought.identity.3 == worker {
                thought.turn_id.clone_from(&origin);
                thought.job_id = Some(job.clone());
            }
        }
        self.history.workers.insert(worker, (origin, job));
    }

    fn take_over(&mut self) {
        if !self.history.jobs_known {
            return;
        }
        for event in std::mem::take(&mut self.history.traced) {
            self.diagnosed(&event);
            if matches!(event.kind.as_str(), "llm.responded" | "gateway.responded") {
                self.thought(&event);
            }
            self.restore(&event);
            self.recovery_event(&event);
        }
        self.regroup();
    }

    /// The steps that the session view tells of.
    pub(super) fn apply_steps(&mut self, view: &Value) {
        let steps = view["executionSteps"].as_array().into_iter().flatten();
        for (event, _) in steps.filter_map(|step| Event::of(step, false)) {
            self.restore(&event);
        }
        self.regroup();
    }

    /// Fills a step in, without taking back what is shown of it. COV-EVT-107: one step, whoever told of it.
    fn restore(&mut self, event: &Event) {
        let turn = event.turn_of();
        if self.history.workers.contains_key(&turn) {
            return;
        }
        let runtime = event.text("runtimeId");
        match event.kind.as_str() {
            "execution.started" => {
                self.group(&turn);
            }
            "execution.completed" => {
                let committed = event.payload["committed"] == true;
                let ended = if committed { "completed" } else { "failed" };
                ended.clone_into(&mut self.group(&turn).status);
            }
            "runtime.started" => {
                self.group(&turn);
                let step = self.step(&turn, runtime);
                if step.status.is_empty() {
                    step.run_id = event.owned("runId");
                    "running".clone_into(&mut step.status);
                }
                // COV-EVT-112: a start that names no stage has none.
                step.stage = step.stage.take().or(event.owned("stage"));
            }
            "runtime.completed" | "runtime.failed" | "runtime.skipped" => {
                if matches!(self.step(&turn, runtime).status.as_str(), "" | "running") {
                    self.runtime_ended(event);
                }
            }
            _ => {}
        }
    }

    /// What an event says about failed tasks. Each event counts once, also when a trace tells of it again.
    pub(super) fn recovery_event(&mut self, event: &Event) {
        let about = matches!(
            event.kind.as_str(),
            "execution.started"
                | "execution.completed"
                | "runtime.started"
                | "runtime.completed"
                | "runtime.failed"
                | "runtime.skipped"
        );
        if !about || self.history.workers.contains_key(&event.turn_of()) {
            return;
        }
        if !event.flow.is_empty() && !self.history.counted.insert(identity(event)) {
            return;
        }
        match event.owned("sourceTurnId") {
            Some(source) => self.attempted(event, &source),
            None => self.failed(event),
        }
        self.shown.unrecovered.sort();
        self.shown.unrecovered.dedup();
    }

    /// A turn of its own: its failures wait, unless nothing of it was saved; then the whole turn is tried again.
    fn failed(&mut self, event: &Event) {
        let turn_id = event.turn_of();
        match event.kind.as_str() {
            "runtime.failed" => self.shown.unrecovered.push(Task {
                turn_id,
                runtime_id: event.text("runtimeId").to_owned(),
            }),
            "execution.completed" if event.payload["committed"] != true => {
                self.shown
                    .unrecovered
                    .retain(|task| task.turn_id != turn_id);
            }
            _ => {}
        }
    }

    fn attempted(&mut self, event: &Event, source: &str) {
        let turn = event.turn_of();
        let runtime = event.text("runtimeId").to_owned();
        let attempt = self.history.attempts.entry(turn.clone()).or_default();
        let settled = attempt.settled;
        // COV-CMD-100: a summary that is missing says nothing. COV-CMD-108: one that is there replaces the old one.
        if let (Some(ids), false) = (event.payload["sourceFailedRuntimeIds"].as_array(), settled) {
            self.shown.unrecovered.retain(|task| task.turn_id != source);
            let waiting = ids.iter().filter_map(Value::as_str).map(|id| Task {
                turn_id: source.to_owned(),
                runtime_id: id.to_owned(),
            });
            self.shown.unrecovered.extend(waiting);
        }
        match event.kind.as_str() {
            "runtime.completed" if event.text("status") != "failed" => {
                attempt.succeeded.insert(runtime.clone());
                if !settled {
                    // COV-CMD-112: a run alone is no success.
                    "running".clone_into(&mut self.step(&turn, &runtime).status);
                }
            }
            "runtime.failed" | "runtime.skipped" => {
                attempt.succeeded.remove(&runtime);
            }
            "execution.completed" => {
                let committed = event.payload["committed"] == true;
                attempt.settled = committed;
                let ran = attempt.succeeded.clone();
                let status = if committed { "completed" } else { "failed" };
                for runtime in &ran {
                    status.clone_into(&mut self.step(&turn, runtime).status);
                }
                if committed {
                    self.shown
                        .unrecovered
                        .retain(|task| task.turn_id != source || !ran.contains(&task.runtime_id));
                }
            }
            _ => {}
        }
    }
}

/// Type, turn and flow, and position of an event.
fn identity(event: &Event) -> (String, String, u64) {
    let flow = format!("{} {}", event.turn_of(), event.flow);
    (event.kind.clone(), flow, event.seq)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, turn: &str, seq: u64, payload: Value) -> Value {
        json!({ "type": kind, "turnId": turn, "flowId": turn, "seq": seq, "payload": payload })
    }

    /// A client that has read this trace and these jobs, in this order.
    fn after(trace: Vec<Value>, jobs: Value, trace_first: bool) -> Core {
        let mut core = Core::default();
        let trace = json!({ "events": trace });
        if trace_first {
            core.traced(&trace);
        }
        core.apply_jobs(&jobs);
        core.jobs_known();
        if !trace_first {
            core.traced(&trace);
        }
        core
    }

    fn waiting(core: &Core) -> Vec<String> {
        let tasks = core.shown().unrecovered.iter();
        tasks.map(|task| task.runtime_id.clone()).collect()
    }

    #[test]
    fn a_worker_thinks_in_the_task_of_its_job_whichever_is_read_first() {
        let thought = json!({ "runtimeId": "w", "reasoningContent": "deep" });
        let trace = vec![
            event("runtime.started", "b1", 1, json!({ "runtimeId": "w" })),
            event("llm.responded", "b1", 2, thought),
        ];
        let jobs = json!({ "items": [{
            "jobId": "j1", "runtimeId": "w", "status": "running", "backgroundTurnId": "b1",
            "origin": { "sourceTurnId": "t1" },
        }] });
        for trace_first in [true, false] {
            let core = after(trace.clone(), jobs.clone(), trace_first);
            assert!(core.shown().groups.is_empty());
            let [thought] = &core.shown().thinking[..] else {
                panic!("{:?}", core.shown().thinking);
            };
            assert_eq!(
                (&*thought.turn_id, thought.job_id.as_deref()),
                ("t1", Some("j1"))
            );
        }
    }

    #[test]
    fn a_failed_task_waits_until_an_attempt_has_run_and_was_committed() {
        let scope = |runtime: &str| json!({ "runtimeId": runtime, "sourceTurnId": "t1" });
        let done = |committed: bool| json!({ "sourceTurnId": "t1", "committed": committed });
        let failed = event("runtime.failed", "t1", 1, json!({ "runtimeId": "a" }));
        let ran = |turn: &str| event("runtime.completed", turn, 1, scope("a"));
        let end = |turn: &str, committed| event("execution.completed", turn, 2, done(committed));
        let none = json!({ "items": [] });
        let cases = [
            (vec![failed.clone()], vec!["a"]),
            (vec![failed.clone(), ran("t2")], vec!["a"]),
            (vec![failed.clone(), ran("t2"), end("t2", false)], vec!["a"]),
            (vec![failed.clone(), end("t2", true)], vec!["a"]),
            (vec![failed, ran("t2"), end("t2", true)], vec![]),
        ];
        for (trace, expected) in cases {
            let core = after(trace.clone(), none.clone(), true);
            assert_eq!(waiting(&core), expected, "{trace:?}");
        }
    }

    #[test]
    fn a_summary_replaces_the_old_one_and_does_not_outlive_a_commit() {
        let summary = |seq, ids: Value| {
            let payload = json!({ "sourceTurnId": "t1", "sourceFailedRuntimeIds": ids });
            event("execution.started", "t2", seq, payload)
        };
        let none = json!({ "items": [] });
        let mut trace = vec![summary(1, json!(["a", "b"])), summary(2, json!(["b"]))];
        let core = after(trace.clone(), none.clone(), true);
        assert_eq!(waiting(&core), ["b"]);
        let payload =
            json!({ "sourceTurnId": "t1", "committed": true, "sourceFailedRuntimeIds": [] });
        trace.push(event("execution.completed", "t2", 3, payload));
        trace.push(summary(4, json!(["a"])));
        assert!(waiting(&after(trace, none, true)).is_empty());
    }
}
