//! Conversations about the whole: turns on both streams, sessions, commands, queries.

use std::time::Duration;

use serde_json::json;

use super::{Act, Isolation, Scenario};
use crate::{
    drivers::{DriveError, http::Call},
    stage::{CreateSession, Session, Stage, Subscribe},
};

/// How long a turn or an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

/// The scenarios of this area.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "turn-on-both-streams",
        about: "two turns with a tool call, watched on the action stream and on a subscription to all topics",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(turn_on_both_streams(stage))),
    },
    Scenario {
        name: "changes-outside-turns",
        about: "a background job and another client's changes, while no action stream is open",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(changes_outside_turns(stage))),
    },
    Scenario {
        name: "session-lifecycle",
        about: "creates a session, reads it, deletes it, reads it again",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(session_lifecycle(stage))),
    },
    Scenario {
        name: "commands",
        about: "one accepted request of each command",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(commands(stage))),
    },
    Scenario {
        name: "queries",
        about: "reads every query three times between two views, and tries each by POST",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(queries(stage))),
    },
];

/// Two turns of one session, the first with a tool call that writes plugin data.
///
/// Provokes the frame rules of both streams; the model speaks in pieces so that frames come while it speaks.
async fn turn_on_both_streams(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("across-turns");
    let watcher = stage
        .subscribe(&Subscribe::to(&session))
        .await?
        .keep_reading();

    stage.label("turn-1");
    let token = stage.token();
    let write = json!({ "namespace": "harness", "key": token, "value": { "n": 1 } });
    stage
        .model()?
        .calls_then_says(&token, &[("plugin_data_set", write)], "The door opens.");
    stage
        .say(&session, &token)
        .await?
        .read_to_end(stage.patience(SOON))
        .await;

    stage.label("turn-2");
    let token = stage.token();
    stage.model()?.says_in_pieces(
        &token,
        &["Rain ", "falls ", "softly."],
        Duration::from_millis(40),
    );
    stage
        .say(&session, &token)
        .await?
        .read_to_end(stage.patience(SOON))
        .await;

    stage.label("after-turns");
    stage.publish_one(&session).await?;
    watcher
        .wait_count("plugin-data.changed", 2, stage.patience(SOON))
        .await;
    let seen = watcher.frames().len();
    watcher
        .wait_after(
            seen,
            "system.heartbeat",
            stage.patience(Duration::from_secs(35)),
        )
        .await;
    watcher.close().await;
    Ok(())
}

/// A detached job, and a plugin's row that another client removes.
async fn changes_outside_turns(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let token = stage.token();
    let plugin = stage.profile().fixture_plugin.clone();
    stage
        .put_plugin_data(&session, &plugin, "harness", &token, json!({ "n": 1 }))
        .await?;

    stage.label("watch-jobs");
    let jobs = stage
        .subscribe(&Subscribe::to(&session).topics(&["job"]))
        .await?
        .keep_reading();
    stage.label("watch-plugins");
    let plugins = stage
        .subscribe(&Subscribe::to(&session).topics(&["plugin"]))
        .await?
        .keep_reading();
    jobs.wait_for("system.connected", stage.patience(SOON))
        .await;
    plugins
        .wait_for("system.connected", stage.patience(SOON))
        .await;

    stage.label("delete-elsewhere");
    stage
        .delete_plugin_data(&session, &plugin, "harness", &token)
        .await?;
    plugins
        .wait_for("plugin-data.changed", stage.patience(SOON))
        .await;

    stage.label("job-outside-turn");
    stage
        .fixture(&session, "queue-job", json!({ "steps": 2 }))
        .await?;
    jobs.wait_count("job-status.updated", 3, stage.patience(SOON))
        .await;
    stage.pause(Duration::from_millis(50)).await;
    jobs.close().await;
    plugins.close().await;
    Ok(())
}

/// Create, read, delete, read.
async fn session_lifecycle(stage: &Stage) -> Result<(), DriveError> {
    stage.label("create");
    let session = stage.session().await?;
    stage.label("read-created");
    stage.query(&session, "").await?;
    stage.label("delete");
    stage.delete_session(&session).await?;
    stage.label("read-deleted");
    stage.query(&session, "").await?;
    Ok(())
}

/// One accepted request of each command that needs nothing but a session.
async fn commands(stage: &Stage) -> Result<(), DriveError> {
    stage.label("command");
    let session = stage.session().await?;
    stage
        .say_and_reply(&session, "Yes.")
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    stage.publish_one(&session).await?;
    let token = stage.token();
    let plugin = stage.profile().fixture_plugin.clone();
    stage
        .put_plugin_data(&session, &plugin, "harness", &token, json!(1))
        .await?;
    stage
        .delete_plugin_data(&session, &plugin, "harness", &token)
        .await?;
    stage
        .fixture(&session, "burst", json!({ "count": 1 }))
        .await?;
    stage.delete_session(&session).await?;
    Ok(())
}

/// Paths of all read-only queries about a session.
fn query_paths(session: &Session) -> Vec<String> {
    let below = [
        "",
        "/view",
        "/messages",
        "/messages/page",
        "/characters",
        "/plugins",
        "/state",
        "/plugin-data/harness/any",
        "/execution",
    ];
    let mut paths: Vec<String> = below.iter().map(|rest| session.path(rest)).collect();
    paths.push("/api/sessions?worldId=any".to_owned());
    paths.push("/api/worlds".to_owned());
    paths.push("/api/health".to_owned());
    paths.push(format!("/api/traces/{}", session.id));
    paths.push(format!("/api/traces/{}/turns/page", session.id));
    paths
}

/// Paths below [`query_paths`] that no documented command answers by POST.
const NOT_BY_POST: &[&str] = &["/view", "/messages", "/messages/page", "/state"];

/// Every query three times between two views; nothing else happens meanwhile.
async fn queries(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage
        .say_and_reply(&session, "Listening.")
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    stage.publish_one(&session).await?;
    stage.pause(Duration::from_millis(50)).await;

    stage.label("view-before");
    stage.view(&session).await?;
    stage.query(&session, "").await?;
    stage.messages(&session).await?;
    stage.label("query");
    for _ in 0..3 {
        for path in query_paths(&session) {
            stage
                .send(Call::get(path).bearer(session.owner_token.as_deref()))
                .await?;
        }
    }
    stage.label("view-after");
    stage.view(&session).await?;
    stage.query(&session, "").await?;
    stage.messages(&session).await?;

    stage.label("query-by-post");
    for rest in NOT_BY_POST {
        let call = Call::post(session.path(rest)).bearer(session.owner_token.as_deref());
        stage
            .send(call.wrong_on_purpose("queries are not served by POST"))
            .await?;
    }
    stage.label("list-with-world");
    stage.try_create_session(&CreateSession::default()).await?;
    stage.get("/api/sessions").await?;
    Ok(())
}
