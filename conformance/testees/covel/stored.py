"""What the server has stored: the session view, the lists beside it, the messages between two windows, and, for a client
that keeps its data itself, its own store."""

from wire import answer, encoded, is_news

PAGES = 1_000  # pages that are read to join two windows; a hole that is longer stays one
RANKS = {None: -1, "queued": 0, "running": 1, "progress": 2, "waiting-input": 2}
PUBLIC = {"queued": "queued", "claimed": "running", "running": "running", "committing": "progress",
          "succeeded": "succeeded", "cancelled": "cancelled"}


def form_of(block):
    notice = (block.get("data") or {}).get("notice") or (block.get("meta") or {}).get("notice")
    return {"blockId": block["id"], "notice": notice, "submitted": False, "values": None, "draft": None, "issues": []}


def message_of(row):
    return {"id": row["id"], "role": "player" if row["role"] == "user" else row["role"], "text": row["content"],
            "status": "completed", "turnId": row.get("turnId"), "runtimeId": row.get("runtimeId"), "kind": row.get("kind"),
            "speakers": [one.get("speaker") for one in row.get("segments") or []],
            **({"form": form_of(row["block"])} if row.get("block") else {})}


def settlement(shown, receipt):
    result = (receipt.get("source") or {}).get("resultId")
    known = shown["settlements"].get(result)
    if known is None or receipt.get("version", 0) >= known.get("version", 0):
        shown["settlements"][result] = receipt


