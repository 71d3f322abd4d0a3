//! Conversations over the chat socket.
//!
//! - [`turns`]: chats, tools, usage, commands; [`failures`]: what ends a turn early, and texts that are no frames;
//! - [`replay`]: sockets that come late or come back; [`queue`]: what is said next;
//! - [`recovery`]: killed tasks and Continue; [`access`]: the way to the socket, keepalive;
//! - [`client`]: clients under test, for which the harness is the server.
//!
//! Labels say what a check may expect of what passes under them. Waits are tolerant: what does not come stands in
//! the transcript by its absence.

use std::time::Duration;

use crate::{
    drivers::{
        DriveError,
        websocket::{Seen, WebSocket},
    },
    scenarios::{Act, Isolation, Running, Scenario},
    stage::Stage,
};

pub mod access;
pub mod client;
pub mod failures;
pub mod queue;
pub mod recovery;
pub mod replay;
pub mod turns;

/// The scenarios of the suite, file by file.
pub const SCENARIOS: &[&[Scenario]] = &[
    access::SCENARIOS,
    turns::SCENARIOS,
    failures::SCENARIOS,
    replay::SCENARIOS,
    queue::SCENARIOS,
    recovery::SCENARIOS,
    client::SCENARIOS,
];

/// The capability of a target that has tools which a scripted model can call, under the names of the fixtures.
pub(super) const TOOLS: &str = "fixture-tools";
/// The capability of a target whose background tasks the harness can kill.
pub(super) const KILLED_TASKS: &str = "killed-tasks";

/// A scenario on the default variant.
pub(super) const fn scenario(
    name: &'static str,
    about: &'static str,
    needs: &'static [&'static str],
    run: for<'a> fn(&'a Stage) -> Running<'a>,
) -> Scenario {
    Scenario {
        name,
        about,
        needs,
        variant: None,
        // Sockets hear of every turn, so each conversation has a server of its own.
        isolation: Isolation::Own,
        run: Act::Server(run),
    }
}

/// How long a turn may take whose model answers at once.
pub(super) const TURN: Duration = Duration::from_secs(10);

/// How long to wait for something that is not to come.
pub(super) const QUIET: Duration = Duration::from_millis(700);

/// Waits for the start of a turn on a session that is not known yet; gives the session and the job.
pub(super) async fn started(socket: &mut WebSocket) -> Result<(String, String), DriveError> {
    let runs = |seen: &Seen| {
        seen.kind() == Some("chat:active")
            && seen.pointer("/payload/running") == Some(&true.into())
            && seen.text("/payload/jobId").is_some()
    };
    let seen = socket
        .need_that("chat:active with a jobId", TURN, runs)
        .await?;
    let text = |pointer: &str| seen.text(pointer).unwrap_or_default().to_owned();
    Ok((text("/payload/sessionId"), text("/payload/jobId")))
}

/// Says something in a project, in a new chat, and waits for the end of the turn; gives the session.
pub(super) async fn new_chat(
    stage: &Stage,
    socket: &mut WebSocket,
    message: &str,
) -> Result<String, DriveError> {
    socket
        .chat_send(&stage.profile().chat.project, None, message)
        .await?;
    let complete = socket.need("chat:complete", TURN).await?;
    let session = complete.text("/payload/sessionId").unwrap_or_default();
    idle(socket).await;
    Ok(session.to_owned())
}

/// Waits until some session says that it does not run any more; passes over its absence.
pub(super) async fn idle(socket: &mut WebSocket) {
    let stops = |seen: &Seen| {
        seen.kind() == Some("chat:active")
            && seen.pointer("/payload/running") == Some(&false.into())
    };
    socket.wait_for(Duration::from_secs(2), stops).await;
}

/// Waits for the end of a turn, by any frame that tells of it, but for no longer than that.
pub(super) async fn over(socket: &mut WebSocket, within: Duration) {
    let ends = |seen: &Seen| matches!(seen.kind(), Some("chat:complete" | "chat:error"));
    socket.wait_for(within, ends).await;
    let stops = |seen: &Seen| {
        seen.kind() == Some("chat:active")
            && seen.pointer("/payload/running") == Some(&false.into())
    };
    socket.wait_for(QUIET, stops).await;
}
