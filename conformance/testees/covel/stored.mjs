// What the server has stored: the session view, the lists beside it, the messages between two windows, and, for a client
// that keeps its data itself, its own store.
import { settlement } from "./background.mjs";

const PAGES = 1_000; // pages that are read to join two windows; a hole that is longer stays one
const RANKS = ["queued", "running", "progress", "waiting-input"];
const rank = (state) => (state === undefined ? -1 : RANKS.includes(state) ? Math.min(RANKS.indexOf(state), 2) : 3);
const PUBLIC = { queued: "queued", claimed: "running", running: "running", committing: "progress", succeeded: "succeeded", cancelled: "cancelled" };

// Whether a cursor is of another epoch, or newer; by number, not by text.
export function isNews(cursor, than) {
  const cut = (text) => [text.slice(0, text.lastIndexOf(":")), Number(text.slice(text.lastIndexOf(":") + 1))];
  const [a, b] = [cut(cursor), cut(than)];
  return a[0] !== b[0] || a[1] > b[1];
}

export const formOf = (block) => ({
  blockId: block.id, notice: block.data?.notice ?? block.meta?.notice ?? null, submitted: false, values: null, draft: null, issues: [],
});
const messageOf = (row) => ({
  id: row.id, role: row.role === "user" ? "player" : row.role, text: row.content, status: "completed", turnId: row.turnId,
  runtimeId: row.runtimeId, kind: row.kind, speakers: (row.segments ?? []).map((one) => one.speaker ?? null),
  ...(row.block && { form: formOf(row.block) }),
});

