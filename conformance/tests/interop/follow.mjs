// Reads a Covel server with somebody else's clients: follows a whole turn on POST /api/actions with
// eventsource-parser, then loses and resumes GET /api/events/stream with eventsource.
//
// Usage: node follow.mjs URL. Prints one line a fact; exits 1 at the first that does not hold.

import net from "node:net";
import assert from "node:assert/strict";
import { EventSource } from "eventsource";
import { createParser } from "eventsource-parser";

const base = process.argv[2];
assert.ok(base, "usage: node follow.mjs URL");
const deadline = setTimeout(() => fail(new Error("not done after 30 s")), 30_000);

try {
  const session = await post("/api/sessions", { plugins: ["story"] });
  await followTurn(session.id);
  await loseAndResume(session.id);
  clearTimeout(deadline);
  process.exit(0);
} catch (error) {
  fail(error);
}

async function followTurn(sessionId) {
  const response = await send("POST", "/api/actions", {
    requestId: "rq-1",
    sessionId,
    type: "submit_actions",
    payload: { actions: [{ type: "say", text: "Hello from Node" }] },
  });
  assert.equal(response.status, 200);
  const events = [];
  const parser = createParser({ onEvent: (event) => events.push(event) });
  const decoder = new TextDecoder();
  for await (const chunk of response.body) parser.feed(decoder.decode(chunk, { stream: true }));

  assert.ok(events.every((event) => event.event === undefined && event.id === undefined), "frames are data only");
  const envelopes = events.map((event) => JSON.parse(event.data));
  const types = envelopes.map((envelope) => envelope.type);
  assert.equal(types.at(-1), "execution.completed");
  assert.equal(envelopes.at(-1).payload.committed, true);
  assert.ok(types.includes("narrative.delta") && types.includes("narrative.completed"));
  console.log(`turn: ${types.length} frames, committed`);
}

async function loseAndResume(sessionId) {
  const proxy = await cuttable(new URL(base));
  const source = new EventSource(`http://127.0.0.1:${proxy.port}/api/events/stream?sessionId=${sessionId}&topics=plugin`);
  const seen = [];
  let connects = 0;
  source.addEventListener("system.connected", () => connects++);
  source.addEventListener("system.reset", () => seen.push("reset"));
  source.addEventListener("plugin-data.changed", (event) => seen.push(JSON.parse(event.data).payload.changes[0].key));

  await until(() => connects === 1);
  await put(sessionId, "before");
  await until(() => seen.length === 1);
  proxy.cut();
  await put(sessionId, "missed-1");
  await put(sessionId, "missed-2");
  await until(() => connects === 2 && seen.length === 3);
  await put(sessionId, "after");
  await until(() => seen.length === 4);
  source.close();
  proxy.close();
  assert.deepEqual(seen, ["before", "missed-1", "missed-2", "after"]);
  console.log("subscription: lost, resumed, nothing missed, nothing twice");
}

// A TCP relay whose connections can be cut, as a network does.
async function cuttable(upstream) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    const other = net.connect(Number(upstream.port), upstream.hostname);
    for (const end of [socket, other]) {
      sockets.add(end);
      end.on("error", () => {});
    }
    socket.pipe(other).pipe(socket);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => sockets.forEach((socket) => (socket.destroy(), sockets.delete(socket)));
  return { port: server.address().port, cut, close: () => (cut(), server.close()) };
}

function put(sessionId, key) {
  return json(send("PUT", `/api/sessions/${sessionId}/plugin-data/interop/ns/${key}`, { value: key }));
}

function post(path, body) {
  return json(send("POST", path, body));
}

function send(method, path, body) {
  return fetch(new URL(path, base), { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

async function json(pending) {
  const response = await pending;
  const text = await response.text();
  assert.ok(response.ok, `${response.status} ${text}`);
  return JSON.parse(text);
}

async function until(holds) {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

function fail(error) {
  console.error(error.stack ?? error);
  process.exit(1);
}
