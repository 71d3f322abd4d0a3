"""A Covel client on Python's standard library: turnwire client --suite covel-sse -- python3 client.py

A line on standard input says what the person does, a line on standard output what is shown. Every change happens
under one lock; a thread each for the subscription, the action and every question that waits for its answer.
"""

import http.client
import json
import sys
import threading
import time
from urllib.parse import quote

from slots import Slots
from view import form_of, merged, settled
from wire import SCALE, ask, events, is_news, leave, read_json

TOPICS, POLLS = "runtime,state,game,plugin,session,system,job", [3, 6, 12, 24, 30]


class Client:
    def __init__(self):
        self.lock, self.last, self.visit, self.requests = threading.RLock(), None, 0, 0
        self.shown, self.connection, self.hidden = {}, None, threading.Event()

    def show(self):
        line = json.dumps({"state": self.shown | {"slots": self.slots.shown()}})
        if line != self.last:
            print(line, flush=True)
        self.last = line

    def later(self, function, *arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()

    def open(self, session):
        with self.lock:
            self.visit += 1
            leave(self.connection)
            self.shown = {
                "session": session, "connection": "connecting", "cursor": None, "phase": None,
                "completedPlayerTurns": 0, "executing": False, "executionError": None, "notice": None,
                "messages": [], "events": [], "pluginData": {},
            }
            self.action = self.held = self.joined = None
            self.slots, self.wake = Slots(), threading.Event()
            self.stream, self.connected, self.lost, self.view_wanted, self.views = 0, False, False, False, 0
            self.read_view()
            self.later(self.begin, self.visit)
            self.show()

    def begin(self, visit):
        """Subscribes when the view is there, or does not come soon."""
        for _ in range(40):
            time.sleep(0.02)
            if self.visit == visit and self.shown["cursor"] is not None:
                break
        self.subscribe(visit)

    def say(self, text):
        with self.lock:
            if self.action:
                self.shown["notice"] = "busy"
            else:
                kind = {"type": "command", "command": text} if text.startswith("/") else {"type": "say", "text": text}
                request = self.act("submit_actions", {"actions": [kind]})
                self.shown["messages"].append({"role": "player", "text": text, "status": "sending", "request": request})
            self.show()

    def stop(self):
        self.later(read_json, "POST", f"/api/sessions/{self.shown['session']}/abort", {})

    def hide(self):
        with self.lock:
            self.hidden.set()
            self.pause("paused")
            self.show()

    def reappear(self):
        with self.lock:
            self.hidden.clear()
            self.subscribe(self.visit)
            self.wake.set()  # a lost action is asked for at once, and not when the wait is over

    def pause(self, state):
        self.stream += 1
        leave(self.connection)
        self.shown["connection"] = state

    def subscribe(self, visit):
        with self.lock:
            if self.visit == visit and not self.hidden.is_set() and not (self.action and not self.action["lost"]):
                self.stream += 1
                self.later(self.follow, visit, self.stream)

    def follow(self, visit, mine):
        """Follows the subscription, again and again, until another one takes its place."""
        wait = 1
        while (self.visit, self.stream) == (visit, mine):
            cursor = self.shown["cursor"]
            self.blind = cursor is None
            path = f"/api/events/stream?sessionId={quote(self.shown['session'])}&topics={TOPICS}"
            path += "" if cursor is None else f"&lastEventId={quote(cursor, safe='')}"
            try:
                connection, response = ask("GET", path, accept="text/event-stream")
                with self.lock:
                    if (self.visit, self.stream) != (visit, mine):
                        return leave(connection)
                    self.connection = connection
                if response.status == 200:
                    wait = 1
                    for frame in events(response):
                        with self.lock:
                            if (self.visit, self.stream) != (visit, mine):
                                return leave(connection)
                            self.shown["connection"] = "open"
                            self.frame(*frame)
                            self.show()
            except (OSError, ValueError, http.client.HTTPException):
                pass
            with self.lock:
                if (self.visit, self.stream) != (visit, mine):
                    return
                self.lost, self.shown["connection"] = True, "connecting"
                self.show()
            time.sleep(wait * SCALE)
            wait = min(wait * 2, 30)

    def frame(self, kind, data, event_id):
        try:
            body = json.loads(data)
        except ValueError:
            return
        if event_id:
            self.shown["cursor"] = event_id  # only events have an id, and it is kept as it stands
        if kind == "system.connected":
            again, self.connected, lost, self.lost = self.connected, True, self.lost, False
            cursor, seen = body.get("cursor"), self.shown["cursor"]
            missed = self.blind and seen is not None and cursor and is_news(cursor, seen)  # the view came first, and is older
            if seen is None and self.held is not None and not again:
                self.joined = cursor
            if seen is None or missed:
                self.shown["cursor"] = cursor
            if missed or (again and lost):
                self.read_view()  # what was missed may not be replayed
        elif kind == "system.reset":
            self.shown["cursor"] = body.get("cursor", self.shown["cursor"])
            self.read_view()
        elif body.get("sessionId") == self.shown["session"]:
            event = {**body, "type": kind}  # the frame's name decides
            if self.held is not None:
                self.held.append(event)  # newer than the view that is under way
            self.apply(event, False)

    def read_view(self):
        if self.action and not self.action["lost"]:
            self.view_wanted = True
            return
        self.held, self.views, self.view_wanted = [], self.views + 1, False
        self.later(self.fetch_view, self.visit, self.views)
        self.slots.ask()
        self.later(self.fetch_slots, self.visit)

    def fetch_slots(self, visit):
        slots = read_json("GET", f"/api/sessions/{self.shown['session']}/ui-slots")
        with self.lock:
            if self.visit == visit and slots is not None:
                self.slots.answer(slots)
                self.show()

    def fetch_view(self, visit, number):
        view = read_json("GET", f"/api/sessions/{self.shown['session']}/view")
        with self.lock:
            if (self.visit, self.views) != (visit, number):
                return  # an answer counts only for the visit and the question that it belongs to
            held, self.held = self.held, None
            if view is None:
                return
            if self.action and not self.action["lost"]:
                self.view_wanted = True
                return
            self.take_over(view)
            for event in held:
                self.apply(event, False)
            joined, self.joined = self.joined, None
            if joined and is_news(joined, view["eventCursor"]):
                self.read_view()
            elif self.shown["cursor"] is None:
                self.shown["cursor"] = view["eventCursor"]
            self.show()

    def take_over(self, view):
        session, shown = view.get("session", {}), self.shown
        shown["phase"] = session.get("phase", shown["phase"])
        shown["completedPlayerTurns"] = max(shown["completedPlayerTurns"], session.get("completedPlayerTurns", 0))
        over = self.action and view.get("execution", {}).get("state") != "running"
        shown["messages"] = merged(shown["messages"], view, self.action["turns"] if over else [])
        if over:
            self.action, shown["executing"] = None, False

    def act(self, kind, payload):
        self.requests += 1
        request = f"py-{self.requests}"
        self.action = {"request": request, "turns": [], "lost": False}
        self.pause("paused")
        self.shown.update(executing=True, executionError=None, notice=None)
        body = {"requestId": request, "sessionId": self.shown["session"], "type": kind, "payload": payload}
        self.later(self.run, self.visit, self.action, body)
        return request

    def run(self, visit, mine, body):
        try:
            connection, response = ask("POST", "/api/actions", body, "text/event-stream")
            if response.status != 200:
                with self.lock:
                    self.shown["executionError"] = f"the server answered {response.status}"
                    return self.over(visit)
            for _, data, _ in events(response):
                with self.lock:
                    if self.visit != visit or self.action is not mine:
                        return leave(connection)
                    event = json.loads(data)
                    if event.get("sessionId") == self.shown["session"]:
                        self.apply(event, True)
                    self.show()
        except (OSError, ValueError, http.client.HTTPException):
            pass
        if self.action is mine:
            mine["lost"] = True  # nothing is sent again; the server is asked how it stands
            self.subscribe(visit)
            self.recover(visit, mine)

    def recover(self, visit, mine):
        failures = 0
        while self.visit == visit and self.action is mine:
            status = None if self.hidden.is_set() else read_json("GET", f"/api/sessions/{self.shown['session']}/execution")
            if status and status["state"] != "running":
                with self.lock:
                    return self.read_view()
            self.wake.wait((3 if status else POLLS[min(failures, 4)]) * SCALE)
            self.wake.clear()
            failures = 0 if status else failures + 1

    def over(self, visit, reread=False, committed=False):
        self.action, self.shown["executing"] = None, False
        if reread or self.view_wanted:
            self.read_view()
        elif committed:
            self.later(self.read_phase, visit)
        self.subscribe(visit)
        self.show()

    def read_phase(self, visit):
        session = read_json("GET", f"/api/sessions/{self.shown['session']}")
        with self.lock:
            if self.visit == visit and session:
                self.shown["phase"] = session.get("phase", self.shown["phase"])
                self.show()

    def apply(self, event, in_turn):
        handler = getattr(self, "on_" + event["type"].replace(".", "_").replace("-", "_"), None)
        if handler:  # what has none is for somebody else
            handler(event, event["payload"], in_turn)

    def writing(self, event, payload):
        for own in self.shown["messages"]:
            if (own["status"], own.get("turnId"), own.get("runtimeId")) == ("streaming", event["turnId"], payload["runtimeId"]):
                return own
        own = {"role": "assistant", "text": "", "status": "streaming", "turnId": event["turnId"],
               "runtimeId": payload["runtimeId"], "kind": payload["kind"]}
        self.shown["messages"].append(own)
        return own

    def on_execution_started(self, event, payload, in_turn):
        self.slots.begin(event["turnId"])
        if in_turn and self.action:
            self.action["turns"].append(event["turnId"])
            for own in self.shown["messages"]:
                if own.get("request") == event["requestId"]:
                    own.setdefault("turnId", event["turnId"])

    def on_narrative_delta(self, event, payload, in_turn):
        if in_turn:
            own = self.writing(event, payload)
            own["text"] = ("" if payload.get("reset") else own["text"]) + payload["delta"]

    def on_narrative_completed(self, event, payload, in_turn):
        if in_turn:
            speakers = [one.get("speaker") for one in payload.get("segments", [])]
            self.writing(event, payload).update(id=payload["messageId"], text=payload["content"], status="provisional", speakers=speakers)

    def on_interaction_requested(self, event, payload, in_turn):
        block = payload["block"]["id"]
        if not any(own.get("form", {}).get("blockId") == block for own in self.shown["messages"]):
            self.shown["messages"].append({"role": "assistant", "text": "", "status": "provisional" if in_turn else "completed",
                                           "turnId": payload.get("turnId", event.get("turnId")), "form": form_of(payload["block"])})

    def on_event_emitted(self, event, payload, in_turn):
        self.shown["events"].append(payload)

    def on_ui_slot_changed(self, event, payload, in_turn):
        self.slots.change(payload)

    def on_ui_slot_preview(self, event, payload, in_turn):
        self.slots.preview(payload.get("turnId", event.get("turnId")), payload)

    def on_ui_slot_cleared(self, event, payload, in_turn):
        self.slots.clear(payload["turnId"])

    def on_turn_resumed(self, event, payload, in_turn):
        self.read_view()

    def on_plugin_data_changed(self, event, payload, in_turn):
        data = self.shown["pluginData"].setdefault(payload["pluginId"], {})
        for change in payload["changes"]:
            rows = data.setdefault(change["namespace"], {})
            rows.pop(change["key"], None)
            if change["operation"] != "delete":
                rows[change["key"]] = change["value"]

    def on_execution_round_completed(self, event, payload, in_turn):
        self.shown["messages"] = settled(self.shown["messages"], event["turnId"], payload["committed"])

    def on_execution_completed(self, event, payload, in_turn):
        self.slots.end(event["turnId"])
        if in_turn and self.action:
            for turn in self.action["turns"]:
                self.shown["messages"] = settled(self.shown["messages"], turn, payload["committed"] or turn != event["turnId"])
            if payload.get("abortReason") == "aborted-by-player":
                self.shown["notice"] = "stopped"
            elif not payload["committed"]:
                self.shown["executionError"] = payload.get("error") or payload.get("abortReason") or "it failed"
            self.over(self.visit, payload.get("resync") is True, payload["committed"])

    def on_error_occurred(self, event, payload, in_turn):
        self.shown["executionError"] = payload["message"]


client = Client()
person = {"open": lambda line: client.open(line["session"]), "say": lambda line: client.say(line["text"]),
          "stop": lambda line: client.stop(), "hide": lambda line: client.hide(), "show": lambda line: client.reappear()}
print(json.dumps({"timeScale": SCALE, "can": list(person)}), flush=True)
for line in map(json.loads, sys.stdin):
    person.get(line["do"], lambda line: None)(line)
