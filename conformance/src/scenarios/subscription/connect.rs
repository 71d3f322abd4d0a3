//! Opening a subscription, and what an idle or busy one carries.

use std::time::Duration;

use serde_json::json;
use turnwire_spec::covel::limits::HEARTBEAT_EVERY;

use crate::{
    drivers::DriveError,
    scenarios::{Act, Isolation, Scenario, watching::watch},
    stage::{Stage, Subscribe},
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "connect-fresh",
        about: "subscribes to a session without events, then to one that has some, with and without a cursor",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(connect_fresh(stage))),
    },
    Scenario {
        name: "heartbeat-idle",
        about: "holds a quiet subscription over three heartbeats",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(heartbeat_idle(stage))),
    },
    Scenario {
        name: "heartbeat-busy",
        about: "holds a subscription over three heartbeats while an event comes every five seconds",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(heartbeat_busy(stage))),
    },
    Scenario {
        name: "view-while-writing",
        about: "reads views while turns write plugin data, then joins a subscription to the view",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(view_while_writing(stage))),
    },
];

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

async fn connect_fresh(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("subscribe-before-events");
    let mut first = stage.subscribe(&Subscribe::to(&session)).await?;
    let connected = first
        .read_until("system.connected", stage.patience(SOON))
        .await;
    stage.label("events");
    stage.publish_one(&session).await?;
    first
        .read_until("plugin-data.changed", stage.patience(SOON))
        .await;
    stage.publish_one(&session).await?;
    first
        .read_until("plugin-data.changed", stage.patience(SOON))
        .await;

    stage.label("subscribe-after-events");
    let mut second = stage.subscribe(&Subscribe::to(&session)).await?;
    second
        .read_until("system.connected", stage.patience(SOON))
        .await;
    stage.label("subscribe-other-topic");
    let mut other = stage
        .subscribe(&Subscribe::to(&session).topics(&["game"]))
        .await?;
    other
        .read_until("system.connected", stage.patience(SOON))
        .await;
    if let Some(cursor) = connected
        .as_ref()
        .and_then(|frame| frame.member("cursor")?.as_str())
    {
        stage.label("subscribe-with-cursor");
        let mut third = stage
            .subscribe(&Subscribe::to(&session).after(cursor))
            .await?;
        third.read_for(stage.patience(Duration::from_secs(2))).await;
        third.close();
    }
    second.read_for(Duration::from_millis(50)).await;
    first.close();
    second.close();
    other.close();
    Ok(())
}

/// Turns of `view-while-writing`.
const TURNS: usize = 4;

/// 95 s, before scaling.
async fn heartbeat_idle(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("idle");
    let mut stream = stage.subscribe(&Subscribe::to(&session)).await?;
    stream
        .read_for(
            stage.scaled(HEARTBEAT_EVERY * 3 + HEARTBEAT_EVERY / 6) + Duration::from_millis(100),
        )
        .await;
    stream.close();
    Ok(())
}

/// 100 s with an event every five seconds, before scaling.
async fn heartbeat_busy(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("busy");
    let stream = stage
        .subscribe(&Subscribe::to(&session).topics(&["plugin"]))
        .await?
        .keep_reading();
    stream
        .wait_for("system.connected", stage.patience(SOON))
        .await;
    for _ in 0..20 {
        stage.publish_one(&session).await?;
        stage.pause(stage.scaled(Duration::from_secs(5))).await;
    }
    stream.close().await;
    Ok(())
}

/// Turns that write plugin data, and views, side by side; a subscriber sees every write.
async fn view_while_writing(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    stage.label("write-and-view");
    let write = async {
        for _ in 0..TURNS {
            let token = stage.token();
            let call = json!({ "namespace": "harness", "key": token, "value": 1 });
            stage
                .model()?
                .calls_then_says(&token, &[("plugin_data_set", call)], "Noted.");
            stage
                .say(&session, &token)
                .await?
                .read_to_end(stage.patience(SOON))
                .await;
        }
        Ok::<(), DriveError>(())
    };
    let read = async {
        for _ in 0..5 * TURNS {
            stage.view(&session).await?;
            stage.pause(Duration::from_millis(3)).await;
        }
        Ok::<(), DriveError>(())
    };
    let (written, viewed) = tokio::join!(write, read);
    written?;
    viewed?;
    stage.label("quiet");
    watcher
        .wait_count("plugin-data.changed", TURNS, stage.patience(SOON))
        .await;
    stage.pause(Duration::from_millis(30)).await;
    let view = stage.view(&session).await?;

    if let Some(cursor) = view.string("/eventCursor") {
        stage.label("join-at-once");
        let mut joined = stage
            .subscribe(&Subscribe::to(&session).after(&cursor))
            .await?;
        joined.read_for(Duration::from_millis(100)).await;
        joined.close();
        stage.label("missed");
        stage.publish_one(&session).await?;
        stage.publish_one(&session).await?;
        watcher
            .wait_count("plugin-data.changed", TURNS + 2, stage.patience(SOON))
            .await;
        stage.label("join-later");
        let mut joined = stage
            .subscribe(&Subscribe::to(&session).after(&cursor))
            .await?;
        joined
            .read_until("plugin-data.changed", stage.patience(SOON))
            .await;
        joined.read_for(Duration::from_millis(100)).await;
        joined.close();
    }
    watcher.close().await;
    Ok(())
}
