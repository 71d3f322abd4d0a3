// A Covel client for browsers and for Node.js: fetch, streams, nothing else.
//   const client = new CovelClient({ url, onShow: (shown) => render(shown) }); client.open("session-1"); client.say("Hi");
import { events } from "./events.mjs";
import { Slots } from "./slots.mjs";

const TOPICS = "runtime,state,game,plugin,session,system,job";
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const parse = (text) => { try { return JSON.parse(text); } catch { return null; } };

// Whether a cursor is of another epoch, or newer; by number, not by text.
function isNews(cursor, than) {
  const cut = (text) => [text.slice(0, text.lastIndexOf(":")), Number(text.slice(text.lastIndexOf(":") + 1))];
  const [a, b] = [cut(cursor), cut(than)];
  return a[0] !== b[0] || a[1] > b[1];
}

export class CovelClient {
  constructor({ url, token, timeScale = 1, onShow = () => {} }) {
    Object.assign(this, { url, token, timeScale, onShow, requests: 0, visit: null, hidden: false });
  }

  open(session) {
    this.visit?.abort();
    this.visit = new AbortController();
    this.shown = {
      session, connection: "connecting", cursor: null, phase: null, completedPlayerTurns: 0, executing: false,
      executionError: null, notice: null, retryOffered: false, input: "", messages: [], events: [],
      pluginData: {}, characters: {}, dimensions: {}, slots: {},
    };
    Object.assign(this, { slots: new Slots(), action: null, held: null, joinedAt: null, backoff: 1000, refusals: 0, connectedBefore: false, viewWanted: false });
    this.readView().then(() => this.shown.connection === "connecting" && !this.subscription && this.subscribe());
    sleep(800).then(() => this.subscription || this.connectedBefore || this.subscribe()); // or without the view's cursor
    this.show();
  }

  say(text) {
    if (this.action) { this.shown.notice = "busy"; return this.show(); }
    const item = text.startsWith("/") ? { type: "command", command: text } : { type: "say", text };
    const request = this.act("submit_actions", { actions: [item] });
    this.shown.messages.push({ role: "player", text, status: "sending", request });
    this.show();
  }

  answer(form, values) {
    const message = this.shown.messages.find((message) => message.form?.blockId === form);
    if (!message) return;
    Object.assign(message.form, { draft: values, issues: [] }); // what was filled in stays, also when it cannot be sent now
    if (this.action) { this.shown.notice = "busy"; return this.show(); }
    const submissions = [{ interactionId: form, type: "form", values }];
    this.act("submit_actions", { actions: [{ type: "interaction", turnId: message.turnId, submissions }] }, message.form);
  }

  stop() { this.json("POST", `/api/sessions/${this.shown.session}/abort`, {}); }
  retry() { this.shown.retryOffered = false; this.act("retry_turn", {}); }
  hide() { this.hidden = true; this.unsubscribe("paused"); }
  reappear() { this.hidden = false; this.subscribe(); }

