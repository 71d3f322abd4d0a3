//! `turnwire server`.

use std::path::PathBuf;

use super::{
    EXIT_CODES,
    groups::{ReportArgs, SelectArgs},
    values::{jobs, seconds, time_scale},
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
    /// The target, described in a file such as `turnwire.toml`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "start"])]
    pub profile: Option<PathBuf>,
    /// The target, by its base URL.
    #[arg(long, value_name = "URL", conflicts_with = "start")]
    pub url: Option<String>,
    /// The target, by the command that starts it, after `--`; it listens on the port that `PORT` tells it.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Factor that the target multiplies the protocol's periods with, such as 0.01.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
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
