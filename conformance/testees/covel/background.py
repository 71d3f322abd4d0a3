"""Events that need no turn: jobs, suspensions, data, slots, characters, dimensions, pauses, media, thinking."""

from stored import settlement
from turn import on

ENDS = "succeeded", "failed", "cancelled"


@on("plugin-data.changed")
def data_changed(visit, event, payload, shown):
    data = shown["pluginData"].setdefault(payload["pluginId"], {})
    for change in payload["changes"]:
        rows = data.setdefault(change["namespace"], {})
        rows.pop(change["key"], None)
        if change.get("operation") != "delete":
            rows[change["key"]] = change.get("value")


@on("job-status.updated")
def job_updated(visit, event, payload, shown):
    """An event counts once, in its job's own order, and nothing comes after the end but another end."""
    job, state, sequence = payload["jobId"], payload["state"], payload.get("sequence", 0)
    known, data = shown["jobs"].get(job), payload.get("data") or {}
    if known and (sequence <= known["sequence"] or (known["state"] in ENDS and state not in ENDS)):
        return
    before = known or {"progress": None, "message": None, "turnId": None, "parent": None}
    told = {"progress": payload.get("progress"), "message": payload.get("message"), "turnId": data.get("originTurnId"),
            "parent": data.get("runtimeJobId")}
    told = {name: before[name] if value is None else value for name, value in told.items()}
    shown["jobs"][job] = {"state": state, "sequence": sequence, **told}
    if told["parent"]:
        return
    if told["turnId"]:
        visit.step(told["turnId"], payload.get("runtimeId")).update(jobId=job, status=visit.step_status(state))
    if state in ENDS:
        visit.read_view()  # what the task has changed is read, not guessed


@on("turn.suspended")
def suspended(visit, event, payload, shown):
    runtime = payload["runtimeId"]  # it waits for one thing at a time
    shown["suspensions"] = [open_ for open_ in shown["suspensions"] if open_["runtimeId"] != runtime]
    shown["suspensions"].append({"id": payload["suspensionId"], "runtimeId": runtime})


@on("turn.resumed")
def resumed(visit, event, payload, shown):
    shown["suspensions"] = [open_ for open_ in shown["suspensions"] if open_["id"] != payload.get("suspensionId")]
    visit.read_view()


@on("ui.slot.changed")
def slot_changed(visit, event, payload, shown):
    visit.slots.change(payload)
    visit.load_media()


@on("ui.slot.preview")
def slot_preview(visit, event, payload, shown):
    visit.slots.preview(payload.get("turnId", event.get("turnId")), payload)


@on("ui.slot.cleared")
def slot_cleared(visit, event, payload, shown):
    visit.slots.clear(payload["turnId"])


@on("character.upserted")
def character(visit, event, payload, shown):
    shown["characters"][payload["character"]["id"]] = payload["character"]


@on("character-schema.changed")
def schema(visit, event, payload, shown):
    shown["characterSchema"] = payload["schema"]


@on("dimensions.changed")
def dimensions(visit, event, payload, shown):
    shown["dimensions"].update(payload.get("dimensions") or {})
    if payload.get("settlement"):
        settlement(shown, payload["settlement"])


@on("dimensions.settlement.changed")
def settled(visit, event, payload, shown):
    settlement(shown, payload)


@on("plugin.fault.latched")
def latched(visit, event, payload, shown):
    shown["pausedPlugins"][payload["pluginId"]] = payload.get("reason")
    shown["notice"] = "plugin-paused"


@on("plugin.fault.cleared")
def cleared(visit, event, payload, shown):
    shown["pausedPlugins"].pop(payload["pluginId"], None)


@on("state.snapshot.created")
def snapshot(visit, event, payload, shown):
    shown["snapshots"].append(payload["snapshotId"])


@on("asset.generated")
def asset(visit, event, payload, shown):
    visit.generated(payload["asset"])


@on("operation.failed")
def failed(visit, event, payload, shown):
    shown["notice"] = "operation-failed"


@on("llm.responded", "gateway.responded")
def responded(visit, event, payload, shown):
    if not event["inTurn"]:  # the diagnostic copies on the action stream are for nobody to see
        visit.thought(event)
