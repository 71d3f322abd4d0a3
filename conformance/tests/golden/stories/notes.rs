//! A runtime that the turn can do without, after the story: how it is skipped, and how its writes are refused.

use std::time::Duration;

use turnwire::{
    drivers::DriveError,
    stage::{CreateSession, Session, Stage, Subscribe},
};

use crate::machine::Story;

const SOON: Duration = Duration::from_secs(10);

pub(crate) const STORIES: &[Story] = &[
    story!(
        "action-write-refused",
        "a hook refuses what a runtime wants to write: its writes are dropped, and the turn is committed",
        [
            "COV-FWD-050",
            "COV-SUSP-092",
            "COV-SUSP-093",
            "COV-TRACE-076"
        ],
        refused
    ),
    story!(
        "action-runtime-skipped",
        "the model fails, and the runtime after it is skipped",
        ["COV-FWD-028", "COV-FWD-029", "COV-FWD-031"],
        skipped
    ),
    story!(
        "live-runtime-function",
        "a subscriber hears of the handler of a function runtime, which the action's stream does not tell",
        ["COV-FWD-075", "COV-FWD-076"],
        function
    ),
    story!(
        "live-write-refused",
        "a subscriber hears of a write that a hook refuses",
        ["COV-SUSP-092", "COV-TRACE-076"],
        live_refused
    ),
    story!(
        "live-runtime-skipped",
        "a subscriber hears of a runtime that is skipped",
        ["COV-FWD-029", "COV-FWD-031"],
        live_skipped
    ),
];

/// A session with the runtime that the story can do without.
async fn session(stage: &Stage) -> Result<Session, DriveError> {
    let plugins = ["story", "turnwire-notes"].map(str::to_owned);
    let wish = CreateSession {
        plugins: Some(plugins.to_vec()),
        ..CreateSession::default()
    };
    stage.create_session(wish).await
}

async fn refused(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    stage.model()?.says("secret", "I keep it to myself.");
    let text = "a secret";
    stage.say(&session, text).await?.read_to_end(SOON).await;
    Ok(())
}

async fn skipped(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    stage.model()?.fails("trouble", 400);
    let text = "trouble";
    stage.say(&session, text).await?.read_to_end(SOON).await;
    Ok(())
}

async fn function(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    stage.model()?.says("look", "The door opens.");
    watched(stage, &session, &["trace"], "look", "function.completed").await
}

async fn live_refused(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    stage.model()?.says("secret", "I keep it to myself.");
    let topics = ["runtime", "plugin", "hooks"];
    watched(stage, &session, &topics, "a secret", "execution.completed").await
}

async fn live_skipped(stage: &Stage) -> Result<(), DriveError> {
    let session = session(stage).await?;
    stage.model()?.fails("trouble", 400);
    watched(
        stage,
        &session,
        &["runtime"],
        "trouble",
        "execution.completed",
    )
    .await
}

/// Plays a turn to its end, while a subscriber to these topics listens until it was told this.
async fn watched(
    stage: &Stage,
    session: &Session,
    topics: &[&str],
    text: &str,
    last: &str,
) -> Result<(), DriveError> {
    let watcher = stage
        .subscribe(&Subscribe::to(session).topics(topics))
        .await?
        .keep_reading();
    watcher.wait_for("system.connected", SOON).await;
    stage.say(session, text).await?.read_to_end(SOON).await;
    watcher.wait_for(last, SOON).await;
    watcher.close().await;
    Ok(())
}
