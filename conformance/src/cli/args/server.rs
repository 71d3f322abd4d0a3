//! `turnwire server`.

use super::{
    EXIT_CODES,
    groups::{ReportArgs, SelectArgs, TargetArgs},
    values::{jobs, seconds},
};

/// `turnwire server`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct ServerArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Which server.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Longest wait for an answer of the target, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Scenarios that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}
