//! `turnwire chat`.

use super::values::time_scale;

/// `turnwire chat`.
#[derive(Clone, Debug, clap::Args)]
pub struct ChatArgs {
    /// Base URL of the server.
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// The session to open; without one, a new one is created.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The owner's token of the session, or the operator's for a new one.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TURNWIRE_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Factor that the server multiplies the protocol's periods with.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
}
