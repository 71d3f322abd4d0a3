//! The classic form of the OpenAI wires on Azure: a key in a header of its own, and a version in the query.
//!
//! A base URL such as `https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21` is of this form,
//! and so is every request below it. A bearer token is accepted there as well. The newer `/openai/v1` has no version in
//! the query, and takes a key as OpenAI does.
//!
//! Source: <https://learn.microsoft.com/azure/ai-services/openai/reference>

/// The header that carries the key.
pub const KEY_HEADER: &str = "api-key";

/// The parameter of the query that tells the form.
pub const VERSION: &str = "api-version";

/// Whether a query, without `?`, is of this form.
///
/// ```
/// use turnwire_spec::llm::azure::is_versioned;
///
/// assert!(is_versioned("a=1&api-version=2024-10-21"));
/// assert!(!is_versioned("api-version="));
/// ```
#[must_use]
pub fn is_versioned(query: &str) -> bool {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.any(|(name, value)| name == VERSION && !value.is_empty())
}
