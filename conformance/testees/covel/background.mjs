// Events that need no turn: jobs, suspensions, data, slots, characters, dimensions, pauses, media, thinking.
const ENDS = ["succeeded", "failed", "cancelled"];

function settlement(shown, receipt) {
  const id = receipt.source?.resultId, known = shown.settlements[id];
  if (!known || (receipt.version ?? 0) >= (known.version ?? 0)) shown.settlements[id] = receipt;
}
// The diagnostic copies on the action stream are for nobody to see.
const thought = (visit, event) => event.inTurn || visit.thought(event);

export const background = {
  "plugin-data.changed"(visit, event, { pluginId, changes }, shown) {
    for (const { namespace, key, value, operation } of changes) {
      const rows = (shown.pluginData[pluginId] ??= {})[namespace] ??= {};
      operation === "delete" ? delete rows[key] : (rows[key] = value);
    }
  },
  // An event counts once, in its job's own order, and nothing comes after the end but another end.
  "job-status.updated"(visit, event, { jobId, sequence = 0, state, data = {}, progress, message, runtimeId }, shown) {
    const known = shown.jobs[jobId] ?? {}, ends = ENDS.includes(state);
    if (sequence <= known.sequence || (ENDS.includes(known.state) && !ends)) return;
    const job = shown.jobs[jobId] = {
      state, sequence, progress: progress ?? known.progress ?? null, message: message ?? known.message ?? null,
      turnId: data.originTurnId ?? known.turnId ?? null, parent: data.runtimeJobId ?? known.parent ?? null,
    };
    if (job.parent) return;
    if (job.turnId) Object.assign(visit.step(job.turnId, runtimeId), { jobId, status: visit.stepStatus(state) });
    if (ends) visit.readView(); // what the task has changed is read, not guessed
  },
  "turn.suspended"(visit, event, { runtimeId, suspensionId }, shown) { // a runtime waits for one thing at a time
    shown.suspensions = [...shown.suspensions.filter((open) => open.runtimeId !== runtimeId), { id: suspensionId, runtimeId }];
  },
  "turn.resumed"(visit, event, { suspensionId }, shown) {
    shown.suspensions = shown.suspensions.filter((open) => open.id !== suspensionId);
    visit.readView();
  },
  "ui.slot.changed": (visit, event, payload) => (visit.slots.change(payload), visit.loadMedia()),
  "ui.slot.preview": (visit, { turnId }, payload) => visit.slots.preview(payload.turnId ?? turnId, payload),
  "ui.slot.cleared": ({ slots }, event, { turnId }) => slots.clear(turnId),
  "character.upserted": (visit, event, { character }, shown) => (shown.characters[character.id] = character),
  "character-schema.changed": (visit, event, { schema }, shown) => (shown.characterSchema = schema),
  "dimensions.changed"(visit, event, payload, shown) {
    Object.assign(shown.dimensions, payload.dimensions);
    if (payload.settlement) settlement(shown, payload.settlement);
  },
  "dimensions.settlement.changed": (visit, event, payload, shown) => settlement(shown, payload),
  "plugin.fault.latched"(visit, event, { pluginId, reason }, shown) {
    shown.pausedPlugins[pluginId] = reason;
    shown.notice = "plugin-paused";
  },
  "plugin.fault.cleared": (visit, event, { pluginId }, shown) => delete shown.pausedPlugins[pluginId],
  "state.snapshot.created": (visit, event, { snapshotId }, shown) => shown.snapshots.push(snapshotId),
  "asset.generated": (visit, event, { asset }) => visit.generated(asset),
  "operation.failed": (visit, event, payload, shown) => (shown.notice = "operation-failed"),
  "llm.responded": thought,
  "gateway.responded": thought,
};
export { settlement };
