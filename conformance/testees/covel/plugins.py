"""Commands, controls and calls of plugins with the approvals that the server asks for, interjections, and media."""

from wire import answer, encoded


class Plugins:
    def fresh_plugins(self):
        self.catalog, self.slash, self.tracker = None, None, (None, None)
        self.calls, self.sending, self.asking, self.deciding = [], None, [], False

    def post(self, body, take=None, rest="/plugin-rpc"):
        """Posts something; takes whether it was taken."""
        self.ask("POST", self.path(rest), body, take and (lambda got: take(bool(got and 200 <= got[0] < 300))))

    # ---- the input box, commands, and controls ----

    def type(self, text):
        self.shown["input"] = text
        self.show()

    def take_catalog(self, active):
        commands = [command for plugin in active for command in plugin.get("commands") or []]
        self.catalog = {command["name"].lstrip("/"): command["id"] for command in commands}
        text, self.slash = self.slash, None
        if text is not None:
            self.proceed(text)

    def command(self, text):
        """A command that the session's catalog knows goes to its plugin. Whether it does, or waits for the catalog."""
        if self.catalog is None:
            self.slash = text
            return True
        command = self.catalog.get((text[1:].split() or [""])[0])
        if command is None:
            return False

        def taken(is_taken):
            if is_taken and self.shown["input"] == text:
                self.shown["input"] = ""
        self.post({"kind": "command", "commandId": command, "input": text}, taken)
        return True

    def press(self, slot, control):
        elements = (self.slots.shown().get(slot) or {}).get("elements") or {}
        press = ((elements.get(control) or {}).get("on") or {}).get("press") or {}
        given = press.get("params") or {}
        if press.get("action") == "invokeCommand":
            self.post({"kind": "command", "commandId": given.get("commandId"), "args": given.get("args")})
        elif press.get("action") == "invokePluginAction":
            self.post({"kind": "action", **{name: given.get(name) for name in ("pluginId", "action", "payload")}})

    def select(self, block, values):
        self.shown["selections"].append({"blockId": block, "values": values})
        self.show()

    def recover(self, result):
        """A pending settlement is looked after by the runtime that the view names."""
        plugin, runtime = self.tracker
        self.post({"kind": "runtime", "pluginId": plugin, "runtimeId": runtime, "payload": {"resultId": result}})

    def steer(self, text):
        """No event tells of an interjection."""
        turn = self.action and (self.action["turns"] or [None])[-1]

        def taken(is_taken):
            if is_taken:
                self.shown["messages"].append({"role": "player", "text": text, "status": "sending", "turnId": turn})
            else:
                self.shown.update(notice="not-steered", input=self.shown["input"] or text)
        if self.action:
            self.post({"message": text}, taken, "/steer")

    # ---- calls: one after the other, and another one while the person is asked about one ----

    def call(self, plugin, action, payload):
        body = {"kind": "action", "pluginId": plugin, "action": action}
        self.enqueue("/plugin-rpc", body if payload is None else {**body, "payload": payload})

    def resume(self, suspension, data):
        self.enqueue(f"/suspensions/{encoded(suspension)}/resume", {"data": data})

    def enqueue(self, rest, body):
        self.shown["callError"] = None
        self.calls.append({"rest": rest, "body": body, "allowed": set()})
        self.send_next()
        self.show()

    def send_next(self):
        if self.calls and not self.sending:
            call = self.sending = self.calls.pop(0)
            self.ask("POST", self.path(call["rest"]), call["body"], lambda got: self.called(call, got))

    def called(self, call, got):
        if self.sending is not call:
            return  # the session was left
        self.sending, (status, body) = None, got or (None, None)
        body = body if isinstance(body, dict) else {}
        if status == 202 and body.get("status") == "approval-required":
            self.approval_required(call, body)
        elif status is None:
            self.shown["callError"] = "no answer"
        elif status >= 300:
            self.shown["callError"] = f"the server answered {status} {body.get('code', '')}"
            if status == 409:  # what it stood on has changed; the person begins anew
                self.read_session()
                self.refetch()
        self.send_next()

    def approval_required(self, call, body):
        """Nothing is asked twice for one call, and nothing of another session."""
        pending = body.get("pending") or {}
        approval = {"id": body.get("approvalId"), "pluginId": pending.get("pluginId"), "action": pending.get("action")}
        if pending.get("sessionId", self.shown["session"]) != self.shown["session"]:
            self.shown["callError"] = "an approval of another session"
        elif (approval["pluginId"], approval["action"]) in call["allowed"]:
            self.shown["callError"] = "the same approval is asked for again"
        else:
            self.asking.append((call, approval))
            self.get(self.path("/approvals"), self.approvals)

    def approvals(self, listed):
        """The person decides about what the server lists, one at a time."""
        own = {item.get("approvalId") for item in (listed or {}).get("items", [])
               if item.get("sessionId", self.shown["session"]) == self.shown["session"]}
        before, self.asking = len(self.asking), [asked for asked in self.asking if asked[1]["id"] in own]
        if len(self.asking) < before:
            self.shown["callError"] = "an approval is not listed"
        self.show_approval()

    def show_approval(self):
        self.shown["approval"] = self.asking[0][1] if self.asking else None

    def decide(self, allow):
        approval = self.shown["approval"]
        if not approval or self.deciding:
            return
        self.deciding = True
        lasts = approval["action"] == "covel:plugin-server-code" or approval["action"].startswith("runtime:")
        body = {"decision": "allow" if allow else "deny", "scope": "session" if lasts else "once"}
        self.ask("POST", f"/api/approvals/{encoded(approval['id'])}/decision", body, lambda got: self.decided(allow, got))

    def decided(self, allow, got):
        self.deciding = False
        if not self.asking:
            return
        call, approval = self.asking.pop(0)
        if not got or got[0] != 200:
            self.shown["callError"] = "the decision was refused"
        elif allow:
            call["allowed"].add((approval["pluginId"], approval["action"]))
            self.calls.insert(0, call)  # it is sent again as it was
        self.show_approval()
        self.send_next()

    def forget_calls(self):
        catalog, tracker = self.catalog, self.tracker
        self.fresh_plugins()
        self.catalog, self.tracker, self.shown["approval"] = catalog, tracker, None

    # ---- media: a warning names session, medium, and status or kind of error; no URL, and no message that may hold one ----

    def generated(self, asset):
        self.shown["assets"].append(asset)
        reference = asset.get("ref")
        media = reference.get("id") if isinstance(reference, dict) else reference
        if not isinstance(media, str):
            return

        def loaded():
            found = answer("GET", self.path(f"/media-token?id={encoded(media)}"))
            url = found[1].get("url") if found and found[0] == 200 and isinstance(found[1], dict) else None
            return answer("GET", url) if url else found

        def warn(got):
            if not got or got[0] != 200:
                self.shown["mediaWarnings"].append({"session": self.shown["session"], "media": media, "status": got and got[0],
                                                    "error": None if got else "NetworkError"})
        self.later(loaded, warn)

    def load_media(self):
        """Components name a medium by its reference; where it is loaded from is for the client."""
        for slot in self.slots.shown().values():
            elements = slot.get("elements") if isinstance(slot, dict) else None
            for element in (elements or {}).values():
                reference = ((element.get("props") or {}).get("ref") or {}) if element.get("type") in ("Image", "Media") else {}
                media = reference.get("id")
                if media and media not in self.shown["media"]:
                    self.shown["media"][media] = False
                    self.ask("GET", f"/api/media/{encoded(media)}", None, lambda got, media=media: self.loaded(media, got))

    def loaded(self, media, got):
        self.shown["media"][media] = bool(got and got[0] == 200)
