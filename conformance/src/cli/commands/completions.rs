//! `turnwire completions SHELL`: completions, made from the arguments themselves.

use clap::CommandFactory as _;

use crate::cli::{
    args::{Args, CompletionsArgs},
    console::Console,
    exit::{CONFORMANT, CliError},
};

pub(in crate::cli) fn run(args: &CompletionsArgs, console: &Console) -> Result<u8, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "turnwire", &mut text);
    console.print(&String::from_utf8_lossy(&text))?;
    Ok(CONFORMANT)
}
