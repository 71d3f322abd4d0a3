// The events of a turn: what each of them does to what is shown. An event is { type, turnId, requestId, …, inTurn }, where
// `inTurn` says that it came on the stream of the client's own action.
import { formOf } from "./stored.mjs";

const writing = (shown, { turnId, payload }) =>
  shown.messages.find((own) => own.status === "streaming" && own.turnId === turnId && own.runtimeId === payload.runtimeId);
const isOwn = ({ action }, { inTurn, requestId }) => inTurn && action?.requestId === requestId;

// What a turn showed becomes final, or goes away.
function settle(visit, turnId, committed) {
  const { shown } = visit;
  if (!committed) shown.messages = shown.messages.filter((own) => own.role === "player" || own.turnId !== turnId || own.status === "completed");
  for (const own of shown.messages) if (own.turnId === turnId) own.status = "completed";
  for (const group of shown.groups) if (group.turnId === turnId) group.status = committed ? "completed" : "failed";
  visit.slots.end(turnId);
}

// The player stopped the action: what has begun can be tried again, and what has not goes back into the input box.
function stopped(visit, action) {
  visit.shown.notice = "stopped";
  if (action.started) visit.shown.retryOffered = true;
  else visit.takeBack(action.requestId);
}

export const turn = {
  "execution.started"(visit, { inTurn, turnId, requestId }, payload, shown) {
    visit.slots.begin(turnId);
    if (!inTurn) return;
    visit.group(turnId).status = "running";
    if (visit.action) visit.action.started = true, visit.action.turns.push(turnId);
    for (const own of shown.messages) if (own.request === requestId && !own.turnId) own.turnId = turnId;
  },
  "narrative.delta"(visit, event, { runtimeId, kind, delta, reset, segment }, shown) {
    if (!event.inTurn) return;
    const place = `${event.turnId}/${runtimeId}`;
    visit.fragments.set(place, (visit.fragments.get(place) ?? 0) + 1);
    let own = writing(shown, event);
    if (!own) shown.messages.push(own = { role: "assistant", text: "", status: "streaming", turnId: event.turnId, runtimeId, kind, speakers: [] });
    if (reset) Object.assign(own, { text: "", speakers: [] });
    own.text += delta;
    if (segment) own.speakers[segment.index] = segment.speaker ?? own.speakers[segment.index] ?? null;
  },
  "narrative.completed"(visit, event, { messageId, content, runtimeId, kind, segments }, shown) {
    if (!event.inTurn) return;
    const own = writing(shown, event) ?? shown.messages[shown.messages.push({ role: "assistant", speakers: [] }) - 1];
    const speakers = segments?.map((segment) => segment.speaker ?? null) ?? own.speakers;
    Object.assign(own, { id: messageId, text: content, status: "provisional", turnId: event.turnId, runtimeId, kind, speakers });
  },
  "interaction.requested"(visit, event, { block, runtimeId, turnId }, shown) {
    if (!block?.id || shown.messages.some((own) => own.form?.blockId === block.id)) return; // both streams may bring it
    const status = event.inTurn ? "provisional" : "completed";
    shown.messages.push({ role: "assistant", text: "", status, turnId: turnId ?? event.turnId, runtimeId, form: formOf(block) });
  },
  "interaction.submitted"({ action }, { inTurn, requestId }, { results, message }, shown) {
    if (!inTurn || !action?.form) return; // only who submitted a form shows the answer
    Object.assign(action.form, { submitted: true, values: results?.[0]?.values ?? null, draft: null, issues: [] });
    if (message) shown.messages.push({ id: message.id, role: "player", text: message.content, status: "sending", request: requestId });
  },
  "event.emitted"(visit, event, payload, shown) { shown.events.push(payload); },
  "execution.round.completed"(visit, event, { committed, turnId }) {
    if (isOwn(visit, event)) settle(visit, turnId ?? event.turnId, committed === true);
  },
  // Automatic rounds belong to their request, and what is over does not come back.
  "execution.advance"({ action }, event, { requestId, phase, round = 0 }, shown) {
    if (!action || action.requestId !== requestId) return;
    const place = [round, phase === "running" || phase === "stopped" ? 1 : 0], before = action.round;
    if (action.advanceOver || (before && (place[0] - before[0] || place[1] - before[1]) < 0)) return;
    Object.assign(action, { round: place, advanceOver: phase === "stopped" });
    shown.advance = phase === "stopped" ? null : { phase, round };
  },
  "execution.completed"(visit, event, { committed, abortReason, error, resync }, shown) {
    const { action } = visit, { turnId } = event;
    visit.slots.end(turnId);
    if (!isOwn(visit, event)) return;
    visit.action = null;
    for (const turn of action.turns) if (turn !== turnId) settle(visit, turn, true); // earlier rounds were committed
    settle(visit, turnId, committed === true);
    if (abortReason === "aborted-by-player") stopped(visit, action);
    else if (committed !== true) shown.executionError = error ?? abortReason ?? "the turn failed";
    visit.actionOver({ refresh: committed === true, reread: resync === true });
  },
  "error.occurred"(visit, event, { code, message, details }, shown) {
    const form = visit.action?.form;
    if (!isOwn(visit, event)) return;
    if (form && (code === "form_rejected" || code === "interaction_already_submitted")) { // a stream like this may end here
      visit.action = null;
      const taken = code === "interaction_already_submitted"; // somebody else answered it; what is stored is read
      if (taken) visit.json(visit.path("/execution"));
      else form.issues = details?.issues ?? [];
      visit.actionOver({ reread: taken });
    } else shown.executionError = message ?? "";
  },
  "runtime.started": (visit, event) => visit.runtimeStarted(event),
  "runtime.completed": (visit, event) => visit.runtimeEnded(event),
  "runtime.failed": (visit, event) => visit.runtimeEnded(event),
  "runtime.skipped": (visit, event) => visit.runtimeEnded(event),
  "runtime.deferred"(visit, event, { jobId, sourceTurnId, runtimeId }, shown) {
    const state = shown.jobs[jobId]?.state; // the job may have begun, or ended, before this came
    Object.assign(visit.step(sourceTurnId, runtimeId), { jobId, status: state ? visit.stepStatus(state) : "pending" });
  },
};
