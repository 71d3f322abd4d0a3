//! Actions of the player, on their own stream.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire::{
    drivers::{DriveError, http::Call},
    stage::Stage,
};
use turnwire_mock::Reply;

use super::until;
use crate::machine::Story;

const SOON: Duration = Duration::from_secs(10);

pub(crate) const STORIES: &[Story] = &[
    story!(
        "action-turn",
        "the player says something, and the model answers",
        ["COV-CMD-015", "COV-EVT-009", "COV-OVW-015", "COV-QRY-034"],
        turn
    ),
    story!(
        "action-opening",
        "the opening turn of a session",
        ["COV-CMD-016", "COV-OVW-007", "COV-OVW-015"],
        opening
    ),
    story!(
        "action-tool-call",
        "the model calls a tool that writes plugin data, then answers",
        ["COV-FWD-035", "COV-FWD-036", "COV-FWD-061", "COV-OVW-015"],
        tool_call
    ),
    story!(
        "action-tool-works",
        "a tool takes its time, and gives a result",
        ["COV-FWD-036", "COV-TRACE-016"],
        tool_works
    ),
    story!(
        "action-tool-fails",
        "a tool fails, and the model goes on without it",
        ["COV-FWD-037"],
        tool_fails
    ),
    story!(
        "action-unknown-tool",
        "the model calls a tool that is not there",
        ["COV-FWD-037"],
        unknown_tool
    ),
    story!(
        "action-background-task",
        "a tool starts a job that outlives the turn",
        ["COV-FWD-070", "COV-JOB-001"],
        background_task
    ),
    story!(
        "action-model-fails",
        "the model provider answers 400, and the turn fails",
        ["COV-CTL-058", "COV-OVW-019"],
        model_fails
    ),
    story!(
        "action-model-breaks-off",
        "the model's stream breaks off in the middle",
        ["COV-CTL-058", "COV-EVT-010"],
        model_breaks_off
    ),
    story!(
        "action-aborted",
        "the player aborts a turn while the model speaks",
        ["COV-CTL-020", "COV-CTL-021", "COV-CTL-036"],
        aborted
    ),
    story!(
        "action-steered",
        "the player interjects while the model speaks",
        ["COV-CTL-002", "COV-CTL-003", "COV-CTL-007"],
        steered
    ),
    story!(
        "action-commit-fails",
        "the turn cannot be committed",
        ["COV-HOST-023"],
        commit_fails
    ),
    story!(
        "action-two-turns",
        "two turns of one session, each on a stream of its own",
        ["COV-QRY-029", "COV-QRY-034"],
        two_turns
    ),
    story!(
        "action-no-interaction",
        "the player answers what nobody asked",
        ["COV-CMD-152"],
        no_interaction
    ),
];

async fn turn(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.model()?.says("look", "The door opens.");
    stage.say(&session, "look").await?.read_to_end(SOON).await;
    Ok(())
}

async fn opening(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.start_session(&session).await?.read_to_end(SOON).await;
    Ok(())
}

async fn calls(stage: &Stage, tool: &str, arguments: serde_json::Value) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage
        .model()?
        .calls_then_says("work", &[(tool, arguments)], "Done.");
    stage.say(&session, "work").await?.read_to_end(SOON).await;
    Ok(())
}

async fn tool_call(stage: &Stage) -> Result<(), DriveError> {
    let write = json!({ "namespace": "harness", "key": "door", "value": { "open": true } });
    calls(stage, "plugin_data_set", write).await
}

async fn tool_works(stage: &Stage) -> Result<(), DriveError> {
    calls(
        stage,
        "fixture_work",
        json!({ "reports": 2, "result": { "found": 3 } }),
    )
    .await
}

async fn tool_fails(stage: &Stage) -> Result<(), DriveError> {
    calls(stage, "fixture_work", json!({ "fail": true })).await
}

async fn unknown_tool(stage: &Stage) -> Result<(), DriveError> {
    calls(stage, "no_such_tool", json!({ "a": 1 })).await
}

async fn background_task(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    // The job lives its life while the second tool works, so that nothing else of the turn comes between.
    let calls = [
        ("fixture_task", json!({ "steps": 1 })),
        ("fixture_work", json!({ "ms": 2000 })),
    ];
    stage.model()?.calls_then_says("task", &calls, "It runs.");
    stage.say(&session, "task").await?.read_to_end(SOON).await;
    let path = format!("/api/sessions/{}/runtime-jobs", session.id);
    let is_done = |jobs: &Value| jobs["items"][0]["status"] == "succeeded";
    until(stage, &session, path, is_done).await?;
    stage.query(&session, "/runtime-jobs").await?;
    Ok(())
}

async fn model_fails(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.model()?.fails("trouble", 400);
    stage
        .say(&session, "trouble")
        .await?
        .read_to_end(SOON)
        .await;
    Ok(())
}

async fn model_breaks_off(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage
        .model()?
        .breaks_off("tell", "Once upon a time there was", 3);
    stage.say(&session, "tell").await?.read_to_end(SOON).await;
    Ok(())
}

async fn aborted(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage
        .model()?
        .says_and_waits("wait", "One moment", " more.");
    let mut stream = stage.say(&session, "wait").await?;
    stream.read_until("narrative.delta", SOON).await;
    let abort = Call::post(session.path("/abort")).bearer(session.owner_token.as_deref());
    stage.send(abort).await?;
    stream.read_to_end(SOON).await;
    stage.query(&session, "/execution").await?;
    Ok(())
}

async fn steered(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let work = ("fixture_work", json!({ "ms": 500 }));
    stage.model()?.calls_then_says("work", &[work], "Hurrying.");
    stage.model()?.says("hurry", "Hurrying.");
    let mut stream = stage.say(&session, "work").await?;
    stream.read_until("tool.calling", SOON).await;
    let steer = Call::post(session.path("/steer")).bearer(session.owner_token.as_deref());
    stage
        .send(steer.json(&json!({ "message": "hurry" })))
        .await?;
    stream.read_to_end(SOON).await;
    Ok(())
}

async fn commit_fails(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.fixture(&session, "fail-commit", json!({})).await?;
    stage.model()?.says("look", "The door opens.");
    stage.say(&session, "look").await?.read_to_end(SOON).await;
    stage.query(&session, "/messages").await?;
    Ok(())
}

async fn two_turns(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.model()?.answers("first", Reply::text("One."));
    stage.model()?.answers("second", Reply::text("Two."));
    stage.say(&session, "first").await?.read_to_end(SOON).await;
    stage.say(&session, "second").await?.read_to_end(SOON).await;
    stage.query(&session, "/messages").await?;
    Ok(())
}

async fn no_interaction(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let answer = json!({
        "type": "interaction",
        "turnId": "turn-of-nobody",
        "submissions": [
            { "interactionId": "door", "type": "form", "values": { "open": true } },
        ],
    });
    let payload = json!({ "actions": [answer] });
    stage
        .action(&session, "submit_actions", payload)
        .await?
        .read_to_end(SOON)
        .await;
    Ok(())
}
