//! `turnwire mock`.

use std::path::PathBuf;

use super::groups::ListenArgs;

/// `turnwire mock`.
#[derive(Clone, Debug, clap::Args)]
pub struct MockArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// What to answer, YAML or JSON; may be repeated.
    #[arg(long = "script", value_name = "FILE")]
    pub scripts: Vec<PathBuf>,
    /// Answer requests that no rule takes with this text; else they get a 400 that says why.
    #[arg(long, value_name = "TEXT")]
    pub reply: Option<String>,
    /// Seed of made ids and of jitter.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}
