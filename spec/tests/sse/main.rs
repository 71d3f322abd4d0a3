//! The event-stream codec from outside.

mod decoder;
mod encode;
mod frames;
mod input;
mod reference;
