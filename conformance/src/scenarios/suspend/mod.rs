//! Conversations about what a runtime of the game leaves behind beside the story.
//!
//! - [`waiting`]: runs that wait for the player, and their answers;
//! - [`snapshots`]: snapshots of a session, and forks;
//! - [`shown`]: questions, drawn blocks, characters and operations.
//!
//! All of them tell the fixture plugin `turnwire-cast` what its runtimes do next; see the header of
//! `reference-server/src/fixtures/cast.rs` for what a target's own plugin of that name has to do.

use std::time::Duration;

use serde_json::{Value, json};

use super::Scenario;
use crate::{
    drivers::{
        DriveError,
        http::{Call, Reading, Reply},
    },
    stage::{CAST, Session, Stage},
    transcript::views::stream::StreamFrame,
};

mod shown;
mod snapshots;
mod waiting;

/// The scenarios of this area, list by list.
pub const SCENARIOS: &[&[Scenario]] = &[waiting::SCENARIOS, snapshots::SCENARIOS, shown::SCENARIOS];

/// The capability of a target that has the plugin.
const NEEDS: &str = "fixture-cast";
/// The plugin that keeps what the player said in a namespace of its own.
const NOTES: &str = "turnwire-notes";

/// How long an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that
/// hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);

/// A session with the plugin.
async fn session(stage: &Stage) -> Result<Session, DriveError> {
    stage.session_with(&[CAST]).await
}

/// A request of the session's owner.
fn owned(call: Call, session: &Session) -> Call {
    call.bearer(session.owner_token.as_deref())
}

/// Tells a runtime what its next run does.
pub(super) async fn order(
    stage: &Stage,
    session: &Session,
    runtime: &str,
    does: Value,
) -> Result<(), DriveError> {
    stage.label("order");
    stage.order(session, runtime, does).await?;
    Ok(())
}

/// A turn in which the model just says something.
async fn turn(stage: &Stage, session: &Session, label: &str) -> Result<(), DriveError> {
    stage.label(label);
    stage
        .say_and_reply(session, "The bell rings twice.")
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    Ok(())
}

/// Lets the transaction of the next commit fail.
async fn fail_commit(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    stage.label("plan-commit");
    stage.fixture(session, "fail-commit", json!({})).await?;
    Ok(())
}

/// Waits until the watcher has heard of this event since `seen` frames, or of the end of the turn.
async fn until(stage: &Stage, watcher: &Reading, seen: usize, event: &str) {
    let came = |frames: &[StreamFrame]| {
        let mut since = frames.get(seen..).unwrap_or_default().iter();
        since
            .any(|frame| [event, "execution.completed"].contains(&frame.event_type()))
            .then_some(())
    };
    watcher.wait_until(stage.patience(TURN_WITHIN), came).await;
}

/// Reads a place below the session under this label.
async fn read(
    stage: &Stage,
    session: &Session,
    label: &str,
    place: &str,
) -> Result<Reply, DriveError> {
    stage.label(label);
    stage.query(session, place).await
}
