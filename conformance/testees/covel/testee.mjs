// The client under test: turnwire client --suite covel-sse -- node testee.mjs
// A line on standard input for what the person does, a line on standard output for what is shown.
import { createInterface } from "node:readline";
import { CovelClient } from "./client.mjs";
import { personOf } from "./person.mjs";
import { Relay } from "./relay.mjs";

const { env } = process;
const timeScale = Number(env.TURNWIRE_TIME_SCALE ?? 1);
const store = env.TURNWIRE_DATA_MODE === "local" ? env.TURNWIRE_STORE : null;
let before;
const onShow = (shown) => {
  const line = JSON.stringify({ state: shown });
  if (line !== before) console.log(before = line);
};
const client = new CovelClient({ url: env.TURNWIRE_URL, token: env.TURNWIRE_TOKEN, timeScale, store, onShow });
const person = personOf(client);
console.log(JSON.stringify({ timeScale, can: [...Object.keys(person), "relay"] }));
if (env.TURNWIRE_DEPLOYMENT === "shared") new Relay({ url: env.TURNWIRE_URL, localModel: env.TURNWIRE_LOCAL_MODEL, timeScale }).run();
for await (const line of createInterface({ input: process.stdin })) {
  const doing = JSON.parse(line);
  person[doing.do]?.(doing);
}
