"""The events of a turn: what each of them does to what is shown.

An event is a dictionary with the members of the envelope, and `inTurn`, which says that it came on the stream of the
client's own action.
"""

from stored import form_of

HANDLERS = {}


def on(*kinds):
    """Registers what events of these types do, to the visit, with the event, its payload, and what is shown."""
    def keep(function):
        HANDLERS.update(dict.fromkeys(kinds, function))
        return function
    return keep


def is_own(visit, event):
    return event["inTurn"] and visit.action and visit.action["request"] == event.get("requestId")


def writing(shown, event):
    place = "streaming", event.get("turnId"), event["payload"].get("runtimeId")
    return next((own for own in shown["messages"] if (own["status"], own.get("turnId"), own.get("runtimeId")) == place), None)


def settle(visit, turn, committed):
    """What a turn showed becomes final, or goes away."""
    shown = visit.shown
    shown["messages"] = [own for own in shown["messages"] if committed or own["role"] == "player"
                         or own.get("turnId") != turn or own["status"] == "completed"]
    for own in shown["messages"]:
        if own.get("turnId") == turn:
            own["status"] = "completed"
    for group in shown["groups"]:
        if group["turnId"] == turn:
            group["status"] = "completed" if committed else "failed"
    visit.slots.end(turn)


@on("execution.started")
def started(visit, event, payload, shown):
    turn = event["turnId"]
    visit.slots.begin(turn)
    if not event["inTurn"]:
        return
    visit.group(turn)["status"] = "running"
    if visit.action:
        visit.action["started"] = True
        visit.action["turns"].append(turn)
    for own in shown["messages"]:
        if "request" in own and own["request"] == event.get("requestId"):
            own.setdefault("turnId", turn)


@on("narrative.delta")
def delta(visit, event, payload, shown):
    if not event["inTurn"]:
        return
    place = event["turnId"], payload["runtimeId"]
    visit.fragments[place] = visit.fragments.get(place, 0) + 1
    own = writing(shown, event)
    if own is None:
        own = {"role": "assistant", "text": "", "status": "streaming", "turnId": event["turnId"],
               "runtimeId": payload["runtimeId"], "kind": payload.get("kind"), "speakers": []}
        shown["messages"].append(own)
    if payload.get("reset"):
        own.update(text="", speakers=[])
    own["text"] += payload["delta"]
    if segment := payload.get("segment"):
        own["speakers"] += [None] * (min(segment["index"], 10_000) + 1 - len(own["speakers"]))
        own["speakers"][segment["index"]] = segment.get("speaker") or own["speakers"][segment["index"]]


@on("narrative.completed")
def narrative(visit, event, payload, shown):
    if not event["inTurn"]:
        return
    text, turn = payload["content"], event["turnId"]
    own = writing(shown, event)
    if own is None:
        own = {"role": "assistant", "speakers": []}
        shown["messages"].append(own)
    if payload.get("segments") is not None:
        own["speakers"] = [one.get("speaker") for one in payload["segments"]]
    own.update(id=payload.get("messageId"), text=text, status="provisional", turnId=turn,
               runtimeId=payload.get("runtimeId"), kind=payload.get("kind"))


@on("interaction.requested")
def form_requested(visit, event, payload, shown):
    block = payload["block"]
    if any(own.get("form", {}).get("blockId") == block["id"] for own in shown["messages"]):
        return  # both streams may bring it
    shown["messages"].append({"role": "assistant", "text": "", "status": "provisional" if event["inTurn"] else "completed",
                              "turnId": payload.get("turnId", event.get("turnId")), "runtimeId": payload.get("runtimeId"),
                              "form": form_of(block)})


@on("interaction.submitted")
def form_submitted(visit, event, payload, shown):
    form, message = visit.action and visit.action["form"], payload.get("message")
    if not event["inTurn"] or not form:
        return  # only who submitted a form shows the answer
    results = payload.get("results") or [{}]
    form.update(submitted=True, values=results[0].get("values"), draft=None, issues=[])
    if message:
        shown["messages"].append({"id": message["id"], "role": "player", "text": message["content"], "status": "sending",
                                  "request": event.get("requestId")})


@on("event.emitted")
def emitted(visit, event, payload, shown):
    shown["events"].append(payload)


@on("execution.round.completed")
def round_completed(visit, event, payload, shown):
    if is_own(visit, event):
        settle(visit, payload.get("turnId", event["turnId"]), payload.get("committed") is True)


@on("execution.advance")
def advance(visit, event, payload, shown):
    """Automatic rounds belong to their request, and what is over does not come back."""
    action, phase, number = visit.action, payload.get("phase"), payload.get("round", 0)
    if not action or action["request"] != payload.get("requestId"):
        return
    place = number, phase in ("running", "stopped")
    if action["over"] or (action["round"] and place < action["round"]):
        return
    action.update(round=place, over=phase == "stopped")
    shown["advance"] = None if phase == "stopped" else {"phase": phase, "round": number}


@on("execution.completed")
def completed(visit, event, payload, shown):
    turn, action, committed = event["turnId"], visit.action, payload.get("committed") is True
    visit.slots.end(turn)
    if not is_own(visit, event):
        return
    visit.action = None
    for earlier in action["turns"]:
        if earlier != turn:
            settle(visit, earlier, True)  # earlier rounds were committed
    settle(visit, turn, committed)
    if payload.get("abortReason") == "aborted-by-player":
        shown["notice"] = "stopped"
        if action["started"]:
            shown["retryOffered"] = True
        else:
            visit.take_back(action["request"])
    elif not committed:
        shown["executionError"] = payload.get("error") or payload.get("abortReason") or "the turn failed"
    visit.action_over(refresh=committed, reread=payload.get("resync") is True)


@on("error.occurred")
def error(visit, event, payload, shown):
    form, code = visit.action and visit.action["form"], payload.get("code")
    if not is_own(visit, event):
        return
    if not form or code not in ("form_rejected", "interaction_already_submitted"):
        shown["executionError"] = payload.get("message", "")
        return
    visit.action = None  # a stream like this may end here
    if taken := code == "interaction_already_submitted":  # somebody else answered it; what is stored is read
        visit.get(visit.path("/execution"), lambda _: None)
    else:
        form["issues"] = (payload.get("details") or {}).get("issues", [])
    visit.action_over(reread=taken)


@on("runtime.started")
def runtime_started(visit, event, payload, shown):
    visit.runtime_started(event)


@on("runtime.completed", "runtime.failed", "runtime.skipped")
def runtime_ended(visit, event, payload, shown):
    visit.runtime_ended(event)


@on("runtime.deferred")
def runtime_deferred(visit, event, payload, shown):
    job = shown["jobs"].get(payload["jobId"])  # it may have begun, or ended, before this came
    step = visit.step(payload["sourceTurnId"], payload["runtimeId"])
    step.update(jobId=payload["jobId"], status=visit.step_status(job["state"]) if job else "pending")
