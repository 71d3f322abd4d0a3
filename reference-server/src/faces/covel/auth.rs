//! Who may touch a session: its owner, where the deployment asks for that.
//!
//! A session's owner holds the token that its creation gave. The hosted tiers always ask for it; tier
//! `self` only in production on a store that forgets, because there sessions of strangers share one
//! process. What counts is the store that is really in use.
//!
//! Source: seed 000, lines 666-670; covel.md of the fact collection, section 2.1.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Covel;
use super::errors::ApiError;
use super::request::Query;
use crate::engine::ids::SessionId;
use crate::engine::model::Session;
use crate::engine::sessions::is_owner;
use crate::store::StoreKind;

/// Who runs the deployment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Tier {
    /// Its own user (`self`).
    #[default]
    SelfHosted,
    /// A host, for visitors (`demo`).
    Demo,
    /// A host, for customers (`commercial`).
    Commercial,
}

/// This text names no tier.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown tier {0:?}; it is self, demo or commercial")]
pub struct UnknownTier(pub String);

impl std::str::FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, UnknownTier> {
        match text {
            "self" => Ok(Self::SelfHosted),
            "demo" => Ok(Self::Demo),
            "commercial" => Ok(Self::Commercial),
            other => Err(UnknownTier(other.to_owned())),
        }
    }
}

/// The rules of this deployment.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Its tier.
    pub tier: Tier,
    /// Whether it runs in production.
    pub production: bool,
    /// The store that it uses.
    pub store: StoreKind,
    /// A token that opens every session and the operator's queries.
    pub operator_token: Option<String>,
}

impl Guard {
    /// Whether sessions ask for their owner's token.
    #[must_use]
    pub fn enforces_owner(&self) -> bool {
        self.is_hosted() || (self.production && self.store == StoreKind::Memory)
    }

    /// Whether the deployment serves strangers.
    #[must_use]
    pub fn is_hosted(&self) -> bool {
        self.tier != Tier::SelfHosted
    }

    /// Checks that the request comes from the owner of the session, where that is asked for.
    ///
    /// # Errors
    ///
    /// 401 `session_owner_required` without a token, or with one that is not this session's.
    pub fn owner(
        &self,
        session: &Session,
        headers: &HeaderMap,
        query: &Query,
    ) -> Result<(), ApiError> {
        if !self.enforces_owner() || self.is_operator(headers) {
            return Ok(());
        }
        match token(headers, query) {
            Some(token) if is_owner(session, token) => Ok(()),
            _ => Err(ApiError::owner_required()),
        }
    }

    /// Whether the request carries the operator's token.
    #[must_use]
    pub fn is_operator(&self, headers: &HeaderMap) -> bool {
        match (&self.operator_token, bearer(headers)) {
            (Some(expected), Some(token)) => {
                let (expected, token) = (Sha256::digest(expected), Sha256::digest(token));
                bool::from(expected.as_slice().ct_eq(token.as_slice()))
            }
            _ => false,
        }
    }
}

/// A session of the path whose owner asks, or of a deployment that does not mind.
///
/// Answers 404 for a session that does not exist, and 401 for a stranger.
pub struct Owned {
    /// The session as it was read for the check.
    pub session: Session,
    /// The query of the request.
    pub query: Query,
}

impl FromRequestParts<Arc<Covel>> for Owned {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, face: &Arc<Covel>) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, face).await;
        let params = params.map_err(|error| ApiError::invalid(error.to_string()))?;
        let id = params
            .iter()
            .find(|(name, _)| *name == "id")
            .map(|(_, id)| id);
        let id = SessionId::from(id.unwrap_or_default());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let session = face.engine.session(&id).await?;
        face.guard.owner(&session, &parts.headers, &query)?;
        Ok(Self { session, query })
    }
}

/// The token of the request: `Authorization: Bearer`, else `X-Session-Token`, else `session_token`.
fn token<'a>(headers: &'a HeaderMap, query: &'a Query) -> Option<&'a str> {
    let header = || {
        headers
            .get("x-session-token")
            .and_then(|value| value.to_str().ok())
    };
    bearer(headers)
        .or_else(header)
        .or_else(|| query.get("session_token"))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(tier: Tier, production: bool, store: StoreKind) -> Guard {
        Guard {
            tier,
            production,
            store,
            operator_token: None,
        }
    }

    #[test]
    fn hosted_tiers_ask_for_the_owner_whatever_else_holds() {
        for tier in [Tier::Demo, Tier::Commercial] {
            for production in [false, true] {
                for store in [StoreKind::Memory, StoreKind::Persistent] {
                    assert!(guard(tier, production, store).enforces_owner());
                }
            }
        }
    }

    #[test]
    fn a_self_hosted_server_asks_only_in_production_on_a_store_that_forgets() {
        let asks = |production, store| guard(Tier::SelfHosted, production, store).enforces_owner();

        assert!(asks(true, StoreKind::Memory));
        assert!(!asks(true, StoreKind::Persistent));
        assert!(!asks(false, StoreKind::Memory));
        assert!(!asks(false, StoreKind::Persistent));
    }

    #[test]
    fn the_first_token_that_is_present_counts() {
        let query = Query::parse("session_token=third");
        let mut headers = HeaderMap::new();
        assert_eq!(token(&headers, &query), Some("third"));
        headers.insert("x-session-token", "second".parse().unwrap());
        assert_eq!(token(&headers, &query), Some("second"));
        headers.insert(AUTHORIZATION, "bearer first".parse().unwrap());
        assert_eq!(token(&headers, &query), Some("first"));
        headers.insert(AUTHORIZATION, "Basic zzz".parse().unwrap());
        assert_eq!(token(&headers, &query), Some("second"));
    }
}
