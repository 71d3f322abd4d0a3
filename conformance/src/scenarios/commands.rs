//! Conversations about commands: the types of `POST /api/actions`, what a submission leaves behind, retries and
//! recoveries, and requests that are refused.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::{Reply, Rule, Script, When};

use super::{
    Scenario,
    watching::{read_session, watch},
};
use crate::{
    drivers::{DriveError, http::Call},
    scenarios::Act,
    stage::{CreateSession, Session, Stage, Subscribe},
};

/// How long an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);

/// The scenarios of this area.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::shared(
        "action-types",
        "the types that an action may have, and texts that look like one",
        Act::Server(|stage| Box::pin(action_types(stage))),
    ),
    Scenario::shared(
        "actions-refused",
        "actions whose payload says too little, and an opening without plugins",
        Act::Server(|stage| Box::pin(actions_refused(stage))),
    ),
    Scenario::shared(
        "submissions",
        "what the player submits, with and without a message id, read back in the view and in the messages",
        Act::Server(|stage| Box::pin(submissions(stage))),
    ),
    Scenario::shared(
        "retry-turn",
        "a turn, the same again without input, and again while the model fails",
        Act::Server(|stage| Box::pin(retry_turn(stage))),
    ),
    Scenario::shared(
        "recovery",
        "a turn that failed, read, recovered with a wrong and then with the right description",
        Act::Server(|stage| Box::pin(recovery(stage))),
    ),
    Scenario::shared(
        "reader-leaves",
        "a turn whose reader closes the connection while the model still speaks",
        Act::Server(|stage| Box::pin(reader_leaves(stage))),
    ),
    Scenario::shared(
        "execution-while-running",
        "the execution query while a turn waits for its model",
        Act::Server(|stage| Box::pin(execution_while_running(stage))),
    ),
];

/// The names of the commands in the protocol's documents: they are no types.
const LABELS: &[&str] = &[
    "turn.submit",
    "turn.start",
    "turn.retry",
    "runtime.retry",
    "runtimes.retry",
    "input.submit",
];
/// Types that differ from one of the five in case or length.
const NEARLY: &[&str] = &[
    "Submit_Actions",
    "SUBMIT_ACTIONS",
    "submit-actions",
    "submitActions",
    "",
];
/// Types that earlier versions of the protocol had.
const REMOVED: &[&str] = &["send_message", "execute_command", "submit_interaction"];
/// Types with which somebody might hope to emit an event.
const EMITTING: &[&str] = &["emit_event", "emit-event", "event.emitted"];

async fn act(
    stage: &Stage,
    session: &Session,
    kind: &str,
    payload: &Value,
    wrong: bool,
) -> Result<(), DriveError> {
    let body = json!({ "requestId": stage.token(), "sessionId": session.id, "type": kind, "payload": payload });
    let mut call = stage.action_call(session, &body);
    if wrong {
        call = call.wrong_on_purpose("an action that a server has to refuse");
    }
    let mut stream = stage.open(call).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    Ok(())
}

/// An action that says something new, with a plan for the model.
fn said(stage: &Stage) -> Result<Value, DriveError> {
    let token = stage.token();
    stage.model()?.says(&token, "It is done.");
    Ok(json!({ "actions": [{ "type": "say", "text": token }] }))
}

async fn action_types(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let opened = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;

    stage.label("type-submit");
    act(stage, &session, "submit_actions", &said(stage)?, false).await?;
    stage.label("type-start");
    act(stage, &opened, "start_session", &json!({}), false).await?;
    stage.label("type-retry");
    act(stage, &session, "retry_turn", &json!({}), false).await?;

    stage.label("refused-before");
    stage.query(&session, "").await?;
    stage.messages(&session).await?;
    let lists: &[(&str, &[&str])] = &[
        ("type-label", LABELS),
        ("type-nearly", NEARLY),
        ("type-unlisted", &["frobnicate"]),
        ("type-removed", REMOVED),
        ("type-emits", EMITTING),
        ("type-event", &["narrative.delta"]),
    ];
    for (label, kinds) in lists {
        stage.label(label);
        for kind in *kinds {
            act(stage, &session, kind, &said(stage)?, true).await?;
        }
    }
    stage.label("refused-after");
    stage.query(&session, "").await?;
    stage.messages(&session).await?;
    stage.publish_one(&session).await?;
    watcher
        .wait_count("plugin-data.changed", 1, stage.patience(SOON))
        .await;
    watcher.close().await;
    Ok(())
}

