"""The wire of a Covel client: requests, JSON answers, event streams, cursors. Standard library only."""

import codecs
import http.client
import json
import os
import socket
from urllib.parse import quote, urlsplit

BASE = urlsplit(os.environ["TURNWIRE_URL"])
SCALE = float(os.environ.get("TURNWIRE_TIME_SCALE", "1"))
TOKEN = os.environ.get("TURNWIRE_TOKEN")
FAILURES = (OSError, ValueError, http.client.HTTPException)


def encoded(text):
    return quote(text, safe="")


def ask(method, path, body=None, accept="application/json", headers=None):
    """Sends a request on a connection of its own; gives connection and response."""
    at = urlsplit(path if path.startswith("http") else BASE.geturl().rstrip("/") + path)
    connection = http.client.HTTPConnection(at.hostname, at.port)
    own = {"X-Session-Token": TOKEN} if TOKEN and at.netloc == BASE.netloc else {}  # for nobody else
    headers = {"Accept": accept, **own, **(headers or {})}
    if body is not None and not isinstance(body, bytes):
        headers.setdefault("Content-Type", "application/json")
        body = json.dumps(body)
    connection.request(method, at.path + (f"?{at.query}" if at.query else ""), body=body, headers=headers)
    connection.used = connection.sock  # the response takes it away
    return connection, connection.getresponse()


def leave(connection):
    """Closes a connection, also under a thread that reads from it."""
    if connection:
        try:
            connection.used.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it was closed already


def answer(method, path, body=None):
    """Status and JSON of an answer, where no JSON is None; or None without an answer."""
    try:
        connection, response = ask(method, path, body)
        text = response.read()
        connection.close()
    except FAILURES:
        return None
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, None


def parsed(text):
    """The JSON object that a frame has, or an empty one: also when a number or its depth is more than JSON can say again."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def events(response):
    """The events of a stream as they arrive: (event, data, id). LF, CR and CR LF, cut anywhere."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest, after_cr, event, data, event_id = "", False, "", [], None
    while chunk := response.read1(65536):
        text = decoder.decode(chunk)
        if after_cr and text.startswith("\n"):
            text = text[1:]
        after_cr = text.endswith("\r") if text else after_cr
        *lines, rest = (rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            if not line:
                if data:
                    yield event or "message", "\n".join(data), event_id
                event, data, event_id = "", [], None
                continue
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "data":
                data.append(value)
            elif name == "event":
                event = value
            elif name == "id" and "\0" not in value:
                event_id = value


def is_news(cursor, than):
    """Whether a cursor is of another epoch, or newer; by number, not by text."""
    (epoch, _, number), (other, _, before) = cursor.rpartition(":"), than.rpartition(":")
    try:
        return epoch != other or int(number) > int(before)
    except ValueError:
        return cursor != than
