"""The PyPI package httpx-sse as a reader under test.

It reads one stream and leaves reconnecting to its user, so this file reconnects as its documentation shows:
with the last event id and the retry time of the events.
"""

import json
import os
import sys
import time

import httpx
from httpx_sse import SSEError, connect_sse


def say(report):
    print(json.dumps(report), flush=True)


def main():
    last_id, wait = "", 3.0
    with httpx.Client(timeout=None, follow_redirects=True) as client:
        while True:
            headers = {"Last-Event-ID": last_id.encode()} if last_id else {}
            try:
                with connect_sse(client, "GET", os.environ["TURNWIRE_URL"], headers=headers) as source:
                    if source.response.status_code != 200:
                        return say({"state": "closed"})
                    opened = False
                    for event in source.iter_sse():
                        if not opened:
                            say({"state": "open"})
                            opened = True
                        last_id = event.id
                        wait = max(event.retry, 0) / 1000 if event.retry is not None else wait
                        say({"event": {"type": event.event, "data": event.data, "lastEventId": event.id}})
            except SSEError:
                return say({"state": "closed"})
            except httpx.TransportError as error:
                print(error, file=sys.stderr)
            say({"state": "connecting"})
            time.sleep(wait)


main()
