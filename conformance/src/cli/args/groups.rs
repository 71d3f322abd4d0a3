//! Groups of options that several commands share.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use clap::{ArgAction, ValueEnum};

use super::values::time_scale;

/// Which requirements.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SelectArgs {
    /// Only this suite, such as `covel-sse`.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Only this requirement, or the requirements of an area: `COV-SUB-102`, `COV-SUB`; may be repeated.
    #[arg(long = "requirement", value_name = "ID")]
    pub requirements: Vec<String>,
    /// Only the requirements of this frozen set, such as `2026-11`; see `turnwire list suites`.
    #[arg(long, value_name = "NAME")]
    pub revision: Option<String>,
    /// Only requirements that bind this side: `server`, `client`, `host` or `adapter`.
    #[arg(long, value_name = "SIDE")]
    pub binds: Option<String>,
}

/// The server that is the target.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TargetArgs {
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
    /// Let the mock model provider listen here, for a target that already runs and calls its models at
    /// `http://ADDRESS:PORT/v1`; without it, what needs a scripted model is left out.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["profile", "start"])]
    pub model: Option<SocketAddr>,
    /// Plugin that new sessions of the target are created with; may be repeated.
    #[arg(long = "plugin", value_name = "NAME", conflicts_with = "profile")]
    pub plugins: Vec<String>,
}

/// What a run reports where.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ReportArgs {
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArgs,
    /// Also write the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also write the result as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Keep what went over the wire, one file a scenario.
    #[arg(long, value_name = "DIR")]
    pub transcripts: Option<PathBuf>,
    /// Call what the target says beyond the protocol's tables warnings, in place of observations.
    #[arg(long, action = ArgAction::SetTrue)]
    pub strict: bool,
    /// No progress on standard error.
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub quiet: bool,
}

/// How something is printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct PrintArgs {
    /// For people or for machines.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print the JSON Schema of what `--format json` prints, and do nothing else.
    #[arg(long)]
    pub schema: bool,
}

/// For people or for machines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON object.
    Json,
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ListenArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}
