"""Slots of the interface: what is stored, and over it what turns that still run would have there."""


def name_of(row):
    return f"{row['slot']}/{row['key']}" if row.get("key") else row["slot"]


class Slots:
    def __init__(self):
        self.stored, self.changed, self.previews, self.over = {}, set(), {}, set()

    def ask(self):
        self.changed = set()  # what changes from now on is newer than the answer

    def answer(self, answer):
        stored = {name_of(row): row["value"] for row in answer["items"]}
        self.stored = {**stored, **{name: self.stored[name] for name in self.changed}}

    def change(self, row):
        self.stored[name_of(row)] = row["value"]
        self.changed.add(name_of(row))

    def preview(self, turn, row):
        if turn not in self.over:
            self.previews[name_of(row)] = turn, row["value"]

    def clear(self, turn):
        self.previews = {name: preview for name, preview in self.previews.items() if preview[0] != turn}

    def begin(self, turn):
        self.over.discard(turn)

    def end(self, turn):
        self.over.add(turn)  # a preview that comes late says nothing
        self.clear(turn)

    def shown(self):
        return {**self.stored, **{name: value for name, (_, value) in self.previews.items()}}
