//! The way to the socket, and what keeps it open.

use std::time::Duration;

use serde_json::json;
use turnwire_spec::chat_ws::limits::SERVER_PING_EVERY;

use super::{QUIET, TURN, over, scenario};
use crate::{
    drivers::{
        DriveError,
        http::Call,
        websocket::{Open, Opened, Seen},
    },
    scenarios::{Act, Isolation, Scenario},
    stage::Stage,
    transcript::WsFrame,
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
        "pings on a socket while another is open",
        &[],
        |stage| Box::pin(keepalive(stage)),
    ),
    scenario(
        "chat-pings",
        "keeps a socket open and idle until a protocol ping comes",
        &[],
        |stage| Box::pin(pings(stage)),
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

/// Pings on a socket while another is open.
async fn keepalive(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    let other = stage.chat().await?;
    stage.label("ping");
    for _ in 0..3 {
        socket.send(&json!({ "type": "ping" })).await?;
        socket.wait_for_kind("pong", TURN).await;
    }
    stage.label("after");
    stage.pause(QUIET).await;
    drop(other);
    socket.close(1000, QUIET).await;
    Ok(())
}

/// The protocol states no period for the pings of a server: that none came shows nothing unless the profile tells the
/// period.
async fn pings(stage: &Stage) -> Result<(), DriveError> {
    let declared = stage.profile().chat.ping_ms.map(Duration::from_millis);
    let period = stage.scaled(declared.unwrap_or(SERVER_PING_EVERY));
    let limit = stage.profile().limits.scenario;
    let idle = idle_for(period, limit);
    if declared.is_some() && idle < period + QUIET {
        return Err(unseen(format!(
            "they come every {period:?}, and limits.scenario is {limit:?}"
        )));
    }
    stage.label("keepalive");
    let mut socket = stage.chat().await?;
    let is_ping = |seen: &Seen| matches!(seen.frame, WsFrame::Ping(_));
    let first = socket.wait_for(idle, is_ping).await;
    if first.is_none() && declared.is_none() && !socket.has_ended() {
        return Err(unseen(format!(
            "none came within {idle:?}, and the profile does not tell their period; see chat.ping_ms"
        )));
    }
    socket.close(1000, QUIET).await;
    Ok(())
}

fn unseen(why: String) -> DriveError {
    DriveError::NotPossible {
        what: "to see a protocol ping".to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        drivers::target::reference::ReferenceTarget,
        profile::Profile,
        run::{RunPlan, run},
        suites,
        verdict::Verdict,
    };

    /// What becomes of CWS-006 at a server that pings every 30 s, when a scenario may idle for half a second.
    async fn judged(ping_ms: Option<u64>) -> (Verdict, Vec<String>) {
        let suite = suites::find("chat-ws").unwrap();
        let mut profile = Profile {
            time_scale: 1.0,
            ..Profile::reference()
        };
        profile.chat.ping_ms = ping_ms;
        profile.limits.scenario = TURN + QUIET;
        let launch = Arc::new(ReferenceTarget {
            lines: false,
            time_scale: 1.0,
        });
        let plan = RunPlan {
            requirements: suite.select(&["CWS-006".to_owned()], None).unwrap(),
            scenarios: Some(vec![suite.scenario("chat-pings").unwrap()]),
            ..RunPlan::new(suite, profile, launch)
        };
        let report = run(plan).await.unwrap();
        let why = report.skipped.iter().map(|(_, why)| why.clone());
        (report.verdict("CWS-006").unwrap().clone(), why.collect())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_whose_pings_are_far_apart_is_not_accused() {
        for (ping_ms, why) in [(None, "chat.ping_ms"), (Some(30_000), "limits.scenario")] {
            let (verdict, left_out) = judged(ping_ms).await;
            assert!(
                matches!(verdict, Verdict::NotExercised { .. }),
                "{verdict:?}"
            );
            assert!(left_out[0].contains(why), "{left_out:?}");
        }
    }

    #[test]
    fn pings_are_waited_for_as_long_as_the_scenario_may_last() {
        let limit = Duration::from_secs(60);
        let scaled = Duration::from_millis(300);
        assert_eq!(idle_for(scaled, limit), scaled * 4 + QUIET);
        let waits = idle_for(SERVER_PING_EVERY, limit);
        assert!(waits > SERVER_PING_EVERY && waits < limit, "{waits:?}");
    }
}
