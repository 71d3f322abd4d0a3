// The debug page: what the stored trace tells of calls of models, and the requests behind them. Nothing is made up: what a
// row does not say is null, and a body that cannot be had is unavailable.
const ROWS = 500_000; // rows of a trace that are read
const CANNOT = { whole: false, message: "cannot fully rebuild", headers: null, exact: false };
const number = (value) => (typeof value === "number" ? value : null);

// A reference leads to an earlier item that has a body, or nowhere.
function requestsOf(items) {
  const at = ({ bodyRef: place }, before) => (Number.isInteger(place) && place >= 0 && place < before ? items[place].body : undefined);
  return items.map((item, place) => {
    const body = item.body ?? at(item, place);
    return { statusCode: number(item.statusCode), body: body ?? null, unavailable: body === undefined };
  });
}

// How a call ended is what its answer says, and nothing else.
function responded(call, { error, usage, durationMs }) {
  call.outcome = error == null ? "succeeded" : "failed";
  call.inputTokens = number(usage?.inputTokens);
  if (call.startedAt && number(durationMs) !== null) call.endedAt = new Date(Date.parse(call.startedAt) + durationMs).toISOString();
}

// What a body names and does not hold.
function resources(body) {
  if (typeof body === "string") return /^https?:\/\//.test(body) ? [body] : [];
  return body && typeof body === "object" ? Object.values(body).flatMap(resources) : [];
}

const rows = {
  "llm.calling"({ calls, items }, place, { attempt = 0, startedAt = null, queueWaitMs, providerRequests }) {
    const requests = providerRequests ? requestsOf(providerRequests) : null;
    items.push(providerRequests ?? []);
    calls.push({ ...place, attempt, outcome: "running", startedAt, endedAt: null, queueWaitMs: number(queueWaitMs), inputTokens: null, requests });
  },
  "llm.responded"({ calls, items }, place, payload) {
    const attempt = payload.attempt ?? 0, { turnId, runtimeId } = place;
    let call = calls.find((one) => one.outcome === "running" && one.turnId === turnId && one.runtimeId === runtimeId && one.attempt === attempt);
    if (!call) {
      items.push([]);
      calls.push(call = { ...place, attempt, outcome: "running", startedAt: null, endedAt: null, queueWaitMs: null, inputTokens: null, requests: null });
    }
    responded(call, payload);
  },
  "runtime.started"({ runs }, place, { status }, type) {
    const now = type === "runtime.started" ? "running" : type === "runtime.completed" && status !== "failed" ? "completed" : "failed";
    const run = runs.find((one) => one.turnId === place.turnId && one.runtimeId === place.runtimeId);
    run ? (run.status = now) : runs.push({ ...place, status: now, recoveredAttempts: 0 });
  },
  // How many fragments the server has saved is one thing, how many this client has put together is another.
  "message.completed"({ messages, fragments }, place, { deltaCount }) {
    messages.push({ ...place, deltaCount: number(deltaCount), aggregated: fragments.get(`${place.turnId}/${place.runtimeId}`) ?? 0 });
  },
};
rows["gateway.responded"] = rows["llm.responded"];
rows["runtime.completed"] = rows["runtime.failed"] = rows["runtime.started"];

export const debug = {
  freshDebug: () => ({ fragments: new Map(), recorded: [] }),

  // A page of the trace has an order of its own; over pages, the time of an event decides.
  async openDebugPage() {
    const known = new Map(), path = `/api/traces/${encodeURIComponent(this.shown.session)}`;
    for (let cursor = ""; cursor !== null && known.size < ROWS;) {
      const page = await this.json(path + (cursor && `?cursor=${encodeURIComponent(cursor)}`));
      for (const row of page?.events ?? []) if (!known.has(row.id)) known.set(row.id, row);
      cursor = page?.nextCursor ?? null;
    }
    const ordered = [...known.values()].sort((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp));
    const page = { calls: [], runs: [], messages: [], items: [], fragments: this.fragments };
    for (const { type, turnId, payload = {} } of ordered) rows[type]?.(page, { turnId, runtimeId: payload.runtimeId }, payload, type);
    const { calls, runs, messages } = page, waits = calls.map((call) => call.queueWaitMs).filter((wait) => wait !== null);
    for (const run of runs.filter(({ status }) => status === "completed")) {
      run.recoveredAttempts = calls.filter((call) => call.outcome === "failed" && call.turnId === run.turnId && call.runtimeId === run.runtimeId).length;
    }
    const meanQueueWaitMs = waits.length ? waits.reduce((sum, wait) => sum + wait) / waits.length : null;
    this.recorded = page.items;
    this.shown.debug = { events: ordered.map((row) => row.id), calls, runs, messages, meanQueueWaitMs };
    this.show();
  },

  // What is copied holds the body, wherever it was recorded.
  copy(call, request) {
    const item = this.recorded[call]?.[request], shown = this.shown.debug?.calls[call]?.requests?.[request];
    if (!item) return;
    const { bodyRef, ...rest } = item;
    this.shown.clipboard = { ...rest, body: shown.unavailable ? "unavailable" : shown.body };
    this.show();
  },

  // A record is rebuilt when this version knows it, its JSON is whole, and what it names is still there.
  async rebuild(call, request) {
    const item = this.recorded[call]?.[request], shown = this.shown.debug?.calls[call]?.requests?.[request];
    if (!item) return;
    const known = [1, 2].includes(item.schemaVersion) && item.complete === true && !shown.unavailable;
    const named = known ? await Promise.all(resources(shown.body).map((url) => this.ask("GET", url))) : [];
    const whole = known && named.every((answer) => answer?.status === 200);
    this.shown.rebuilt = whole ? { whole, message: "the JSON of the request", headers: null, exact: false } : CANNOT;
    this.show();
  },

  // What anybody may see: recorded bodies hold what the player wrote, so they are left out.
  exportSession() {
    const { events = [], calls = [] } = this.shown.debug ?? {};
    const about = calls.map(({ runtimeId, attempt, outcome }) => ({ runtimeId, attempt, outcome }));
    this.shown.exported = JSON.stringify({ events: events.length, calls: about });
    this.show();
  },
};
