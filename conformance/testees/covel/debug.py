"""The debug page: what the stored trace tells of calls of models, and the requests behind them.

Nothing is made up: what a row does not say is null, and a body that cannot be had is unavailable.
"""

import json
from datetime import datetime, timedelta

from wire import answer, encoded

ROWS = 500_000  # rows of a trace that are read
CANNOT = {"whole": False, "message": "cannot fully rebuild", "headers": None, "exact": False}


def time_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def requests_of(items):
    """A reference leads to an earlier item that has a body, or nowhere."""
    shown = []
    for place, item in enumerate(items):
        at = item.get("bodyRef")
        source = items[at] if isinstance(at, int) and 0 <= at < place else {}
        body = item.get("body", source.get("body"))
        shown.append({"statusCode": item.get("statusCode"), "body": body, "unavailable": body is None})
    return shown


def resources(body):
    """What a body names and does not hold."""
    if isinstance(body, str):
        return [body] if body.startswith(("http://", "https://")) else []
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return [url for value in inner for url in resources(value)]


class Page:
    """The page as its rows are read, in the order of their times."""

    def __init__(self, fragments):
        self.calls, self.runs, self.messages, self.items, self.fragments = [], [], [], [], fragments

    def call(self, place, attempt, payload):
        items = payload.get("providerRequests")
        self.items.append(items or [])
        self.calls.append({**place, "attempt": attempt, "outcome": "running", "startedAt": payload.get("startedAt"),
                           "endedAt": None, "queueWaitMs": payload.get("queueWaitMs"), "inputTokens": None,
                           "requests": None if items is None else requests_of(items)})
        return self.calls[-1]

    def responded(self, place, attempt, payload):
        """How a call ended is what its answer says, and nothing else."""
        same = {**place, "attempt": attempt, "outcome": "running"}
        call = next((one for one in self.calls if same.items() <= {**one, "requests": None}.items()), None)
        call = call or self.call(place, attempt, {})
        call["outcome"] = "succeeded" if payload.get("error") is None else "failed"
        call["inputTokens"] = (payload.get("usage") or {}).get("inputTokens")
        if call["startedAt"] and payload.get("durationMs") is not None:
            ended = time_of(call["startedAt"]) + timedelta(milliseconds=payload["durationMs"])
            call["endedAt"] = ended.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def ran(self, place, status):
        run = next((one for one in self.runs if place.items() <= one.items()), None)
        if run is None:
            self.runs.append({**place, "status": status, "recoveredAttempts": 0})
        else:
            run["status"] = status

    def row(self, row):
        payload = row.get("payload") or {}
        place = {"turnId": row.get("turnId"), "runtimeId": payload.get("runtimeId")}
        match row["type"]:
            case "llm.calling":
                self.call(place, payload.get("attempt", 0), payload)
            case "llm.responded" | "gateway.responded":
                self.responded(place, payload.get("attempt", 0), payload)
            case "runtime.started":
                self.ran(place, "running")
            case "runtime.completed" | "runtime.failed":
                failed = row["type"] == "runtime.failed" or payload.get("status") == "failed"
                self.ran(place, "failed" if failed else "completed")
            case "message.completed":  # what the server has saved is one thing, what came here is another
                came = self.fragments.get((place["turnId"], place["runtimeId"]), 0)
                self.messages.append({**place, "deltaCount": payload.get("deltaCount"), "aggregated": came})

    def shown(self, events):
        for run in self.runs:
            place = {"turnId": run["turnId"], "runtimeId": run["runtimeId"], "outcome": "failed"}
            failed = [call for call in self.calls if all(call[name] == value for name, value in place.items())]
            run["recoveredAttempts"] = len(failed) if run["status"] == "completed" else 0
        waits = [call["queueWaitMs"] for call in self.calls if call["queueWaitMs"] is not None]
        return {"events": events, "calls": self.calls, "runs": self.runs, "messages": self.messages,
                "meanQueueWaitMs": sum(waits) / len(waits) if waits else None}


class Debug:
    def fresh_debug(self):
        self.fragments, self.recorded = {}, []

    def open_debug_page(self):
        path = f"/api/traces/{encoded(self.shown['session'])}"

        def read():
            rows, cursor = {}, ""
            while cursor is not None and len(rows) < ROWS:
                got = answer("GET", path + (f"?cursor={encoded(cursor)}" if cursor else ""))
                page = got[1] if got and got[0] == 200 else {}
                for row in page.get("events", []):
                    rows.setdefault(row["id"], row)
                cursor = page.get("nextCursor")
            return rows
        self.later(read, self.show_debug_page)

    def show_debug_page(self, rows):
        """A page of the trace has an order of its own; over pages, the time of an event decides."""
        page, ordered = Page(self.fragments), sorted(rows.values(), key=lambda row: time_of(row["timestamp"]))
        for row in ordered:
            page.row(row)
        self.recorded, self.shown["debug"] = page.items, page.shown([row["id"] for row in ordered])

    def request(self, call, request):
        """A recorded item, and the body that it has or refers to."""
        try:
            shown = self.shown["debug"]["calls"][call]["requests"][request]
            return self.recorded[call][request], None if shown["unavailable"] else shown["body"]
        except (IndexError, TypeError):
            return {}, None  # there is none

    def copy(self, call, request):
        """What is copied holds the body, wherever it was recorded."""
        item, body = self.request(call, request)
        copied = {name: value for name, value in item.items() if name != "bodyRef"}
        self.shown["clipboard"] = {**copied, "body": "unavailable" if body is None else body}
        self.show()

    def rebuild(self, call, request):
        """A record is rebuilt when this version knows it, its JSON is whole, and what it names is still there."""
        item, body = self.request(call, request)
        known = item.get("schemaVersion") in (1, 2) and item.get("complete") is True and body is not None

        def read():
            return known and all((answer("GET", url) or (0,))[0] == 200 for url in resources(body))

        def take(whole):
            rebuilt = {"whole": True, "message": "the JSON of the request", "headers": None, "exact": False}
            self.shown["rebuilt"] = rebuilt if whole else CANNOT
        self.later(read, take)

    def export(self):
        """What anybody may see: recorded bodies hold what the player wrote, so they are left out."""
        page = self.shown["debug"] or {"events": [], "calls": []}
        calls = [{name: call[name] for name in ("runtimeId", "attempt", "outcome")} for call in page["calls"]]
        self.shown["exported"] = json.dumps({"events": len(page["events"]), "calls": calls})
        self.show()
