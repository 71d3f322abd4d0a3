//! Conversations about control during a turn: interjections of the player, and stops.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::{Reply, Rule, Script, When};

use super::{
    Scenario,
    suspend::order,
    watching::{settle, watch},
};
use crate::{
    drivers::{
        DriveError,
        http::{Call, EventStream},
    },
    scenarios::Act,
    stage::{CAST, Session, Stage, Subscribe},
    transcript::views::stream::StreamFrame,
};

/// How long an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that
/// hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);

/// How long a stop may take before the scenario goes on: far longer than cutting a call off, far shorter than waiting
/// for a model that is silent.
const STOP_WITHIN: Duration = Duration::from_secs(1000);

/// The plugin whose runtime prepares the session, by the same orders.
const OPENING: &str = "turnwire-opening";

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
    Scenario {
        needs: &["fixture-cast"],
        ..Scenario::shared(
            "stops-early",
            "the player stops a request that still waits for the session, and one whose session opens",
            Act::Server(|stage| Box::pin(early(stage))),
        )
    },
    Scenario {
        needs: &["fixture-cast"],
        ..Scenario::shared(
            "stops-within",
            "the player stops a turn while its model is silent, between its runtimes, and before its commit",
            Act::Server(|stage| Box::pin(within(stage))),
        )
    },
    Scenario {
        needs: &["fixture-cast"],
        ..Scenario::shared(
            "vetoed-turn",
            "a hook vetoes a turn",
            Act::Server(|stage| Box::pin(vetoed(stage))),
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
    stage.label("halt");
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
        .read_until("tool.calling", stage.patience(TURN_WITHIN))
        .await;
    Ok(stream)
}

async fn steers(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let other = stage.session().await?;
    let watcher = watch(stage, "watch-steered", &Subscribe::to(&session)).await?;
    let traced = Subscribe::to(&session).topics(&["trace"]);
    let traced = watch(stage, "watch-steered-calls", &traced).await?;
    let traced_other = Subscribe::to(&other).topics(&["trace", "hooks"]);
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
    settle(stage, &session, &watcher).await?;
    for watcher in [watcher, traced, traced_other] {
        watcher.close().await;
    }

    let later = Subscribe::to(&session).topics(&["trace", "job"]);
    let later = watch(stage, "watch-calls-later", &later).await?;
    stage.label("turn-after-steer");
    stage
        .say_and_reply(&session, "A day passes.")
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    steer(stage, &session, "steer-idle", "nobody listens").await?;
    later.close().await;
    steers_late(stage).await
}

/// The answer is held back in its middle, so that the interjection meets it there; once with steps left, and once in
/// the last step of a runtime of eight.
async fn steers_late(stage: &Stage) -> Result<(), DriveError> {
    for (label, steps) in [("steered-late", 0), ("steered-at-limit", 7)] {
        let session = stage.session().await?;
        let token = stage.token();
        let held = Reply::text("At first you ")
            .gate(token.as_str())
            .say("hesitate.");
        let mut replies: Vec<Reply> = (0..steps).map(|_| working(0)).collect();
        replies.extend([held, Reply::text("Then you turn back.")]);
        plan(stage, &token, replies)?;
        stage.label(label);
        let mut stream = stage.say(&session, &token).await?;
        let spoke = stage.patience(TURN_WITHIN);
        stream.read_until("narrative.delta", spoke).await;
        steer(
            stage,
            &session,
            "steer-late",
            "interjection-late: turn back",
        )
        .await?;
        stage.model()?.go_on(&token);
        stream.read_to_end(stage.patience(TURN_WITHIN)).await;
        stage.label(&format!("read-{label}"));
        stage.messages(&session).await?;
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

/// Reads a stream to its end, and lets a model that waits go on after that, so that nothing of it can have helped.
async fn ends(stage: &Stage, mut stream: EventStream, token: &str) -> Result<(), DriveError> {
    stream.read_to_end(stage.patience(STOP_WITHIN)).await;
    stage.model()?.go_on(token);
    Ok(())
}

async fn early(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[CAST]).await?;
    let watcher = watch(stage, "watch-early-stop", &Subscribe::to(&session)).await?;
    order(stage, &session, "manual", json!({ "waitMs": 3000 })).await?;
    let body = json!({
        "kind": "runtime", "pluginId": CAST, "runtimeId": format!("{CAST}/manual"), "payload": {},
    });
    let call = Call::post(session.path("/plugin-rpc")).json(&body);
    let call = call.bearer(session.owner_token.as_deref());
    stage.label("lock-held");
    let holding = stage.send(call);
    let acting = async {
        let soon = stage.patience(SOON);
        watcher.wait_for("runtime.started", soon).await;
        stage.label("halted-waiting");
        let token = stage.token();
        stage.model()?.says(&token, "Nobody hears this.");
        let stream = stage.say(&session, &token).await?;
        abort(stage, &session).await?;
        ends(stage, stream, &token).await
    };
    let (held, acted) = tokio::join!(holding, acting);
    held?;
    acted?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;

    let session = stage.session_with(&[CAST, OPENING]).await?;
    order(stage, &session, "prepare", json!({ "waitMs": 20_000 })).await?;
    stage.label("halted-setup");
    let mut stream = stage.start_session(&session).await?;
    stream
        .read_until("function.executing", stage.patience(SOON))
        .await;
    abort(stage, &session).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;

    stage.label("record-in-setup");
    stage.query(&session, "").await?;
    let watcher = watch(stage, "watch-opening", &Subscribe::to(&session)).await?;
    stage.label("opened");
    stage
        .start_session(&session)
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    settle(stage, &session, &watcher).await?;
    stage.label("record-in-play");
    stage.query(&session, "").await?;
    watcher.close().await;
    Ok(())
}

async fn within(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[CAST]).await?;
    let watcher = watch(stage, "watch-silent", &Subscribe::to(&session)).await?;
    let token = stage.token();
    stage.model()?.says_and_waits(&token, "", "Too late.");
    stage.label("halted-silent");
    let mut stream = stage.say(&session, &token).await?;
    stream
        .read_until("step.started", stage.patience(SOON))
        .await;
    abort(stage, &session).await?;
    ends(stage, stream, &token).await?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;

    let row = |key: &str| json!({ "namespace": "harness", "key": key, "value": 1 });
    let early = json!({ "write": [row("before-the-stop")] });
    order(stage, &session, "first", early).await?;
    order(stage, &session, "second", json!({ "waitMs": 20_000 })).await?;
    stage.label("halted-between");
    let mut stream = stage.say_and_reply(&session, "Then it stops.").await?;
    let second = |frame: &StreamFrame| {
        let runtime = frame.pointer("/payload/runtimeId").and_then(Value::as_str);
        frame.event_type() == "runtime.started" && runtime.is_some_and(|id| id.ends_with("second"))
    };
    stream.read_up_to(stage.patience(TURN_WITHIN), second).await;
    abort(stage, &session).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;

    order(
        stage,
        &session,
        "second",
        json!({ "write": [row("at-the-commit")] }),
    )
    .await?;
    order(stage, &session, "commit", json!({ "waitMs": 3000 })).await?;
    stage.label("halted-at-commit");
    let mut stream = stage.say_and_reply(&session, "Almost saved.").await?;
    let second = |frame: &StreamFrame| {
        let runtime = frame.pointer("/payload/runtimeId").and_then(Value::as_str);
        frame.event_type() == "runtime.completed"
            && runtime.is_some_and(|id| id.ends_with("second"))
    };
    stream.read_up_to(stage.patience(TURN_WITHIN), second).await;
    abort(stage, &session).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("read-within");
    stage
        .query(&session, &format!("/plugin-data/{CAST}/harness"))
        .await?;
    stage.messages(&session).await?;
    Ok(())
}

async fn vetoed(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[CAST]).await?;
    order(
        stage,
        &session,
        "turn",
        json!({ "veto": "not on a Sunday" }),
    )
    .await?;
    stage.label("vetoed");
    stage
        .say_and_reply(&session, "Nobody hears this.")
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    Ok(())
}
