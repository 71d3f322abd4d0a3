//! `turnwire adapter`.

use super::{
    EXIT_CODES,
    groups::{ReportArgs, SelectArgs},
    values::{jobs, seconds, splits},
};

/// `turnwire adapter`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct AdapterArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Only this case, or the cases of this hazard; may be repeated.
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Split the bytes of every answer here, so that they come in two writes; may be repeated. A place that is beyond
    /// every answer is refused.
    #[arg(long = "split", value_name = "OFFSET", value_parser = splits)]
    pub splits: Vec<usize>,
    /// The torture matrix: every case, with the bytes of its answer split at every place that can matter.
    #[arg(long, conflicts_with_all = ["splits", "scenarios", "require", "junit", "transcripts"])]
    pub matrix: bool,
    /// Splits a case in the matrix, at most; of a longer answer the places that matter most and an even sample.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = splits, requires = "matrix")]
    pub most: usize,
    /// The adapter, by the command that starts it, after `--`; it speaks JSON lines on its standard input and output.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Longest wait for the report of a case, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Scenarios that run at the same time, each with an adapter of its own.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}
