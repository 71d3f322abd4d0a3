// A naive Covel client: what one writes first. docs/src/naive-clients.md walks through what is wrong with it.
const { env } = process;
const shown = { session: null, messages: [], pluginData: {}, executing: false, executionError: null, cursor: null };
const show = () => console.log(JSON.stringify({ state: shown }));

async function lines(response, handle) {
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    for (const line of decoder.decode(chunk).split("\n")) { // each chunk by itself
      if (line.startsWith("data: ")) handle(JSON.parse(line.slice(6)));
    }
  }
}

function apply({ type, payload }) {
  if (type === "narrative.delta") shown.messages.push({ role: "assistant", text: payload.delta, status: "streaming" });
  if (type === "narrative.completed") shown.messages.push({ role: "assistant", text: payload.content, status: "completed" });
  if (type === "plugin-data.changed") {
    for (const { namespace, key, value } of payload.changes) ((shown.pluginData[payload.pluginId] ??= {})[namespace] ??= {})[key] = value;
  }
  if (type === "execution.completed") shown.executing = false;
  show();
}

async function open(session) {
  shown.session = session;
  const view = await (await fetch(`${env.TURNWIRE_URL}/api/sessions/${session}/view`)).json();
  shown.messages = view.messages.map((row) => ({ role: row.role, text: row.content, status: "completed" }));
  show();
  for (;;) { // no cursor: what happens between two connections is lost
    const response = await fetch(`${env.TURNWIRE_URL}/api/events/stream?sessionId=${session}`);
    await lines(response, apply).catch(() => {});
  }
}

async function say(text) {
  shown.messages.push({ role: "player", text, status: "sending" });
  shown.executing = true;
  show();
  const body = { requestId: "r-1", sessionId: shown.session, type: "submit_actions", payload: { actions: [{ type: "say", text }] } };
  const response = await fetch(`${env.TURNWIRE_URL}/api/actions`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  await lines(response, apply).catch(() => {});
}

const { createInterface } = await import("node:readline");
for await (const line of createInterface({ input: process.stdin })) {
  const doing = JSON.parse(line);
  if (doing.do === "open") open(doing.session).catch(() => {});
  if (doing.do === "say") say(doing.text).catch(() => {});
}
