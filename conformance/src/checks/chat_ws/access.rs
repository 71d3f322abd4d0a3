//! The hook of the socket.

use crate::{
    checks::Check,
    transcript::{
        Transcript,
        views::http::{Exchange, exchanges},
    },
    verdict::Findings,
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[check!("CWS-002", the_socket_passes_the_hook_of_rest)];

/// CWS-002: with the same credentials, the upgrade is refused when a REST request is, and accepted when it is.
///
/// Judged under the labels `auth-none`, `auth-wrong` and `auth-right`, on a target that refuses some of them.
pub fn the_socket_passes_the_hook_of_rest(transcript: &Transcript) -> Findings {
    let all = exchanges(transcript);
    let of = |label: &'static str, socket: bool| {
        all.iter().find(move |exchange| {
            exchange.label == label && (exchange.path() == turnwire_spec::chat_ws::PATH) == socket
        })
    };
    let refused = |exchange: &Exchange<'_>| {
        exchange
            .status()
            .is_some_and(|status| (400..500).contains(&status))
    };
    let labels = ["auth-none", "auth-wrong", "auth-right"];
    let guarded = labels
        .iter()
        .any(|label| of(label, false).is_some_and(&refused));
    let mut findings = Findings::none();
    for label in labels.iter().filter(|_| guarded) {
        let (Some(rest), Some(socket)) = (of(label, false), of(label, true)) else {
            continue;
        };
        let same =
            refused(rest) == refused(socket) && (refused(rest) || socket.status() == Some(101));
        findings.judge((!same).then(|| {
            let expected = format!("the like of {:?} for REST", rest.status());
            socket.evidence(expected, format!("{:?}", socket.status()))
        }));
    }
    findings
}
