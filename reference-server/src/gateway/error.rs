//! Why a model gave no answer.

use std::time::Duration;

use turnwire_spec::covel::vocabulary::{ERROR_KIND_MISSING_KEY, ERROR_KIND_UNKNOWN};

use super::request::Target;

/// The code of a failure that lies in what the caller asked for; nothing was sent.
///
/// Source: seed 000, line 535.
pub const CONFIG_ERROR: &str = "CONFIG_ERROR";

/// Why a model gave no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct GatewayError {
    /// The category.
    pub kind: ErrorKind,
    /// [`CONFIG_ERROR`], or the provider's own code or type.
    pub code: Option<String>,
    /// What the provider said, or what went wrong on the way. Holds no key and no address.
    pub message: String,
    /// Who failed: after fallback, the fallback.
    pub target: Target,
    /// The HTTP status, when there was one other than success.
    pub status: Option<u16>,
    /// How long the provider asks to wait before the next try.
    pub retry_after: Option<Duration>,
    /// What the provider says about trying again, whatever the category.
    pub should_retry: Option<bool>,
}

impl GatewayError {
    /// An error of this category, with nothing more known.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>, target: Target) -> Self {
        Self {
            kind,
            code: (kind == ErrorKind::Config).then(|| CONFIG_ERROR.to_owned()),
            message: message.into(),
            target,
            status: None,
            retry_after: None,
            should_retry: None,
        }
    }

    /// Whether the same request can succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.should_retry.unwrap_or_else(|| self.kind.is_passing())
    }
}

/// The categories of model failures. The set is open: clients accept others.
///
/// Source: seed 000, line 184, names `missing_key` and `unknown`; the others are ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorKind {
    /// A remote provider had no key, so nothing was sent.
    MissingKey,
    /// What was asked for cannot be sent to this target, so nothing was sent.
    Config,
    /// The key was refused.
    Unauthorized,
    /// The account has no credit left; waiting brings none.
    Quota,
    /// Too many requests.
    RateLimited,
    /// The provider has too much to do.
    Overloaded,
    /// The provider refused the request as such.
    BadRequest,
    /// The provider refused the content.
    ContentFilter,
    /// The provider has no such model.
    NotFound,
    /// The provider failed.
    Unavailable,
    /// The connection could not be made, or broke before an answer began.
    Network,
    /// The answer ended early.
    Interrupted,
    /// The provider was silent for too long, or the time for the request was used up.
    Timeout,
    /// The answer was not what the wire promises.
    BadAnswer,
    /// The answer is not the JSON that the caller's schema asks for.
    InvalidOutput,
    /// Anything else.
    Unknown,
}

impl ErrorKind {
    /// Its name on the wire (`errorKind`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MissingKey => ERROR_KIND_MISSING_KEY,
            Self::Config => "config",
            Self::Unauthorized => "unauthorized",
            Self::Quota => "quota_exceeded",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "provider_overloaded",
            Self::BadRequest => "bad_request",
            Self::ContentFilter => "content_filter",
            Self::NotFound => "model_not_found",
            Self::Unavailable => "provider_unavailable",
            Self::Network => "network",
            Self::Interrupted => "interrupted",
            Self::Timeout => "timeout",
            Self::BadAnswer => "bad_answer",
            Self::InvalidOutput => "invalid_output",
            Self::Unknown => ERROR_KIND_UNKNOWN,
        }
    }

    /// Its class in the reports of adapters (the adapter protocol of the documentation).
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::MissingKey | Self::Config => "config",
            Self::Unauthorized => "auth",
            Self::Quota => "quota",
            Self::RateLimited => "rate-limit",
            Self::Overloaded => "overloaded",
            Self::BadRequest => "invalid-request",
            Self::ContentFilter => "content-filter",
            Self::NotFound => "not-found",
            Self::Unavailable => "server",
            Self::Network => "network",
            Self::Interrupted => "stream-interrupted",
            Self::Timeout => "timeout",
            Self::BadAnswer => "protocol",
            Self::InvalidOutput => "invalid-output",
            Self::Unknown => "unknown",
        }
    }

    const fn is_passing(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::Unavailable
                | Self::Network
                | Self::Interrupted
                | Self::Timeout
        )
    }
}
