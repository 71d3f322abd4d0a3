//! The target, spoken to by one worker: cases go in, answers come out, and the authoritative state is read beside them.

use super::{
    Case, Face, chat::ChatPeer, draft::Sent, http::HttpPeer, lines::LinePeer, wire::Answer,
};
use crate::drivers::http::BaseUrl;

/// One worker's connections to the target.
#[derive(Debug)]
pub enum Peer {
    /// `covel-sse`.
    Covel(HttpPeer),
    /// `session-update`.
    SessionUpdate(LinePeer),
    /// `chat-ws`.
    ChatWs(ChatPeer),
}

impl Peer {
    /// Opens connections and makes a session that cases are about.
    ///
    /// # Errors
    ///
    /// In words: the target cannot be reached, or makes no session.
    pub async fn open(face: Face, base: &BaseUrl) -> Result<Self, String> {
        if base.tls {
            return Err("envelopes are sent over plain connections only".to_owned());
        }
        Ok(match face {
            Face::Covel => Self::Covel(HttpPeer::open(base).await?),
            Face::SessionUpdate => Self::SessionUpdate(LinePeer::open(base).await?),
            Face::ChatWs => Self::ChatWs(ChatPeer::open(base).await?),
        })
    }

    /// Sends a case and reads what comes back.
    ///
    /// # Errors
    ///
    /// In words: no connection can be made.
    pub async fn put(&mut self, case: &Case) -> Result<(Sent, Answer), String> {
        match self {
            Self::Covel(peer) => peer.put(case).await,
            Self::SessionUpdate(peer) => peer.put(case).await,
            Self::ChatWs(peer) => peer.put(case).await,
        }
    }

    /// The authoritative state, as text that is equal when nothing changed. Asking for it is also the next valid
    /// request after a case.
    ///
    /// # Errors
    ///
    /// In words: a query is not answered as it must be.
    pub async fn state(&mut self) -> Result<String, String> {
        match self {
            Self::Covel(peer) => peer.state().await,
            Self::SessionUpdate(peer) => peer.state().await,
            Self::ChatWs(peer) => peer.state().await,
        }
    }

    /// A fresh session, in place of all others, after something was accepted.
    ///
    /// # Errors
    ///
    /// In words: no session can be made.
    pub async fn renew(&mut self) -> Result<(), String> {
        match self {
            Self::Covel(peer) => peer.renew().await,
            Self::SessionUpdate(peer) => peer.renew().await,
            Self::ChatWs(peer) => peer.http.renew().await,
        }
    }

    /// Stores something by a valid request, for a planted fault.
    pub async fn store(&mut self) {
        // Whatever it answers: the state tells.
        let _ = match self {
            Self::Covel(peer) => peer.store().await,
            Self::SessionUpdate(peer) => peer.store().await,
            Self::ChatWs(peer) => peer.http.make("garbage").await.map(drop),
        };
    }
}
