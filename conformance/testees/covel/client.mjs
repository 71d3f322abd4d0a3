// A Covel client for browsers and for Node.js: fetch, streams, nothing else.
//   const client = new CovelClient({ url, onShow: (shown) => render(shown) }); client.open("session-1"); client.say("Hi");
// Here: sessions, the subscription, and actions. What is stored is read in stored.mjs, events are applied in turn.mjs and
// background.mjs, history.mjs has steps and traces, plugins.mjs what goes to plugins, and debug.mjs the debug page.
import { background } from "./background.mjs";
import { debug } from "./debug.mjs";
import { events } from "./events.mjs";
import { history } from "./history.mjs";
import { plugins } from "./plugins.mjs";
import { Slots } from "./slots.mjs";
import { isNews, stored } from "./stored.mjs";
import { turn } from "./turn.mjs";

const TOPICS = "runtime,state,game,plugin,session,system,job";
const HELD = 10_000; // events that wait for what is being read
const REFUSALS = 5; // refused so often, the subscription is given up
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// What is nested too deep to be written again, is not shown either.
const parse = (text) => { try { const value = JSON.parse(text); JSON.stringify(value); return value; } catch { return null; } };

export class CovelClient {
  // `store` is the URL of a store of the client's own, for one that keeps its data itself.
  constructor({ url, token, timeScale = 1, store = null, onShow = () => {} }) {
    const page = Math.random().toString(36).slice(2, 8);
    Object.assign(this, { url, token, timeScale, store, onShow, page, numbers: 0, visit: null, behind: [], handlers: [] });
    this.hidden = false;
  }

  get shown() { return this.visit?.shown; }
  number() { return `${this.page}-${++this.numbers}`; } // of requests and inputs, also of another page

  // A session that is left while its action runs goes on behind the other one.
  open(session) {
    const left = this.visit, back = this.behind.find((visit) => visit.action && visit.shown.session === session);
    if (left?.acts() && left.shown.session !== session) left.goBehind(), this.behind.push(left);
    else left?.leave();
    this.behind = this.behind.filter((visit) => visit !== back && visit.action);
    this.visit = back ?? new Visit(this, session);
    back ? back.comeBack() : this.visit.begin();
  }

  close() { this.visit?.leave(); this.visit = null; }
  hide() { this.hidden = true; this.visit?.unsubscribe("paused"); this.visit?.show(); }
  reappear() { this.hidden = false; this.visit?.subscribe(); this.visit?.watch(this.visit.action); }
  on(type, handler) { this.handlers.push({ type, handler }); } // of events of the subscription
}

// One session, from opening to leaving it.
class Visit {
  constructor(client, session) {
    Object.assign(this, { client, slots: new Slots(), gone: new AbortController(), subscription: null });
    this.shown = {
      session, connection: "connecting", cursor: null, phase: null, completedPlayerTurns: 0, executing: false,
      executionError: null, notice: null, retryOffered: false, input: "", selections: [], messages: [], unsaved: [],
      events: [], groups: [], steps: [], jobs: {}, pluginData: {}, slots: {}, suspensions: [], characters: {},
      characterSchema: null, dimensions: {}, settlements: {}, pausedPlugins: {}, snapshots: [], advance: null, thinking: [],
      assets: [], media: {}, mediaWarnings: [], unrecovered: [], timeline: [], stage: null, plugins: [], world: null,
      approval: null, callError: null, handlerWarnings: [], debug: null, clipboard: null, rebuilt: null, exported: null,
    };
    Object.assign(this, { action: null, next: null, keeping: null, backoff: 1000, refusals: 0, held: [], asked: new Map() });
    Object.assign(this, { opening: true, isBehind: false, connectedBefore: false, lost: false, joinedAt: null });
    Object.assign(this, this.freshStored(), this.freshHistory(), this.freshPlugins(), this.freshDebug());
  }

  show() {
    if (this.client.visit !== this) return;
    this.shown.slots = this.slots.shown();
    this.shown.stage = this.shown.messages.findLast((own) => own.kind === "story")?.text ?? null;
    this.client.onShow(this.shown);
  }

  begin() {
    this.refetch();
    this.recall();
    this.readTraces();
    sleep(800).then(() => this.subscription || this.connectedBefore || this.subscribe()); // or without the view's cursor
    this.show();
  }

  leave() { this.action = null; this.gone.abort(); }
  acts() { return this.action !== null && !this.action.lost; }
  goBehind() { this.isBehind = true; this.next = null; this.forgetCalls(); this.unsubscribe("closed"); }
  comeBack() { this.isBehind = false; this.shown.connection = "paused"; this.readView(); this.show(); }

