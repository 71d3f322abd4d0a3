//! `turnwire check`.

use std::path::PathBuf;

use super::{
    groups::{ReportArgs, SelectArgs},
    values::time_scale,
};

const CHECK_EXIT_CODES: &str = "\
Exit codes:
  0  something was judged, and no requirement failed
  1  a requirement failed
  2  wrong usage, or a file that cannot be read
  4  nothing in the files shows any requirement";

/// `turnwire check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = CHECK_EXIT_CODES)]
pub struct CheckArgs {
    /// Transcripts (`.twire`) and HAR files; a folder stands for those in it, `-` for standard input.
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Which requirements; without a suite, that of the files' traffic.
    #[command(flatten)]
    pub select: SelectArgs,
    /// What is known about whoever was recorded, a file such as `turnwire.toml`.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Factor that the server multiplied the protocol's periods with, in place of what the files say.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}
