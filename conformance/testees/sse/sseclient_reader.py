"""The PyPI package sseclient-py as a reader under test. It reads one stream; nothing here reconnects."""

import json
import os

import requests
import sseclient


def say(report):
    print(json.dumps(report), flush=True)


response = requests.get(os.environ["TURNWIRE_URL"], stream=True, headers={"Accept": "text/event-stream"})
say({"state": "open"})
for event in sseclient.SSEClient(response).events():
    say({"event": {"type": event.event, "data": event.data, "lastEventId": event.id or ""}})
say({"state": "closed"})
