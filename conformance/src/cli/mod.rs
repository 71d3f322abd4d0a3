//! The `turnwire` command.
//!
//! Reading order, from words to effects:
//!
//! - [`args`]: what can be typed, parsed by clap; touches no file, no network and no environment;
//! - [`usage`]: clap's errors in one line, with the nearest name;
//! - [`select`]: arguments resolved against catalogue, suites and scenarios;
//! - [`exit`]: exit codes, and the one error type that all commands return;
//! - [`console`]: standard output, standard error, colours, progress, Ctrl-C;
//! - [`state`]: the last results, for `explain` and `coverage`;
//! - [`commands`]: one file a command.
//!
//! Results go to standard output, everything else to standard error. No protocol knowledge lives here.

use std::{ffi::OsString, process::ExitCode};

use clap::Parser as _;

pub mod args;
pub mod exit;

mod commands;
mod console;
mod select;
mod state;
mod usage;

pub use exit::{CONFORMANT, FAILED, HARNESS, USAGE};

use args::{Args, Command, FuzzSide};
use console::Console;
use exit::CliError;

/// Runs the command line of this process and says how it ends.
pub fn main() -> ExitCode {
    let console = Console::from_env();
    ExitCode::from(run(std::env::args_os(), &console))
}

fn run(words: impl IntoIterator<Item = OsString>, console: &Console) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    let ended = match Args::try_parse_from(&words) {
        // A variable that is empty must not have another target checked than the one that was meant.
        Ok(_) if words.last().is_some_and(|last| last == "--") => Err(CliError::Usage(
            "the command that starts the target is missing after `--`".to_owned(),
        )),
        Ok(args) => dispatch(args.command, console),
        Err(error) => usage::explain(&error, console),
    };
    match ended {
        Ok(code) => code,
        // Whoever reads the output has had enough of it.
        Err(CliError::OutputClosed) => CONFORMANT,
        Err(error) => {
            console.error(&error.to_string());
            error.code()
        }
    }
}

fn dispatch(command: Command, console: &Console) -> Result<u8, CliError> {
    match command {
        Command::Demo(args) => commands::demo::run(args, console),
        Command::Server(args) => commands::server::run(args, console),
        Command::Adapter(args) => commands::adapter::run(args, console),
        Command::Check(args) => commands::check::run(args, console),
        Command::Diff(args) => commands::diff::run(&args, console),
        Command::Provider(args) => commands::provider::run(args, console),
        Command::Client(args) => commands::client::run(args, console),
        Command::Chat(args) => commands::chat::run(&args, console),
        Command::Replay(args) => commands::replay::run(args, console),
        Command::Record(args) => commands::record::run(args, console),
        Command::Prove(args) => commands::prove::run(args, console),
        Command::Fuzz(args) => match args.side {
            FuzzSide::Server(args) => commands::fuzz::run(args, console),
            FuzzSide::Client(args) => commands::fuzz::clients::run(&args, console),
        },
        Command::List(args) => commands::list::run(&args, console),
        Command::Explain(args) => commands::explain::run(&args, console),
        Command::Coverage(args) => commands::coverage::run(&args, console),
        Command::Serve(args) => commands::serve::run(args, console),
        Command::Mock(args) => commands::mock::run(args, console),
        Command::Completions(args) => commands::completions::run(&args, console),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_missing_is_wrong_usage_and_no_run_of_another_target() {
        for line in [
            "turnwire client --suite chat-ws --",
            "turnwire server --suite chat-ws --",
            "turnwire fuzz client --suite sse --cases 1 --",
        ] {
            let words = line.split(' ').map(OsString::from);
            assert_eq!(run(words, &Console::from_env()), USAGE, "{line}");
        }
    }
}
