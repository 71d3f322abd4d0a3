//! `turnwire mock`, and `turnwire mock record`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Subcommand, ValueEnum};

use super::{groups::ListenArgs, values::seconds};

const MOCK_EXAMPLES: &str = "\
Examples:
  turnwire mock                                    a demonstration; `turnwire provider` passes on it
  turnwire mock --reply \"Hello there.\"
  turnwire mock --port 8080 --script weather.yaml  what the script says
  turnwire mock record --upstream https://api.openai.com --out recorded.yaml

A first script is mock-providers/examples/weather.yaml; the manual's page `mock.md` has the whole format.";

const RECORD_EXAMPLES: &str = "\
Example:
  turnwire mock record --upstream https://api.openai.com --out recorded.yaml
  (point the client at the URL that is printed, let it work, press Ctrl-C)
  turnwire mock --script recorded.yaml";

/// `turnwire mock`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = MOCK_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct MockArgs {
    /// Something else than serving.
    #[command(subcommand)]
    pub command: Option<MockCommand>,
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// What to answer, YAML or JSON; may be repeated. Without scripts and without --reply, a demonstration.
    #[arg(long = "script", value_name = "FILE")]
    pub scripts: Vec<PathBuf>,
    /// Answer what `turnwire provider` asks, calls and structured answers included; on unless there is a script or
    /// a --reply.
    #[arg(long)]
    pub demo: bool,
    /// Answer requests that no rule takes with this text, whatever they ask for; else they get a 400 that says why.
    #[arg(long, value_name = "TEXT")]
    pub reply: Option<String>,
    /// Ask for this key, in the wire's own header, and refuse others with the service's own error; may be repeated.
    #[arg(long = "key", value_name = "KEY")]
    pub keys: Vec<String>,
    /// What becomes of requests that break the service's rules.
    #[arg(long, value_enum, default_value_t)]
    pub verify: VerifyArg,
    /// Models in the lists of models, parted by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub models: Vec<String>,
    /// Seed of made ids and of jitter.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// What else `turnwire mock` does.
#[derive(Clone, Debug, Subcommand)]
pub enum MockCommand {
    /// Record a real service into a script, secrets removed: a proxy, until it is told to stop.
    Record(MockRecordArgs),
}

/// What becomes of requests that break the service's rules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum VerifyArg {
    /// They get the service's own error, and stand in the journal with what is wrong.
    #[default]
    Strict,
    /// They are answered, and stand in the journal with what is wrong.
    Note,
    /// Nobody looks.
    Off,
}

/// `turnwire mock record`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct MockRecordArgs {
    /// The service, such as `https://api.openai.com`; a path in it is put before the client's path.
    #[arg(long, value_name = "URL")]
    pub upstream: String,
    /// Where the script is written at the end, secrets removed: YAML, or JSON when the name ends with `.json`.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace the file if it is there.
    #[arg(long)]
    pub overwrite: bool,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Trust the certificates in this PEM file too, for a service with an authority of its own.
    #[arg(long, value_name = "FILE")]
    pub tls: Option<PathBuf>,
    /// Keep the delays of the service: to the first token, and between tokens.
    #[arg(long)]
    pub timing: bool,
    /// Longest silence of the service, in seconds; then the client gets a 504.
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = seconds)]
    pub timeout: f64,
    /// Memory for the recording, in MiB; what comes later is passed on and not kept.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub limit: usize,
}
