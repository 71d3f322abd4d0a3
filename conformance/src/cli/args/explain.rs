//! `turnwire explain`.

use super::groups::PrintArgs;

/// `turnwire explain`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExplainArgs {
    /// The requirement, such as COV-SUB-102.
    #[arg(value_name = "ID")]
    pub id: String,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}