class Stored:
    def fresh_stored(self):
        self.view_wanted, self.filling, self.recovering, self.messages_cursor = False, None, [], None
        self.row_times, self.worlds, self.world_id = {}, [], None

    def read(self, name, path, take):
        """Asks for something that is stored. Events that come meanwhile are newer; they wait until all of it is there."""
        mine = self.asked[name] = object()

        def taken(body):
            if self.asked.get(name) is not mine:
                return  # late: it was asked again, or nobody wants it
            del self.asked[name]
            try:
                take(body)
            except (AttributeError, KeyError, TypeError, ValueError):
                pass  # it is not what the protocol says it is
            if not self.asked:
                held, self.held = self.held, []
                for event in held:
                    self.apply(event)
        self.get(path, taken)

    def refetch(self):
        """As on opening, after a reset, and after a lost connection."""
        self.read_view()
        self.slots.ask()
        self.read("slots", self.path("/ui-slots"), self.take_slots)
        self.read("jobs", self.path("/runtime-jobs"), self.take_jobs)
        self.read("suspensions", self.path("/suspensions"), self.take_suspensions)
        self.read("plugins", self.path("/plugins"), lambda plugins: self.take_plugins((plugins or {}).get("active", [])))
        self.read("worlds", "/api/worlds", self.take_worlds)

    def read_session(self):
        self.get(self.path(), lambda session: session and self.take_session(session))

    def read_view(self):
        if self.is_behind:
            return
        if self.acts():
            self.view_wanted = True  # after it
            return
        self.view_wanted, self.filling = False, None
        self.asked.pop("fill", None)
        self.read("view", self.path("/view"), lambda view: view and self.viewed(view))

    def viewed(self, view):
        if self.acts():
            self.view_wanted = True  # what streams now belongs to another action
            return
        ids, window = {own["id"] for own in self.shown["messages"] if own.get("id")}, view.get("messages") or []
        if not ids or not window or not view.get("messagesCursor") or any(row["id"] in ids for row in window):
            self.adopt(view)
        else:
            self.filling = {"view": view, "between": [], "pages": 0, "ids": ids}
            self.fill(view["messagesCursor"])

    def fill(self, cursor):
        """Messages lie between what is shown and a newer window: pages are read back to what is shown, and no further."""
        self.read("fill", self.path(f"/messages/page?cursor={encoded(cursor)}"), self.filled)

    def filled(self, page):
        filling, page = self.filling, page or {}
        rows = page.get("items") or []
        joined = any(row["id"] in filling["ids"] for row in rows)
        filling["between"][:0], filling["pages"] = rows, filling["pages"] + 1
        if not joined and rows and page.get("nextCursor") and filling["pages"] < PAGES:
            return self.fill(page["nextCursor"])
        view, self.filling = filling["view"], None
        cursor = self.messages_cursor if joined else view["messagesCursor"]
        self.adopt({**view, "messagesCursor": cursor, "messages": filling["between"] + view["messages"]})

    def older(self):
        if self.messages_cursor:
            self.get(self.path(f"/messages/page?cursor={encoded(self.messages_cursor)}"), self.take_older)

    def take_older(self, page):
        if page:
            self.messages_cursor = page.get("nextCursor")
            known = {own.get("id") for own in self.shown["messages"]}
            self.shown["messages"][:0] = [message_of(row) for row in page["items"] if row["id"] not in known]

    def adopt(self, view):
        self.take_over(view)
        if self.opening:
            self.adopt_action(view.get("execution") or {})
        self.opening = False
        self.settle_recovered(view.get("execution") or {})
        joined, self.joined = self.joined, None
        if joined and is_news(joined, view["eventCursor"]):
            self.read_view()  # something happened between the two
        elif not joined and self.shown["cursor"] is None:
            self.shown["cursor"] = view.get("eventCursor")
        if not self.subscribed and not self.connected_before:
            self.subscribe()

    def take_over(self, view):
        shown, session = self.shown, view.get("session") or {}
        self.take_session(session)
        self.take_messages(view)
        shown["dimensions"].update(view.get("dimensions") or {})
        for receipt in view.get("dimensionSettlements") or []:
            settlement(shown, receipt)
        for character in view.get("characters") or []:
            shown["characters"][character["id"]] = character
        shown["characterSchema"] = view.get("characterSchema") or shown["characterSchema"]
        if view.get("plugins") is not None:
            paused = {plugin["id"]: (plugin.get("paused") or {}).get("reason") for plugin in view["plugins"]}
            shown["pausedPlugins"] = {plugin: reason for plugin, reason in paused.items() if reason}
        self.tracker = view.get("dimensionProviderPluginId"), (view.get("dimensionRecovery") or {}).get("trackerRuntimeId")
        for step in view.get("executionSteps") or []:
            self.restore({**step, "inTurn": False})
        self.regroup()
        self.messages_cursor, self.world_id = view.get("messagesCursor"), session.get("worldId") or self.world_id
        self.show_world()
        if (view.get("execution") or {}).get("retry") and not self.action:
            shown["retryOffered"] = True

    def take_session(self, session):
        """Counts only rise: an older answer does not take a turn back."""
        self.shown["phase"] = session.get("phase") or self.shown["phase"]
        self.shown["completedPlayerTurns"] = max(self.shown["completedPlayerTurns"], session.get("completedPlayerTurns") or 0)

    def take_messages(self, view):
        """The stored messages in their order, behind those that were read before them; what is not stored yet comes last."""
        shown, rows = self.shown["messages"], [message_of(row) for row in view.get("messages") or []]
        forms = {own["form"]["blockId"]: own["form"] for own in shown if "form" in own}
        for row in rows:
            if "form" in row:
                row["form"] = forms.get(row["form"]["blockId"], row["form"])

        def is_stored(own):
            echo = own["role"] == "player" and not own.get("id")
            return any((own.get("id") and row["id"] == own["id"]) or ("form" in own and row.get("form") is own["form"])
                       or (echo and row["role"] == "player" and row["text"] == own["text"]
                           and own.get("turnId") in (None, row["turnId"])) for row in rows)

        def is_open(own):
            return own["status"] != "completed" or (own["role"] == "player" and not own.get("id"))
        ids = [own.get("id") for own in shown]
        before = ids.index(rows[0]["id"]) if rows and rows[0]["id"] in ids else 0
        rest = [own for own in shown[before:] if is_open(own) and not is_stored(own)]
        self.shown["messages"] = shown[:before] + rows + rest
        answers = {(one.get("interactionId"), one.get("turnId")): one for one in view.get("submittedInteractions") or []}
        for own in self.shown["messages"]:
            for (block, turn), one in answers.items() if "form" in own else ():
                if own["form"]["blockId"] == block and own.get("turnId") in (None, turn):
                    own["form"].update(submitted=True, values=one.get("values"), issues=[])

    # ---- an action that is lost, or that another page has begun ----

    def adopt_action(self, execution):
        if execution.get("state") == "running" and not self.action:
            turns = [execution["turnId"]] if execution.get("turnId") else []
            self.action = self.fresh_action(execution.get("requestId"), turns=turns, lost=True)
            self.shown["executing"] = True
            self.watch(self.action)

    def lost_is_over(self):
        self.recovering += self.action["turns"]
        self.action = None
        self.shown.update(executing=False, advance=None)

    def settle_recovered(self, execution):
        """The view says what became of a lost action."""
        shown, state, lost = self.shown, execution.get("state"), self.action if self.action and self.action["lost"] else None
        turns = self.recovering + (lost["turns"] if lost else [])
        if not lost and not turns:
            return
        saved = {(own.get("turnId"), own.get("runtimeId")) for own in shown["messages"]
                 if own["status"] == "completed" and own["role"] != "player"}

        def is_open(own):
            return own["status"] in ("streaming", "provisional") and own.get("turnId") in turns
        shown["messages"] = [own for own in shown["messages"]
                             if not is_open(own) or (own.get("turnId"), own.get("runtimeId")) not in saved]
        if state in ("failed", "interrupted"):  # what is left of its texts was not saved
            stories = {turn for turn, _ in saved}
            shown["unsaved"] += [{"turnId": own["turnId"], "text": own["text"]} for own in shown["messages"]
                                 if is_open(own) and own["text"] and own["turnId"] not in stories]
            shown["messages"] = [own for own in shown["messages"] if not is_open(own)]
        if state == "running" or (lost and lost["asking"]):
            return
        shown["retryOffered"] = bool(execution.get("retry"))
        if lost:
            self.lost_is_over()
        self.recovering = []
        if lost:
            self.say_next()

    # ---- lists ----

    def take_slots(self, slots):
        if slots:
            self.slots.answer(slots)
            self.load_media()

    def take_suspensions(self, suspensions):
        if suspensions:
            self.shown["suspensions"] = [{"id": row["id"], "runtimeId": row["runtimeId"]} for row in suspensions["items"]]

    def take_jobs(self, jobs):
        """An event that came after the question wins, and so does an end."""
        for row in (jobs or {}).get("items", []):
            known, state = self.shown["jobs"].get(row["jobId"]), PUBLIC.get(row.get("status"), "failed")
            self.worker_is_known(row)
            if RANKS.get(state, 3) <= RANKS.get(known and known["state"], 3):
                continue
            known = known or {"progress": None, "message": None, "turnId": None, "parent": None, "sequence": 0}
            message = row.get("error") or ("the task failed" if row.get("reason") else known["message"])
            turn = (row.get("origin") or {}).get("sourceTurnId") or known["turnId"]
            self.shown["jobs"][row["jobId"]] = {**known, "state": state, "message": message, "turnId": turn}
            if turn and row.get("runtimeId"):
                self.step(turn, row["runtimeId"]).update(jobId=row["jobId"], status=self.step_status(state))
        self.jobs_known = True
        self.take_traces()

    def take_plugins(self, active):
        """The items are ids, or objects that have one."""
        self.shown["plugins"] = [plugin["id"] if isinstance(plugin, dict) else plugin for plugin in active]
        self.take_catalog([plugin for plugin in active if isinstance(plugin, dict)])
        for plugin in self.shown["plugins"]:
            self.read(f"data of {plugin}", self.path(f"/plugin-data/{encoded(plugin)}"),
                      lambda data, plugin=plugin: data and self.take_rows(plugin, data["items"]))

    def take_rows(self, plugin, items):
        """A row that is older than the one that is known does not take its place."""
        known, times = self.shown["pluginData"].get(plugin, {}), self.row_times.setdefault(plugin, {})
        rows = self.shown["pluginData"][plugin] = {}
        for row in items:
            place, time = (row["namespace"], row["key"]), row.get("updatedAt", "")
            is_older = time < times.get(place, "") and place[1] in known.get(place[0], {})
            if not is_older:
                times[place] = time
            rows.setdefault(place[0], {})[place[1]] = known[place[0]][place[1]] if is_older else row.get("value")

    def take_worlds(self, worlds):
        self.worlds = worlds["items"] if worlds else self.worlds
        self.show_world()

    def show_world(self):
        self.shown["world"] = next((world for world in self.worlds if world.get("id") == self.world_id), None)

    # ---- the client's own store ----

    def keep(self, rest, body, take):
        """Puts something into the store; takes whether it is kept."""
        self.ask("PUT", self.store + rest, body, lambda got: take(bool(got and 200 <= got[0] < 300)))

    def keep_input(self, text):
        """What was said is kept first, and sent with its id afterwards."""
        name = f"input-{self.client.number()}"
        mine = self.keeping = object()

        def kept(is_kept):
            if self.keeping is mine:
                self.keeping = None
                self.submit(text, name) if is_kept else self.not_kept()
        self.keep(f"/inputs/{name}", {"id": name, "sessionId": self.shown["session"], "content": text}, kept)

    def keep_checkpoint(self):
        names = "phase", "completedPlayerTurns", "characters", "pluginData", "dimensions"
        done = [own for own in self.shown["messages"] if own["status"] == "completed"]
        mine = self.keeping = object()

        def kept(is_kept):
            if self.keeping is mine:
                self.keeping = None
                self.say_next() if is_kept else self.not_kept()
        body = {"sessionId": self.shown["session"], "messages": done, **{name: self.shown[name] for name in names}}
        self.keep("/checkpoint", body, kept)

    def not_kept(self):
        self.next, self.shown["notice"] = None, "not-kept"

    def keep_thinking(self):
        if self.store:
            self.keep("/history", {"sessionId": self.shown["session"], "thinking": list(self.thoughts.items())}, lambda _: None)

    def recall(self):
        if self.store:
            self.later(lambda: answer("GET", self.store + "/history"), self.recalled)

    def recalled(self, got):
        kept = got[1] if got and got[0] == 200 and isinstance(got[1], dict) else {}
        if kept.get("sessionId") == self.shown["session"]:
            for key, thought in kept.get("thinking", []):
                self.think(key, thought)