async fn actions_refused(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    act(stage, &session, "submit_actions", &said(stage)?, false).await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    stage.label("retry-no-runtime");
    for payload in [json!({}), json!({ "runtimeId": 7 })] {
        act(stage, &session, "retry_runtime", &payload, true).await?;
    }
    stage.label("retry-unknown-source");
    let payload = json!({ "runtimeId": "story", "retryFromTurnId": stage.token() });
    act(stage, &session, "retry_runtime", &payload, true).await?;
    stage.label("batch-no-source");
    let payload = json!({ "runtimeIds": ["story"] });
    act(stage, &session, "retry_failed_runtimes", &payload, true).await?;
    stage.label("batch-empty");
    for payload in [
        json!({ "retryFromTurnId": "turn-1", "runtimeIds": [] }),
        json!({ "retryFromTurnId": "turn-1" }),
    ] {
        act(stage, &session, "retry_failed_runtimes", &payload, true).await?;
    }
    stage.label("batch-too-many");
    let many: Vec<String> = (0..21).map(|n| format!("p/r{n}")).collect();
    let payload = json!({ "retryFromTurnId": "turn-1", "runtimeIds": many });
    act(stage, &session, "retry_failed_runtimes", &payload, true).await?;
    stage.label("batch-twice");
    let payload = json!({ "retryFromTurnId": "turn-1", "runtimeIds": ["p/r", "p/r"] });
    act(stage, &session, "retry_failed_runtimes", &payload, true).await?;

    let bare = CreateSession {
        plugins: Some(Vec::new()),
        ..CreateSession::default()
    };
    let bare = stage.create_session(bare).await?;
    stage.label("start-without-plugins");
    act(stage, &bare, "start_session", &json!({}), true).await?;
    stage.label("plugins-after");
    stage.query(&bare, "/plugins").await?;
    stage.label("one-plugin");
    let one = CreateSession {
        plugins: Some(vec!["story".to_owned()]),
        ..CreateSession::default()
    };
    let one = stage.create_session(one).await?;
    stage.label("start-with-one-plugin");
    act(stage, &one, "start_session", &json!({}), false).await?;

    stage.label("interaction-unknown");
    let answer = json!({ "type": "interaction", "turnId": "turn-1", "submissions": [{ "interactionId": "i-1", "type": "form", "values": {} }] });
    let say = json!({ "type": "say", "text": stage.token() });
    let payload = json!({ "actions": [say, answer] });
    stage.label("interaction-before");
    stage.messages(&session).await?;
    stage.query(&session, "/execution").await?;
    stage.label("interaction-refused");
    act(stage, &session, "submit_actions", &payload, true).await?;
    act(stage, &session, "submit_actions", &payload, true).await?;
    stage.label("interaction-after");
    stage.messages(&session).await?;
    stage.query(&session, "/execution").await?;
    stage.publish_one(&session).await?;
    watcher
        .wait_count("plugin-data.changed", 1, stage.patience(SOON))
        .await;
    watcher.close().await;
    Ok(())
}

async fn submissions(stage: &Stage) -> Result<(), DriveError> {
    let created = CreateSession {
        id: Some(format!("{}-s", stage.token())),
        ..CreateSession::default()
    };
    stage.label("create");
    let session = stage.create_session(created).await?;
    read_session(stage, &session, "read-empty").await?;

    stage.label("two-actions");
    let token = stage.token();
    stage
        .model()?
        .says(&token, "The gate opens and a cold wind comes through.");
    let actions = json!([{ "type": "say", "text": token }, { "type": "act", "text": "I wait." }]);
    act(
        stage,
        &session,
        "submit_actions",
        &json!({ "actions": actions }),
        false,
    )
    .await?;
    read_session(stage, &session, "read-two-actions").await?;

    stage.label("same-text-again");
    act(
        stage,
        &session,
        "submit_actions",
        &json!({ "actions": actions }),
        false,
    )
    .await?;
    read_session(stage, &session, "read-same-text").await?;

    stage.label("own-id");
    let mut payload = said(stage)?;
    payload["inputMessageId"] = json!(stage.token());
    act(stage, &session, "submit_actions", &payload, false).await?;
    read_session(stage, &session, "read-own-id").await?;

    stage.label("own-id-same-text");
    let mut again = payload.clone();
    again["inputMessageId"] = json!(stage.token());
    act(stage, &session, "submit_actions", &again, false).await?;
    read_session(stage, &session, "read-own-id-same-text").await?;

    stage.label("id-of-another-turn");
    act(stage, &session, "submit_actions", &payload, true).await?;
    stage.label("id-with-other-text");
    let mut other = said(stage)?;
    other["inputMessageId"] = payload["inputMessageId"].clone();
    act(stage, &session, "submit_actions", &other, true).await?;
    read_session(stage, &session, "read-refused").await?;

    let stranger = stage.session().await?;
    stage.label("id-of-another-session");
    act(stage, &stranger, "submit_actions", &payload, true).await?;
    stage.label("read-stranger");
    stage.messages(&stranger).await?;

    stage.label("delete");
    stage.delete_session(&session).await?;
    Ok(())
}

