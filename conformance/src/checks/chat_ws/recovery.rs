//! Killed background tasks.

use super::view::{is_numbered, sockets};
use crate::{
    checks::Check,
    transcript::{
        Side, Transcript,
        views::{http::exchanges, messages::Channel},
    },
    verdict::{Evidence, Findings},
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("CWS-101", a_killed_task_is_told_at_once),
    check!("CWS-107", a_killed_task_is_told_by_default),
];

/// Where tasks are killed.
const KILL: &str = "/api/sessions/:id/plugin-rpc";

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

/// Judges the first socket, where a task was killed under the label. A target that cannot kill tasks says so, and has
/// nothing to tell.
fn told_under(transcript: &Transcript, label: &str) -> Findings {
    let killed = exchanges(transcript).iter().any(|exchange| {
        exchange.label == label
            && exchange.is("POST", KILL)
            && exchange
                .status()
                .is_some_and(|status| (200..300).contains(&status))
    });
    let opened = sockets(transcript);
    let judged = opened.iter().filter(|_| killed).take(1);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript::testing::Script;

    /// A task is killed, with this answer, and nothing comes of it.
    fn killed(status: u16) -> Findings {
        let script = Script::new().websocket("/ws").label("kill-live");
        let script = script.post(
            "/api/sessions/s/plugin-rpc",
            &json!({ "action": "kill-task" }),
        );
        let answered = script.answers_json(status, &json!({}));
        a_killed_task_is_told_at_once(&answered.transcript())
    }

    #[test]
    fn who_kills_no_task_has_none_to_tell_of() {
        assert_eq!((killed(404).judged, killed(404).faults.len()), (0, 0));
        assert_eq!((killed(200).judged, killed(200).faults.len()), (1, 1));
    }
}
