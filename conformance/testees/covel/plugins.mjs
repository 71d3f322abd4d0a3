// Commands, controls and calls of plugins with the approvals that the server asks for, interjections, and media.

export const plugins = {
  freshPlugins: () => ({ catalog: null, slash: null, tracker: [], calls: [], sending: null, asking: [], deciding: false }),

  // ---- commands and controls ----

  takeCatalog(active) {
    const commands = active.flatMap((plugin) => plugin.commands ?? []);
    this.catalog = new Map(commands.map(({ id, name }) => [name.replace(/^\//, ""), id]));
    const text = this.slash;
    this.slash = null;
    if (text !== null) this.proceed(text);
  },

  // A command that the session's catalog knows goes to its plugin. Whether it does, or waits for the catalog.
  command(text) {
    if (!this.catalog) return (this.slash = text) !== null;
    const commandId = this.catalog.get(text.slice(1).split(/\s/)[0]);
    if (!commandId) return false;
    this.post({ kind: "command", commandId, input: text }).then((taken) => {
      if (taken && this.shown.input === text) this.shown.input = "";
      this.show();
    });
    return true;
  },

  async post(body, rest = "/plugin-rpc") {
    const answer = await this.ask("POST", this.path(rest), body);
    return answer?.status >= 200 && answer.status < 300;
  },

  press(slot, control) {
    const { action, params } = this.slots.shown()[slot]?.elements?.[control]?.on?.press ?? {};
    if (action === "invokeCommand") this.post({ kind: "command", commandId: params.commandId, args: params.args });
    if (action === "invokePluginAction") {
      this.post({ kind: "action", pluginId: params.pluginId, action: params.action, payload: params.payload });
    }
  },

  select(blockId, values) { this.shown.selections.push({ blockId, values }); this.show(); },

  // A pending settlement is looked after by the runtime that the view names.
  recover(resultId) {
    const [pluginId, runtimeId] = this.tracker;
    this.post({ kind: "runtime", pluginId, runtimeId, payload: { resultId } });
  },

  // No event tells of an interjection.
  async steer(text) {
    if (!this.action) return;
    const turnId = this.action.turns.at(-1);
    if (await this.post({ message: text }, "/steer")) this.shown.messages.push({ role: "player", text, status: "sending", turnId });
    else { this.shown.notice = "not-steered"; this.shown.input ||= text; }
    this.show();
  },

  // ---- calls: one after the other, and another one while the person is asked about one ----

  call(pluginId, action, payload) { this.enqueue("/plugin-rpc", { kind: "action", pluginId, action, ...(payload != null && { payload }) }); },
  resume(suspension, data) { this.enqueue(`/suspensions/${encodeURIComponent(suspension)}/resume`, { data }); },

  enqueue(rest, body) {
    this.shown.callError = null;
    this.calls.push({ rest, body, allowed: new Set() });
    this.sendNext();
  },

  async sendNext() {
    const call = this.sending ? null : this.calls.shift();
    if (!call) return;
    this.sending = call;
    const answer = await this.ask("POST", this.path(call.rest), call.body);
    if (this.sending !== call) return; // the session was left
    this.sending = null;
    const { status, body } = answer ?? {};
    if (status === 202 && body?.status === "approval-required") this.approvalRequired(call, body);
    else if (!answer) this.shown.callError = "no answer";
    else if (status >= 300) {
      this.shown.callError = `the server answered ${status} ${body?.code ?? ""}`;
      if (status === 409) this.readSession(), this.refetch(); // what it stood on has changed; the person begins anew
    }
    this.sendNext();
    this.show();
  },

  // Nothing is asked twice for one call, and nothing of another session.
  approvalRequired(call, { approvalId, pending = {} }) {
    const approval = { id: approvalId, pluginId: pending.pluginId, action: pending.action };
    if ((pending.sessionId ?? this.shown.session) !== this.shown.session) this.shown.callError = "an approval of another session";
    else if (call.allowed.has(`${approval.pluginId}/${approval.action}`)) this.shown.callError = "the same approval is asked for again";
    else {
      this.asking.push({ call, approval });
      this.readApprovals();
    }
  },

  // The person decides about what the server lists, one at a time.
  async readApprovals() {
    const listed = (await this.json(this.path("/approvals")))?.items ?? [], before = this.asking.length;
    const isListed = ({ approval }) => listed.some((item) => item.approvalId === approval.id && (item.sessionId ?? this.shown.session) === this.shown.session);
    this.asking = this.asking.filter(isListed);
    if (this.asking.length < before) this.shown.callError = "an approval is not listed";
    this.showApproval();
  },

  showApproval() { this.shown.approval = this.asking[0]?.approval ?? null; this.show(); },

  async decide(allow) {
    const { approval } = this.shown;
    if (!approval || this.deciding) return;
    this.deciding = true;
    const lasts = approval.action === "covel:plugin-server-code" || approval.action.startsWith("runtime:");
    const body = { decision: allow ? "allow" : "deny", scope: lasts ? "session" : "once" };
    const answer = await this.ask("POST", `/api/approvals/${encodeURIComponent(approval.id)}/decision`, body);
    this.deciding = false;
    const asked = this.asking.shift();
    if (!asked) return;
    if (answer?.status !== 200) this.shown.callError = "the decision was refused";
    else if (allow) {
      asked.call.allowed.add(`${approval.pluginId}/${approval.action}`);
      this.calls.unshift(asked.call); // it is sent again as it was
    }
    this.showApproval();
    this.sendNext();
  },

  forgetCalls() { Object.assign(this, this.freshPlugins(), { catalog: this.catalog, tracker: this.tracker }); this.shown.approval = null; },

  // ---- media: a warning names session, medium, and status or kind of error; no URL, and no message that may hold one ----

  async generated(asset) {
    this.shown.assets.push(asset);
    const media = asset.ref?.id ?? asset.ref, warn = (status, error) =>
      (this.shown.mediaWarnings.push({ session: this.shown.session, media, status, error }), this.show());
    if (typeof media !== "string") return;
    const found = await this.ask("GET", this.path(`/media-token?id=${encodeURIComponent(media)}`));
    if (!found) return warn(null, "NetworkError");
    if (found.status !== 200 || !found.body?.url) return warn(found.status, null);
    const medium = await this.ask("GET", found.body.url);
    if (medium?.status !== 200) warn(medium?.status ?? null, medium ? null : "NetworkError");
  },

  // Components name a medium by its reference; where it is loaded from is for the client.
  loadMedia() {
    const elements = Object.values(this.slots.shown()).flatMap((slot) => Object.values(slot?.elements ?? {}));
    for (const { type, props } of elements) {
      const id = props?.ref?.id;
      if (!["Image", "Media"].includes(type) || !id || id in this.shown.media) continue;
      this.shown.media[id] = false;
      this.ask("GET", `/api/media/${encodeURIComponent(id)}`).then((answer) => {
        this.shown.media[id] = answer?.status === 200;
        this.show();
      });
    }
  },
};
