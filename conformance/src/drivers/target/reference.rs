//! The reference server, in the harness's own process but reached over real sockets like any other target.

use std::path::Path;

use turnwire_reference::config::ChatConfig;
use turnwire_reference::{Config, LlmTarget, Server, StoreChoice, Tier};

use super::{DEFAULT_VARIANT, Launch, Pending, Running, Start};
use crate::{
    drivers::{DriveError, http::BaseUrl},
    profile::{CHAT_FRAMES, CHAT_TOKEN, FUZZ_CHAT, FUZZ_CHAT_FRAMES},
};

/// How it is started.
#[derive(Clone, Debug)]
pub struct ReferenceTarget {
    /// Factor of the protocol's periods.
    pub time_scale: f64,
    /// Whether it is reached at its session-update face, in place of HTTP.
    pub lines: bool,
}

/// What a variant changes.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    /// Whether its store is a file in the instance's home, which outlives restarts.
    persistent: bool,
    tier: Tier,
    production: bool,
}

const fn variant(name: &'static str, persistent: bool, tier: Tier, production: bool) -> Variant {
    Variant {
        name,
        persistent,
        tier,
        production,
    }
}

/// The variant that counts requests and refuses those beyond their rates.
const RATES: &str = "rates";

/// The variants that scenarios ask for. The store that is injected decides, whatever the environment names, so
/// an injected store is a store.
const VARIANTS: &[Variant] = &[
    variant(DEFAULT_VARIANT, false, Tier::SelfHosted, false),
    variant("persistent", true, Tier::SelfHosted, false),
    variant("no-tier", false, Tier::SelfHosted, false),
    variant("self-tier", false, Tier::SelfHosted, false),
    variant("demo-tier", false, Tier::Demo, false),
    variant("commercial-tier", false, Tier::Commercial, false),
    variant("demo-tier-persistent", true, Tier::Demo, false),
    variant("commercial-tier-persistent", true, Tier::Commercial, false),
    variant("production-memory", false, Tier::SelfHosted, true),
    variant("production-persistent", true, Tier::SelfHosted, true),
    variant("chat-guarded", false, Tier::SelfHosted, false),
    variant("chat-recovery-off", false, Tier::SelfHosted, false),
    variant(FUZZ_CHAT[0], false, Tier::SelfHosted, false),
    variant(FUZZ_CHAT[1], true, Tier::SelfHosted, false),
    variant(RATES, false, Tier::SelfHosted, false),
    variant("injected-memory", false, Tier::SelfHosted, true),
    variant("injected-persistent", true, Tier::SelfHosted, true),
];

impl ReferenceTarget {
    fn config(&self, start: &Start) -> Result<Config, DriveError> {
        let found = VARIANTS
            .iter()
            .find(|variant| variant.name == start.variant);
        let variant = found.ok_or_else(|| DriveError::NotPossible {
            what: format!("variant {}", start.variant),
            why: "the reference server has no such variant".to_owned(),
        })?;
        let defaults = Config::default();
        let llm = match &start.model_url {
            Some(url) => LlmTarget {
                base_url: url.clone(),
                api_key: Some("turnwire".to_owned()),
                ..defaults.llm
            },
            None => defaults.llm,
        };
        Ok(Config {
            store: store(variant, &start.home),
            tier: variant.tier,
            production: variant.production,
            time_scale: self.time_scale,
            rate_limits: variant.name == RATES,
            session_update: self
                .lines
                .then(|| (std::net::Ipv4Addr::LOCALHOST, 0).into()),
            llm,
            chat: ChatConfig {
                token: (variant.name == "chat-guarded").then(|| CHAT_TOKEN.to_owned()),
                kept_frames: if FUZZ_CHAT.contains(&variant.name) {
                    FUZZ_CHAT_FRAMES
                } else {
                    CHAT_FRAMES
                },
                surface_killed_tasks: variant.name != "chat-recovery-off",
                ..defaults.chat
            },
            ..Config::default()
        })
    }
}

fn store(variant: &Variant, home: &Path) -> StoreChoice {
    if variant.persistent {
        StoreChoice::Sqlite(home.join("turnwire.db"))
    } else {
        StoreChoice::Memory
    }
}

impl Launch for ReferenceTarget {
    fn start<'a>(&'a self, start: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>> {
        Box::pin(async move {
            let not_started = |why: String| DriveError::NotStarted {
                why,
                output: Vec::new(),
            };
            let server = Server::start(self.config(start)?)
                .await
                .map_err(|error| not_started(error.to_string()))?;
            let url = match server.session_update_addr() {
                Some(address) => format!("tcp://{address}"),
                None => server.url(),
            };
            let url = BaseUrl::parse(&url).map_err(|error| not_started(error.to_string()))?;
            Ok(Box::new(InProcess { server, url }) as Box<dyn Running>)
        })
    }

    fn offers(&self, variant: &str) -> Result<(), String> {
        if VARIANTS.iter().any(|known| known.name == variant) {
            return Ok(());
        }
        Err(format!("the reference server has no variant {variant:?}"))
    }

    fn restarts(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A running server. Dropping it kills it.
struct InProcess {
    server: Server,
    url: BaseUrl,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "InProcess({})", self.url)
    }
}

impl Running for InProcess {
    fn base_url(&self) -> BaseUrl {
        self.url.clone()
    }

    fn output(&self) -> Vec<String> {
        Vec::new()
    }

    fn stop(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            self.server.shutdown().await;
            Ok(())
        })
    }

    fn kill(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            self.server.kill().await;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::SUITES;

    #[test]
    fn every_variant_that_a_scenario_asks_for_is_there() {
        let target = ReferenceTarget {
            time_scale: 1.0,
            lines: false,
        };
        for scenario in SUITES.iter().flat_map(|suite| suite.scenarios()) {
            let offered = target.offers(scenario.variant.unwrap_or(DEFAULT_VARIANT));
            assert_eq!(offered, Ok(()), "{}", scenario.name);
        }
    }
}
