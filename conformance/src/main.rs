//! The `turnwire` command.

use std::process::ExitCode;

/// A mock makes and drops a hundred small things for each request; this allocator is the better part of a tenth faster at it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    turnwire::cli::main()
}
