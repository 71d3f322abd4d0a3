//! How a request is refused.
//!
//! The seed names no error; the words are those of the public sources, but `ServerBusy`, which is ours. A
//! server may use others: checks hold nobody to them.

use crate::words::words;

words! {
    /// The `type` of an error.
    "error type" enum ErrorType {
        /// The line is no JSON object in UTF-8, or too long.
        ParseError = "ParseError",
        /// The message or a parameter is not what the method takes.
        InvalidRequest = "InvalidRequest",
        /// There is no such method.
        MethodNotFound = "MethodNotFound",
        /// `initialize` has to come first.
        ServerNotReady = "ServerNotReady",
        /// The connection, or the server, is going down.
        ServerStopping = "ServerStopping",
        /// Too many requests are under way. Ours.
        ServerBusy = "ServerBusy",
        /// There is no such session.
        SessionNotFound = "SessionNotFound",
        /// A turn runs, and the method needs that none does.
        TurnActive = "TurnActive",
        /// No turn runs, or another one.
        TurnNotActive = "TurnNotActive",
        /// There is no such thing in the session.
        NotFound = "NotFound",
        /// The server cannot do this.
        UnsupportedOperation = "UnsupportedOperation",
        /// Anything else.
        RuntimeError = "RuntimeError",
    }
}
