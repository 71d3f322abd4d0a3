"""What a person says and answers, and the stream of the action that comes of it."""

import time

from wire import FAILURES, SCALE, answer, ask, events, leave, parsed

POLLS = [3, 6, 12, 24, 30]  # seconds from one failed question to the next


class Actions:
    def say(self, text):
        self.shown["input"] = text  # there it stays until it is accepted
        self.proceed(text)
        self.show()

    def proceed(self, text):
        if self.action or self.keeping:  # the running action is stopped first; one input waits, no more
            if self.next is not None:
                self.shown["notice"] = "busy"
                return
            self.next = text
            self.stop()
        elif text.startswith("/") and self.command(text):
            return
        elif self.store:
            self.keep_input(text)
        else:
            self.submit(text)

    def say_next(self):
        text, self.next = self.next, None
        if text is not None:
            self.proceed(text)

    def submit(self, text, kept=None):
        said = {"type": "command", "command": text} if text.startswith("/") else {"type": "say", "text": text}
        chosen = [{"type": "interaction", "submissions": [{"interactionId": one["blockId"], "type": "choice", "values": one["values"]}]}
                  for one in self.shown["selections"]]
        mine = self.act("submit_actions", {"actions": [said, *chosen], **({"inputMessageId": kept} if kept else {})})
        mine["choices"] = len(chosen)
        self.shown["messages"].append({"role": "player", "text": text, "status": "sending", "request": mine["request"]})

    def answer_form(self, block, values):
        message = next((own for own in self.shown["messages"] if own.get("form", {}).get("blockId") == block), None)
        if message is None:
            return
        message["form"].update(draft=values, issues=[])  # what was filled in stays, also when it cannot be sent now
        if self.action or self.keeping:
            self.shown["notice"] = "busy"
        else:
            action = {"type": "interaction", "turnId": message.get("turnId"),
                      "submissions": [{"interactionId": block, "type": "form", "values": values}]}
            self.act("submit_actions", {"actions": [action]}, message["form"])
        self.show()

    def stop(self):
        if self.action:
            self.ask("POST", self.path("/abort"), {})

    def retry(self):
        self.shown["retryOffered"] = False
        if not self.action:
            self.act("retry_turn", {})

    def retry_task(self, turn, runtime):
        if not self.action:
            self.act("retry_runtime", {"runtimeId": runtime, "retryFromTurnId": turn})

    def act(self, kind, payload, form=None):
        request = self.client.number()
        mine = self.action = self.fresh_action(request, form=form)
        self.unsubscribe("paused")  # the action's stream says it all meanwhile
        self.shown.update(executing=True, executionError=None, notice=None)
        if self.asked.pop("view", None):
            self.view_wanted = True  # its answer may be older than what this action commits
        body = {"requestId": request, "sessionId": self.shown["session"], "type": kind, "payload": payload}
        self.later(lambda: self.run(mine, body))
        self.show()
        return mine

    @staticmethod
    def fresh_action(request, form=None, turns=(), lost=False):
        return {"request": request, "form": form, "turns": list(turns), "lost": lost, "started": lost, "choices": 0,
                "round": None, "over": False, "watch": None, "asking": False}

    def run(self, mine, body):
        try:
            connection, response = ask("POST", "/api/actions", body, "text/event-stream")
            with self.client.lock:
                if self.action is not mine:
                    return leave(connection)
                self.acting = connection
                self.taken(mine) if response.status == 200 else self.refused(mine, response.status)
                self.show()
            for _, data, _ in events(response):
                with self.client.lock:
                    if self.action is not mine:
                        return leave(connection)  # it is over
                    event = parsed(data)
                    if event.get("sessionId") == self.shown["session"]:
                        self.apply({**event, "inTurn": True})
                    self.show()
        except FAILURES:
            pass  # lost; what follows is the same
        with self.client.lock:
            if self.action is mine and self.is_behind:
                self.action = None  # the next visit reads what became of it
            elif self.action is mine:
                mine["lost"] = True  # nothing is sent again; the server is asked how it stands
                self.subscribe()
                self.watch(mine)
                self.show()

    def taken(self, mine):
        said = next((own for own in self.shown["messages"] if own.get("request") == mine["request"]), {})
        if said.get("text") == self.shown["input"]:
            self.shown["input"] = ""
        del self.shown["selections"][:mine["choices"]]

    def refused(self, mine, status):
        self.action, self.shown["executionError"] = None, f"the server answered {status}"
        self.take_back(mine["request"])
        self.action_over()

    def take_back(self, request):
        """Nothing began: what was said goes back into the input box."""
        for own in [own for own in self.shown["messages"] if own.get("request") == request]:
            self.shown["messages"].remove(own)
            self.shown["input"] = self.shown["input"] or own["text"]

    def watch(self, mine):
        """Asks how a lost action stands until it is over."""
        if mine and mine["lost"] and not mine["asking"]:
            turn = mine["watch"] = object()  # a page that comes back asks at once, in place of who waits
            self.later(lambda: self.poll(mine, turn))

    def poll(self, mine, turn):
        failures = 0
        while self.action is mine and mine["watch"] is turn and not self.client.hidden:
            mine["asking"] = True
            got = answer("GET", self.path("/execution"))
            mine["asking"] = False
            status = got[1] if got and got[0] == 200 and isinstance(got[1], dict) else None
            with self.client.lock:
                if self.action is mine and mine["watch"] is turn and status and status.get("state") != "running":
                    self.lost_is_over()
                    self.read_view()  # it says what became of its texts; the person may go on meanwhile
                    self.say_next()
                    return self.show()
            time.sleep((3 if status else POLLS[min(failures, 4)]) * SCALE)
            failures = 0 if status else failures + 1

    def action_over(self, refresh=False, reread=False):
        self.shown.update(executing=False, advance=None)
        if not self.is_behind:
            self.subscribe()
            if reread or self.view_wanted:
                self.read_view()
            elif refresh:
                self.read_session()  # phase and count may have changed without an event
        if self.store:
            self.keep_checkpoint()  # what is to be said next waits for it
        else:
            self.say_next()
