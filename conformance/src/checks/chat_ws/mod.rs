//! Checks of the chat socket that need more than one message to decide.
//!
//! - [`view`]: runs of numbered frames on one socket; [`numbers`]: how they are counted;
//! - [`replay`]: what a subscription brings; [`turns`]: the course of a turn; [`recovery`]: killed tasks;
//! - [`access`]: the hook of the socket; [`client`]: what a client does.

use super::Check;

pub mod access;
pub mod client;
pub mod numbers;
pub mod recovery;
pub mod replay;
pub mod turns;
pub(crate) mod view;

/// The checks of the suite, file by file.
pub const CHECKS: &[&[Check]] = &[
    access::CHECKS,
    numbers::CHECKS,
    turns::CHECKS,
    replay::CHECKS,
    recovery::CHECKS,
    client::CHECKS,
];
