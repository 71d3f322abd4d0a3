//! The identities of the engine: newtypes over strings, so that no turn id is passed for a session id.
//!
//! All of them are opaque texts. Who makes new ones is the [`Ids`](super::ports::Ids) port.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text of this id.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<$name> for serde_json::Value {
            fn from(id: $name) -> Self {
                Self::String(id.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

id!(
    /// One session, as the client names it in paths.
    SessionId
);
id!(
    /// One execution of one turn; the outer `turnId` of the frames.
    TurnId
);
id!(
    /// The turn as the player sees it: several executions (a suspended one and its resumption, say)
    /// may serve one logical turn, which counts once.
    LogicalTurnId
);
id!(
    /// One stored message.
    MessageId
);
id!(
    /// One background job.
    JobId
);
id!(
    /// One action request, as the client named it.
    RequestId
);
id!(
    /// One trace: constant over all turns of one action request. `flowId` of a frame is the same text.
    TraceId
);
id!(
    /// One plugin.
    PluginId
);
id!(
    /// One runtime of a plugin.
    RuntimeId
);
id!(
    /// One run of one runtime within one execution.
    RunId
);
id!(
    /// The public tag of one life of a session: equal exactly while the session is the same.
    ///
    /// Lowercase hex of a SHA-256 over a random nonce, so that it shows neither the nonce nor
    /// credentials. A session that is deleted and made again under its id has another one.
    ///
    /// Source: seed 000, line 713.
    Incarnation
);

impl Incarnation {
    /// The tag of the session that was created with this random `nonce`.
    #[must_use]
    pub fn of_nonce(nonce: &[u8]) -> Self {
        Self(hex(&Sha256::digest(nonce)))
    }
}

/// One life of one session: what subscriptions, events and commits are tied to.
#[derive(Clone, Debug, Eq, PartialEq, Ord, PartialOrd, Hash)]
pub struct SessionKey {
    /// The session.
    pub id: SessionId,
    /// Which life of it.
    pub incarnation: Incarnation,
}

/// Lowercase hex of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_incarnation_is_the_sha256_of_the_nonce_in_lowercase_hex() {
        assert_eq!(
            Incarnation::of_nonce(b"abc").as_str(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn an_id_serializes_as_its_bare_text() {
        let json = serde_json::to_string(&SessionId::from("s-1")).unwrap();

        assert_eq!(json, r#""s-1""#);
    }
}
