//! Killed background tasks.

use super::view::{is_numbered, sockets};
use crate::{
    checks::Check,
    transcript::{Side, Transcript, views::messages::Channel},
    verdict::{Evidence, Findings},
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("CWS-101", a_killed_task_is_told_at_once),
    check!("CWS-107", a_killed_task_is_told_by_default),
];

/// CWS-101: after a task was killed, `chat:killed_task` comes before any frame of a turn.
///
/// The scenario kills under the label `kill-live` and starts nothing meanwhile.
pub fn a_killed_task_is_told_at_once(transcript: &Transcript) -> Findings {
    told_under(transcript, "kill-live")
}

/// CWS-107: on a server without the setting, `chat:killed_task` comes.
pub fn a_killed_task_is_told_by_default(transcript: &Transcript) -> Findings {
    told_under(transcript, "kill-default")
}

fn told_under(transcript: &Transcript, label: &str) -> Findings {
    let labelled = transcript
        .entries
        .iter()
        .any(|entry| matches!(&entry.fact, crate::transcript::Fact::Label(text) if text == label));
    let opened = sockets(transcript);
    let judged = opened.iter().filter(|_| labelled).take(1);
    Findings::each(judged, |channel| untold(channel, label))
}

fn untold(channel: &Channel<'_>, label: &str) -> Option<Evidence> {
    let expected = "chat:killed_task before any frame of a turn";
    let first = channel.from(Side::Server).find(|message| {
        message.label == label && (is_numbered(message) || message.kind() == "chat:killed_task")
    });
    match first {
        Some(message) if message.kind() == "chat:killed_task" => None,
        Some(message) => Some(channel.evidence_at(message, expected, message.show())),
        None => Some(channel.evidence(expected, "nothing")),
    }
}
