//! What a server is told at its start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use turnwire_spec::chat_ws::limits::KEPT_FRAMES;
use turnwire_spec::covel::limits::{BadTimeScale, TimeScale};
use turnwire_spec::llm::{UnknownWire, Wire};

use crate::faces::covel::auth::UnknownTier;
use crate::gateway::{TargetConfig, default_base_url, key_variable};

pub use crate::faces::covel::auth::Tier;

/// The file of the SQLite store when nothing names another.
pub const DEFAULT_FILE: &str = "turnwire.db";

/// Which store a server uses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreChoice {
    /// Nothing outlives the process.
    Memory,
    /// One file; it is made when it does not exist.
    Sqlite(PathBuf),
}

/// Where the models are.
#[derive(Clone, Eq, PartialEq)]
pub struct LlmTarget {
    /// The protocol that is spoken there.
    pub wire: Wire,
    /// Base URL of the API, such as `http://127.0.0.1:4000/v1`; empty means the provider's own.
    pub base_url: String,
    /// Its key, when it wants one.
    pub api_key: Option<String>,
    /// The model to ask for.
    pub model: String,
}

impl LlmTarget {
    /// As the gateway asks it.
    #[must_use]
    pub fn target(&self) -> TargetConfig {
        let target = TargetConfig::new(self.wire, &self.base_url, &self.model);
        match &self.api_key {
            Some(key) => target.key(key),
            None => target,
        }
    }
}

impl std::fmt::Debug for LlmTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmTarget")
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "..."))
            .field("model", &self.model)
            .finish()
    }
}

/// Everything that a server is told. The default is a self-hosted development server in memory, with
/// fixtures, on a free port of the loopback interface.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Where the session-update face listens, a loopback address with port 0 for a free one; nowhere when absent.
    /// It asks nobody for a token.
    pub session_update: Option<SocketAddr>,
    /// Its store. This, not an environment variable, decides whether owners are asked for.
    pub store: StoreChoice,
    /// Who runs it.
    pub tier: Tier,
    /// Whether it runs in production: failures are told in fixed words, injection is off.
    pub production: bool,
    /// Factor on every period of the protocol, from 0.0001 to 1000.
    pub time_scale: f64,
    /// Where the models are.
    pub llm: LlmTarget,
    /// Whether sessions may use the fixture plugin.
    pub fixtures: bool,
    /// Whether events may be injected in production too.
    pub debug_emit: bool,
    /// Whether requests are counted and refused beyond their rates.
    pub rate_limits: bool,
    /// A token that opens every session.
    pub operator_token: Option<String>,
    /// Origins besides the server's own whose pages may send requests.
    pub origins: Vec<String>,
    /// Host names, without a port, under which a server on a loopback address answers besides the loopback names:
    /// those of a tunnel or a proxy that leads to it.
    pub hosts: Vec<String>,
    /// Connections at a time; at least 1. Further ones wait.
    pub max_connections: usize,
    /// The chats over a WebSocket.
    pub chat: ChatConfig,
}

/// What a server is told about its chats.
#[derive(Clone, Debug)]
pub struct ChatConfig {
    /// The projects that exist, besides `scratch`.
    pub projects: Vec<String>,
    /// The token that the socket and the chat routes ask for; without one, everybody may come in.
    pub token: Option<String>,
    /// Whether it is told that a background task was killed, and a hung chat is driven again.
    pub surface_killed_tasks: bool,
    /// Context limits by model, in tokens.
    pub context_limits: Vec<(String, u64)>,
    /// Numbered frames that are kept of a turn for a replay.
    pub kept_frames: usize,
}

