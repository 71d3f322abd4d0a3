// Slots of the interface: what is stored, and over it what turns that still run would have there.
const nameOf = ({ slot, key }) => (key ? `${slot}/${key}` : slot);

export class Slots {
  constructor() { Object.assign(this, { stored: {}, changed: new Set(), previews: new Map(), over: new Set() }); }

  ask() { this.changed.clear(); } // what changes from now on is newer than the answer
  answer({ items }) {
    const stored = Object.fromEntries(items.map((row) => [nameOf(row), row.value]));
    for (const name of this.changed) stored[name] = this.stored[name];
    this.stored = stored;
  }
  change(row) { this.stored[nameOf(row)] = row.value; this.changed.add(nameOf(row)); }
  preview(turn, row) { if (!this.over.has(turn)) this.previews.set(nameOf(row), { turn, value: row.value }); }
  clear(turn) { for (const [name, preview] of this.previews) if (preview.turn === turn) this.previews.delete(name); }
  begin(turn) { this.over.delete(turn); }
  end(turn) { this.over.add(turn); this.clear(turn); } // a preview that comes late says nothing

  shown() {
    const shown = { ...this.stored };
    for (const [name, { value }] of this.previews) shown[name] = value;
    return shown;
  }
}
