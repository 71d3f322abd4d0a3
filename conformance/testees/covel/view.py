"""What the session view says, merged with what is shown: what is stored wins over what was shown while it streamed."""


def form_of(block):
    return {"blockId": block["id"], "notice": block.get("data", {}).get("notice"), "submitted": False}


def merged(shown, view, over):
    """The stored messages, then those that are still to come. Of the turns in `over` nothing comes any more."""
    stored = [{
        "id": row["id"], "role": "player" if row["role"] == "user" else row["role"], "text": row["content"],
        "status": "completed", "turnId": row.get("turnId"), "runtimeId": row.get("runtimeId"),
        **({"form": form_of(row["block"])} if row.get("block") else {}),
    } for row in view.get("messages", [])]

    def is_there(own):
        if own["role"] == "player":
            return any(row["role"] == "player" and row["text"] == own["text"] for row in stored)
        place = own.get("turnId"), own.get("runtimeId")
        return own.get("turnId") in over or any((row["turnId"], row["runtimeId"]) == place for row in stored)

    return stored + [own for own in shown if own["status"] != "completed" and not is_there(own)]


def settled(shown, turn, committed):
    """The messages when a turn is over: those that were not committed are gone, but for what the player said."""
    kept = [own for own in shown if committed or own["role"] == "player" or own.get("turnId") != turn or own["status"] == "completed"]
    return [{**own, "status": "completed"} if own.get("turnId") == turn else own for own in kept]
