//! Executes the `rule` of a catalogue entry.
