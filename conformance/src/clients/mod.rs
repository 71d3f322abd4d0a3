//! Reference clients: known good testees, and templates for authors of clients.
//!
//! - [`session_update`]: a client of the `session-update` protocol;
//! - [`chat_ws`]: a client of the `chat-ws` protocol.

use std::sync::Arc;

use turnwire_spec::catalogue::Suite;

use crate::drivers::testee::LaunchTestee;

pub mod chat_ws;
pub mod session_update;

/// The reference client of a suite, when it tests clients.
pub fn of(suite: Suite) -> Option<Arc<dyn LaunchTestee>> {
    match suite {
        Suite::SessionUpdate => Some(Arc::new(session_update::OwnClient)),
        Suite::ChatWs => Some(Arc::new(chat_ws::OwnClient)),
        _ => None,
    }
}
