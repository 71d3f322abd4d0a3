"""A Covel client on Python's standard library: turnwire client --suite covel-sse -- python3 client.py

A line on standard input says what the person does, a line on standard output what is shown. Here: sessions, and what a
person does. subscription.py and actions.py have the two streams, turn.py and background.py what their events do, stored.py
what is read, history.py steps and traces, plugins.py what goes to plugins, debug.py the debug page, and relay.py the relay.

Every change happens under one lock; a thread each for the subscription, the action, and every question that waits for its
answer.
"""

import json
import os
import secrets
import sys
import threading
import time

import background  # noqa: F401, its events
from actions import Actions
from debug import Debug
from history import History
from plugins import Plugins
from relay import Relay
from slots import Slots
from stored import Stored
from subscription import Subscription
from turn import HANDLERS
from wire import SCALE, answer, encoded, leave

STORE = os.environ.get("TURNWIRE_STORE") if os.environ.get("TURNWIRE_DATA_MODE") == "local" else None


class Client:
    """The sessions of a page: the one that is open, and those that were left while their action ran."""

    def __init__(self):
        self.lock, self.last, self.visit, self.behind, self.hidden = threading.RLock(), None, None, [], False
        self.page, self.numbers, self.handlers = secrets.token_hex(3), 0, []

    def number(self):
        """Of requests and inputs, also of another page."""
        self.numbers += 1
        return f"{self.page}-{self.numbers}"

    def open(self, session):
        left = self.visit
        back = next((one for one in self.behind if one.action and one.shown["session"] == session), None)
        if left and left.acts() and left.shown["session"] != session:
            left.go_behind()
            self.behind.append(left)
        elif left:
            left.leave()
        self.behind = [one for one in self.behind if one is not back and one.action]
        self.visit = back or Visit(self, session)
        self.visit.come_back() if back else self.visit.begin()

    def close(self):
        if self.visit:
            self.visit.leave()
        self.visit = None

    def hide(self):
        self.hidden = True
        if self.visit:
            self.visit.unsubscribe("paused")
            self.visit.show()

    def reappear(self):
        self.hidden = False
        if self.visit:
            self.visit.subscribe()
            self.visit.watch(self.visit.action)

    def on(self, kind, handler):
        """Calls a function with the payload of events of the subscription."""
        self.handlers.append((kind, handler))


