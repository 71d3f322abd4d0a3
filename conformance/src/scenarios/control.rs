//! Conversations about control during a turn: interjections of the player, and stops.

use std::time::Duration;

use serde_json::json;
use turnwire_mock::{Reply, Rule, Script, When};

use super::{
    Scenario,
    watching::{settle, watch},
};
use crate::{
    drivers::{
        DriveError,
        http::{Call, EventStream},
    },
    scenarios::Act,
    stage::{Session, Stage, Subscribe},
};

/// How long an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that
/// hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);

/// The scenarios of this area.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        needs: &["fixture-tools", "steering"],
        ..Scenario::shared(
            "steers",
            "the player interjects while a tool works and while the answer is written; the turn is saved",
            Act::Server(|stage| Box::pin(steers(stage))),
        )
    },
    Scenario {
        needs: &["fixture-tools", "steering", "fail-commit"],
        ..Scenario::shared(
            "steers-lost",
            "the player interjects in turns that are stopped, that fail and that are rolled back",
            Act::Server(|stage| Box::pin(lost(stage))),
        )
    },
];

async fn steer(
    stage: &Stage,
    session: &Session,
    label: &str,
    text: &str,
) -> Result<(), DriveError> {
    stage.label(label);
    let call = Call::post(session.path("/steer")).json(&json!({ "message": text }));
    stage
        .send(call.bearer(session.owner_token.as_deref()))
        .await?;
    Ok(())
}

async fn abort(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    stage.label("abort");
    let call = Call::post(session.path("/abort")).json(&json!({}));
    stage
        .send(call.bearer(session.owner_token.as_deref()))
        .await?;
    Ok(())
}

/// What the model of one turn does: its steps in order, found by the token in any message of the conversation,
/// because an interjection stands behind the player's text.
fn plan(
    stage: &Stage,
    token: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> Result<(), DriveError> {
    let when = When::new().any_message(token);
    let rule = replies
        .into_iter()
        .fold(Rule::new("steps").when(when), Rule::reply);
    stage.model()?.load(Script::new(token).rule(rule));
    Ok(())
}

/// A reply that calls the tool that works for so long.
fn working(ms: u64) -> Reply {
    Reply::new().calls([turnwire_mock::Call::new(
        "fixture_work",
        json!({ "ms": ms }),
    )])
}

/// Starts a turn whose tool works until the scenario has interjected.
async fn begin(
    stage: &Stage,
    session: &Session,
    label: &str,
    token: &str,
) -> Result<EventStream, DriveError> {
    stage.label(label);
    let mut stream = stage.say(session, token).await?;
    stream
        .read_up_to(stage.patience(SOON), |frame| {
            frame.event_type() == "tool.calling"
        })
        .await;
    Ok(stream)
}

async fn steers(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let other = stage.session().await?;
    let watcher = watch(stage, "watch-steered", &Subscribe::to(&session)).await?;
    let traced = Subscribe::to(&session).topics(&["trace"]);
    let traced = watch(stage, "watch-steered-calls", &traced).await?;
    let traced_other = Subscribe::to(&other).topics(&["trace"]);
    let traced_other = watch(stage, "watch-other-calls", &traced_other).await?;
    stage.label("record-before-steer");
    stage.query(&session, "").await?;

    let (token, far) = (stage.token(), stage.token());
    plan(stage, &far, [working(1500), Reply::text("Far away.")])?;
    plan(stage, &token, [working(1500), Reply::text("You walk on.")])?;
    let mut elsewhere = begin(stage, &other, "other-turn", &far).await?;
    let mut stream = begin(stage, &session, "steered-turn", &token).await?;
    for text in [
        "interjection-one: wait",
        "interjection-two: look",
        "interjection-three: go",
    ] {
        steer(stage, &session, "steer", text).await?;
    }
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    elsewhere.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("record-after-steer");
    stage.query(&session, "").await?;
    stage.label("read-steered");
    stage.messages(&session).await?;

    // The answer is held back in its middle, so that the interjection meets it there.
    let token = stage.token();
    let held = Reply::text("At first you ")
        .gate(token.as_str())
        .say("hesitate.");
    plan(stage, &token, [held, Reply::text("Then you turn back.")])?;
    stage.label("steered-late");
    let mut stream = stage.say(&session, &token).await?;
    stream
        .read_until("narrative.delta", stage.patience(SOON))
        .await;
    steer(
        stage,
        &session,
        "steer-late",
        "interjection-late: turn back",
    )
    .await?;
    stage.model()?.go_on(&token);
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("read-steered-late");
    stage.messages(&session).await?;

    stage.label("steer-idle");
    steer(stage, &session, "steer-idle", "nobody listens").await?;
    settle(stage, &session, &watcher).await?;
    for watcher in [watcher, traced, traced_other] {
        watcher.close().await;
    }
    Ok(())
}

async fn lost(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch-steers-lost", &Subscribe::to(&session)).await?;
    let traced = Subscribe::to(&session).topics(&["trace"]);
    let traced = watch(stage, "watch-calls-after", &traced).await?;

    let token = stage.token();
    plan(stage, &token, [working(20_000), Reply::text("Too late.")])?;
    let mut stream = begin(stage, &session, "steered-stopped", &token).await?;
    steer(stage, &session, "steer-stopped", "lost-when-stopped").await?;
    abort(stage, &session).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("read-after-stop");
    stage.messages(&session).await?;

    let token = stage.token();
    plan(stage, &token, [working(1000), Reply::error(400)])?;
    let mut stream = begin(stage, &session, "steered-failed", &token).await?;
    steer(stage, &session, "steer-failed", "lost-when-failed").await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("read-after-failure");
    stage.messages(&session).await?;

    stage.label("plan-commit");
    stage.fixture(&session, "fail-commit", json!({})).await?;
    let token = stage.token();
    plan(
        stage,
        &token,
        [working(1000), Reply::text("Nothing stays.")],
    )?;
    let mut stream = begin(stage, &session, "steered-rolled-back", &token).await?;
    steer(
        stage,
        &session,
        "steer-rolled-back",
        "lost-when-rolled-back",
    )
    .await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("read-after-rollback");
    stage.messages(&session).await?;

    let token = stage.token();
    plan(stage, &token, [Reply::text("A new day.")])?;
    stage.label("after-steers-lost");
    stage
        .say(&session, &token)
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;
    traced.close().await;
    Ok(())
}
