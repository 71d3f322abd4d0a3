//! `turnwire provider`.

use super::{
    EXIT_CODES,
    groups::ReportArgs,
    values::{jobs, seconds},
};

/// `turnwire provider`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct ProviderArgs {
    /// Base URL as clients of the wire are given it, such as `http://127.0.0.1:11434/v1`.
    #[arg(long, value_name = "BASE", required_unless_present = "schema")]
    pub url: Option<String>,
    /// The wire: `openai-chat`, `openai-responses`, `anthropic-messages`, `gemini` or `gemini-openai`.
    #[arg(long, value_name = "NAME", default_value = "openai-chat")]
    pub wire: String,
    /// The key of the service; the variable is read without the option.
    #[arg(
        long,
        value_name = "KEY",
        env = "TURNWIRE_PROVIDER_KEY",
        hide_env_values = true
    )]
    pub key: Option<String>,
    /// The model that is asked; the first one that the server lists without one.
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Take the URL as it is: no version is put behind a URL that has none.
    #[arg(long)]
    pub as_given: bool,
    /// Only this requirement, or the requirements of an area; may be repeated.
    #[arg(long = "requirement", value_name = "ID")]
    pub requirements: Vec<String>,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Longest wait for an answer, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Scenarios that run at the same time; one after the other without it, for the sake of rate limits.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}
