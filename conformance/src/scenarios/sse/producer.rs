//! Streams of a server, read as they are: for what binds producers.

use std::time::Duration;

use crate::{
    drivers::DriveError,
    scenarios::{Act, Isolation, Scenario},
    stage::{Stage, Subscribe},
};

pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "read-a-stream",
    about: "a turn on the action stream, read to its end, and a subscription beside it",
    needs: &[],
    variant: None,
    isolation: Isolation::Shared,
    run: Act::Server(|stage| Box::pin(read_a_stream(stage))),
}];

/// How long a turn may take.
const SOON: Duration = Duration::from_secs(5);

async fn read_a_stream(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("streams");
    let watcher = stage
        .subscribe(&Subscribe::to(&session))
        .await?
        .keep_reading();
    let token = stage.token();
    stage
        .model()?
        .says_in_pieces(&token, &["Rain ", "falls."], Duration::from_millis(5));
    stage
        .say(&session, &token)
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    watcher
        .wait_for("system.connected", stage.patience(SOON))
        .await;
    watcher.close().await;
    Ok(())
}
