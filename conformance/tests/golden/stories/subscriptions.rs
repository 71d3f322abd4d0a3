//! Subscriptions: connected, live, replayed, reset.

use std::time::Duration;

use serde_json::json;
use turnwire::{
    drivers::{DriveError, http::Reading},
    stage::{Session, Stage, Subscribe, covel::TokenPlace},
};

use crate::machine::Story;

const SOON: Duration = Duration::from_secs(10);

pub(crate) const STORIES: &[Story] = &[
    story!(
        "connect-fresh",
        "the first frame of a subscription to a session without events",
        ["COV-OVW-021", "COV-SUB-004"],
        fresh
    ),
    story!(
        "connect-topics",
        "a subscription to one topic gets its events only, and the cursor of all",
        ["COV-SUB-034"],
        topics
    ),
    story!(
        "connect-token-places",
        "the owner's token in the two headers and in the query",
        ["COV-OVW-021"],
        token_places
    ),
    story!(
        "live-turn",
        "a turn as a subscriber to all topics sees it",
        ["COV-OVW-016", "COV-QRY-037", "COV-SUB-078"],
        live_turn
    ),
    story!(
        "live-plugin-data",
        "plugin data written and removed by another client",
        ["COV-PDATA-001", "COV-SUB-078"],
        live_plugin_data
    ),
    story!(
        "live-job",
        "a background job from queued to done",
        ["COV-JOB-001", "COV-QRY-039"],
        live_job
    ),
    story!(
        "resume-query",
        "events after the cursor in the query are replayed, byte for byte",
        ["COV-SUB-020", "COV-SUB-023", "COV-SUB-025", "COV-SUB-026"],
        resume_query
    ),
    story!(
        "resume-header",
        "events after the cursor in Last-Event-ID are replayed",
        ["COV-SUB-021", "COV-SUB-023", "COV-SUB-026"],
        resume_header
    ),
    story!(
        "resume-newest",
        "the newest cursor replays nothing",
        ["COV-SUB-024", "COV-SUB-029", "COV-SUB-033", "COV-SUB-080"],
        resume_newest
    ),
    story!(
        "resume-unbridgeable",
        "cursors of a foreign epoch, of the old form, and ahead get a reset",
        ["COV-SUB-088", "COV-SUB-109", "COV-SUB-112", "COV-SUB-117"],
        unbridgeable
    ),
    story!(
        "resume-after-restart",
        "a cursor from before a restart gets a reset",
        ["COV-SUB-030", "COV-SUB-081", "COV-SUB-085", "COV-SUB-100"],
        "persistent",
        1.0,
        after_restart
    ),
    story!(
        "heartbeat",
        "a heartbeat on a quiet subscription",
        ["COV-OVW-022", "COV-SUB-018", "COV-SUB-166"],
        "default",
        0.001,
        heartbeat
    ),
];

async fn connected(stage: &Stage, how: &Subscribe) -> Result<Reading, DriveError> {
    let stream = stage.subscribe(how).await?.keep_reading();
    stream.wait_for("system.connected", SOON).await;
    Ok(stream)
}

/// Publishes events and waits until the watcher has them.
async fn publish(
    stage: &Stage,
    session: &Session,
    watcher: &Reading,
    count: usize,
) -> Result<Vec<String>, DriveError> {
    let ids = |watcher: &Reading| -> Vec<String> {
        let frames = watcher.frames();
        frames
            .iter()
            .filter_map(|frame| frame.frame.id().map(str::to_owned))
            .collect()
    };
    let before = ids(watcher).len();
    for _ in 0..count {
        stage.publish_one(session).await?;
    }
    let enough = before + count;
    watcher
        .wait_until(SOON, |frames| {
            (frames.iter().filter(|f| f.frame.id().is_some()).count() >= enough).then_some(())
        })
        .await;
    Ok(ids(watcher))
}

async fn fresh(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    connected(stage, &Subscribe::to(&session))
        .await?
        .close()
        .await;
    Ok(())
}

async fn topics(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let all = connected(stage, &Subscribe::to(&session)).await?;
    publish(stage, &session, &all, 1).await?;
    let jobs = connected(stage, &Subscribe::to(&session).topics(&["job"])).await?;
    publish(stage, &session, &all, 1).await?;
    stage.pause(Duration::from_millis(100)).await;
    jobs.close().await;
    all.close().await;
    Ok(())
}

