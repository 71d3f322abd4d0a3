//! The model relay's stream, `GET /api/model-relay/stream`.

use std::time::Duration;

use serde_json::json;

use crate::{
    drivers::{DriveError, http::Call},
    scenarios::{Act, Isolation, Scenario},
    stage::{Stage, Subscribe},
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "relay-idle",
        about: "holds an idle relay stream over three keepalives",
        needs: &["relay"],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(relay_idle(stage))),
    },
    Scenario {
        name: "relay-call",
        about: "a relayed model call and its cancellation, with both session streams open",
        needs: &["relay"],
        variant: None,
        isolation: Isolation::Own,
        run: Act::Server(|stage| Box::pin(relay_call(stage))),
    },
];

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

fn open_relay(channel: &str) -> Call {
    Call::get("/api/model-relay/stream")
        .header("x-model-relay", channel)
        .header("accept", "text/event-stream")
}

/// 50 s, before scaling.
async fn relay_idle(stage: &Stage) -> Result<(), DriveError> {
    stage.label("relay-idle");
    let mut relay = stage.open(open_relay(&stage.token())).await?;
    relay
        .read_for(stage.scaled(Duration::from_secs(50)) + Duration::from_millis(100))
        .await;
    relay.close();
    Ok(())
}

async fn relay_call(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("subscribe");
    let watcher = stage
        .subscribe(&Subscribe::to(&session))
        .await?
        .keep_reading();
    stage.label("relay");
    let channel = stage.token();
    let relay = stage.open(open_relay(&channel)).await?.keep_reading();
    relay.wait_for("ready", stage.patience(SOON)).await;
    stage.label("relayed-call");
    stage
        .fixture(
            &session,
            "relay-call",
            json!({ "cancel": true, "channel": channel }),
        )
        .await?;
    relay.wait_for("cancel", stage.patience(SOON)).await;
    stage.label("turn");
    stage
        .say_and_reply(&session, "Relayed.")
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    stage.pause(Duration::from_millis(50)).await;
    relay.close().await;
    watcher.close().await;
    Ok(())
}
