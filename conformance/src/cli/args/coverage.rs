//! `turnwire coverage`.

use super::groups::{PrintArgs, SelectArgs};

/// `turnwire coverage`.
#[derive(Clone, Debug, clap::Args)]
pub struct CoverageArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}
