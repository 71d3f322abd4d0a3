//! When a reply is sent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{duration, sound};

/// Delays of one reply, in Tokio's time.
///
/// A token is one event that carries new text, thinking or arguments. In a plain answer all of it
/// passes before the status line, as it does with a real service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// Before the status line.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub headers: Duration,
    /// Between the headers and the first event of any kind.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub first_event: Duration,
    /// Before the first token.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub first_token: Duration,
    /// Before each later token.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub per_token: Duration,
    /// Added before each later token: something from zero to this, the same in every run.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub jitter: Duration,
    /// Another way to say `per_token`; the longer delay of the two counts.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sound::rate"
    )]
    pub tokens_per_second: Option<f64>,
    /// Between the last token and the events that end the stream.
    #[serde(with = "duration", skip_serializing_if = "duration::is_zero")]
    pub before_end: Duration,
}

impl Timing {
    /// Whether there is nothing to wait for.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The delay before each token but the first, without jitter.
    pub fn between_tokens(&self) -> Duration {
        let by_rate = self
            .tokens_per_second
            .filter(|rate| *rate > 0.0)
            .and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok())
            .unwrap_or_default();
        self.per_token.max(by_rate)
    }
}
