// The npm package eventsource as a reader under test: turnwire client --suite sse -- node node_eventsource.mjs
import { EventSource } from "eventsource";

const say = (report) => console.log(JSON.stringify(report));
const states = ["connecting", "open", "closed"];
// The types that the streams of the suite use; EventSource has no way to listen to all.
const types = ["message", "add", "one", "two", "lost", "event", "data", "turnwire-cut"];

const source = new EventSource(process.env.TURNWIRE_URL);
source.onopen = () => say({ state: "open" });
source.onerror = () => say({ state: states[source.readyState] });
for (const type of types) {
  source.addEventListener(type, (event) =>
    say({ event: { type: event.type, data: event.data, lastEventId: event.lastEventId } }));
}

setInterval(() => {}, 1 << 30); // a reader that waits keeps no process alive by itself
