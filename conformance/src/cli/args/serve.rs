//! `turnwire serve`.

use std::path::PathBuf;

use clap::ValueEnum;
use turnwire_spec::llm::Wire;

use super::{groups::ListenArgs, values::time_scale};

/// `turnwire serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Where sessions are kept: `memory`, `sqlite`, or `sqlite:FILE`.
    #[arg(long, value_name = "STORE", value_parser = store)]
    pub store: Option<Store>,
    /// Deployment tier, which decides who needs which token.
    #[arg(long, value_enum)]
    pub tier: Option<TierArg>,
    /// Factor for all of the protocol's periods: heartbeats, timeouts, the windows of rates; 0.01 makes the 30 s heartbeat
    /// one of 300 ms. Tell it to `turnwire server` too.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Model provider, such as `https://api.openai.com/v1`; without one, a mock answers.
    #[arg(long, value_name = "URL")]
    pub llm_base_url: Option<String>,
    /// Protocol that is spoken with the provider: openai-chat, openai-responses, anthropic-messages, gemini or
    /// gemini-openai.
    #[arg(long, value_name = "WIRE")]
    pub llm_wire: Option<Wire>,
    /// Name of the model that is asked.
    #[arg(long, value_name = "NAME")]
    pub llm_model: Option<String>,
    /// Script for the mock provider, YAML or JSON; may be repeated.
    #[arg(long = "script", value_name = "FILE", conflicts_with = "llm_base_url")]
    pub scripts: Vec<PathBuf>,
    /// Serve one client on standard input and output, by this protocol; only `session-update` is served so.
    #[arg(long, value_name = "PROTOCOL", value_parser = ["session-update"])]
    pub stdio: Option<String>,
    /// Also serve `session-update` on this port of the loopback device; 0 takes a free one.
    #[arg(long, value_name = "PORT", conflicts_with = "stdio")]
    pub session_update_port: Option<u16>,
    /// Refuse no request for its rate. Without this the protocol's rates count, by client address and path: 60 subscriptions,
    /// 30 actions and so on in a minute, before time scaling.
    #[arg(long)]
    pub no_rate_limits: bool,
    /// Origin, besides the server's own, whose pages may send requests, such as `http://localhost:5173`; may be repeated.
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
    /// As in production: failures are told in fixed words, and nobody may inject events.
    #[arg(long)]
    pub production: bool,
    /// Project of `chat-ws`, besides `scratch`; `garden` without one; may be repeated.
    #[arg(long = "project", value_name = "SLUG")]
    pub projects: Vec<String>,
    /// Token that the socket of `chat-ws` and its routes ask for; without one, everybody may come in.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TURNWIRE_CHAT_TOKEN",
        hide_env_values = true
    )]
    pub chat_token: Option<String>,
    /// Numbered frames of a turn that `chat-ws` keeps for a replay.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub chat_frames: Option<u32>,
    /// Leave the fixture plugin out, with which the harness provokes what the protocol cannot.
    #[arg(long)]
    pub no_fixtures: bool,
}

/// Where sessions are kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Store {
    /// In memory, until the process ends.
    Memory,
    /// In a SQLite file.
    Sqlite(PathBuf),
}

/// File of `--store sqlite`.
pub const DEFAULT_STORE: &str = "turnwire.db";

/// Deployment tier.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TierArg {
    /// Run by its only user.
    SelfHosted,
    /// A public demonstration.
    Demo,
    /// A service with accounts.
    Commercial,
}

fn store(text: &str) -> Result<Store, String> {
    match text.split_once(':') {
        None if text == "memory" => Ok(Store::Memory),
        None if text == "sqlite" => Ok(Store::Sqlite(DEFAULT_STORE.into())),
        Some(("sqlite", file)) if !file.is_empty() => Ok(Store::Sqlite(file.into())),
        _ => Err("expected `memory`, `sqlite` or `sqlite:FILE`".to_owned()),
    }
}