  async fetch(method, path, body, accept, signal = this.gone.signal) {
    const { url, token } = this.client, headers = { accept, ...(token && { "x-session-token": token }) };
    if (body) headers["content-type"] = "application/json";
    const at = path.startsWith("/") ? url + path : path;
    return fetch(at, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  }

  // The answer with its JSON; null when there is none.
  async ask(method, path, body) {
    try {
      const response = await this.fetch(method, path, body, "application/json");
      return { status: response.status, body: parse(await response.text()) };
    } catch { return null; }
  }

  path(rest = "") { return `/api/sessions/${encodeURIComponent(this.shown.session)}${rest}`; }
  async json(path) { const answer = await this.ask("GET", path); return answer?.status === 200 ? answer.body : null; }

  // ---- the subscription ----

  unsubscribe(state) {
    this.subscription?.abort();
    this.subscription = null;
    this.shown.connection = state;
  }

  async subscribe() {
    if (this.client.hidden || this.isBehind || this.acts() || this.refusals >= REFUSALS) return;
    this.subscription?.abort();
    const mine = this.subscription = new AbortController();
    this.gone.signal.addEventListener("abort", () => mine.abort(), { signal: mine.signal });
    if (this.gone.signal.aborted) return;
    this.blind = this.shown.cursor === null;
    const cursor = this.blind ? "" : `&lastEventId=${encodeURIComponent(this.shown.cursor)}`;
    const path = `/api/events/stream?sessionId=${encodeURIComponent(this.shown.session)}&topics=${TOPICS}${cursor}`;
    try {
      const response = await this.fetch("GET", path, null, "text/event-stream", mine.signal);
      if (response.ok) {
        Object.assign(this, { backoff: 1000, refusals: 0 });
        this.shown.connection = "open";
        this.show();
        for await (const frame of events(response)) if (!mine.signal.aborted) this.frame(frame);
      } else {
        const refused = response.status < 500 && response.status !== 408 && response.status !== 429;
        this.refusals = refused ? this.refusals + 1 : 0;
      }
    } catch { /* lost; what follows is the same */ }
    if (mine.signal.aborted) return;
    Object.assign(this, { subscription: null, lost: true });
    this.shown.connection = this.refusals >= REFUSALS ? "closed" : "connecting";
    this.show();
    await sleep(this.backoff * this.client.timeScale);
    this.backoff = Math.min(this.backoff * 2, 30_000);
    if (!this.gone.signal.aborted && !this.subscription) this.subscribe();
  }

  frame({ event, data, id }) {
    if (id) this.shown.cursor = id; // only events have an id, and it is kept as it stands
    const body = parse(data);
    if (event === "system.connected") this.connected(body?.cursor ?? null);
    else if (event === "system.reset") {
      this.shown.cursor = body?.cursor ?? this.shown.cursor;
      this.refetch();
      this.readSession();
    } else if (body?.sessionId === this.shown.session) {
      const one = { ...body, type: event, inTurn: false }; // the frame's name decides
      if (this.asked.size && this.held.length < HELD) this.held.push(one); // newer than what is being read
      else this.apply(one);
    }
    this.show();
  }

  connected(cursor) {
    const again = this.connectedBefore, lost = this.lost;
    Object.assign(this, { connectedBefore: true, lost: false });
    if (this.shown.cursor === null && this.asked.has("view") && !again) this.joinedAt = cursor;
    const missed = this.blind && this.shown.cursor !== null && cursor && isNews(cursor, this.shown.cursor);
    if (missed) this.shown.cursor = cursor; // the view came meanwhile, and is older
    this.shown.cursor ??= cursor;
    if (missed || (again && lost)) this.refetch(), this.readTraces(); // what was missed may not be replayed
  }

  apply(event) {
    if (!event.inTurn) this.callHandlers(event);
    try {
      (turn[event.type] ?? background[event.type])?.(this, event, event.payload ?? {}, this.shown); // others are for somebody else
      this.observe(event);
      this.regroup();
    } catch { /* it is not what the protocol says it is; the next one is */ }
  }

  // A handler that fails is told of by name, without what it was given or said, and nothing else comes of it.
  callHandlers({ id, type, payload }) {
    for (const one of this.client.handlers) {
      if (one.type !== type) continue;
      try { one.handler(payload); } catch (error) {
        this.shown.handlerWarnings.push({ session: this.shown.session, event: id, type, error: error?.constructor?.name ?? "Error" });
      }
    }
  }

  // ---- actions ----

  // What is said stays in the input box until it is accepted.
  say(text) { this.shown.input = text; this.proceed(text); this.show(); }

  proceed(text) {
    if (this.action || this.keeping) { // the running action is stopped first; one input waits, no more
      if (this.next !== null) { this.shown.notice = "busy"; return; }
      this.next = text;
      this.stop();
    } else if (text.startsWith("/") && this.command(text)) return;
    else if (this.client.store) this.keepInput(text);
    else this.submit(text);
  }

  sayNext() {
    const text = this.next;
    this.next = null;
    if (text !== null) this.proceed(text);
  }

  submit(text, inputMessageId) {
    const said = text.startsWith("/") ? { type: "command", command: text } : { type: "say", text };
    const chosen = this.shown.selections.map(({ blockId, values }) =>
      ({ type: "interaction", submissions: [{ interactionId: blockId, type: "choice", values }] }));
    const mine = this.act("submit_actions", { actions: [said, ...chosen], ...(inputMessageId && { inputMessageId }) });
    mine.choices = chosen.length;
    this.shown.messages.push({ role: "player", text, status: "sending", request: mine.requestId });
    this.show();
  }

  answer(blockId, values) {
    const message = this.shown.messages.find((own) => own.form?.blockId === blockId);
    if (!message) return;
    Object.assign(message.form, { draft: values, issues: [] }); // what was filled in stays, also when it cannot be sent now
    if (this.action || this.keeping) { this.shown.notice = "busy"; return this.show(); }
    const submissions = [{ interactionId: blockId, type: "form", values }];
    this.act("submit_actions", { actions: [{ type: "interaction", turnId: message.turnId, submissions }] }, message.form);
  }

  stop() { if (this.action) this.ask("POST", this.path("/abort"), {}); }
  retry() { this.shown.retryOffered = false; if (!this.action) this.act("retry_turn", {}); }
  retryTask(turnId, runtimeId) { if (!this.action) this.act("retry_runtime", { runtimeId, retryFromTurnId: turnId }); }

  act(type, payload, form = null) {
    const requestId = this.client.number(), sessionId = this.shown.session;
    const mine = this.action = { requestId, form, started: false, turns: [], lost: false, choices: 0, round: null };
    Object.assign(this.shown, { executing: true, executionError: null, notice: null });
    this.unsubscribe("paused"); // the action's stream says it all meanwhile
    if (this.asked.delete("view")) this.viewWanted = true; // its answer may be older than what this action commits
    this.run(mine, { requestId, sessionId, type, payload });
    this.show();
    return mine;
  }

  async run(mine, body) {
    try {
      const response = await this.fetch("POST", "/api/actions", body, "text/event-stream");
      if (this.action !== mine) return;
      if (!response.ok) return this.refused(mine, response.status);
      this.taken(mine);
      for await (const { data } of events(response)) {
        const event = parse(data);
        if (this.action !== mine) break; // it is over
        if (event?.sessionId === this.shown.session) this.apply({ ...event, inTurn: true });
        this.show();
      }
    } catch { /* lost; what follows is the same */ }
    if (this.action !== mine) return;
    if (this.isBehind) return void (this.action = null); // the next visit reads what became of it
    mine.lost = true; // nothing is sent again; the server is asked how it stands
    this.subscribe();
    this.watch(mine);
  }

  taken({ requestId, choices }) {
    const said = this.shown.messages.find((own) => own.request === requestId);
    if (said?.text === this.shown.input) this.shown.input = "";
    this.shown.selections.splice(0, choices);
    this.show();
  }

  refused(mine, status) {
    this.action = null;
    this.shown.executionError = `the server answered ${status}`;
    this.takeBack(mine.requestId);
    this.actionOver();
    this.show();
  }

  // Nothing began: what was said goes back into the input box.
  takeBack(requestId) {
    const place = this.shown.messages.findIndex((own) => own.request === requestId);
    if (place >= 0) this.shown.input ||= this.shown.messages.splice(place, 1)[0].text;
  }

  // Asks how a lost action stands until it is over.
  async watch(mine) {
    if (!mine?.lost || mine.asking) return;
    const turn = mine.watch = {}; // a page that comes back asks at once, in place of who waits
    for (let failures = 0; this.action === mine && mine.watch === turn && !this.client.hidden;) {
      mine.asking = true;
      const status = await this.json(this.path("/execution"));
      mine.asking = false;
      if (this.action !== mine || mine.watch !== turn) return;
      if (status && status.state !== "running") {
        this.lostIsOver();
        this.readView(); // it says what became of its texts; the person may go on meanwhile
        this.sayNext();
        return this.show();
      }
      failures = status ? 0 : failures + 1;
      await sleep((status ? 3000 : [3000, 6000, 12000, 24000][failures - 1] ?? 30000) * this.client.timeScale);
    }
  }

  actionOver({ refresh = false, reread = false } = {}) {
    Object.assign(this.shown, { executing: false, advance: null });
    if (!this.isBehind) {
      this.subscribe();
      if (reread || this.viewWanted) this.readView();
      else if (refresh) this.readSession(); // phase and count may have changed without an event
    }
    if (this.client.store) this.keepCheckpoint(); // what is to be said next waits for it
    else this.sayNext();
  }
}
Object.assign(Visit.prototype, stored, history, plugins, debug);
