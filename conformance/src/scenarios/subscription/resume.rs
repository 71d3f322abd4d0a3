//! Reconnecting: cursors that can be continued and cursors that cannot.

use std::time::Duration;

use serde_json::json;
use turnwire_spec::covel::limits::REPLAY_EVENTS;

use super::read_replay;
use crate::{
    drivers::{DriveError, http::Reading},
    scenarios::{Act, Isolation, Scenario, watching::watch},
    stage::{Session, Stage, Subscribe},
    transcript::views::{covel::cursor, stream::StreamFrame},
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "resume",
        about: "reconnects with valid cursors: in query, header and both, the newest, that of system.connected, every id",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(resume(stage))),
    },
    Scenario {
        name: "resume-while-producing",
        about: "reconnects with an old cursor again and again while events are produced without pause",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(resume_while_producing(stage))),
    },
    Scenario {
        name: "resume-unbridgeable",
        about: "reconnects with cursors of a foreign epoch, of the old format, and ahead of the newest event",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(resume_unbridgeable(stage))),
    },
    Scenario {
        name: "resume-overrun",
        about: "produces more events than the buffer holds and reconnects before, at and inside its edges",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(resume_overrun(stage))),
    },
    Scenario {
        name: "resume-after-restart",
        about: "restarts the process and reconnects with cursors from before, without and with new events",
        needs: &["restart"],
        variant: Some("persistent"),
        isolation: Isolation::Own,
        run: Act::Server(|stage| Box::pin(resume_after_restart(stage))),
    },
    Scenario {
        name: "two-sessions",
        about: "fifty events in one session between two events of another",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(two_sessions(stage))),
    },
];

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

/// Publishes `count` events and waits until the watcher has them.
async fn produce(
    stage: &Stage,
    session: &Session,
    watcher: &Reading,
    count: usize,
) -> Result<(), DriveError> {
    let before = ids(watcher).len();
    for _ in 0..count {
        stage.publish_one(session).await?;
    }
    let enough = |frames: &[StreamFrame]| {
        (frames.iter().filter(|f| f.frame.id().is_some()).count() >= before + count).then_some(())
    };
    watcher.wait_until(stage.patience(SOON), enough).await;
    Ok(())
}

/// The ids that the watcher has seen.
fn ids(watcher: &Reading) -> Vec<String> {
    watcher
        .frames()
        .iter()
        .filter_map(|frame| frame.frame.id().map(str::to_owned))
        .collect()
}

/// Connects, reads until the connection has caught up or was reset, watches a moment longer, and closes.
async fn visit(
    stage: &Stage,
    label: &str,
    how: &Subscribe,
) -> Result<Vec<StreamFrame>, DriveError> {
    stage.label(label);
    let mut stream = stage.subscribe(how).await?;
    let asked = how.query_cursor.as_deref().or(how.header_cursor.as_deref());
    let frames = read_replay(stage, &mut stream, asked).await;
    stream.close();
    Ok(frames)
}

/// The `cursor` member of the first frame of this type.
fn told_cursor(frames: &[StreamFrame], event_type: &str) -> Option<String> {
    let frame = frames
        .iter()
        .find(|frame| frame.event_type() == event_type)?;
    frame.member("cursor")?.as_str().map(str::to_owned)
}

async fn resume(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let fresh = visit(stage, "before-events", &Subscribe::to(&session)).await?;
    let watcher = watch(stage, "watcher", &Subscribe::to(&session)).await?;
    produce(stage, &session, &watcher, 10).await?;
    let ids = ids(&watcher);
    let (Some(old), Some(newest)) = (ids.get(3), ids.last()) else {
        return Ok(());
    };
    let to = || Subscribe::to(&session);

    visit(stage, "cursor-in-query", &to().after(old)).await?;
    visit(stage, "cursor-in-header", &to().header_after(old)).await?;
    visit(
        stage,
        "older-in-query-newest-in-header",
        &to().after(old).header_after(newest),
    )
    .await?;
    visit(
        stage,
        "newest-in-query-older-in-header",
        &to().after(newest).header_after(old),
    )
    .await?;
    visit(stage, "newest", &to().after(newest)).await?;
    visit(stage, "no-cursor", &to()).await?;
    if let Some(cursor) = told_cursor(&fresh, "system.connected") {
        visit(stage, "cursor-of-connected", &to().after(&cursor)).await?;
    }
    for id in &ids {
        visit(stage, "each-id", &to().after(id)).await?;
    }
    watcher.close().await;

    // Nobody is connected now: a released state is not cleared at once.
    stage.label("produce-unwatched");
    stage.publish_one(&session).await?;
    stage.publish_one(&session).await?;
    visit(stage, "after-release", &to().after(newest)).await?;
    Ok(())
}

