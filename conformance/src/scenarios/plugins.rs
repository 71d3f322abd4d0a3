//! Conversations with plugins: calls, switching them on and off, their data, their background jobs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Scenario,
    watching::{settle, watch},
};
use crate::{
    drivers::{
        DriveError,
        http::{Call, Reading},
    },
    scenarios::Act,
    stage::{CreateSession, Session, Stage, Subscribe},
    transcript::views::stream::StreamFrame,
};

/// How long an answer or an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);

/// The scenarios of `covel-rpc`.
pub const CALLS: &[Scenario] = &[
    Scenario::shared(
        "plugin-calls",
        "calls of every kind: accepted, malformed, and of what is not there",
        Act::Server(|stage| Box::pin(plugin_calls(stage))),
    ),
    Scenario::shared(
        "plugins-switched",
        "switches a plugin off and on again, and pauses and ends the session",
        Act::Server(|stage| Box::pin(plugins_switched(stage))),
    ),
];

/// The scenarios of `covel-plugin-data`.
pub const DATA: &[Scenario] = &[Scenario::shared(
    "rows-written",
    "creates, changes and removes rows with a subscriber, and reads each after its event",
    Act::Server(|stage| Box::pin(rows_written(stage))),
)];

/// The scenarios of `covel-jobs`.
pub const JOBS: &[Scenario] = &[
    Scenario::shared(
        "jobs-outside-turns",
        "two jobs side by side, one that is cancelled, and cancels of what is over",
        Act::Server(|stage| Box::pin(jobs_outside_turns(stage))),
    ),
    Scenario {
        needs: &["fixture-tools"],
        ..Scenario::shared(
            "jobs-of-turns",
            "jobs that turns ask for: one that succeeds, one that fails, one whose turn fails",
            Act::Server(|stage| Box::pin(jobs_of_turns(stage))),
        )
    },
];

async fn wrong_rpc(stage: &Stage, session: &Session, body: &Value) -> Result<(), DriveError> {
    let call = Call::post(session.path("/plugin-rpc"))
        .bearer(session.owner_token.as_deref())
        .json(body)
        .wrong_on_purpose("a call that a server has to refuse");
    stage.send(call).await?;
    Ok(())
}

async fn plugin_calls(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session).topics(&[])).await?;
    let plugin = stage.profile().fixture_plugin.clone();
    stage.label("record-before");
    stage.query(&session, "").await?;
    stage.label("call-ok");
    stage
        .fixture(&session, "burst", json!({ "count": 2 }))
        .await?;
    stage.label("call-without-kind");
    let burst = json!({ "pluginId": plugin, "action": "burst", "payload": { "count": 1 } });
    wrong_rpc(stage, &session, &burst).await?;
    let of_kind = |kind: Value| {
        let mut call = burst.clone();
        call["kind"] = kind;
        call
    };
    stage.label("call-of-unknown-kind");
    for kind in [json!("ACTION"), json!(1), json!("sing")] {
        wrong_rpc(stage, &session, &of_kind(kind)).await?;
    }
    stage.label("call-of-other-branch");
    wrong_rpc(stage, &session, &of_kind(json!("runtime"))).await?;
    let args = json!({ "kind": "action", "commandId": "c", "args": {} });
    wrong_rpc(stage, &session, &args).await?;
    stage.label("call-lacks-member");
    for body in [
        json!({ "kind": "action", "pluginId": plugin }),
        json!({ "kind": "runtime", "pluginId": plugin }),
        json!({ "kind": "command", "args": {} }),
    ] {
        wrong_rpc(stage, &session, &body).await?;
    }
    stage.label("call-command-both");
    let both = json!({ "kind": "command", "commandId": "c", "input": "/c", "args": {} });
    wrong_rpc(stage, &session, &both).await?;
    stage.label("call-command-neither");
    wrong_rpc(
        stage,
        &session,
        &json!({ "kind": "command", "commandId": "c" }),
    )
    .await?;
    stage.label("call-bad-payload");
    let bad = json!({ "kind": "action", "pluginId": plugin, "action": "burst", "payload": { "count": "many" } });
    wrong_rpc(stage, &session, &bad).await?;
    stage.label("call-unknown-action");
    let unknown = json!({ "kind": "action", "pluginId": plugin, "action": "nope" });
    wrong_rpc(stage, &session, &unknown).await?;
    stage.label("call-unknown-runtime");
    let runtime = json!({ "kind": "runtime", "pluginId": plugin, "runtimeId": "nope/nope" });
    wrong_rpc(stage, &session, &runtime).await?;
    stage.label("call-unknown-command");
    for form in [
        json!({ "kind": "command", "commandId": "nope:nope", "args": {} }),
        json!({ "kind": "command", "commandId": "nope:nope", "input": "/nope" }),
    ] {
        wrong_rpc(stage, &session, &form).await?;
    }
    stage.label("approvals");
    stage.query(&session, "/approvals").await?;
    settle(stage, &session, &watcher).await?;
    stage.label("record-after");
    stage.query(&session, "").await?;
    watcher.close().await;
    Ok(())
}

