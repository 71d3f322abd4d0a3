//! How a client is set up: who is asked, how patient it is, how often it tries.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use turnwire_spec::llm::Wire;

/// One service and one of its models.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetConfig {
    /// The protocol that it speaks.
    pub wire: Wire,
    /// What it is called in errors and traces.
    #[serde(default = "default_provider")]
    pub provider: String,
    /// Its base URL; absent means the provider's own.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Its key; absent means the provider's environment variable, which a host reads with [`key_variable`].
    #[serde(default, skip_serializing)]
    pub api_key: Option<String>,
    /// The model.
    pub model: String,
    /// What it accepts (`text`, `image`), when that is known better than by the model table.
    #[serde(default)]
    pub input: Option<Vec<String>>,
    /// Tokens that fit into a request, when that is known better than by the model table.
    #[serde(default)]
    pub context_window: Option<u64>,
}

fn default_provider() -> String {
    "default".to_owned()
}

impl TargetConfig {
    /// A service at this base URL.
    #[must_use]
    pub fn new(wire: Wire, base_url: &str, model: &str) -> Self {
        Self {
            wire,
            provider: default_provider(),
            base_url: Some(base_url.to_owned()),
            api_key: None,
            model: model.to_owned(),
            input: None,
            context_window: None,
        }
    }

    /// With this key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Under this name.
    #[must_use]
    pub fn called(mut self, provider: &str) -> Self {
        provider.clone_into(&mut self.provider);
        self
    }

    /// Accepting these kinds of input.
    #[must_use]
    pub fn accepts<T: Into<String>>(mut self, input: impl IntoIterator<Item = T>) -> Self {
        self.input = Some(input.into_iter().map(Into::into).collect());
        self
    }

    /// With room for so many tokens.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }

    pub(super) fn address(&self) -> &str {
        self.base_url
            .as_deref()
            .filter(|url| !url.is_empty())
            .unwrap_or_else(|| default_base_url(self.wire))
    }
}

impl std::fmt::Debug for TargetConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetConfig")
            .field("wire", &self.wire)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// The built-in base URL of a wire's own provider.
///
/// Source: seed 000, line 556, for Google's.
#[must_use]
pub const fn default_base_url(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => "https://api.openai.com/v1",
        Wire::AnthropicMessages => "https://api.anthropic.com",
        Wire::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        Wire::GeminiOpenai => "https://generativelanguage.googleapis.com/v1beta/openai",
    }
}

/// The environment variable with the key of a wire's own provider.
///
/// Source: seed 000, line 556, for Google's.
#[must_use]
pub const fn key_variable(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => "OPENAI_API_KEY",
        Wire::AnthropicMessages => "ANTHROPIC_API_KEY",
        Wire::Gemini | Wire::GeminiOpenai => "GOOGLE_API_KEY",
    }
}

/// How a client is set up.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Whom it asks: the preferred target, then the fallbacks in order.
    pub targets: Vec<TargetConfig>,
    /// How long a provider may be silent.
    pub timeouts: GatewayTimeouts,
    /// How often it tries a target.
    pub retry: RetryPolicy,
    /// How long one call may take in all, waits and retries included; none means no limit.
    pub budget: Option<Duration>,
}

impl ClientConfig {
    /// One target, with the usual patience.
    #[must_use]
    pub fn new(target: TargetConfig) -> Self {
        Self {
            targets: vec![target],
            timeouts: GatewayTimeouts::default(),
            retry: RetryPolicy::default(),
            budget: None,
        }
    }

    /// With one more fallback.
    #[must_use]
    pub fn fallback(mut self, target: TargetConfig) -> Self {
        self.targets.push(target);
        self
    }
}

/// How long a provider may be silent. Periods are real time, after any scaling.
///
/// The first-token wait begins with each attempt and stands still during the waits between attempts.
/// Text, thinking and tool calls end it; comments, pings and headers do not. Each of them starts the
/// idle wait anew, so a stream that keeps writing has no limit.
///
/// Source: seed 000, lines 1193-1200.
#[derive(Clone, Copy, Debug)]
pub struct GatewayTimeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the first text, thinking or tool call of the answer.
    pub first: Duration,
    /// Between two of them after that.
    pub idle: Duration,
}

impl Default for GatewayTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_secs(60),
            idle: Duration::from_secs(60),
        }
    }
}

/// How often a target is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub retries: u32,
    /// The wait before the first of them, doubled each time.
    pub backoff: Duration,
    /// The longest wait of our own choice.
    pub max_backoff: Duration,
    /// The longest wait that a provider may ask for; a longer one ends the attempts.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 2,
            backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(8),
            max_wait: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// One attempt only.
    pub const NEVER: Self = Self {
        retries: 0,
        backoff: Duration::ZERO,
        max_backoff: Duration::ZERO,
        max_wait: Duration::ZERO,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_address_of_google_is_v1beta() {
        let target = TargetConfig {
            base_url: None,
            ..TargetConfig::new(Wire::Gemini, "", "gemini-3-pro")
        };
        assert_eq!(
            target.address(),
            "https://generativelanguage.googleapis.com/v1beta"
        );
        assert_eq!(
            TargetConfig::new(Wire::Gemini, "", "m").address(),
            target.address()
        );
    }

    #[test]
    fn a_printed_target_shows_neither_key_nor_address() {
        let target = TargetConfig::new(Wire::Gemini, "https://secret.test", "m").key("sk-secret");
        assert!(!format!("{target:?}").contains("secret"));
        assert!(
            !serde_json::to_string(&target)
                .unwrap()
                .contains("sk-secret")
        );
    }
}