async fn retry_turn(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("first-turn");
    let marker = stage.token();
    stage
        .say_and_reply(&session, &format!("The lamp says {marker}."))
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    read_session(stage, &session, "read-first").await?;
    // Only a model that is told the committed story knows its marker.
    let asked = When::new().any_message(marker.as_str());
    let again = Reply::text(format!("Again: {marker}."));
    let plan = Script::new("retry").rule(Rule::new("again").when(asked).reply(again));
    stage.model()?.load(plan);
    stage.label("retried");
    act(stage, &session, "retry_turn", &json!({}), false).await?;
    read_session(stage, &session, "read-retried").await?;

    stage.label("plan-failure");
    stage.fixture(&session, "fail-commit", json!({})).await?;
    stage.label("retry-fails");
    act(stage, &session, "retry_turn", &json!({}), false).await?;
    read_session(stage, &session, "read-failed").await?;
    Ok(())
}

async fn recovery(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    stage.label("turn-fails");
    let mut payload = said(stage)?;
    payload["inputMessageId"] = json!(stage.token());
    stage.fixture(&session, "fail-commit", json!({})).await?;
    let failed = stage.action(&session, "submit_actions", payload.clone());
    let frames = failed.await?.read_to_end(stage.patience(TURN_WITHIN)).await;
    let turn = frames
        .iter()
        .find_map(|frame| frame.member("turnId")?.as_str().map(str::to_owned));
    let turn = turn.unwrap_or_else(|| "turn-0".to_owned());
    read_session(stage, &session, "read-failed").await?;
    stage.label("execution-failed");
    let mut described = Value::Null;
    for _ in 0..5 {
        let reply = stage.execution(&session).await?;
        described = reply
            .json()
            .and_then(|body| body.get("retry").cloned())
            .unwrap_or_default();
    }
    read_session(stage, &session, "read-again").await?;

    let mut right = described.get("payload").cloned().unwrap_or(payload);
    right["recoverFromTurnId"] = json!(turn);
    stage.label("recover-other-text");
    let mut other = right.clone();
    other["actions"] = json!([{ "type": "say", "text": stage.token() }]);
    act(stage, &session, "submit_actions", &other, true).await?;
    stage.label("recover-other-type");
    let payload = json!({ "recoverFromTurnId": turn });
    act(stage, &session, "start_session", &payload, true).await?;
    stage.label("recover-unknown-turn");
    let mut unknown = right.clone();
    unknown["recoverFromTurnId"] = json!(stage.token());
    act(stage, &session, "submit_actions", &unknown, true).await?;
    stage.label("recovered");
    act(stage, &session, "submit_actions", &right, false).await?;
    read_session(stage, &session, "read-recovered").await?;
    stage.label("recover-again");
    act(stage, &session, "submit_actions", &right, true).await?;
    read_session(stage, &session, "read-last").await?;
    watcher.close().await;
    Ok(())
}

async fn reader_leaves(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    let token = stage.token();
    stage
        .model()?
        .says_and_waits(&token, "Half of it. ", "And the rest.");
    stage.label("left-turn");
    let mut stream = stage.say(&session, &token).await?;
    stream
        .read_until("narrative.delta", stage.patience(SOON))
        .await;
    stream.close();
    stage.model()?.go_on(&token);
    watcher
        .wait_for("execution.completed", stage.patience(SOON))
        .await;
    // The session is free once the next action has its turn, whatever the subscription tells.
    stage.label("next-turn");
    act(stage, &session, "submit_actions", &said(stage)?, false).await?;
    read_session(stage, &session, "read-after").await?;
    watcher.close().await;
    Ok(())
}

async fn execution_while_running(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("execution-idle");
    stage.execution(&session).await?;
    let token = stage.token();
    stage.model()?.says_and_waits(&token, "Wait. ", "Now.");
    stage.label("held-turn");
    let mut stream = stage.say(&session, &token).await?;
    let started = stream
        .read_until("narrative.delta", stage.patience(SOON))
        .await;
    if started.is_some() {
        stage.label("execution-running");
        let call = Call::get(session.path("/execution"));
        let call = call.bearer(session.owner_token.as_deref());
        stage.send(call).await?;
    }
    stage.model()?.go_on(&token);
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("execution-completed");
    stage.execution(&session).await?;
    Ok(())
}
