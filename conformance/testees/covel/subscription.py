"""The subscription of a session: where it begins, when it is lost, and what its frames mean."""

import time

from wire import FAILURES, SCALE, ask, encoded, events, is_news, leave, parsed

TOPICS = "runtime,state,game,plugin,session,system,job"
HELD = 10_000  # events that wait for what is being read
REFUSALS = 5  # refused so often, the subscription is given up


class Subscription:
    def fresh_subscription(self):
        self.connection, self.stream, self.subscribed, self.joined = None, 0, False, None
        self.connected_before, self.lost, self.wait, self.refusals = False, False, 1, 0

    def unsubscribe(self, state):
        self.stream, self.subscribed, self.shown["connection"] = self.stream + 1, False, state
        leave(self.connection)

    def subscribe(self):
        if self.gone or self.client.hidden or self.is_behind or self.acts() or self.refusals >= REFUSALS:
            return
        leave(self.connection)
        self.stream, self.subscribed = self.stream + 1, True
        stream = self.stream
        self.later(lambda: self.follow(stream))

    def follow(self, mine):
        """Follows the subscription, again and again, until another one takes its place."""
        while self.stream == mine:
            cursor = self.shown["cursor"]
            self.blind = cursor is None
            path = f"/api/events/stream?sessionId={encoded(self.shown['session'])}&topics={TOPICS}"
            path += "" if cursor is None else f"&lastEventId={encoded(cursor)}"
            try:
                connection, response = ask("GET", path, accept="text/event-stream")
                with self.client.lock:
                    if self.stream != mine:
                        return leave(connection)
                    self.connection = connection
                    self.answered(response.status)
                for frame in events(response) if response.status == 200 else ():
                    with self.client.lock:
                        if self.stream != mine:
                            return leave(connection)
                        self.frame(*frame)
                        self.show()
            except FAILURES:
                pass  # lost; what follows is the same
            with self.client.lock:
                if self.stream != mine:
                    return
                self.lost, wait, self.wait = True, self.wait, min(self.wait * 2, 30)
                self.shown["connection"] = "closed" if self.refusals >= REFUSALS else "connecting"
                self.show()
            if self.refusals >= REFUSALS:
                return
            time.sleep(wait * SCALE)

    def answered(self, status):
        if status == 200:
            self.wait, self.refusals, self.shown["connection"] = 1, 0, "open"
            self.show()
        else:
            self.refusals = self.refusals + 1 if status < 500 and status not in (408, 429) else 0

    def frame(self, kind, data, event_id):
        body = parsed(data)
        if event_id:
            self.shown["cursor"] = event_id  # only events have an id, and it is kept as it stands
        if kind == "system.connected":
            self.connected(body.get("cursor"))
        elif kind == "system.reset":
            self.shown["cursor"] = body.get("cursor", self.shown["cursor"])
            self.refetch()
            self.read_session()
        elif body.get("sessionId") == self.shown["session"]:
            event = {**body, "type": kind, "inTurn": False}  # the frame's name decides
            if self.asked and len(self.held) < HELD:
                self.held.append(event)  # newer than what is being read
            else:
                self.apply(event)

    def connected(self, cursor):
        again, self.connected_before, lost, self.lost = self.connected_before, True, self.lost, False
        seen = self.shown["cursor"]
        if seen is None and "view" in self.asked and not again:
            self.joined = cursor
        missed = self.blind and seen is not None and cursor and is_news(cursor, seen)  # the view came first, and is older
        if seen is None or missed:
            self.shown["cursor"] = cursor
        if missed or (again and lost):  # what was missed may not be replayed
            self.refetch()
            self.read_traces()
