"""Answers the model requests that a shared server relays to a page, with a model on the player's own machine.

A batch goes out when it is full, 50 ms after its first byte, or when the model has said everything. One post of an answer
is under way at a time; answers do not wait for one another. That bytes were taken says nothing else.
"""

import json
import secrets
import threading
import time

from wire import FAILURES, SCALE, ask, encoded, events, leave

BATCH = 0.05  # seconds
POST = 256 * 1024  # bytes of a post, at most


class Relay:
    def __init__(self, local_model):
        self.local_model, self.open = local_model, {}
        self.channel = f"page-{secrets.token_hex(8)}"  # the same for every connection of this page

    def run(self):
        wait = 1
        while True:
            try:
                _, stream = ask("GET", "/api/model-relay/stream", accept="text/event-stream",
                                headers={"X-Model-Relay": self.channel})
                if stream.status == 200:
                    wait = 1
                    for kind, data, _ in events(stream):
                        self.frame(kind, json.loads(data))
            except FAILURES:
                pass  # lost; what follows is the same
            time.sleep(wait * SCALE)
            wait = min(wait * 2, 30)

    def frame(self, kind, asked):
        if kind == "request":
            transfer = self.open[asked["requestId"]] = Transfer(self, asked)
            threading.Thread(target=transfer.read, daemon=True).start()
            threading.Thread(target=transfer.send, daemon=True).start()
        elif kind == "cancel" and asked["requestId"] in self.open:
            self.open.pop(asked["requestId"]).cancel()


class Transfer:
    """One answer on its way: one thread reads what the model says, another posts it."""

    def __init__(self, relay, asked):
        self.relay, self.asked, self.bell, self.model = relay, asked, threading.Condition(), None
        self.waiting, self.whole, self.failed, self.cancelled = bytearray(), False, False, False

    def cancel(self):
        with self.bell:
            self.cancelled = True
            leave(self.model)
            self.bell.notify_all()

    def until(self, met, seconds=None):
        self.bell.wait_for(lambda: self.cancelled or met(), seconds)

    def read(self):
        try:
            connection, answer = ask(self.asked["method"], self.relay.local_model + self.asked["path"],
                                     json.dumps(self.asked.get("body")).encode(), "*/*", {"Content-Type": "application/json"})
            with self.bell:
                self.model = connection
                if self.cancelled:
                    return leave(connection)
            while piece := answer.read1(65536):
                with self.bell:
                    self.waiting += piece
                    self.bell.notify_all()
                    self.until(lambda: len(self.waiting) < POST)
                    if self.cancelled:
                        return
            self.whole = True
        except FAILURES:
            self.failed = True
        with self.bell:
            self.bell.notify_all()

    def is_full(self):
        return self.whole or self.failed or len(self.waiting) >= POST

    def send(self):
        while True:
            with self.bell:
                self.until(lambda: self.waiting or self.whole or self.failed)
                self.until(self.is_full, BATCH)
                if self.cancelled:
                    return  # nothing more is sent
                part = "error" if self.failed else "chunk" if self.waiting else "end"
                body = bytes(self.waiting[:POST]) if part == "chunk" else b""
                del self.waiting[:len(body)]
                self.bell.notify_all()
            if not self.post(part, body) or part != "chunk":
                return self.relay.open.pop(self.asked["requestId"], None)

    def post(self, part, body):
        path = f"/api/model-relay/requests/{encoded(self.asked['requestId'])}/{part}"
        try:
            connection, response = ask("POST", path, body, "*/*", {"Content-Type": "application/octet-stream"})
            response.read()
            connection.close()
            return 200 <= response.status < 300
        except FAILURES:
            return False
