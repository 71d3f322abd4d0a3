"""Steps of executions, what was traced, thinking, and failed tasks with what became of them.

Traces fill in what no stream replays, and never take back what is shown. They are taken over when the jobs are known,
because only the jobs tell which turns are those of background workers.
"""

import json

from wire import encoded

DIAGNOSTIC = ("tool.", "llm.", "gateway.", "hook.", "step.", "function.", "message.", "block.", "utils.", "context.")
RUNTIME_ENDS = "runtime.completed", "runtime.failed", "runtime.skipped"
ABOUT_TASKS = "execution.started", "execution.completed", "runtime.started", *RUNTIME_ENDS
STATUS = {"succeeded": "completed", "failed": "failed", "cancelled": "skipped", "queued": "pending"}


def turn_of(event):
    return event["payload"].get("turnId") or event.get("turnId")


def identity(event):
    return json.dumps([event["type"], turn_of(event), event.get("flowId"), event.get("seq")])


class History:
    def fresh_history(self):
        self.workers, self.jobs_known, self.traced, self.attempts = {}, False, [], {}
        self.counted, self.seen, self.thoughts = set(), set(), {}

    def group(self, turn):
        for group in self.shown["groups"]:
            if group["turnId"] == turn:
                return group
        self.shown["groups"].append({"turnId": turn, "status": "", "setup": False, "taskRetries": False})
        return self.shown["groups"][-1]

    def step(self, turn, runtime):
        """The step of a runtime in a turn: one, however often it runs."""
        for step in self.shown["steps"]:
            if (step["turnId"], step["runtimeId"]) == (turn, runtime):
                return step
        fresh = dict.fromkeys(("runId", "stage", "durationMs", "error", "errorKind", "failureTarget", "jobId"))
        self.shown["steps"].append({"turnId": turn, "runtimeId": runtime, "status": "", **fresh})
        return self.shown["steps"][-1]

    @staticmethod
    def step_status(state):
        return STATUS.get(state, "running")

    def regroup(self):
        """A step whose start named the setup makes its group one of the setup, for good."""
        for group in self.shown["groups"]:
            steps = [step for step in self.shown["steps"] if step["turnId"] == group["turnId"]]
            group["setup"] = group["setup"] or any(step["stage"] == "setup" for step in steps)
            group["taskRetries"] = not group["setup"] and any(step["status"] == "failed" for step in steps)

    def runtime_started(self, event):
        payload, turn = event["payload"], turn_of(event)
        if not event["inTurn"] and turn in self.workers:
            return  # the worker of a job is no turn of its own
        step = self.step(turn, payload["runtimeId"])
        if not (step["runId"] and step["status"] == "running"):  # a nested run is no step of its own
            step.update(runId=payload.get("runId"), status="running", stage=payload.get("stage") or step["stage"])

    def runtime_ended(self, event):
        payload, turn = event["payload"], turn_of(event)
        if not event["inTurn"] and turn in self.workers:
            return
        step, run = self.step(turn, payload["runtimeId"]), payload.get("runId")
        if step["status"] == "running" and run and step["runId"] and run != step["runId"]:
            return
        ended = {"runtime.failed": "failed", "runtime.skipped": "skipped"}.get(event["type"], payload.get("status"))
        step.update(status=ended if ended in ("failed", "skipped", "suspended") else "completed",
                    durationMs=payload.get("durationMs", step["durationMs"]),
                    **{name: payload.get(name) for name in ("error", "errorKind", "failureTarget")})

    def restore(self, event):
        """Fills a step in, without taking back what is shown of it."""
        turn, kind, payload = turn_of(event), event["type"], event["payload"]
        if turn in self.workers:
            return
        if kind == "execution.started":
            self.group(turn)
        elif kind == "execution.completed":
            self.group(turn)["status"] = "completed" if payload.get("committed") is True else "failed"
        elif kind == "runtime.started":
            self.group(turn)
            step = self.step(turn, payload["runtimeId"])
            if not step["status"]:
                step.update(runId=payload.get("runId"), status="running")
            step["stage"] = step["stage"] or payload.get("stage")  # a start that names no stage has none
        elif kind in RUNTIME_ENDS and self.step(turn, payload["runtimeId"])["status"] in ("", "running"):
            self.runtime_ended(event)

    # ---- traces ----

    def read_traces(self):
        self.get(f"/api/traces/{encoded(self.shown['session'])}", self.traces_came)

    def traces_came(self, traces):
        if traces:
            self.traced = traces.get("events", [])
            self.take_traces()

    def worker_is_known(self, row):
        worker, origin = row.get("backgroundTurnId"), (row.get("origin") or {}).get("sourceTurnId")
        if worker and origin:
            self.workers[worker] = {"turnId": origin, "jobId": row["jobId"]}
            for thought in self.thoughts.values():
                if thought["turnId"] == worker:
                    thought.update(self.workers[worker])

    def take_traces(self):
        if not self.jobs_known:
            return
        traced, self.traced = self.traced, []
        for event in traced:
            event = {**event, "payload": event.get("payload") or {}, "inTurn": False}
            self.observe(event)
            if event["type"] in ("llm.responded", "gateway.responded"):
                self.thought(event)
            self.restore(event)
        self.regroup()

    def observe(self, event):
        """What every event may tell of, whoever else cares for it."""
        key, flow, kind = identity(event), event.get("flowId"), event["type"]
        if not event["inTurn"] and kind.startswith(DIAGNOSTIC) and not (flow and key in self.seen):
            self.seen.add(key)
            runtime = event["payload"].get("runtimeId")
            self.shown["timeline"].append({"type": kind, "turnId": turn_of(event), "runtimeId": runtime})
        if kind not in ABOUT_TASKS or turn_of(event) in self.workers or (flow and key in self.counted):
            return
        self.counted.add(key)
        if event["payload"].get("sourceTurnId"):
            self.attempted(event, event["payload"])
        else:
            self.task_failed(event, event["payload"])

    def thought(self, event):
        """One entry a call, told apart by turn, runtime, type, flow and position; a worker thinks in the turn of its job."""
        text, runtime, turn = event["payload"].get("reasoningContent"), event["payload"].get("runtimeId"), turn_of(event)
        entry = {"turnId": turn, "runtimeId": runtime, "text": text, "jobId": None, **self.workers.get(turn, {})}
        if text and self.think(f"{identity(event)} {runtime}", entry):
            self.keep_thinking()

    def think(self, key, thought):
        if key in self.thoughts:
            return False
        self.thoughts[key] = thought
        self.shown["thinking"].append(thought)
        return True

    # ---- failed tasks: each waits until an attempt has run and was committed ----

    def waiting(self, keep, more=()):
        kept = [task for task in self.shown["unrecovered"] if keep(task)]
        self.shown["unrecovered"] = kept + [task for task in more if task not in kept]

    def task_failed(self, event, payload):
        turn = turn_of(event)
        if event["type"] == "runtime.failed":
            self.waiting(lambda _: True, [{"turnId": turn, "runtimeId": payload.get("runtimeId")}])
        elif event["type"] == "execution.completed" and payload.get("committed") is not True:
            self.waiting(lambda task: task["turnId"] != turn)  # all of it is tried again

    def attempted(self, event, payload):
        turn, source, kind, runtime = turn_of(event), payload["sourceTurnId"], event["type"], payload.get("runtimeId")
        attempt, ids = self.attempts.setdefault(turn, {"ran": set(), "settled": False}), payload.get("sourceFailedRuntimeIds")
        if ids is not None and not attempt["settled"]:  # a summary replaces the old one, unless it comes late
            self.waiting(lambda task: task["turnId"] != source, [{"turnId": source, "runtimeId": one} for one in ids])
        if kind == "runtime.completed" and payload.get("status") != "failed":
            attempt["ran"].add(runtime)
            if not attempt["settled"]:
                self.step(turn, runtime)["status"] = "running"  # a run alone is no success
        elif kind in ("runtime.failed", "runtime.skipped"):
            attempt["ran"].discard(runtime)
        elif kind == "execution.completed":
            attempt["settled"] = payload.get("committed") is True
            for ran in attempt["ran"]:
                self.step(turn, ran)["status"] = "completed" if attempt["settled"] else "failed"
            if attempt["settled"]:
                self.waiting(lambda task: task["turnId"] != source or task["runtimeId"] not in attempt["ran"])
