//! Steps that scenarios of `covel-sse` share: a subscriber that stays, so that what others cause can be compared, and
//! reading what a session holds.

use std::time::Duration;

use crate::{
    drivers::{DriveError, http::Reading},
    stage::{Session, Stage, Subscribe},
};

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

/// A subscriber under this label that is connected, and reads on.
pub(super) async fn watch(
    stage: &Stage,
    label: &str,
    how: &Subscribe,
) -> Result<Reading, DriveError> {
    stage.label(label);
    let watcher = stage.subscribe(how).await?.keep_reading();
    watcher
        .wait_for("system.connected", stage.patience(SOON))
        .await;
    Ok(watcher)
}

/// Lets the watcher see all that was published before: one event more, and it has come.
pub(super) async fn settle(
    stage: &Stage,
    session: &Session,
    watcher: &Reading,
) -> Result<(), DriveError> {
    stage.label("settled");
    let seen = watcher.mark();
    stage.publish_one(session).await?;
    watcher
        .wait_after(seen, "plugin-data.changed", stage.patience(SOON))
        .await;
    Ok(())
}

/// Reads what a session holds: its record, its view, its messages.
pub(super) async fn read_session(
    stage: &Stage,
    session: &Session,
    label: &str,
) -> Result<(), DriveError> {
    stage.label(label);
    stage.query(session, "").await?;
    stage.view(session).await?;
    stage.messages(session).await?;
    Ok(())
}
