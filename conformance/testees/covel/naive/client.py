"""A naive Covel client: what one writes first. docs/src/naive-clients.md walks through what is wrong with it."""

import json
import os
import sys
import threading
import urllib.request

URL = os.environ["TURNWIRE_URL"]
shown = {"session": None, "messages": [], "pluginData": {}, "executing": False, "executionError": None}


def show():
    print(json.dumps({"state": shown}), flush=True)


def apply(event):
    payload = event["payload"]
    if event["type"] == "narrative.delta":
        shown["messages"].append({"role": "assistant", "text": payload["delta"], "status": "streaming"})
    if event["type"] == "narrative.completed":
        shown["messages"].append({"role": "assistant", "text": payload["content"], "status": "completed"})
    if event["type"] == "plugin-data.changed":
        for change in payload["changes"]:
            rows = shown["pluginData"].setdefault(payload["pluginId"], {}).setdefault(change["namespace"], {})
            rows[change["key"]] = change["value"]
    if event["type"] == "execution.completed":
        shown["executing"] = False
    show()


def follow(session):
    with urllib.request.urlopen(f"{URL}/api/events/stream?sessionId={session}") as stream:  # once, and without a cursor
        for line in stream:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                if "payload" in event:
                    apply(event)


def say(text):
    shown["messages"].append({"role": "player", "text": text, "status": "sending"})
    shown["executing"] = True
    show()
    body = {"requestId": "r-1", "sessionId": shown["session"], "type": "submit_actions",
            "payload": {"actions": [{"type": "say", "text": text}]}}
    request = urllib.request.Request(f"{URL}/api/actions", json.dumps(body).encode(), {"content-type": "application/json"})
    for line in urllib.request.urlopen(request).read().split(b"\n"):  # all of it, when it is over
        if line.startswith(b"data: "):
            apply(json.loads(line[6:]))


for line in sys.stdin:
    doing = json.loads(line)
    if doing["do"] == "open":
        shown["session"] = doing["session"]
        view = json.load(urllib.request.urlopen(f"{URL}/api/sessions/{doing['session']}/view"))
        shown["messages"] = [{"role": row["role"], "text": row["content"], "status": "completed"} for row in view["messages"]]
        show()
        threading.Thread(target=follow, args=(doing["session"],), daemon=True).start()
    if doing["do"] == "say":
        threading.Thread(target=say, args=(doing["text"],), daemon=True).start()
