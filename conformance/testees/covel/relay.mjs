// Answers the model requests that a shared server relays to a page, with a model on the player's own machine.
// A batch goes out when it is full, 50 ms after its first byte, or when the model has said everything. One post of an answer
// is under way at a time; answers do not wait for one another. That bytes were taken says nothing else.
import { events } from "./events.mjs";

const BATCH = 50; // milliseconds
const POST = 256 * 1024; // bytes of a post, at most
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class Relay {
  constructor({ url, localModel, timeScale = 1 }) {
    const channel = `page-${Math.random().toString(36).slice(2)}`; // the same for every connection of this page
    Object.assign(this, { url, localModel, timeScale, channel, open: new Map() });
  }

  async run() {
    for (let wait = 1000; ; wait = Math.min(wait * 2, 30_000)) {
      try {
        const headers = { accept: "text/event-stream", "x-model-relay": this.channel };
        const stream = await fetch(`${this.url}/api/model-relay/stream`, { headers, cache: "no-store" });
        if (stream.ok) {
          wait = 1000;
          for await (const { event, data } of events(stream)) this.frame(event, JSON.parse(data));
        }
      } catch { /* lost; what follows is the same */ }
      await sleep(wait * this.timeScale);
    }
  }

  frame(event, asked) {
    if (event === "cancel") this.open.get(asked.requestId)?.abort();
    if (event !== "request") return;
    const cancel = new AbortController();
    this.open.set(asked.requestId, cancel);
    new Transfer(this, asked, cancel.signal).run().finally(() => this.open.delete(asked.requestId));
  }
}

// One answer on its way.
class Transfer {
  constructor(relay, asked, cancelled) {
    Object.assign(this, { relay, asked, cancelled, pieces: [], size: 0, whole: false, failed: false, bell: null });
    cancelled.addEventListener("abort", () => this.ring());
  }

  ring() { this.bell?.(); }
  async until(met) { while (!met() && !this.cancelled.aborted) await new Promise((bell) => { this.bell = bell; }); }

  async run() {
    this.read(); // side by side with what follows
    for (;;) {
      await this.until(() => this.size || this.whole || this.failed);
      const full = () => this.whole || this.failed || this.size >= POST;
      if (this.size && !full()) {
        let over = false;
        const timer = setTimeout(() => { over = true; this.ring(); }, BATCH);
        await this.until(() => over || full());
        clearTimeout(timer);
      }
      if (this.cancelled.aborted) return; // nothing more is sent
      if (this.failed) return void this.post("error");
      if (!this.size) return void this.post("end");
      if (!(await this.post("chunk", this.take()))) return;
    }
  }

  async read() {
    try {
      const { method, path, body } = this.asked, headers = { "content-type": "application/json" };
      const answer = await fetch(this.relay.localModel + path, { method, headers, body: JSON.stringify(body ?? null), signal: this.cancelled });
      const reader = answer.body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        this.pieces.push(part.value);
        this.size += part.value.length;
        this.ring();
        while (this.size >= POST && !this.cancelled.aborted) await new Promise((room) => { this.room = room; });
      }
      this.whole = true;
    } catch { this.failed = true; }
    this.ring();
  }

  take() {
    const bytes = new Uint8Array(Math.min(this.size, POST));
    for (let at = 0; at < bytes.length;) {
      const piece = this.pieces.shift(), part = piece.subarray(0, bytes.length - at);
      bytes.set(part, at);
      at += part.length;
      if (part.length < piece.length) this.pieces.unshift(piece.subarray(part.length));
    }
    this.size -= bytes.length;
    this.room?.();
    return bytes;
  }

  async post(part, body) {
    const path = `/api/model-relay/requests/${encodeURIComponent(this.asked.requestId)}/${part}`;
    try {
      const headers = { "content-type": "application/octet-stream" };
      return (await fetch(this.relay.url + path, { method: "POST", headers, body: body ?? new Uint8Array() })).ok;
    } catch { return false; }
  }
}
