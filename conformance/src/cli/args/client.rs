//! `turnwire client`.

use std::{net::SocketAddr, path::PathBuf};

use super::{
    EXIT_CODES,
    groups::{ReportArgs, SelectArgs},
    values::{jobs, seconds, time_scale},
};

/// `turnwire client`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct ClientArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// The command that starts the client, after `--`; it connects to `TURNWIRE_URL`. Without one, the reference
    /// client is checked.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Listen here, one scenario after the other, for a client that is started by hand.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "start")]
    pub listen: Option<SocketAddr>,
    /// The client is a web page, opened in headless Chromium: a file, a folder with an `index.html`, or a URL.
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["start", "listen"])]
    pub browser: Option<String>,
    /// Chromium's executable; without it, the usual names are looked for.
    #[arg(long, value_name = "PATH", env = "CHROMIUM")]
    pub chromium: Option<PathBuf>,
    /// Keep what went over the network of the pages, as a HAR file.
    #[arg(long, value_name = "FILE", requires = "browser")]
    pub har: Option<PathBuf>,
    /// Factor that the client multiplies the protocol's periods with, as `TURNWIRE_TIME_SCALE` tells it.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Longest wait for a report of the client, in seconds.
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