class Visit(Subscription, Actions, Stored, History, Plugins, Debug):
    """One session, from opening to leaving it."""

    def __init__(self, client, session):
        self.client, self.store, self.slots, self.gone = client, STORE, Slots(), False
        self.shown = {
            "session": session, "connection": "connecting", "cursor": None, "phase": None, "completedPlayerTurns": 0,
            "executing": False, "executionError": None, "notice": None, "retryOffered": False, "input": "", "selections": [],
            "messages": [], "unsaved": [], "events": [], "groups": [], "steps": [], "jobs": {}, "pluginData": {},
            "suspensions": [], "characters": {}, "characterSchema": None, "dimensions": {}, "settlements": {},
            "pausedPlugins": {}, "snapshots": [], "advance": None, "thinking": [], "assets": [], "media": {},
            "mediaWarnings": [], "unrecovered": [], "timeline": [], "plugins": [], "world": None, "approval": None,
            "callError": None, "handlerWarnings": [], "debug": None, "clipboard": None, "rebuilt": None, "exported": None,
        }
        self.action = self.next = self.keeping = self.acting = None
        self.opening, self.is_behind, self.held, self.asked = True, False, [], {}
        self.fresh_subscription(), self.fresh_stored(), self.fresh_history(), self.fresh_plugins(), self.fresh_debug()

    def show(self):
        if self.client.visit is not self:
            return
        story = [own["text"] for own in self.shown["messages"] if own.get("kind") == "story"]
        line = json.dumps({"state": self.shown | {"slots": self.slots.shown(), "stage": story[-1] if story else None}})
        if line != self.client.last:
            print(line, flush=True)
        self.client.last = line

    def later(self, work, take=None):
        """Does something that waits in a thread of its own, and then takes what came of it, unless the session was left."""
        def run():
            result = work()
            with self.client.lock:
                if not self.gone and take:
                    take(result)
                    self.show()
        threading.Thread(target=run, daemon=True).start()

    def ask(self, method, path, body=None, take=None):
        """Asks, and takes status and JSON of the answer, or None."""
        self.later(lambda: answer(method, path, body), take)

    def get(self, path, take):
        """Asks, and takes the JSON of a good answer, or None."""
        self.ask("GET", path, None, lambda got: take(got[1] if got and got[0] == 200 else None))

    def path(self, rest=""):
        return f"/api/sessions/{encoded(self.shown['session'])}{rest}"

    def begin(self):
        self.refetch()
        self.recall()
        self.read_traces()
        self.later(lambda: time.sleep(0.8), lambda _: self.subscribed or self.connected_before or self.subscribe())
        self.show()  # or without the view's cursor

    def leave(self):
        self.gone, self.action, self.stream = True, None, self.stream + 1
        leave(self.connection)
        leave(self.acting)

    def acts(self):
        return self.action is not None and not self.action["lost"]

    def go_behind(self):
        self.is_behind, self.next = True, None
        self.forget_calls()
        self.unsubscribe("closed")

    def come_back(self):
        self.is_behind, self.shown["connection"] = False, "paused"
        self.read_view()
        self.show()

    def apply(self, event):
        if not isinstance(event.get("payload"), dict):
            event = {**event, "payload": {}}
        if not event["inTurn"]:
            self.call_handlers(event)
        try:
            if handler := HANDLERS.get(event["type"]):  # what has none is for somebody else
                handler(self, event, event["payload"], self.shown)
            self.observe(event)
            self.regroup()
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            pass  # it is not what the protocol says it is; the next one is

    def call_handlers(self, event):
        """A handler that fails is told of by name, without what it was given or said, and nothing else comes of it."""
        for kind, handler in self.client.handlers:
            if kind == event["type"]:
                try:
                    handler(event["payload"])
                except Exception as error:  # noqa: BLE001, whatever it is
                    self.shown["handlerWarnings"].append({"session": self.shown["session"], "event": event.get("id"),
                                                          "type": kind, "error": type(error).__name__})


def main():
    client = Client()

    def fail(message):
        def handler(_):
            raise RuntimeError(message)
        return handler

    person = {
        "open": lambda line: client.open(line["session"]), "close": lambda line: client.close(),
        "hide": lambda line: client.hide(), "show": lambda line: client.reappear(),
        "handle": lambda line: client.on(line["type"], fail(line["throws"])),
    }
    at = {
        "say": lambda visit, line: visit.say(line["text"]), "type": lambda visit, line: visit.type(line["text"]),
        "answer": lambda visit, line: visit.answer_form(line["form"], line["values"]),
        "select": lambda visit, line: visit.select(line["form"], line["values"]),
        "stop": lambda visit, line: visit.stop(), "retry": lambda visit, line: visit.retry(),
        "retry-task": lambda visit, line: visit.retry_task(line["turn"], line["runtime"]),
        "older": lambda visit, line: visit.older(), "steer": lambda visit, line: visit.steer(line["text"]),
        "press": lambda visit, line: visit.press(line["slot"], line["control"]),
        "recover": lambda visit, line: visit.recover(line["result"]),
        "call": lambda visit, line: visit.call(line["plugin"], line["action"], line.get("payload")),
        "resume": lambda visit, line: visit.resume(line["suspension"], line["data"]),
        "decide": lambda visit, line: visit.decide(line["allow"]), "debug": lambda visit, line: visit.open_debug_page(),
        "copy": lambda visit, line: visit.copy(line["call"], line["request"]),
        "rebuild": lambda visit, line: visit.rebuild(line["call"], line["request"]), "export": lambda visit, line: visit.export(),
    }
    print(json.dumps({"timeScale": SCALE, "can": [*person, *at, "relay"]}), flush=True)
    if os.environ.get("TURNWIRE_DEPLOYMENT") == "shared":
        threading.Thread(target=Relay(os.environ["TURNWIRE_LOCAL_MODEL"]).run, daemon=True).start()
    for line in map(json.loads, sys.stdin):
        with client.lock:
            if line["do"] in person:
                person[line["do"]](line)
            elif line["do"] in at and client.visit:
                at[line["do"]](client.visit, line)


if __name__ == "__main__":
    main()