async fn resume_while_producing(stage: &Stage) -> Result<(), DriveError> {
    const EVENTS: usize = 120;
    let session = stage.session().await?;
    let watcher = watch(stage, "watcher", &Subscribe::to(&session)).await?;
    produce(stage, &session, &watcher, 20).await?;
    let Some(old) = ids(&watcher).first().cloned() else {
        return Ok(());
    };
    let producing = async {
        for _ in 0..EVENTS {
            stage.publish_one(&session).await?;
        }
        Ok::<(), DriveError>(())
    };
    let reconnecting = async {
        let mut streams = Vec::new();
        for _ in 0..6 {
            stage.label("reconnect-while-producing");
            let stream = stage
                .subscribe(&Subscribe::to(&session).after(&old))
                .await?
                .keep_reading();
            stream
                .wait_for("plugin-data.changed", stage.patience(SOON))
                .await;
            streams.push(stream);
        }
        Ok::<_, DriveError>(streams)
    };
    let (produced, streams) = tokio::join!(producing, reconnecting);
    produced?;
    let streams = streams?;
    watcher
        .wait_count("plugin-data.changed", EVENTS + 20, stage.patience(SOON))
        .await;
    for stream in &streams {
        stream
            .wait_count("plugin-data.changed", EVENTS + 19, stage.patience(SOON))
            .await;
    }
    for stream in streams {
        stream.close().await;
    }
    watcher.close().await;
    Ok(())
}

async fn resume_unbridgeable(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watcher", &Subscribe::to(&session)).await?;
    produce(stage, &session, &watcher, 5).await?;
    let Some(newest) = ids(&watcher).last().and_then(|id| cursor(id)) else {
        return Ok(());
    };
    let ahead = format!("{}:{}", newest.epoch, newest.seq + 1000);
    let mut told = None;
    for (label, text) in [
        ("foreign-epoch", "never-issued:7"),
        ("foreign-epoch-high-seq", "never-issued:99999"),
        ("foreign-epoch-low-seq", "never-issued:1"),
        ("digits-only", "3"),
        ("digits-only", "17"),
        ("old-format", "evt-17"),
        ("ahead", ahead.as_str()),
    ] {
        let frames = visit(stage, label, &Subscribe::to(&session).after(text)).await?;
        told = told_cursor(&frames, "system.reset").or(told);
    }
    if let Some(told) = told {
        produce(stage, &session, &watcher, 2).await?;
        visit(
            stage,
            "continue-after-reset",
            &Subscribe::to(&session).after(&told),
        )
        .await?;
    }
    watcher.close().await;
    Ok(())
}

/// Uses the fixture's burst, since the buffer's size is the server's own.
async fn resume_overrun(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watcher", &Subscribe::to(&session)).await?;
    produce(stage, &session, &watcher, 1).await?;
    let Some(first) = ids(&watcher).first().cloned() else {
        return Ok(());
    };
    stage.label("overrun");
    // In portions that a connection's queue can hold while the watcher reads.
    let mut left = REPLAY_EVENTS + 50;
    while left > 0 {
        let count = left.min(100);
        let before = ids(&watcher).len();
        stage
            .fixture(&session, "burst", json!({ "count": count }))
            .await?;
        let enough = |frames: &[StreamFrame]| {
            (frames.iter().filter(|f| f.frame.id().is_some()).count() >= before + count)
                .then_some(())
        };
        watcher.wait_until(stage.patience(SOON), enough).await;
        left -= count;
    }
    let frames = visit(
        stage,
        "before-buffer",
        &Subscribe::to(&session).after(&first),
    )
    .await?;
    let reset = frames
        .iter()
        .find(|frame| frame.event_type() == "system.reset");
    let seq = |name: &str| reset.and_then(|frame| frame.member(name)?.as_u64());
    let epoch = cursor(&first).map(|cursor| cursor.epoch);
    if let (Some(oldest), Some(latest), Some(epoch)) = (seq("oldestSeq"), seq("latestSeq"), epoch) {
        for (label, seq) in [
            ("two-before-buffer", oldest.saturating_sub(2)),
            ("oldest-in-buffer", oldest),
            (
                "middle-of-buffer",
                oldest + (latest.saturating_sub(oldest)) / 2,
            ),
            ("latest-in-buffer", latest),
        ] {
            visit(
                stage,
                label,
                &Subscribe::to(&session).after(&format!("{epoch}:{seq}")),
            )
            .await?;
        }
    }
    watcher.close().await;
    Ok(())
}

async fn resume_after_restart(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let before = watch(stage, "watcher", &Subscribe::to(&session)).await?;
    produce(stage, &session, &before, 5).await?;
    let ids = ids(&before);
    before.close().await;
    let (Some(early), Some(newest)) = (ids.get(1), ids.last()) else {
        return Ok(());
    };

    stage.label("restart");
    stage.restart().await?;
    visit(
        stage,
        "after-restart-no-events",
        &Subscribe::to(&session).after(newest),
    )
    .await?;
    let after = watch(stage, "watcher", &Subscribe::to(&session)).await?;
    produce(stage, &session, &after, 5).await?;
    visit(
        stage,
        "after-restart-low-seq",
        &Subscribe::to(&session).after(early),
    )
    .await?;
    visit(
        stage,
        "after-restart-newest",
        &Subscribe::to(&session).after(newest),
    )
    .await?;
    stage.label("view-after-restart");
    stage.view(&session).await?;
    after.close().await;
    Ok(())
}

async fn two_sessions(stage: &Stage) -> Result<(), DriveError> {
    let (one, other) = (stage.session().await?, stage.session().await?);
    let watcher = watch(stage, "watcher", &Subscribe::to(&one)).await?;
    produce(stage, &one, &watcher, 1).await?;
    stage.label("fifty-elsewhere");
    for _ in 0..50 {
        stage.publish_one(&other).await?;
    }
    produce(stage, &one, &watcher, 1).await?;
    watcher.close().await;
    Ok(())
}
