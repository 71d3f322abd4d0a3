//! Sessions: made, read, changed, deleted.

use serde_json::json;
use turnwire::{
    drivers::{DriveError, http::Call},
    stage::{CreateSession, Stage},
};

use crate::machine::Story;

pub(crate) const STORIES: &[Story] = &[
    story!(
        "session-lifecycle",
        "a session is made, read, deleted, and is gone",
        ["COV-CMD-002", "COV-CMD-004", "COV-QRY-005"],
        lifecycle
    ),
    story!(
        "session-changed",
        "a session is paused, resumed and ended",
        ["COV-CMD-002", "COV-QRY-005"],
        changed
    ),
    story!(
        "session-with-wishes",
        "a session is made with an id, a world and a language of the client's choice",
        ["COV-CMD-002", "COV-QRY-003"],
        wishes
    ),
    story!(
        "session-plugins-switched",
        "a plugin is switched off and on again",
        ["COV-QRY-017"],
        plugins
    ),
];

async fn lifecycle(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.query(&session, "").await?;
    stage.delete_session(&session).await?;
    stage.query(&session, "").await?;
    Ok(())
}

async fn changed(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    for status in ["paused", "active", "ended"] {
        let call = Call::new("PATCH", session.path("")).bearer(session.owner_token.as_deref());
        stage.send(call.json(&json!({ "status": status }))).await?;
    }
    stage.query(&session, "").await?;
    Ok(())
}

async fn wishes(stage: &Stage) -> Result<(), DriveError> {
    let wish = CreateSession {
        id: Some("the-cellar".to_owned()),
        locale: Some("de".to_owned()),
        ..CreateSession::default()
    };
    stage.create_session(wish.clone()).await?;
    stage.try_create_session(&wish).await?;
    stage.get("/api/sessions").await?;
    Ok(())
}

async fn plugins(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let token = session.owner_token.as_deref();
    let path = session.path("/plugins/story");
    stage.query(&session, "/plugins").await?;
    stage.send(Call::delete(path.clone()).bearer(token)).await?;
    stage.query(&session, "/plugins").await?;
    stage.send(Call::put(path).bearer(token)).await?;
    Ok(())
}
