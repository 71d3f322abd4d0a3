//! Which exchange a line without a number belongs to, and whether `<` is a head or body: the state that the
//! reader and the writer share.

use std::collections::BTreeSet;

use crate::transcript::ExchangeId;

/// The state after some lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    current: Option<ExchangeId>,
    highest: u32,
    requested: BTreeSet<ExchangeId>,
    answered: BTreeSet<ExchangeId>,
}

impl Numbers {
    /// Exchange of a request without a number; `None` when there are no numbers left.
    pub(super) fn next(&self) -> Option<ExchangeId> {
        self.highest.checked_add(1).map(ExchangeId)
    }

    /// Exchange of any other line without a number: that of the line before.
    pub(super) fn current(&self) -> Option<ExchangeId> {
        self.current
    }

    /// Whether the exchange has a request.
    pub(super) fn requested(&self, exchange: ExchangeId) -> bool {
        self.requested.contains(&exchange)
    }

    /// Whether the exchange has a response head.
    pub(super) fn answered(&self, exchange: ExchangeId) -> bool {
        self.answered.contains(&exchange)
    }

    /// Notes a line of an exchange.
    pub(super) fn touch(&mut self, exchange: ExchangeId) {
        self.current = Some(exchange);
        self.highest = self.highest.max(exchange.0);
    }

    /// Notes a request.
    pub(super) fn request(&mut self, exchange: ExchangeId) {
        self.touch(exchange);
        self.requested.insert(exchange);
    }

    /// Notes a response head.
    pub(super) fn answer(&mut self, exchange: ExchangeId) {
        self.touch(exchange);
        self.answered.insert(exchange);
    }
}