export const stored = {
  freshStored: () => ({ viewWanted: false, filling: null, recovering: [], messagesCursor: null, rowTimes: {}, worlds: [], worldId: null }),

  // Asks for something that is stored. Events that come meanwhile are newer; they wait until all of it is there.
  async read(name, path, take) {
    const mine = {};
    this.asked.set(name, mine);
    const answer = await this.json(path);
    if (this.asked.get(name) !== mine || this.gone.signal.aborted) return; // late: it was asked again, or nobody wants it
    this.asked.delete(name);
    try { take(answer); } catch { /* it is not what the protocol says it is */ }
    if (!this.asked.size) for (const event of this.held.splice(0)) this.apply(event);
    this.show();
  },

  // As on opening, after a reset, and after a lost connection.
  refetch() {
    this.readView();
    this.slots.ask();
    this.read("slots", this.path("/ui-slots"), (slots) => slots && (this.slots.answer(slots), this.loadMedia()));
    this.read("jobs", this.path("/runtime-jobs"), (jobs) => { this.takeJobs(jobs?.items ?? []); this.jobsAreKnown(); });
    this.read("suspensions", this.path("/suspensions"), (open) => {
      if (open) this.shown.suspensions = open.items.map(({ id, runtimeId }) => ({ id, runtimeId }));
    });
    this.read("plugins", this.path("/plugins"), (plugins) => this.takePlugins(plugins?.active ?? []));
    this.read("worlds", "/api/worlds", (worlds) => { this.worlds = worlds?.items ?? this.worlds; this.showWorld(); });
  },

  async readSession() {
    const session = await this.json(this.path());
    if (session) this.takeSession(session);
    this.show();
  },

  readView() {
    if (this.isBehind) return;
    if (this.acts()) { this.viewWanted = true; return; } // after it
    Object.assign(this, { viewWanted: false, filling: null });
    this.asked.delete("fill");
    this.read("view", this.path("/view"), (view) => view && this.viewed(view));
  },

  viewed(view) {
    if (this.acts()) { this.viewWanted = true; return; } // what streams now belongs to another action
    const ids = new Set(this.shown.messages.map((own) => own.id).filter(Boolean)), window = view.messages ?? [];
    const joins = !ids.size || !window.length || !view.messagesCursor || window.some((row) => ids.has(row.id));
    if (joins) return this.adopt(view);
    this.filling = { view, between: [], pages: 0, ids };
    this.fill(view.messagesCursor);
  },

  // Messages lie between what is shown and a newer window: pages are read back to what is shown, and no further.
  fill(cursor) {
    this.read("fill", this.path(`/messages/page?cursor=${encodeURIComponent(cursor)}`), (page) => {
      const { filling } = this, rows = page?.items ?? [];
      if (!filling) return;
      const joined = rows.some((row) => filling.ids.has(row.id));
      filling.between.unshift(...rows);
      if (!joined && rows.length && page.nextCursor && ++filling.pages < PAGES) return this.fill(page.nextCursor);
      this.filling = null;
      const messagesCursor = joined ? this.messagesCursor : filling.view.messagesCursor;
      this.adopt({ ...filling.view, messagesCursor, messages: [...filling.between, ...filling.view.messages] });
    });
  },

  async older() {
    if (!this.messagesCursor) return;
    const page = await this.json(this.path(`/messages/page?cursor=${encodeURIComponent(this.messagesCursor)}`));
    if (!page) return;
    this.messagesCursor = page.nextCursor;
    const known = new Set(this.shown.messages.map((own) => own.id));
    this.shown.messages.unshift(...page.items.map(messageOf).filter((row) => !known.has(row.id)));
    this.show();
  },

  adopt(view) {
    this.takeOver(view);
    if (this.opening) this.adoptAction(view.execution);
    this.opening = false;
    this.settleRecovered(view);
    const joined = this.joinedAt;
    this.joinedAt = null;
    if (joined !== null && isNews(joined, view.eventCursor)) this.readView(); // something happened between the two
    else if (joined === null) this.shown.cursor ??= view.eventCursor;
    if (!this.subscription && !this.connectedBefore) this.subscribe();
  },

  takeOver(view) {
    const { shown } = this;
    this.takeSession(view.session ?? {});
    this.takeMessages(view);
    Object.assign(shown.dimensions, view.dimensions);
    for (const receipt of view.dimensionSettlements ?? []) settlement(shown, receipt);
    for (const character of view.characters ?? []) shown.characters[character.id] = character;
    shown.characterSchema = view.characterSchema ?? shown.characterSchema;
    const paused = view.plugins?.filter((plugin) => plugin.paused?.reason);
    if (paused) shown.pausedPlugins = Object.fromEntries(paused.map((plugin) => [plugin.id, plugin.paused.reason]));
    this.tracker = [view.dimensionProviderPluginId, view.dimensionRecovery?.trackerRuntimeId];
    for (const step of view.executionSteps ?? []) this.restore(step);
    this.regroup();
    this.messagesCursor = view.messagesCursor ?? null;
    this.worldId = view.session?.worldId ?? this.worldId;
    this.showWorld();
    if (view.execution?.retry && !this.action) shown.retryOffered = true;
  },

  // Counts only rise: an older answer does not take a turn back.
  takeSession({ phase, completedPlayerTurns = 0 }) {
    this.shown.phase = phase ?? this.shown.phase;
    this.shown.completedPlayerTurns = Math.max(this.shown.completedPlayerTurns, completedPlayerTurns);
  },

  // The stored messages in their order, behind those that were read before them; what is not stored yet comes last.
  takeMessages(view) {
    const shown = this.shown.messages, rows = (view.messages ?? []).map(messageOf);
    for (const row of rows) if (row.form) row.form = shown.find((own) => own.form?.blockId === row.form.blockId)?.form ?? row.form;
    const isStored = (own) => rows.some((row) => (own.id && row.id === own.id) || (own.form && row.form?.blockId === own.form.blockId)
      || (own.role === "player" && !own.id && row.role === "player" && row.text === own.text && (!own.turnId || row.turnId === own.turnId)));
    const before = rows.length ? Math.max(shown.findIndex((own) => own.id && own.id === rows[0].id), 0) : 0;
    const isOpen = (own) => own.status !== "completed" || (own.role === "player" && !own.id);
    const rest = shown.slice(before).filter((own) => isOpen(own) && !isStored(own));
    this.shown.messages = [...shown.slice(0, before), ...rows, ...rest];
    for (const { form, turnId } of this.shown.messages) {
      const same = (one) => one.interactionId === form.blockId && (!turnId || one.turnId === turnId);
      const answer = form && (view.submittedInteractions ?? []).find(same);
      if (answer) Object.assign(form, { submitted: true, values: answer.values, issues: [] });
    }
  },

  // ---- an action that is lost, or that another page has begun ----

  adoptAction(execution) {
    if (execution?.state !== "running" || this.action) return;
    const { requestId = null, turnId } = execution;
    this.action = { requestId, form: null, started: true, turns: turnId ? [turnId] : [], lost: true, choices: 0, round: null };
    this.shown.executing = true;
    this.watch(this.action);
  },

  lostIsOver() {
    this.recovering.push(...(this.action?.turns ?? []));
    this.action = null;
    Object.assign(this.shown, { executing: false, advance: null });
  },

  // The view says what became of a lost action.
  settleRecovered(view) {
    const { shown, action } = this, state = view.execution?.state, turns = [...this.recovering, ...(action?.lost ? action.turns : [])];
    if (!action?.lost && !turns.length) return;
    const place = (own) => `${own.turnId}/${own.runtimeId}`;
    const saved = shown.messages.filter((own) => own.status === "completed" && own.role !== "player");
    const isOpen = (own) => (own.status === "streaming" || own.status === "provisional") && turns.includes(own.turnId);
    shown.messages = shown.messages.filter((own) => !isOpen(own) || !saved.some((row) => place(row) === place(own)));
    if (state === "failed" || state === "interrupted") { // what is left of its texts was not saved
      const left = shown.messages.filter((own) => isOpen(own) && own.text && !saved.some((row) => row.turnId === own.turnId));
      shown.unsaved.push(...left.map(({ turnId, text }) => ({ turnId, text })));
      shown.messages = shown.messages.filter((own) => !isOpen(own));
    }
    if (state === "running" || action?.asking) return;
    shown.retryOffered = Boolean(view.execution?.retry);
    if (action?.lost) this.lostIsOver();
    this.recovering = [];
    if (action?.lost) this.sayNext();
  },

  // ---- lists ----

  // An event that came after the question wins, and so does an end.
  takeJobs(rows) {
    for (const row of rows) {
      const known = this.shown.jobs[row.jobId] ?? {}, state = PUBLIC[row.status] ?? "failed";
      this.workerIsKnown(row);
      if (rank(state) <= rank(known.state)) continue;
      const message = row.error ?? (row.reason && "the task failed") ?? known.message ?? null;
      const turnId = row.origin?.sourceTurnId ?? known.turnId ?? null;
      this.shown.jobs[row.jobId] = { progress: null, parent: null, sequence: 0, ...known, state, message, turnId };
      if (turnId && row.runtimeId) Object.assign(this.step(turnId, row.runtimeId), { jobId: row.jobId, status: this.stepStatus(state) });
    }
  },

  // The items are ids, or objects that have one.
  takePlugins(active) {
    this.shown.plugins = active.map((plugin) => plugin.id ?? plugin);
    this.takeCatalog(active);
    for (const id of this.shown.plugins) {
      this.read(`data of ${id}`, this.path(`/plugin-data/${encodeURIComponent(id)}`), (data) => data && this.takeRows(id, data.items));
    }
  },

  // A row that is older than the one that is known does not take its place.
  takeRows(plugin, items) {
    const known = this.shown.pluginData[plugin] ?? {}, times = this.rowTimes[plugin] ??= {}, rows = this.shown.pluginData[plugin] = {};
    for (const { namespace, key, value, updatedAt } of items) {
      const place = `${namespace}/${key}`, isOlder = updatedAt < times[place] && key in (known[namespace] ?? {});
      if (!isOlder) times[place] = updatedAt;
      (rows[namespace] ??= {})[key] = isOlder ? known[namespace][key] : value;
    }
  },

  showWorld() { this.shown.world = this.worlds.find((world) => world.id === this.worldId) ?? null; },

  // ---- the client's own store ----

  async keep(path, body, method = "PUT") {
    const answer = await this.ask(method, this.client.store + path, body);
    return answer?.status >= 200 && answer.status < 300 ? answer : null;
  },

  // What was said is kept first, and sent with its id afterwards.
  async keepInput(text) {
    const id = `input-${this.client.number()}`, mine = this.keeping = { id };
    const kept = await this.keep(`/inputs/${id}`, { id, sessionId: this.shown.session, content: text });
    if (this.keeping !== mine) return;
    this.keeping = null;
    if (kept) this.submit(text, id);
    else this.notKept();
    this.show();
  },

  async keepCheckpoint() {
    const { session, phase, completedPlayerTurns, messages, characters, pluginData, dimensions } = this.shown, mine = this.keeping = {};
    const done = messages.filter((own) => own.status === "completed");
    const body = { sessionId: session, phase, completedPlayerTurns, messages: done, characters, pluginData, dimensions };
    const kept = await this.keep("/checkpoint", body);
    if (this.keeping !== mine) return;
    this.keeping = null;
    if (kept) this.sayNext();
    else this.notKept();
    this.show();
  },

  notKept() { this.next = null; this.shown.notice = "not-kept"; },
  keepThinking() {
    if (this.client.store) this.keep("/history", { sessionId: this.shown.session, thinking: [...this.thoughts] });
  },
  async recall() {
    const kept = this.client.store && (await this.keep("/history", null, "GET"))?.body;
    if (kept?.sessionId !== this.shown.session) return;
    for (const [key, thought] of kept.thinking ?? []) this.think(key, thought);
    this.show();
  },
};