async fn plugins_switched(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let plugin = stage.profile().fixture_plugin.clone();
    let path = session.path(&format!("/plugins/{plugin}"));
    let token = session.owner_token.as_deref();
    stage.label("switch-off");
    stage.send(Call::delete(path.clone()).bearer(token)).await?;
    stage.label("plugins-off");
    stage.query(&session, "/plugins").await?;
    stage.label("call-inactive");
    let call = json!({ "kind": "action", "pluginId": plugin, "action": "burst", "payload": {} });
    wrong_rpc(stage, &session, &call).await?;
    stage.label("switch-on");
    stage
        .send(Call::put(path).bearer(token).json(&json!({})))
        .await?;
    stage.label("plugins-on");
    stage.query(&session, "/plugins").await?;
    for (label, status) in [("paused", "paused"), ("ended", "ended")] {
        stage.label("set-status");
        let change = Call::new("PATCH", session.path("")).bearer(token);
        stage
            .send(change.json(&json!({ "status": status })))
            .await?;
        stage.label(&format!("call-{label}"));
        wrong_rpc(stage, &session, &call).await?;
        stage.label(&format!("act-{label}"));
        let body = json!({ "requestId": stage.token(), "sessionId": session.id, "type": "retry_turn", "payload": {} });
        let act = stage.action_call(&session, &body);
        let act = act.wrong_on_purpose("the session takes no actions");
        stage
            .open(act)
            .await?
            .read_to_end(stage.patience(TURN_WITHIN))
            .await;
    }
    Ok(())
}

async fn rows_written(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session).topics(&[])).await?;
    let plugin = stage.data_plugin().to_owned();
    let row = format!("/plugin-data/{plugin}/harness/k");
    for (label, value) in [
        ("created", json!({ "a": 1, "b": 2 })),
        ("changed", json!({ "a": 1, "b": 3 })),
    ] {
        let seen = watcher.mark();
        stage.label(&format!("row-{label}"));
        stage
            .put_plugin_data(&session, &plugin, "harness", "k", value)
            .await?;
        watcher
            .wait_after(seen, "plugin-data.changed", stage.patience(SOON))
            .await;
        stage.label(&format!("read-{label}"));
        stage.query(&session, &row).await?;
    }
    let seen = watcher.mark();
    stage.label("row-removed");
    stage
        .delete_plugin_data(&session, &plugin, "harness", "k")
        .await?;
    watcher
        .wait_after(seen, "plugin-data.changed", stage.patience(SOON))
        .await;
    stage.label("read-removed");
    stage.query(&session, &row).await?;
    stage.label("row-reserved");
    stage
        .put_plugin_data(&session, &plugin, "_runtime_jobs", "k", json!(1))
        .await?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;
    Ok(())
}

fn state_of(frame: &StreamFrame) -> Option<(String, String)> {
    let text = |pointer| frame.pointer(pointer)?.as_str().map(str::to_owned);
    Some((text("/payload/jobId")?, text("/payload/state")?))
}

/// Waits until the watcher has seen this job in this state.
async fn wait_for_job(stage: &Stage, watcher: &Reading, job: &str, state: &str) {
    let wanted = (job.to_owned(), state.to_owned());
    let find = |frames: &[StreamFrame]| {
        let found = frames
            .iter()
            .any(|frame| state_of(frame).as_ref() == Some(&wanted));
        found.then_some(())
    };
    watcher.wait_until(stage.patience(SOON), find).await;
}

