//! The steps of conversations with a provider: the key, and which model is asked.

use turnwire_spec::llm::{Wire, azure};

use super::Stage;
use crate::drivers::{
    DriveError,
    http::{Call, Reply},
};

/// The version of the Messages wire that every service knows.
const ANTHROPIC_VERSION: &str = "2023-06-01";

impl Stage {
    /// The model that is asked: that of the profile, or else the first one that the server lists.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when the profile names none and the server lists none.
    pub async fn provider_model(&self, wire: Wire) -> Result<String, DriveError> {
        if let Some(model) = &self.profile().provider.model {
            return Ok(model.clone());
        }
        let listed = self.send(self.with_key(wire, Call::get("/models"))).await?;
        let first = ["/data/0/id", "/models/0/name"]
            .iter()
            .find_map(|pointer| listed.string(pointer));
        first.ok_or_else(|| DriveError::NotPossible {
            what: "to ask a model".to_owned(),
            why: if refuses_key(listed.status) {
                self.key_refused(listed.status)
            } else {
                let status = listed.status;
                format!("the server lists none ({status}); name one with --model")
            },
        })
    }

    /// Sees to it that no answer so far was longer than it may be: no other is asked for then.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when one was.
    pub fn provider_stops(&self) -> Result<(), DriveError> {
        if !self.profile().provider.flooded.is_set() {
            return Ok(());
        }
        let most = self.profile().limits.http.max_body;
        Err(DriveError::NotPossible {
            what: "to ask".to_owned(),
            why: format!("an answer before was longer than {most} bytes"),
        })
    }

    /// Sees to it that an ordinary question was answered: what a server says to wrong ones tells nothing when it says
    /// the same to all.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when it was not, with what to change.
    pub fn provider_answered(&self, reply: &Reply) -> Result<(), DriveError> {
        if (200..300).contains(&reply.status) {
            return Ok(());
        }
        Err(DriveError::NotPossible {
            what: "to ask".to_owned(),
            why: if refuses_key(reply.status) {
                self.key_refused(reply.status)
            } else {
                format!("an ordinary question got status {}", reply.status)
            },
        })
    }

    fn key_refused(&self, status: u16) -> String {
        match &self.profile().provider.key {
            Some(_) => {
                format!("the server refuses the key ({status}); give the right one with --key")
            }
            None => format!("the server wants a key ({status}); give one with --key"),
        }
    }

    /// The call with the profile's key, as the wire carries it.
    #[must_use]
    pub fn with_key(&self, wire: Wire, call: Call) -> Call {
        match &self.profile().provider.key {
            Some(key) => self.with_other_key(wire, call, key),
            None => versioned(wire, call),
        }
    }

    /// The call with this key, as the wire carries it.
    #[must_use]
    pub fn with_other_key(&self, wire: Wire, call: Call, key: &str) -> Call {
        let call = versioned(wire, call);
        match wire {
            Wire::OpenaiChat | Wire::OpenaiResponses
                if azure::is_versioned(&self.http().base().query) =>
            {
                call.header(azure::KEY_HEADER, key)
            }
            Wire::OpenaiChat | Wire::OpenaiResponses | Wire::GeminiOpenai => call.bearer(Some(key)),
            Wire::AnthropicMessages => call.header("x-api-key", key),
            Wire::Gemini => call.header("x-goog-api-key", key),
        }
    }
}

/// Whether an answer to a right question is about the key.
fn refuses_key(status: u16) -> bool {
    matches!(status, 401 | 403)
}

fn versioned(wire: Wire, call: Call) -> Call {
    if wire == Wire::AnthropicMessages {
        call.header("anthropic-version", ANTHROPIC_VERSION)
    } else {
        call
    }
}
