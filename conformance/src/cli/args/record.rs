//! `turnwire record`.

use std::{net::SocketAddr, path::PathBuf};

use super::values::time_scale;

/// `turnwire record`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordArgs {
    /// The server, by its base URL; clients then use the URL that is printed.
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "stdio",
        conflicts_with = "stdio"
    )]
    pub upstream: Option<String>,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Run a command and record the lines of its standard input and output.
    #[arg(long, requires = "command")]
    pub stdio: bool,
    /// The command that is wrapped, after `--`.
    #[arg(last = true, value_name = "COMMAND", requires = "stdio")]
    pub command: Vec<String>,
    /// Where the recording is written at the end, secrets replaced.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace the file when it is there already.
    #[arg(long)]
    pub overwrite: bool,
    /// Suite that the header names; without it, that of the traffic.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Factor that the server multiplies the protocol's periods with.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Memory for the recording, in MiB; what comes later is passed on and not kept.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub limit: usize,
    /// The value of this environment variable is a secret, wherever it stands; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub redact_env: Vec<String>,
}
