//! Updates of a session, line by line: what the recordings do not show.

use turnwire::{drivers::DriveError, stage::Stage};
use turnwire_mock::{CutHow, Position, Reply};

use crate::machine::Story;

pub(crate) const STORIES: &[Story] = &[
    other!(
        "session-update",
        "turn-retried",
        "the model's stream breaks off, and the step is tried again",
        ["SUP-005", "SUP-010", "SUP-033"],
        0.01,
        retried
    ),
    other!(
        "session-update",
        "turn-active",
        "a second prompt while the first one's turn runs, which is refused after a while",
        ["SUP-007", "SUP-033"],
        0.001,
        active
    ),
];

async fn retried(stage: &Stage) -> Result<(), DriveError> {
    let broken = Reply::text("Once upon a time").cut(Position::Tokens(2), CutHow::Close);
    stage
        .model()?
        .answers_in_turn("tell", [broken, Reply::text("It rains.")]);
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    lines.turn(&session, "tell").await?;
    lines.event("turn_completed").await;
    lines.close().await;
    Ok(())
}

async fn active(stage: &Stage) -> Result<(), DriveError> {
    stage
        .model()?
        .says_and_waits("first", "I begin", " and end.");
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    let first = lines.prompt(&session, "first").await?;
    for _word in ["I", " begin"] {
        lines.event("assistant_delta").await;
    }
    let second = lines.prompt(&session, "second").await?;
    lines.response(&second).await;
    stage.model()?.go_on("first");
    lines.response(&first).await;
    lines.close().await;
    Ok(())
}
