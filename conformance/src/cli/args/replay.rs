//! `turnwire replay`.

use std::{net::SocketAddr, path::PathBuf};

use super::{
    groups::PrintArgs,
    values::{positive, seconds},
};
use crate::replay::Timing;

const REPLAY_EXIT_CODES: &str = "\
Exit codes:
  0  the client asked for everything and nothing else, or the server answered as recorded
  1  it did not
  2  wrong usage, or a file that cannot be read or has nothing to play
  3  the server cannot be reached, or the harness itself failed";

/// `turnwire replay`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = REPLAY_EXIT_CODES)]
pub struct ReplayArgs {
    /// The transcript (`.twire`) or HAR file.
    #[arg(required_unless_present = "schema")]
    pub file: Option<PathBuf>,
    /// Serve its server side; a client then uses the URL that is printed: `http://` for requests and WebSockets,
    /// `tcp://` for channels of lines.
    #[arg(long, required_unless_present_any = ["to_server", "command", "schema"], conflicts_with_all = ["to_server", "command"])]
    pub to_client: bool,
    /// Speak the server side of a channel of lines on our own standard input and output, in place of the program
    /// that was recorded.
    #[arg(long, requires = "to_client")]
    pub stdio: bool,
    /// Send its client side to this server, and compare the answers; `tcp://HOST:PORT` for channels of lines.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub to_server: Option<String>,
    /// A program that speaks lines, after `--`: send the client side to its standard input, and compare what it
    /// says on its standard output. Each channel gets a process of its own.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// `original`, `none`, or a factor on the recorded times, such as 0.1.
    #[arg(long, value_name = "TIMING", default_value = "none", value_parser = timing)]
    pub timing: Timing,
    /// Method and path of a request are enough, and the kind of a message; without it, target, body and message are
    /// the recorded ones but for ids.
    #[arg(long, requires = "to_client")]
    pub lenient: bool,
    /// End when every exchange was asked for and is over.
    #[arg(long, requires = "to_client")]
    pub once: bool,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// What a placeholder of the file stands for, such as `secret-1=abc`; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "to_client")]
    pub set: Vec<String>,
    /// Longest wait for what the recorded server had said, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub patience: f64,
    /// Keep what happened as a transcript.
    #[arg(long, value_name = "FILE", conflicts_with = "to_client")]
    pub out: Option<PathBuf>,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

fn timing(text: &str) -> Result<Timing, String> {
    match text {
        "original" => Ok(Timing::Scaled(1.0)),
        "none" => Ok(Timing::None),
        factor => positive(factor)
            .map(Timing::Scaled)
            .ok_or_else(|| "expected `original`, `none` or a number above 0".to_owned()),
    }
}