async fn token_places(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    for place in [
        TokenPlace::Bearer,
        TokenPlace::SessionHeader,
        TokenPlace::Query,
    ] {
        let how = Subscribe::to(&session).token_in(place);
        connected(stage, &how).await?.close().await;
    }
    Ok(())
}

async fn live_turn(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session)).await?;
    stage.model()?.says("look", "The door opens.");
    stage.say(&session, "look").await?.read_to_end(SOON).await;
    watcher.wait_for("execution.completed", SOON).await;
    stage.pause(Duration::from_millis(100)).await;
    watcher.close().await;
    Ok(())
}

async fn live_plugin_data(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session).topics(&["plugin"])).await?;
    let plugin = stage.profile().fixture_plugin.clone();
    stage
        .put_plugin_data(
            &session,
            &plugin,
            "harness",
            "door",
            json!({ "open": true }),
        )
        .await?;
    stage
        .delete_plugin_data(&session, &plugin, "harness", "door")
        .await?;
    watcher.wait_count("plugin-data.changed", 2, SOON).await;
    watcher.close().await;
    Ok(())
}

async fn live_job(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session).topics(&["job"])).await?;
    stage
        .fixture(&session, "queue-job", json!({ "steps": 1, "stepMs": 20 }))
        .await?;
    watcher.wait_count("job-status.updated", 4, SOON).await;
    watcher.close().await;
    stage.query(&session, "/runtime-jobs").await?;
    Ok(())
}

async fn resume_query(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session)).await?;
    let ids = publish(stage, &session, &watcher, 3).await?;
    let Some(first) = ids.first() else {
        return Ok(());
    };
    let again = connected(stage, &Subscribe::to(&session).after(first)).await?;
    again.wait_count("plugin-data.changed", 2, SOON).await;
    again.close().await;
    watcher.close().await;
    Ok(())
}

async fn resume_header(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session)).await?;
    let ids = publish(stage, &session, &watcher, 2).await?;
    watcher.close().await;
    let Some(first) = ids.first() else {
        return Ok(());
    };
    let again = connected(stage, &Subscribe::to(&session).header_after(first)).await?;
    again.wait_count("plugin-data.changed", 1, SOON).await;
    again.close().await;
    Ok(())
}

async fn resume_newest(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session)).await?;
    let ids = publish(stage, &session, &watcher, 1).await?;
    let Some(newest) = ids.last() else {
        return Ok(());
    };
    let again = connected(stage, &Subscribe::to(&session).after(newest)).await?;
    stage.pause(Duration::from_millis(100)).await;
    again.close().await;
    watcher.close().await;
    Ok(())
}

async fn unbridgeable(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session)).await?;
    let ids = publish(stage, &session, &watcher, 2).await?;
    let Some(newest) = ids.last() else {
        return Ok(());
    };
    let ahead = format!("{}999", newest);
    for (label, cursor) in [
        ("foreign-epoch", "never-issued:7"),
        ("digits-only", "3"),
        ("old-format", "evt-17"),
        ("ahead", &ahead),
    ] {
        stage.label(label);
        let stream = stage
            .subscribe(&Subscribe::to(&session).after(cursor))
            .await?
            .keep_reading();
        stream.wait_for("system.connected", SOON).await;
        stream.wait_for("system.reset", SOON).await;
        stream.close().await;
    }
    watcher.close().await;
    Ok(())
}

async fn after_restart(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = connected(stage, &Subscribe::to(&session)).await?;
    let ids = publish(stage, &session, &watcher, 2).await?;
    watcher.close().await;
    stage.restart().await?;
    let Some(newest) = ids.last() else {
        return Ok(());
    };
    let stream = stage
        .subscribe(&Subscribe::to(&session).after(newest))
        .await?
        .keep_reading();
    stream.wait_for("system.connected", SOON).await;
    stream.wait_for("system.reset", SOON).await;
    stream.close().await;
    Ok(())
}

async fn heartbeat(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let mut stream = stage.subscribe(&Subscribe::to(&session)).await?;
    stream.read_until("system.heartbeat", SOON).await;
    stream.close();
    Ok(())
}
