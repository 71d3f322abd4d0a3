//! Replay states under pressure: eviction, pins, and the quota of connections.

use std::time::Duration;

use turnwire_spec::covel::limits::{SUBSCRIPTIONS_PER_SESSION, TRACKED_SESSIONS};

use super::{QUIET, read_replay};
use crate::{
    drivers::{DriveError, http::Reading},
    scenarios::{Act, Isolation, Scenario, watching::watch},
    stage::{Session, Stage, Subscribe},
    transcript::views::stream::StreamFrame,
};

/// A scenario with an instance of its own.
macro_rules! own {
    ($name:literal, $about:literal, $run:ident) => {
        Scenario {
            name: $name,
            about: $about,
            needs: &[],
            variant: None,
            isolation: Isolation::Own,
            run: Act::Server(|stage| Box::pin($run(stage))),
        }
    };
}

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    own!(
        "capacity-released",
        "lets a session go, touches 300 others, and reconnects with its old cursor",
        capacity_released
    ),
    own!(
        "capacity-pinned",
        "keeps one of two subscriptions of a session open while 300 others are touched",
        capacity_pinned
    ),
    own!(
        "capacity-all-pinned",
        "keeps a subscription open on each of 300 sessions",
        capacity_all_pinned
    ),
    own!(
        "capacity-least-recent",
        "fills the target, uses the first session again, adds one more",
        capacity_least_recent
    ),
    own!(
        "quota",
        "opens eight subscriptions of one session and a ninth",
        quota
    ),
];

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

/// Sessions touched to put the target under pressure.
const MANY: usize = TRACKED_SESSIONS + 44;

/// What each of so many sessions may take beyond the limit of the scenario, which speaks of a few.
const EACH: Duration = Duration::from_millis(250);

async fn visit(stage: &Stage, label: &str, how: &Subscribe) -> Result<(), DriveError> {
    stage.label(label);
    let mut stream = stage.subscribe(how).await?;
    read_replay(stage, &mut stream, how.query_cursor.as_deref()).await;
    stream.close();
    Ok(())
}

/// A new session with one event.
async fn touch(stage: &Stage) -> Result<Session, DriveError> {
    stage.allowance().give(EACH);
    let session = stage.session().await?;
    stage.publish_one(&session).await?;
    Ok(session)
}

/// The id of the first event that is seen, waiting for it.
async fn first_id(stage: &Stage, watcher: &Reading) -> Option<String> {
    let find = |frames: &[StreamFrame]| {
        frames
            .iter()
            .find_map(|frame| frame.frame.id().map(str::to_owned))
    };
    watcher.wait_until(stage.patience(SOON), find).await
}

/// Two events, watched; gives the session and the id of the first.
async fn two_events(stage: &Stage) -> Result<(Session, Option<String>), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "before", &Subscribe::to(&session)).await?;
    stage.publish_one(&session).await?;
    stage.publish_one(&session).await?;
    watcher
        .wait_count("plugin-data.changed", 2, stage.patience(SOON))
        .await;
    let id = first_id(stage, &watcher).await;
    watcher.close().await;
    Ok((session, id))
}

async fn capacity_released(stage: &Stage) -> Result<(), DriveError> {
    let (session, id) = two_events(stage).await?;
    let Some(id) = id else { return Ok(()) };
    stage.label("pressure");
    for _ in 0..MANY {
        touch(stage).await?;
    }
    visit(stage, "after-pressure", &Subscribe::to(&session).after(&id)).await
}

async fn capacity_pinned(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let stays = watch(stage, "stays", &Subscribe::to(&session)).await?;
    let leaves = watch(stage, "leaves", &Subscribe::to(&session)).await?;
    stage.publish_one(&session).await?;
    stage.publish_one(&session).await?;
    let id = first_id(stage, &stays).await;
    leaves.close().await;
    stage.label("pressure");
    for _ in 0..MANY {
        touch(stage).await?;
    }
    if let Some(id) = id {
        visit(stage, "second-client", &Subscribe::to(&session).after(&id)).await?;
    }
    stage.label("event-after-pressure");
    stage.publish_one(&session).await?;
    stays
        .wait_count("plugin-data.changed", 3, stage.patience(SOON))
        .await;
    stays.close().await;
    Ok(())
}

async fn capacity_all_pinned(stage: &Stage) -> Result<(), DriveError> {
    let mut open = Vec::new();
    for _ in 0..MANY {
        stage.allowance().give(EACH);
        let session = stage.session().await?;
        stage.label("pinned");
        let stream = stage
            .subscribe(&Subscribe::to(&session))
            .await?
            .keep_reading();
        open.push((session, stream));
    }
    stage.label("event-in-each");
    for (session, stream) in &open {
        stream
            .wait_for("system.connected", stage.patience(SOON))
            .await;
        stage.publish_one(session).await?;
    }
    for (_, stream) in &open {
        stream
            .wait_for("plugin-data.changed", stage.patience(SOON))
            .await;
    }
    if let Some((session, stream)) = open.last() {
        let connected = stream
            .wait_for("system.connected", stage.patience(SOON))
            .await;
        if let Some(cursor) = connected
            .as_ref()
            .and_then(|frame| frame.member("cursor")?.as_str())
        {
            visit(
                stage,
                "cursor-of-the-last",
                &Subscribe::to(session).after(cursor),
            )
            .await?;
        }
    }
    for (_, stream) in open {
        stream.close().await;
    }
    Ok(())
}

async fn capacity_least_recent(stage: &Stage) -> Result<(), DriveError> {
    let mut sessions = Vec::new();
    for _ in 0..2 {
        sessions.push(two_events(stage).await?);
    }
    stage.label("fill");
    for _ in 2..TRACKED_SESSIONS {
        touch(stage).await?;
    }
    let [(first, first_id), (second, second_id)] = &sessions[..] else {
        return Ok(());
    };
    stage.label("use-first-again");
    stage.publish_one(first).await?;
    stage.label("one-more");
    touch(stage).await?;
    if let (Some(first_id), Some(second_id)) = (first_id, second_id) {
        visit(
            stage,
            "recently-used",
            &Subscribe::to(first).after(first_id),
        )
        .await?;
        visit(
            stage,
            "least-recently-used",
            &Subscribe::to(second).after(second_id),
        )
        .await?;
    }
    Ok(())
}

async fn quota(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let mut open = Vec::new();
    for _ in 0..SUBSCRIPTIONS_PER_SESSION {
        open.push(watch(stage, "within-quota", &Subscribe::to(&session)).await?);
    }
    stage.label("beyond-quota");
    let mut ninth = stage
        .subscribe(&Subscribe::to(&session).wrong_on_purpose("a ninth connection"))
        .await?;
    ninth.read_for(QUIET).await;
    ninth.close();
    for stream in open {
        stream.close().await;
    }
    Ok(())
}
