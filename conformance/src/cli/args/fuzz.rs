//! `turnwire fuzz`.

use std::path::PathBuf;

use clap::{ArgAction, Subcommand};

use super::{
    EXIT_CODES,
    groups::{PrintArgs, TargetArgs},
    values::{jobs, seconds, time_scale},
};

/// Numbers of cases up to here are the same for every reader of JSON.
const MOST: u64 = 1 << 53;

/// `turnwire fuzz`.
#[derive(Clone, Debug, clap::Args)]
pub struct FuzzArgs {
    /// What is fuzzed.
    #[command(subcommand)]
    pub side: FuzzSide,
}

/// What is fuzzed.
#[derive(Clone, Debug, Subcommand)]
pub enum FuzzSide {
    /// A server: the reference server, unless a target is named.
    Server(FuzzServerArgs),
    /// A client: the reference client, unless a command is given.
    Client(FuzzClientArgs),
}

/// `turnwire fuzz client`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct FuzzClientArgs {
    /// The protocol: `covel-sse`, `sse`, `chat-ws` or `session-update`.
    #[arg(long, value_name = "NAME", default_value = "covel-sse")]
    pub suite: String,
    /// The same seed plays the same cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many cases are played; with `--prove`, at most for each fault.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub cases: u64,
    /// Number of the first case.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub first: u64,
    /// The command that starts the client, after `--`; it connects to `TURNWIRE_URL`.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Factor that the client multiplies the protocol's periods with, as `TURNWIRE_TIME_SCALE` tells it.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Longest wait for what the client ought to do by itself, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Clients that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Save each case that fails as a transcript, after it was made smaller.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Play only the case of this saved transcript, once more.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prove", "cases"])]
    pub replay: Option<PathBuf>,
    /// Plant faults in front of the reference client: is each one found and made small?
    #[arg(long, conflicts_with = "start")]
    pub prove: bool,
    /// With `--prove`: only faults whose name holds this text.
    #[arg(long, value_name = "TEXT", requires = "prove")]
    pub fault: Option<String>,
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArgs,
    /// No progress on standard error.
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub quiet: bool,
}

/// `turnwire fuzz server`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct FuzzServerArgs {
    /// The protocol, such as `covel-sse`.
    #[arg(long, value_name = "NAME", default_value = "covel-sse")]
    pub suite: String,
    /// Clients that lose their connections and come back with any cursor.
    #[arg(long, required_unless_present = "envelopes")]
    pub reconnect: bool,
    /// Requests that are wrong in form, on every endpoint and for every kind of frame.
    #[arg(long, conflicts_with = "reconnect")]
    pub envelopes: bool,
    /// The same seed plays the same cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many cases are played; with `--prove`, at most for each fault.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub cases: u64,
    /// Number of the first case.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub first: u64,
    /// Which server; the reference server, if none is named.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Cases that are played at the same time, at most 64.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Save each case that fails as a transcript, after it was made smaller.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Play only the case of this saved transcript, once more.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prove", "cases"])]
    pub replay: Option<PathBuf>,
    /// Plant faults in front of the reference server: is each one found and made small?
    #[arg(long, conflicts_with_all = ["url", "profile", "start"])]
    pub prove: bool,
    /// With `--prove`: only faults whose name holds this text.
    #[arg(long, value_name = "TEXT", requires = "prove")]
    pub fault: Option<String>,
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArgs,
    /// No progress on standard error.
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub quiet: bool,
}
