//! Requests that are refused before anything happens.

use serde_json::{Value, json};
use turnwire::{
    drivers::{DriveError, http::Call},
    stage::{CreateSession, Session, Stage, Subscribe},
};

use turnwire_spec::covel::limits::CONTROLS_PER_WINDOW;

use crate::machine::Story;

pub(crate) const STORIES: &[Story] = &[
    story!(
        "rejected-action-body",
        "bodies that are no action",
        ["COV-CMD-021"],
        action_bodies
    ),
    story!(
        "rejected-action-session",
        "actions of a session that is not there, is paused, is ended",
        ["COV-RPC-052"],
        action_sessions
    ),
    story!(
        "rejected-action-plugins",
        "an opening without a plugin, and a recovery of nothing",
        ["COV-CMD-027", "COV-CMD-061"],
        action_plugins
    ),
    story!(
        "rejected-while-running",
        "what cannot be done while nothing runs",
        ["COV-CTL-002", "COV-CTL-020"],
        nothing_runs
    ),
    story!(
        "rejected-paths",
        "a path and a method that are not there",
        ["COV-OVW-003"],
        paths
    ),
    story!(
        "rejected-session",
        "sessions that cannot be made, and one whose id is taken",
        ["COV-CMD-002"],
        sessions
    ),
    story!(
        "rejected-subscription",
        "subscriptions without a session, and to one that is not there",
        ["COV-SUB-049"],
        subscriptions
    ),
    story!(
        "rejected-plugin-calls",
        "calls of plugins and actions that are not there",
        ["COV-RPC-048"],
        plugin_calls
    ),
    story!(
        "rejected-plugin-rpc",
        "calls of a runtime, a command and an event that no plugin has",
        ["COV-RPC-049", "COV-RPC-050"],
        plugin_rpc
    ),
    story!(
        "rejected-pages",
        "a page behind a cursor that cannot be read",
        ["COV-QRY-014"],
        pages
    ),
    story!(
        "rejected-job-cancel",
        "a job that is not there cannot be cancelled",
        ["COV-JOB-205"],
        job_cancel
    ),
    story!(
        "rejected-too-often",
        "more aborts than a minute holds",
        ["COV-CTL-020"],
        "rates",
        1.0,
        too_often
    ),
];

fn act(session: &str, kind: &str, payload: Value) -> Value {
    json!({ "requestId": "rq-1", "sessionId": session, "type": kind, "payload": payload })
}

async fn send(stage: &Stage, session: &Session, body: &Value, why: &str) -> Result<(), DriveError> {
    let call = stage.action_call(session, body).wrong_on_purpose(why);
    stage.send(call).await.map(drop)
}

async fn action_bodies(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let id = session.id.as_str();
    let token = session.owner_token.as_deref();
    let text = Call::post("/api/actions")
        .bearer(token)
        .body("application/json", "{\"requestId\":");
    stage.send(text.wrong_on_purpose("half a JSON")).await?;
    send(stage, &session, &json!([]), "a list").await?;
    send(
        stage,
        &session,
        &act(id, "dance", json!({})),
        "no such type",
    )
    .await?;
    send(
        stage,
        &session,
        &act(id, "submit_actions", json!({})),
        "no actions",
    )
    .await?;
    send(
        stage,
        &session,
        &json!({ "type": "start_session" }),
        "members are missing",
    )
    .await
}

async fn action_sessions(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let say = json!({ "actions": [{ "type": "say", "text": "x" }] });
    let nobody = Session {
        id: "nobody".to_owned(),
        owner_token: None,
    };
    send(
        stage,
        &nobody,
        &act("nobody", "submit_actions", say.clone()),
        "no such session",
    )
    .await?;
    for status in ["paused", "ended"] {
        let change = Call::new("PATCH", session.path("")).bearer(session.owner_token.as_deref());
        stage
            .send(change.json(&json!({ "status": status })))
            .await?;
        send(
            stage,
            &session,
            &act(&session.id, "submit_actions", say.clone()),
            "it is not active",
        )
        .await?;
    }
    let again = Call::new("PATCH", session.path("")).bearer(session.owner_token.as_deref());
    stage
        .send(again.json(&json!({ "status": "active" })))
        .await?;
    Ok(())
}

