//! The engine as a whole, between stand-ins.

mod commit_boundary;
mod end_to_end;
mod happenings;
mod jobs;
mod opening;
mod player_input;
mod sessions;
mod stops;
mod thinking;
mod tool_loop;
mod turns;
mod waiting;
