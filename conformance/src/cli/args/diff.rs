//! `turnwire diff`.

use std::path::PathBuf;

use super::groups::PrintArgs;

const DIFF_EXIT_CODES: &str = "\
Exit codes:
  0  both say the same
  1  they differ
  2  wrong usage, or a file that cannot be read";

/// `turnwire diff`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = DIFF_EXIT_CODES)]
pub struct DiffArgs {
    /// A transcript (`.twire`) or a HAR file; it may have placeholders.
    #[arg(required_unless_present = "schema")]
    pub a: Option<PathBuf>,
    /// The transcript that is compared with it.
    #[arg(required_unless_present = "schema")]
    pub b: Option<PathBuf>,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}
