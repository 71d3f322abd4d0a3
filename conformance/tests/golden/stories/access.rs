//! Who may do what.

use serde_json::json;
use turnwire::{
    drivers::{DriveError, http::Call},
    stage::{Stage, Subscribe},
};

use crate::machine::Story;

pub(crate) const STORIES: &[Story] = &[
    story!(
        "access-owner-required",
        "on a persistent store a session opens with its owner's token only",
        ["COV-SUB-072", "COV-SUB-177"],
        "demo-tier-persistent",
        1.0,
        owner
    ),
    story!(
        "access-foreign-origin",
        "a page of a foreign origin may send nothing",
        ["COV-OVW-003"],
        origin
    ),
    story!(
        "access-too-many-subscriptions",
        "the ninth subscription of a session is refused",
        ["COV-OVW-021", "COV-SUB-080"],
        ninth
    ),
];

async fn owner(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.query(&session.without_token(), "/view").await?;
    stage
        .query(&session.with_token("no-such-token"), "/view")
        .await?;
    stage
        .send(Subscribe::to(&session.without_token()).call())
        .await?;
    stage.query(&session, "").await?;
    Ok(())
}

async fn origin(stage: &Stage) -> Result<(), DriveError> {
    let call = Call::post("/api/sessions")
        .header("origin", "https://elsewhere.example")
        .json(&json!({ "plugins": ["story"] }));
    stage.send(call).await?;
    Ok(())
}

async fn ninth(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let mut open = Vec::new();
    for _ in 0..8 {
        let stream = stage
            .subscribe(&Subscribe::to(&session))
            .await?
            .keep_reading();
        stream
            .wait_for("system.connected", std::time::Duration::from_secs(10))
            .await;
        open.push(stream);
    }
    stage.send(Subscribe::to(&session).call()).await?;
    for stream in open {
        stream.close().await;
    }
    Ok(())
}
