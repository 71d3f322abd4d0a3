// Steps of executions, what was traced, thinking, and failed tasks with what became of them.
// Traces fill in what no stream replays, and never take back what is shown. They are taken over when the jobs are known,
// because only the jobs tell which turns are those of background workers.
const DIAGNOSTIC = /^(tool|llm|gateway|hook|step|function|message|block|utils|context)\./;
const ABOUT_TASKS = /^(execution\.(started|completed)|runtime\.(started|completed|failed|skipped))$/;
const turnOf = ({ turnId, payload }) => payload?.turnId ?? turnId;
const identity = (event) => JSON.stringify([event.type, turnOf(event), event.flowId, event.seq]);
const STATUS = { succeeded: "completed", failed: "failed", cancelled: "skipped", queued: "pending" };

export const history = {
  freshHistory: () => ({ workers: {}, jobsKnown: false, traced: [], attempts: {}, counted: new Set(), seen: new Set(), thoughts: new Map() }),

  group(turnId) {
    const { groups } = this.shown, own = groups.find((group) => group.turnId === turnId);
    return own ?? groups[groups.push({ turnId, status: "", setup: false, taskRetries: false }) - 1];
  },

  // The step of a runtime in a turn: one, however often it runs.
  step(turnId, runtimeId) {
    const { steps } = this.shown, own = steps.find((step) => step.turnId === turnId && step.runtimeId === runtimeId);
    const fresh = { turnId, runtimeId, runId: null, status: "", stage: null, durationMs: null, error: null, errorKind: null, failureTarget: null, jobId: null };
    return own ?? steps[steps.push(fresh) - 1];
  },

  stepStatus: (state) => STATUS[state] ?? "running",

  // A step whose start named the setup makes its group one of the setup, for good.
  regroup() {
    for (const group of this.shown.groups) {
      const steps = this.shown.steps.filter((step) => step.turnId === group.turnId);
      group.setup ||= steps.some((step) => step.stage === "setup");
      group.taskRetries = !group.setup && steps.some((step) => step.status === "failed");
    }
  },

  runtimeStarted(event) {
    const { runtimeId, runId = null, stage } = event.payload;
    if (!event.inTurn && this.workers[turnOf(event)]) return; // the worker of a job is no turn of its own
    const step = this.step(turnOf(event), runtimeId);
    if (step.runId && step.status === "running") return; // a nested run is no step of its own
    Object.assign(step, { runId, status: "running", stage: stage ?? step.stage });
  },

  runtimeEnded(event) {
    const { runtimeId, runId, status, durationMs, error = null, errorKind = null, failureTarget = null } = event.payload;
    if (!event.inTurn && this.workers[turnOf(event)]) return;
    const step = this.step(turnOf(event), runtimeId);
    if (step.status === "running" && runId && step.runId && runId !== step.runId) return;
    const ended = event.type === "runtime.failed" ? "failed" : event.type === "runtime.skipped" ? "skipped" : status;
    step.status = ["failed", "skipped", "suspended"].includes(ended) ? ended : "completed";
    Object.assign(step, { durationMs: durationMs ?? step.durationMs, error, errorKind, failureTarget });
  },

  // Fills a step in, without taking back what is shown of it.
  restore(event) {
    const turnId = turnOf(event), { payload } = event;
    if (this.workers[turnId]) return;
    if (event.type === "execution.started") this.group(turnId);
    else if (event.type === "execution.completed") this.group(turnId).status = payload.committed === true ? "completed" : "failed";
    else if (event.type === "runtime.started") {
      this.group(turnId);
      const step = this.step(turnId, payload.runtimeId);
      if (!step.status) Object.assign(step, { runId: payload.runId ?? null, status: "running" });
      step.stage ??= payload.stage ?? null; // a start that names no stage has none
    } else if (/^runtime\.(completed|failed|skipped)$/.test(event.type)) {
      if (["", "running"].includes(this.step(turnId, payload.runtimeId).status)) this.runtimeEnded(event);
    }
  },

  // ---- traces ----

  async readTraces() {
    const traces = await this.json(`/api/traces/${encodeURIComponent(this.shown.session)}`);
    if (!traces) return;
    this.traced = traces.events ?? [];
    this.takeTraces();
    this.show();
  },

  jobsAreKnown() { this.jobsKnown = true; this.takeTraces(); },

  workerIsKnown({ backgroundTurnId: worker, origin, jobId }) {
    if (!worker || !origin?.sourceTurnId) return;
    this.workers[worker] = { turnId: origin.sourceTurnId, jobId };
    for (const thought of this.thoughts.values()) if (thought.turnId === worker) Object.assign(thought, this.workers[worker]);
  },

  takeTraces() {
    if (!this.jobsKnown) return;
    for (const event of this.traced.splice(0)) {
      const traced = { ...event, payload: event.payload ?? {}, inTurn: false };
      this.observe(traced);
      if (/^(llm|gateway)\.responded$/.test(event.type)) this.thought(traced);
      this.restore(traced);
    }
    this.regroup();
  },

  // What every event may tell of, whoever else cares for it.
  observe(event) {
    const key = identity(event);
    if (!event.inTurn && DIAGNOSTIC.test(event.type) && !(event.flowId && this.seen.has(key))) {
      this.seen.add(key);
      this.shown.timeline.push({ type: event.type, turnId: turnOf(event), runtimeId: event.payload?.runtimeId ?? null });
    }
    if (!ABOUT_TASKS.test(event.type) || this.workers[turnOf(event)] || (event.flowId && this.counted.has(key))) return;
    this.counted.add(key);
    event.payload?.sourceTurnId ? this.attempted(event, event.payload) : this.taskFailed(event, event.payload ?? {});
  },

  // One entry a call, told apart by turn, runtime, type, flow and position; a worker thinks in the turn of its job.
  thought(event) {
    const { reasoningContent: text, runtimeId } = event.payload, turnId = turnOf(event);
    if (!text) return;
    if (this.think(`${identity(event)} ${runtimeId}`, { turnId, runtimeId, text, jobId: null, ...this.workers[turnId] })) this.keepThinking();
  },

  think(key, thought) {
    if (this.thoughts.has(key)) return false;
    this.thoughts.set(key, thought);
    return this.shown.thinking.push(thought) > 0;
  },

  // ---- failed tasks: each waits until an attempt has run and was committed ----

  waiting(keep, more = []) {
    const { unrecovered } = this.shown, kept = unrecovered.filter(keep);
    for (const task of more) if (!kept.some((own) => own.turnId === task.turnId && own.runtimeId === task.runtimeId)) kept.push(task);
    this.shown.unrecovered = kept;
  },

  taskFailed(event, { runtimeId, committed }) {
    const turnId = turnOf(event);
    if (event.type === "runtime.failed") this.waiting(() => true, [{ turnId, runtimeId }]);
    if (event.type === "execution.completed" && committed !== true) this.waiting((task) => task.turnId !== turnId); // all of it is tried again
  },

  attempted(event, { sourceTurnId, sourceFailedRuntimeIds: ids, runtimeId, status, committed }) {
    const turnId = turnOf(event), attempt = this.attempts[turnId] ??= { ran: new Set(), settled: false };
    // A summary that is missing says nothing, and one that is there replaces the old one, unless it comes late.
    if (ids && !attempt.settled) this.waiting((task) => task.turnId !== sourceTurnId, ids.map((id) => ({ turnId: sourceTurnId, runtimeId: id })));
    if (event.type === "runtime.completed" && status !== "failed") {
      attempt.ran.add(runtimeId);
      if (!attempt.settled) this.step(turnId, runtimeId).status = "running"; // a run alone is no success
    }
    if (/^runtime\.(failed|skipped)$/.test(event.type)) attempt.ran.delete(runtimeId);
    if (event.type === "execution.completed") {
      attempt.settled = committed === true;
      for (const runtime of attempt.ran) this.step(turnId, runtime).status = attempt.settled ? "completed" : "failed";
      if (attempt.settled) this.waiting((task) => task.turnId !== sourceTurnId || !attempt.ran.has(task.runtimeId));
    }
  },
};
