//! A case: a valid request, by its name, and what is done to it.

use serde::{Deserialize, Serialize};
use turnwire_spec::{
    catalogue::messages::Sender, chat_ws::KINDS, covel::ENDPOINTS, session_update::METHODS,
};

use super::{Face, change::Change};
use crate::fuzz::random::Random;

/// Most changes of one case.
const CHANGES: u32 = 3;

/// A request that is wrong, as plain data.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Case {
    /// The valid request: `POST /api/sessions`, the method `session/new`, or the frame `chat:send`.
    pub base: String,
    /// What is done to it, in this order.
    pub changes: Vec<Change>,
}

/// The routes that `chat-ws` has besides its socket.
///
/// Source: seed 004, lines 5 and 43; the paths are ours.
pub const CHAT_ROUTES: &[(&str, &str)] = &[
    ("GET", "/ws"),
    ("GET", "/api/chats"),
    ("GET", "/api/chats/:id/messages"),
    ("GET", "/api/openapi.json"),
];

impl Case {
    /// A random case: each endpoint and each kind of frame is as likely as any other.
    pub fn random(face: Face, random: &mut Random) -> Self {
        let bases = bases(face);
        let count = u32::try_from(bases.len()).unwrap_or(u32::MAX);
        let base = bases
            .get(random.below(count) as usize)
            .cloned()
            .unwrap_or_default();
        let is_http = base.contains(" /");
        let changes = (0..random.small(1, CHANGES))
            .map(|_| Change::random(is_http, face, random))
            .collect();
        Self { base, changes }
    }

    /// Method and path of a request over HTTP; `None` for a frame or a line.
    pub fn route(&self) -> Option<(&str, &str)> {
        self.base.split_once(' ')
    }

    /// In one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Every request of a protocol, from the tables of `spec/`.
pub fn bases(face: Face) -> Vec<String> {
    let route = |(method, path): (&str, &str)| format!("{method} {path}");
    match face {
        Face::Covel => ENDPOINTS
            .iter()
            .map(|row| route((row.method, row.path)))
            .collect(),
        Face::SessionUpdate => METHODS.iter().map(|row| row.name.to_owned()).collect(),
        Face::ChatWs => KINDS
            .iter()
            .filter(|kind| kind.from == Sender::Client)
            .map(|kind| kind.name.to_owned())
            .chain(CHAT_ROUTES.iter().copied().map(route))
            .collect(),
    }
}
