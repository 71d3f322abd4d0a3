//! Turnwire.
