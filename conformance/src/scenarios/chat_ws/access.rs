//! The way to the socket, and what keeps it open.

use std::time::Duration;

use serde_json::json;
use turnwire_spec::chat_ws::limits::SERVER_PING_EVERY;

use super::{QUIET, TURN, over, scenario};
use crate::{
    drivers::{
        DriveError,
        http::Call,
        websocket::{Open, Opened},
    },
    scenarios::{Act, Isolation, Scenario},
    stage::Stage,
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "chat-path",
        "asks for the OpenAPI document, opens the socket, pings and says something on it",
        &[],
        |stage| Box::pin(path(stage)),
    ),
    Scenario {
        name: "chat-access",
        about: "asks for a REST route and for the socket without, with wrong and with right credentials",
        needs: &[],
        variant: Some("chat-guarded"),
        isolation: Isolation::Own,
        run: Act::Server(|stage| Box::pin(access(stage))),
    },
    scenario(
        "chat-keepalive",
        "keeps a socket open and idle for four protocol pings, pings on it while another is open",
        &[],
        |stage| Box::pin(keepalive(stage)),
    ),
];

async fn path(stage: &Stage) -> Result<(), DriveError> {
    let chat = &stage.profile().chat;
    stage.label("openapi");
    if let Some(path) = &chat.openapi {
        stage.send(Call::get(path.clone())).await?;
    }
    stage.label("one-path");
    let Opened::Socket(mut socket) = stage.open_socket(stage.chat_open()).await? else {
        return Ok(());
    };
    socket.send(&json!({ "type": "ping" })).await?;
    socket
        .chat_send(&chat.project, None, &stage.token())
        .await?;
    over(&mut socket, TURN).await;
    socket.close(1000, QUIET).await;
    Ok(())
}

async fn access(stage: &Stage) -> Result<(), DriveError> {
    let chat = stage.profile().chat.clone();
    let Some(token) = &chat.token else {
        return Err(DriveError::NotPossible {
            what: "to show credentials".to_owned(),
            why: "the profile has no chat token".to_owned(),
        });
    };
    let attempts = [
        ("auth-none", None),
        ("auth-wrong", Some("no-such-token")),
        ("auth-right", Some(token.as_str())),
    ];
    for (label, token) in attempts {
        stage.label(label);
        stage
            .send(Call::get(chat.rest.clone()).bearer(token))
            .await?;
        let open = Open::at(turnwire_spec::chat_ws::PATH).bearer(token);
        if let Opened::Socket(socket) = stage.open_socket(open).await? {
            socket.close(1000, QUIET).await;
        }
    }
    Ok(())
}

/// How long a socket is idle: for four pings of this period, as far as a scenario may take so long.
fn idle_for(period: Duration, limit: Duration) -> Duration {
    (period * 4 + QUIET).min(limit.saturating_sub(TURN))
}

async fn keepalive(stage: &Stage) -> Result<(), DriveError> {
    stage.label("keepalive");
    let mut socket = stage.chat().await?;
    let other = stage.chat().await?;
    stage.label("ping");
    for _ in 0..3 {
        socket.send(&json!({ "type": "ping" })).await?;
        socket.wait_for_kind("pong", TURN).await;
    }
    stage.label("idle");
    let limit = stage.profile().limits.scenario;
    stage
        .pause(idle_for(stage.scaled(SERVER_PING_EVERY), limit))
        .await;
    drop(other);
    socket.close(1000, QUIET).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_waited_for_as_long_as_the_scenario_may_last() {
        let limit = Duration::from_secs(60);
        let scaled = Duration::from_millis(300);
        assert_eq!(idle_for(scaled, limit), scaled * 4 + QUIET);
        let waits = idle_for(SERVER_PING_EVERY, limit);
        assert!(waits > SERVER_PING_EVERY && waits < limit, "{waits:?}");
    }
}