  async fetch(method, path, body, accept, signal) {
    const headers = { accept, ...(this.token && { "x-session-token": this.token }) };
    if (body) headers["content-type"] = "application/json";
    return fetch(this.url + path, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  }

  async json(method, path, body) {
    const { signal } = this.visit;
    try {
      const response = await this.fetch(method, path, body, "application/json", signal);
      const answer = response.ok ? await response.json() : null;
      return signal.aborted ? null : answer; // an answer counts only for the visit that asked
    } catch { return null; }
  }

  unsubscribe(state) {
    this.subscription?.abort();
    this.subscription = null;
    this.shown.connection = state;
  }

  async subscribe() {
    if (this.hidden || (this.action && !this.action.lost) || this.refusals >= 5) return;
    this.subscription?.abort();
    const mine = this.subscription = new AbortController(), visit = this.visit;
    visit.signal.addEventListener("abort", () => mine.abort());
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
    this.shown.connection = this.refusals >= 5 ? "closed" : "connecting";
    this.show();
    await sleep(this.backoff * this.timeScale);
    this.backoff = Math.min(this.backoff * 2, 30_000);
    if (!visit.signal.aborted && !this.subscription) this.subscribe();
  }

  frame({ event, data, id }) {
    if (id) this.shown.cursor = id; // only events have an id, and it is kept as it stands
    const body = parse(data);
    if (event === "system.connected") this.connected(body?.cursor ?? null);
    else if (event === "system.reset") {
      this.shown.cursor = body?.cursor ?? this.shown.cursor;
      this.readView();
      } else if (body?.sessionId === this.shown.session) {
      const one = { ...body, type: event, inTurn: false }; // the frame's name decides
      this.held?.push(one), this.apply(one); // newer than the view that is under way
    }
    this.show();
  }

  connected(cursor) {
    const again = this.connectedBefore;
    this.connectedBefore = true;
    if (this.shown.cursor === null && this.held && !again) this.joinedAt = cursor;
    const missed = this.blind && this.shown.cursor !== null && cursor && isNews(cursor, this.shown.cursor);
    if (missed) this.shown.cursor = cursor; // the view came meanwhile, and is older
    this.shown.cursor ??= cursor;
    if (missed || (again && this.lost)) this.readView(); // what was missed may not be replayed
    this.lost = false;
  }

  async readView() {
    if (this.action && !this.action.lost) { this.viewWanted = true; return; }
    const mine = this.held = [];
    this.readSlots();
    const view = await this.json("GET", `/api/sessions/${this.shown.session}/view`);
    if (this.held !== mine) return; // asked again since
    this.held = null;
    if (!view) return;
    if (this.action && !this.action.lost) return void (this.viewWanted = true);
    this.takeOver(view);
    mine.forEach((event) => this.apply(event));
    const joined = this.joinedAt;
    this.joinedAt = null;
    if (joined !== null && isNews(joined, view.eventCursor)) this.readView();
    else if (this.shown.cursor === null) this.shown.cursor = view.eventCursor;
    this.show();
  }

  async readSlots() {
    this.slots.ask();
    const slots = await this.json("GET", `/api/sessions/${this.shown.session}/ui-slots`);
    if (slots) this.slots.answer(slots);
    this.show();
  }

  takeOver(view) {
    const { shown, action } = this;
    const state = view.execution?.state, over = action?.lost && state !== "running";
    shown.phase = view.session?.phase ?? shown.phase;
    shown.completedPlayerTurns = Math.max(shown.completedPlayerTurns, view.session?.completedPlayerTurns ?? 0);
    for (const character of view.characters ?? []) shown.characters[character.id] = character;
    Object.assign(shown.dimensions, view.dimensions);
    const answers = view.submittedInteractions ?? [];
    const stored = (view.messages ?? []).map((row) => ({
      id: row.id, role: row.role === "user" ? "player" : row.role, text: row.content, status: "completed", turnId: row.turnId,
      runtimeId: row.runtimeId, kind: row.kind, speakers: (row.segments ?? []).map((one) => one.speaker ?? null),
      form: row.block && (shown.messages.find((own) => own.form?.blockId === row.block.id)?.form ?? formOf(row.block)),
    }));
    for (const { form, turnId } of stored) {
      const answer = form && answers.find((one) => one.interactionId === form.blockId && (!turnId || one.turnId === turnId));
      if (answer) Object.assign(form, { submitted: true, values: answer.values, issues: [] });
    }
    const known = (own) => stored.some((row) => (own.id && row.id === own.id) || (own.form && row.form?.blockId === own.form.blockId)
      || (own.status === "sending" && row.role === "player" && row.text === own.text)
      || (own.status !== "completed" && row.role !== "player" && row.turnId === own.turnId && row.runtimeId === own.runtimeId));
    const gone = (own) => over && own.role !== "player" && action.turns.includes(own.turnId); // it was not saved
    const rest = shown.messages.filter((own) => own.status !== "completed" && !known(own) && !gone(own));
    shown.messages = [...stored, ...rest];
    if (!over) return;
    Object.assign(shown, { executing: false, retryOffered: Boolean(view.execution?.retry) });
    this.action = null;
  }

  act(type, payload, form = null) {
    const requestId = `js-${++this.requests}`, session = this.shown.session;
    const mine = this.action = { requestId, form, started: false, turns: [], lost: false };
    Object.assign(this.shown, { executing: true, executionError: null, notice: null });
    this.unsubscribe("paused"); // the action's stream says it all meanwhile
    this.runAction(mine, { requestId, sessionId: session, type, payload });
    this.show();
    return requestId;
  }

  async runAction(mine, body) {
    try {
      const response = await this.fetch("POST", "/api/actions", body, "text/event-stream", this.visit.signal);
      if (!response.ok) {
        this.shown.executionError = `the server answered ${response.status}`;
        return this.actionOver();
      }
      if (body.payload.actions?.[0]?.text === this.shown.input) this.shown.input = ""; // it is accepted
      for await (const { data } of events(response)) {
        const event = parse(data);
        if (this.action !== mine) break; // it is over, or another visit
        if (event?.sessionId === this.shown.session) this.apply({ ...event, inTurn: true });
        this.show();
      }
    } catch { /* lost; what follows is the same */ }
    if (this.action !== mine) return;
    mine.lost = true; // nothing is sent again; the server is asked how it stands
    this.subscribe();
    for (let failures = 0; this.action === mine;) {
      const status = this.hidden ? null : await this.json("GET", `/api/sessions/${this.shown.session}/execution`);
      if (status && status.state !== "running") { await this.readView(); break; }
      failures = status ? 0 : failures + 1;
      await sleep((status ? 3000 : [3000, 6000, 12000, 24000][failures - 1] ?? 30000) * this.timeScale);
    }
  }

  actionOver(reread = false, committed = false) {
    this.action = null;
    this.shown.executing = false;
    this.subscribe();
    if (reread || this.viewWanted) { this.viewWanted = false; this.readView(); }
    else if (committed) this.json("GET", `/api/sessions/${this.shown.session}`).then((session) => {
      if (session?.phase) this.shown.phase = session.phase;
      this.shown.completedPlayerTurns = Math.max(this.shown.completedPlayerTurns, session?.completedPlayerTurns ?? 0);
      this.show();
    });
  }

  apply(event) {
    const handler = handlers[event.type]; // what has none is for somebody else
    if (handler && event.payload) handler(this, event, event.payload, this.shown);
  }

  settle(turnId, committed) {
    const { shown } = this;
    if (!committed) shown.messages = shown.messages.filter((own) => own.role === "player" || own.turnId !== turnId || own.status === "completed");
    for (const own of shown.messages) if (own.turnId === turnId) own.status = "completed";
  }

  show() { this.shown.slots = this.slots.shown(); this.onShow(this.shown); }
}
const formOf = (block) => ({ blockId: block.id, notice: block.data?.notice ?? null, submitted: false, values: null, draft: null, issues: [] });
const writing = (shown, { turnId, payload }) =>
  shown.messages.find((own) => own.status === "streaming" && own.turnId === turnId && own.runtimeId === payload.runtimeId);

const handlers = {
  "execution.started"({ action, shown, slots }, { inTurn, turnId, requestId }) {
    slots.begin(turnId);
    if (!inTurn || !action) return;
    action.started = true;
    action.turns.push(turnId);
    for (const own of shown.messages) if (own.request === requestId && !own.turnId) own.turnId = turnId;
  },
  "narrative.delta"(client, event, { runtimeId, kind, delta, reset, segment }, shown) {
    if (!event.inTurn) return;
    let own = writing(shown, event);
    if (!own) shown.messages.push(own = { role: "assistant", text: "", status: "streaming", turnId: event.turnId, runtimeId, kind, speakers: [] });
    if (reset) Object.assign(own, { text: "", speakers: [] });
    own.text += delta;
    if (segment) own.speakers[segment.index] = segment.speaker ?? own.speakers[segment.index] ?? null;
  },
  "narrative.completed"(client, event, { messageId, content, runtimeId, kind, segments }, shown) {
    if (!event.inTurn) return;
    const own = writing(shown, event) ?? shown.messages[shown.messages.push({ role: "assistant", speakers: [] }) - 1];
    const speakers = segments?.map((segment) => segment.speaker ?? null) ?? own.speakers;
    Object.assign(own, { id: messageId, text: content, status: "provisional", turnId: event.turnId, runtimeId, kind, speakers });
  },
  "interaction.requested"(client, event, { block, runtimeId, turnId }, shown) {
    if (shown.messages.some((own) => own.form?.blockId === block.id)) return; // both streams may bring it
    const status = event.inTurn ? "provisional" : "completed";
    shown.messages.push({ role: "assistant", text: "", status, turnId: turnId ?? event.turnId, runtimeId, form: formOf(block) });
  },
  "interaction.submitted"({ action }, { inTurn, requestId }, { results, message }, shown) {
    if (!inTurn || !action?.form) return; // only who submitted a form shows the answer
    Object.assign(action.form, { submitted: true, values: results?.[0]?.values ?? null, draft: null, issues: [] });
    if (message) shown.messages.push({ id: message.id, role: "player", text: message.content, status: "sending", request: requestId });
  },
  "event.emitted"(client, event, payload, shown) { shown.events.push(payload); },
  "execution.round.completed"(client, { inTurn, turnId }, { committed }) { if (inTurn) client.settle(turnId, committed); },
  "execution.completed"(client, { inTurn, turnId }, { committed, abortReason, error, resync }, shown) {
    const { action } = client;
    client.slots.end(turnId);
    if (!inTurn || !action) return;
    for (const turn of action.turns) if (turn !== turnId) client.settle(turn, true); // earlier rounds were committed
    client.settle(turnId, committed);
    if (abortReason === "aborted-by-player") {
      shown.notice = "stopped";
      shown.retryOffered ||= action.started;
      const echo = action.started ? -1 : shown.messages.findIndex((own) => own.request === action.requestId);
      if (echo >= 0) shown.input ||= shown.messages.splice(echo, 1)[0].text; // nothing began: the text goes back
    } else if (!committed) shown.executionError = error ?? abortReason ?? "the turn failed";
    client.actionOver(resync === true, committed);
  },
  "error.occurred"(client, { inTurn }, { code, message, details }, shown) {
    const form = client.action?.form;
    if (!inTurn || !client.action) return;
    if (code === "form_rejected" && form) { form.issues = details?.issues ?? []; client.actionOver(); }
    else if (code === "interaction_already_submitted" && form) {
      client.actionOver(true);
      client.json("GET", `/api/sessions/${shown.session}/execution`);
    } else shown.executionError = message;
  },
  "plugin-data.changed"(client, event, { pluginId, changes }, shown) {
    for (const { namespace, key, value, operation } of changes) {
      const rows = (shown.pluginData[pluginId] ??= {})[namespace] ??= {};
      operation === "delete" ? delete rows[key] : (rows[key] = value);
    }
  },
  "ui.slot.changed": ({ slots }, event, payload) => slots.change(payload),
  "ui.slot.preview": ({ slots }, { turnId }, payload) => slots.preview(payload.turnId ?? turnId, payload),
  "ui.slot.cleared": ({ slots }, event, { turnId }) => slots.clear(turnId),
  "turn.resumed": (client) => client.readView(),
  "job-status.updated": (client, event, { state }) => ["succeeded", "failed", "cancelled"].includes(state) && client.readView(),
  "character.upserted": (client, event, { character }, shown) => (shown.characters[character.id] = character),
  "dimensions.changed"(client, event, { dimensions }, shown) { Object.assign(shown.dimensions, dimensions); },
};
