// The client under test: turnwire client --suite covel-sse -- node testee.mjs
// A line on standard input for what the person does, a line on standard output for what is shown.
import { createInterface } from "node:readline";
import { CovelClient } from "./client.mjs";

const { env } = process;
let before;
const onShow = (shown) => {
  const line = JSON.stringify({ state: shown });
  if (line !== before) console.log(before = line);
};
const client = new CovelClient({ url: env.TURNWIRE_URL, token: env.TURNWIRE_TOKEN, timeScale: Number(env.TURNWIRE_TIME_SCALE ?? 1), onShow });
for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, session, text, form, values } = JSON.parse(line);
  const does = { open: () => client.open(session), say: () => client.say(text), type: () => { client.shown.input = text; onShow(client.shown); }, answer: () => client.answer(form, values),
    stop: () => client.stop(), retry: () => client.retry(), hide: () => client.hide(), show: () => client.reappear() };
  does[what]?.();
}
