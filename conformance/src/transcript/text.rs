//! The text form of a transcript, `*.twire`.
