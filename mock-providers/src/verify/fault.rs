//! A breach of a rule, and how the service puts it.

use crate::script::ErrorReply;

/// One breach.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What is wrong, in the service's manner.
    pub message: String,
    /// The member at fault, as the service names it.
    pub param: Option<String>,
    /// The service's code.
    pub code: Option<&'static str>,
    /// The HTTP status.
    pub status: u16,
}

impl Fault {
    /// The service's answer.
    pub fn error(&self) -> ErrorReply {
        let mut error = ErrorReply::new(self.status).message(self.message.clone());
        error.param.clone_from(&self.param);
        error.code = self.code.map(str::to_owned);
        error
    }
}

/// The breaches of one rule; at most [`MOST`] are kept.
#[derive(Debug, Default)]
pub struct Faults {
    pub(super) list: Vec<Fault>,
}

/// Breaches of one rule that are kept: a request with a thousand bad messages needs no thousand lines.
const MOST: usize = 16;

impl Faults {
    /// Adds a breach: 400, without a member.
    pub(super) fn add(&mut self, message: impl Into<String>) -> &mut Fault {
        if self.list.len() >= MOST {
            self.list.pop();
        }
        self.list.push(Fault {
            message: message.into(),
            param: None,
            code: None,
            status: 400,
        });
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// Adds a breach of a member.
    pub(super) fn at(
        &mut self,
        param: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Fault {
        let fault = self.add(message);
        fault.param = Some(param.into());
        fault
    }
}

impl Fault {
    pub(super) fn code(&mut self, code: &'static str) -> &mut Self {
        self.code = Some(code);
        self
    }

    pub(super) fn status(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self
    }
}
