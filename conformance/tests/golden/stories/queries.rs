//! Queries: what a client reads.

use std::time::Duration;

use serde_json::json;
use turnwire::{
    drivers::{DriveError, http::Call},
    stage::{Session, Stage},
};

use super::traced;
use crate::machine::Story;

const SOON: Duration = Duration::from_secs(10);

pub(crate) const STORIES: &[Story] = &[
    story!(
        "query-health",
        "how the server is, and which worlds it has",
        ["COV-QRY-020", "COV-QRY-026"],
        health
    ),
    story!(
        "query-view",
        "the view of a session after a turn",
        ["COV-QRY-006", "COV-SUB-172"],
        view
    ),
    story!(
        "query-messages",
        "all messages, and a page of them",
        ["COV-QRY-012", "COV-QRY-014"],
        messages
    ),
    story!(
        "query-execution",
        "how the newest execution stands, before and after a turn",
        ["COV-QRY-001"],
        execution
    ),
    story!(
        "query-tables",
        "characters, state tables, interface slots, suspensions, approvals of a fresh session",
        ["COV-QRY-016", "COV-QRY-018"],
        tables
    ),
    story!(
        "query-plugin-data",
        "a row of plugin data, and the list of its namespace",
        ["COV-QRY-019"],
        plugin_data
    ),
    story!(
        "query-traces",
        "the trace of a turn, event by event and turn by turn",
        ["COV-QRY-021", "COV-QRY-024"],
        traces
    ),
];

async fn told(stage: &Stage) -> Result<Session, DriveError> {
    let session = stage.session().await?;
    stage.model()?.says("look", "The door opens.");
    stage.say(&session, "look").await?.read_to_end(SOON).await;
    Ok(session)
}

async fn health(stage: &Stage) -> Result<(), DriveError> {
    stage.get("/api/health").await?;
    stage.get("/api/worlds").await?;
    Ok(())
}

async fn view(stage: &Stage) -> Result<(), DriveError> {
    let session = told(stage).await?;
    stage.view(&session).await?;
    Ok(())
}

async fn messages(stage: &Stage) -> Result<(), DriveError> {
    let session = told(stage).await?;
    stage.messages(&session).await?;
    stage.query(&session, "/messages/page?limit=1").await?;
    Ok(())
}

async fn execution(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.execution(&session).await?;
    stage.model()?.says("look", "The door opens.");
    stage.say(&session, "look").await?.read_to_end(SOON).await;
    stage.execution(&session).await?;
    Ok(())
}

async fn tables(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    for rest in [
        "/characters",
        "/state",
        "/ui-slots",
        "/suspensions",
        "/approvals",
        "/runtime-jobs",
    ] {
        stage.query(&session, rest).await?;
    }
    Ok(())
}

async fn plugin_data(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
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
        .query(&session, &format!("/plugin-data/{plugin}/harness"))
        .await?;
    stage
        .query(&session, &format!("/plugin-data/{plugin}/harness/door"))
        .await?;
    Ok(())
}

async fn traces(stage: &Stage) -> Result<(), DriveError> {
    let session = told(stage).await?;
    traced(stage, &session, "execution.completed").await?;
    let token = session.owner_token.as_deref();
    for rest in ["?limit=3", "/turns/page?limit=1"] {
        stage
            .send(Call::get(format!("/api/traces/{}{rest}", session.id)).bearer(token))
            .await?;
    }
    Ok(())
}
