//! The engine as a whole, between stand-ins.

mod commit_boundary;
mod jobs;
mod opening;
mod player_input;
mod stops;
mod tool_loop;
mod turns;