impl Default for ChatConfig {
    fn default() -> Self {
        let limit = |(name, tokens): (&str, u64)| (name.to_owned(), tokens);
        Self {
            projects: vec!["garden".to_owned()],
            token: None,
            surface_killed_tasks: true,
            kept_frames: KEPT_FRAMES,
            context_limits: [("mock", 200_000), ("mock-small", 32_000)]
                .map(limit)
                .into(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            session_update: None,
            store: StoreChoice::Memory,
            tier: Tier::SelfHosted,
            production: false,
            time_scale: 1.0,
            llm: LlmTarget {
                wire: Wire::OpenaiChat,
                // The discard port: without a model, a turn fails at once and says so.
                base_url: "http://127.0.0.1:9/v1".to_owned(),
                api_key: None,
                model: "mock".to_owned(),
            },
            fixtures: true,
            debug_emit: true,
            rate_limits: false,
            operator_token: None,
            origins: Vec::new(),
            hosts: Vec::new(),
            max_connections: 2048,
            chat: ChatConfig::default(),
        }
    }
}

/// Why the environment does not make a configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `DEPLOYMENT_TIER` names no tier.
    #[error("DEPLOYMENT_TIER: {0}")]
    Tier(#[from] UnknownTier),
    /// `STORE_BACKEND` names no store.
    #[error("STORE_BACKEND: unknown store {0:?}; it is memory or sqlite")]
    Store(String),
    /// `TURNWIRE_LLM_WIRE` names no wire.
    #[error("TURNWIRE_LLM_WIRE: {0}")]
    Wire(#[from] UnknownWire),
    /// `TURNWIRE_TIME_SCALE` is no number.
    #[error("TURNWIRE_TIME_SCALE: {0:?} is no number")]
    NoNumber(String),
    /// The time scale is out of its range.
    #[error("TURNWIRE_TIME_SCALE: {0}")]
    TimeScale(#[from] BadTimeScale),
}

impl Config {
    /// The configuration of `turnwire serve`: SQLite, rates on, and what the environment says.
    ///
    /// Reads `DEPLOYMENT_TIER`, `NODE_ENV`, `STORE_BACKEND` (`memory` or `sqlite`), `TURNWIRE_DB`
    /// (the file), `TURNWIRE_LLM_WIRE`, `TURNWIRE_LLM_BASE_URL`, `TURNWIRE_LLM_API_KEY`, `TURNWIRE_LLM_MODEL`,
    /// `TURNWIRE_TIME_SCALE`, `OPERATOR_TOKEN` and `TURNWIRE_HOSTS` (a list with commas). At a provider's own address its own variable
    /// (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_API_KEY`) counts where no key is said. Empty variables count as absent.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the variable that makes no sense.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// As [`Config::from_env`], with variables from elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Config::from_env`].
    pub fn from_vars(vars: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let var = |name: &str| vars(name).filter(|value| !value.is_empty());
        let defaults = Self::default();
        let production = var("NODE_ENV").is_some_and(|value| value == "production");
        let store = match var("STORE_BACKEND").as_deref() {
            Some("memory") => StoreChoice::Memory,
            None | Some("sqlite") => {
                let file = var("TURNWIRE_DB").unwrap_or_else(|| DEFAULT_FILE.to_owned());
                StoreChoice::Sqlite(PathBuf::from(file))
            }
            Some(other) => return Err(ConfigError::Store(other.to_owned())),
        };
        let time_scale = match var("TURNWIRE_TIME_SCALE") {
            None => defaults.time_scale,
            Some(text) => {
                let factor = text.parse().map_err(|_| ConfigError::NoNumber(text))?;
                TimeScale::new(factor)?.factor()
            }
        };
        let wire = match var("TURNWIRE_LLM_WIRE") {
            None => defaults.llm.wire,
            Some(text) => text.parse()?,
        };
        let base_url = var("TURNWIRE_LLM_BASE_URL").unwrap_or(defaults.llm.base_url);
        // The provider's own key goes to the provider's own address and nowhere else.
        let is_own = base_url.trim_end_matches('/') == default_base_url(wire);
        let own_key = || is_own.then(|| var(key_variable(wire))).flatten();
        let llm = LlmTarget {
            wire,
            api_key: var("TURNWIRE_LLM_API_KEY").or_else(own_key),
            base_url,
            model: var("TURNWIRE_LLM_MODEL").unwrap_or(defaults.llm.model),
        };
        Ok(Self {
            store,
            tier: var("DEPLOYMENT_TIER").map_or(Ok(Tier::SelfHosted), |tier| tier.parse())?,
            production,
            time_scale,
            llm,
            debug_emit: !production,
            rate_limits: true,
            operator_token: var("OPERATOR_TOKEN"),
            hosts: list(var("TURNWIRE_HOSTS")),
            ..Self::default()
        })
    }
}

/// The entries of a list with commas.
fn list(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    let entries = text.split(',').map(str::trim);
    entries
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::from_vars(|name| {
            let found = vars.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_gives_a_self_hosted_server_on_a_file() {
        let config = from(&[]).unwrap();

        assert_eq!(config.tier, Tier::SelfHosted);
        assert_eq!(config.store, StoreChoice::Sqlite(DEFAULT_FILE.into()));
        assert!(!config.production);
    }

    #[test]
    fn the_environment_is_read() {
        let config = from(&[
            ("DEPLOYMENT_TIER", "demo"),
            ("NODE_ENV", "production"),
            ("STORE_BACKEND", "memory"),
            ("TURNWIRE_TIME_SCALE", "0.01"),
            ("TURNWIRE_LLM_WIRE", "anthropic-messages"),
            ("TURNWIRE_LLM_MODEL", "m"),
            ("TURNWIRE_HOSTS", "chat.test, tunnel.test,"),
        ])
        .unwrap();

        assert_eq!((config.tier, config.production), (Tier::Demo, true));
        assert_eq!(config.store, StoreChoice::Memory);
        assert_eq!((config.time_scale, config.llm.model.as_str()), (0.01, "m"));
        assert_eq!(config.llm.wire, Wire::AnthropicMessages);
        assert_eq!(config.hosts, ["chat.test", "tunnel.test"]);
    }

    #[test]
    fn a_variable_that_makes_no_sense_is_named() {
        for (name, value) in [
            ("DEPLOYMENT_TIER", "free"),
            ("STORE_BACKEND", "postgres"),
            ("TURNWIRE_LLM_WIRE", "telegraph"),
            ("TURNWIRE_TIME_SCALE", "fast"),
            ("TURNWIRE_TIME_SCALE", "0"),
        ] {
            let error = from(&[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }

    #[test]
    fn the_key_of_google_comes_from_google_api_key() {
        let google = [
            ("TURNWIRE_LLM_WIRE", "gemini"),
            ("GOOGLE_API_KEY", "k-google"),
            ("GEMINI_API_KEY", "k-other"),
        ];
        let at = |url: &'static str| {
            let vars = [&google[..], &[("TURNWIRE_LLM_BASE_URL", url)]].concat();
            from(&vars).unwrap().llm.api_key
        };
        let own = at("https://generativelanguage.googleapis.com/v1beta");
        assert_eq!(own.as_deref(), Some("k-google"));
        assert_eq!(at("https://elsewhere.test/v1beta"), None);
    }

    #[test]
    fn a_printed_configuration_shows_no_key() {
        let config = from(&[("TURNWIRE_LLM_API_KEY", "sk-secret")]).unwrap();

        assert!(!format!("{:?}", config.llm).contains("secret"));
    }
}
