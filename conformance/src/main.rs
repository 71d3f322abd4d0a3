//! The `turnwire` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    turnwire::cli::main()
}
