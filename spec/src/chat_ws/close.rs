//! Close codes. The protocol has none of its own: a server never closes a socket over a frame's content.
//!
//! Source: RFC 6455, section 7.4.1; public sources for when they are seen.

/// When a socket ends with a code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CloseCode {
    /// The code.
    pub code: u16,
    /// When it is seen.
    pub when: &'static str,
}

/// The server goes down.
pub const GOING_AWAY: u16 = 1001;
/// The bytes are no WebSocket frames: no mask, reserved bits, an unknown opcode.
pub const PROTOCOL_ERROR: u16 = 1002;
/// A text message is no UTF-8.
pub const INVALID_UTF8: u16 = 1007;
/// A message is longer than the server takes.
pub const TOO_LARGE: u16 = 1009;

/// The codes with which a server of ours ends a socket.
pub const CLOSE_CODES: &[CloseCode] = &[
    CloseCode {
        code: GOING_AWAY,
        when: "the server is asked to stop",
    },
    CloseCode {
        code: PROTOCOL_ERROR,
        when: "a frame has no mask, a reserved bit or an unknown opcode",
    },
    CloseCode {
        code: INVALID_UTF8,
        when: "a text message is no UTF-8",
    },
    CloseCode {
        code: TOO_LARGE,
        when: "a message is longer than the limit",
    },
];