async fn action_plugins(stage: &Stage) -> Result<(), DriveError> {
    let wish = CreateSession {
        plugins: Some(Vec::new()),
        ..CreateSession::default()
    };
    let bare = stage.create_session(wish).await?;
    send(
        stage,
        &bare,
        &act(&bare.id, "start_session", json!({})),
        "no plugins",
    )
    .await?;
    let session = stage.session().await?;
    let retry = act(&session.id, "retry_runtime", json!({ "runtimeId": "x" }));
    send(stage, &session, &retry, "nothing failed").await
}

async fn nothing_runs(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let token = session.owner_token.as_deref();
    let steer = Call::post(session.path("/steer")).bearer(token);
    stage
        .send(steer.json(&json!({ "message": "hurry" })))
        .await?;
    stage
        .send(Call::post(session.path("/abort")).bearer(token))
        .await?;
    let blank = Call::post(session.path("/steer"))
        .bearer(token)
        .json(&json!({ "message": " " }));
    stage
        .send(blank.wrong_on_purpose("only white space"))
        .await?;
    Ok(())
}

async fn paths(stage: &Stage) -> Result<(), DriveError> {
    stage
        .send(Call::get("/api/nowhere").wrong_on_purpose("no such path"))
        .await?;
    stage
        .send(Call::delete("/api/health").wrong_on_purpose("no such method"))
        .await?;
    Ok(())
}

async fn sessions(stage: &Stage) -> Result<(), DriveError> {
    let wish = CreateSession {
        id: Some("taken".to_owned()),
        ..CreateSession::default()
    };
    stage.create_session(wish.clone()).await?;
    stage.try_create_session(&wish).await?;
    let unknown = CreateSession {
        plugins: Some(vec!["no-such-plugin".to_owned()]),
        ..CreateSession::default()
    };
    stage.try_create_session(&unknown).await?;
    stage.get("/api/sessions/nobody").await?;
    Ok(())
}

async fn subscriptions(stage: &Stage) -> Result<(), DriveError> {
    let without = Subscribe::default().wrong_on_purpose("no session");
    stage.send(without.call()).await?;
    let nobody = Session {
        id: "nobody".to_owned(),
        owner_token: None,
    };
    stage.send(Subscribe::to(&nobody).call()).await?;
    let session = stage.session().await?;
    let topics = Subscribe::to(&session)
        .topics(&["weather"])
        .wrong_on_purpose("no such topic");
    stage.send(topics.call()).await?;
    Ok(())
}

async fn plugin_calls(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let token = session.owner_token.as_deref();
    for (plugin, action) in [
        ("turnwire-fixtures", "no-such-action"),
        ("no-such-plugin", "burst"),
    ] {
        let body = json!({ "kind": "action", "pluginId": plugin, "action": action, "payload": {} });
        let call = Call::post(session.path("/plugin-rpc"))
            .bearer(token)
            .json(&body);
        stage.send(call).await?;
    }
    stage
        .put_plugin_data(&session, "no-such-plugin", "a", "b", json!(1))
        .await?;
    stage
        .query(&session, "/plugin-data/turnwire-fixtures/harness/nothing")
        .await?;
    Ok(())
}

async fn plugin_rpc(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    for body in [
        json!({ "kind": "runtime", "pluginId": "story", "runtimeId": "nobody" }),
        json!({ "kind": "command", "commandId": "nothing", "input": "now" }),
        json!({ "kind": "event", "pluginId": "story", "topic": "nowhere", "payload": {} }),
    ] {
        let call = Call::post(session.path("/plugin-rpc"))
            .bearer(session.owner_token.as_deref())
            .json(&body);
        stage.send(call).await?;
    }
    Ok(())
}

async fn pages(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let call = Call::get(session.path("/messages/page?before=nowhere&cursor=nowhere"))
        .bearer(session.owner_token.as_deref());
    stage.send(call.wrong_on_purpose("no cursor")).await?;
    Ok(())
}

async fn job_cancel(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let call = Call::post(session.path("/runtime-jobs/no-such-job/cancel"));
    stage
        .send(call.bearer(session.owner_token.as_deref()))
        .await?;
    Ok(())
}

async fn too_often(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    for _ in 0..=CONTROLS_PER_WINDOW {
        let abort = Call::post(session.path("/abort"));
        stage
            .send(abort.bearer(session.owner_token.as_deref()))
            .await?;
    }
    Ok(())
}
