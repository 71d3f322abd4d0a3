//! What a client does with the socket when it is lost.

use super::view::{session, sockets};
use crate::{
    checks::Check,
    transcript::{Fact, Side, Transcript, views::messages::Channel},
    verdict::{Evidence, Findings},
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("CWS-004", a_lost_socket_is_opened_again),
    check!("CWS-031", every_socket_subscribes),
];

/// The labels under which the harness closes the client's socket.
const DROPS: [&str; 2] = ["client-drop", "client-drop-again"];

/// Calls `judge` for each time that the harness closed the socket, with the socket that was opened after it.
fn after_drops(
    transcript: &Transcript,
    mut judge: impl FnMut(&str, Option<&Channel<'_>>) -> Option<Evidence>,
) -> Findings {
    let opened = sockets(transcript);
    let mut findings = Findings::none();
    for label in DROPS {
        let dropped = transcript
            .entries
            .iter()
            .any(|entry| matches!(&entry.fact, Fact::Label(text) if text == label));
        if dropped {
            let next = opened.iter().find(|channel| channel.label == label);
            findings.judge(judge(label, next));
        }
    }
    findings
}

/// CWS-004: after the socket was closed from outside, the client opens another one.
pub fn a_lost_socket_is_opened_again(transcript: &Transcript) -> Findings {
    after_drops(transcript, |label, next| match next {
        Some(_) => None,
        None => Some(Evidence::new(
            "another connection to /ws",
            format!("none after {label}"),
        )),
    })
}

/// CWS-031: on each new connection the client subscribes to the session that it shows.
pub fn every_socket_subscribes(transcript: &Transcript) -> Findings {
    after_drops(transcript, |_, next| {
        let channel = next?;
        let subscribes = channel
            .of_kind(Side::Client, "chat:subscribe")
            .any(|subscribe| session(subscribe) == Some("s-1"));
        (!subscribes).then(|| channel.evidence("chat:subscribe to s-1", "none"))
    })
}