async fn queue(stage: &Stage, session: &Session, payload: Value) -> Result<String, DriveError> {
    let reply = stage.fixture(session, "queue-job", payload).await?;
    reply.need_string("/result/jobId")
}

async fn cancel(stage: &Stage, session: &Session, job: &str) -> Result<(), DriveError> {
    let path = session.path(&format!("/runtime-jobs/{job}/cancel"));
    let call = Call::post(path)
        .bearer(session.owner_token.as_deref())
        .json(&json!({}));
    stage.send(call).await?;
    Ok(())
}

async fn jobs_outside_turns(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session).topics(&["job"])).await?;
    stage.label("job-1");
    let first = queue(stage, &session, json!({ "steps": 3 })).await?;
    wait_for_job(stage, &watcher, &first, "succeeded").await;
    stage.label("jobs-after-first");
    stage.query(&session, "/runtime-jobs").await?;
    stage.label("job-2");
    let second = queue(stage, &session, json!({ "steps": 1 })).await?;
    wait_for_job(stage, &watcher, &second, "succeeded").await;
    stage.label("job-long");
    let long = queue(stage, &session, json!({ "steps": 1, "stepMs": 60_000 })).await?;
    wait_for_job(stage, &watcher, &long, "running").await;
    stage.label("jobs-running");
    stage.query(&session, "/runtime-jobs").await?;
    stage.label("cancel-running");
    cancel(stage, &session, &long).await?;
    wait_for_job(stage, &watcher, &long, "cancelled").await;
    stage.label("cancel-over");
    cancel(stage, &session, &long).await?;
    cancel(stage, &session, &first).await?;
    stage.label("jobs-last");
    stage.query(&session, "/runtime-jobs").await?;
    stage.label("job-rows");
    let plugin = stage.profile().fixture_plugin.clone();
    stage
        .query(&session, &format!("/plugin-data/{plugin}/_runtime_jobs"))
        .await?;
    watcher.close().await;
    stage.label("replayed");
    let again = stage
        .subscribe(&Subscribe::to(&session).topics(&["job"]))
        .await?
        .keep_reading();
    again
        .wait_for("system.connected", stage.patience(SOON))
        .await;
    again.close().await;
    Ok(())
}

async fn jobs_of_turns(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.create_session(CreateSession::default()).await?;
    let watcher = watch(
        stage,
        "watch",
        &Subscribe::to(&session).topics(&["job", "plugin"]),
    )
    .await?;
    for (label, arguments, ends) in [
        ("job-succeeds", json!({ "steps": 2 }), "succeeded"),
        ("job-fails", json!({ "steps": 1, "fail": true }), "failed"),
    ] {
        let token = stage.token();
        let seen = watcher.mark();
        stage
            .model()?
            .calls_then_says(&token, &[("fixture_task", arguments)], "It is begun.");
        stage.label(label);
        stage
            .say(&session, &token)
            .await?
            .read_to_end(stage.patience(TURN_WITHIN))
            .await;
        let find = |frames: &[StreamFrame]| {
            let over =
                |frame: &StreamFrame| state_of(frame).is_some_and(|(_, state)| state == ends);
            frames.iter().skip(seen).any(over).then_some(())
        };
        watcher.wait_until(stage.patience(SOON), find).await;
    }
    stage.label("jobs-of-turns");
    stage.query(&session, "/runtime-jobs").await?;
    stage.label("slow-job");
    let token = stage.token();
    let slow = json!({ "steps": 1, "stepMs": 60_000 });
    stage
        .model()?
        .calls_then_says(&token, &[("fixture_task", slow)], "It takes long.");
    stage
        .say(&session, &token)
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    stage.label("turn-meanwhile");
    stage
        .say_and_reply(&session, "Meanwhile.")
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    stage.label("jobs-meanwhile");
    stage.query(&session, "/runtime-jobs").await?;
    settle(stage, &session, &watcher).await?;
    watcher.close().await;
    Ok(())
}
