//! `turnwire demo`.

use super::{
    groups::{ReportArgs, SelectArgs},
    values::{jobs, time_scale},
};

/// `turnwire demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// Which requirements and scenarios.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Factor for the protocol's periods of the reference server; 0.01 by default.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Scenarios that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}
