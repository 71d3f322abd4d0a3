//! `turnwire list`.

use clap::ValueEnum;

use super::groups::{PrintArgs, SelectArgs};

/// `turnwire list`.
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// What to list.
    #[arg(value_enum, default_value_t)]
    pub what: Listed,
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// What `turnwire list` lists.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Listed {
    /// Requirements of the catalogue.
    #[default]
    Requirements,
    /// Scenarios that stimulate a target.
    Scenarios,
    /// Areas of the catalogue.
    Areas,
    /// Suites: what a run is about.
    Suites,
}
