//! `turnwire prove`.

use super::{
    groups::{ReportArgs, SelectArgs},
    values::{jobs, time_scale},
};

/// `turnwire prove`.
#[derive(Clone, Debug, clap::Args)]
pub struct ProveArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Factor for the protocol's periods of the reference server; 0.01 by default.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Sabotages that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}
