//! Conversations about `session-update`: with a server under test, and in [`client`] with a client under test.

use std::time::Duration;

use serde_json::json;
use turnwire_mock::{Call, Reply, Rule, Script, When};

use super::{Act, Isolation, Scenario};
use crate::{
    drivers::DriveError,
    run::{MODEL, RESTART},
    stage::{Stage, session_update::Lines},
};

pub mod client;

/// Capability of a target that takes several connections to the same sessions.
pub const CONNECTIONS: &str = "connections";

/// Tools of the fixture contract: one that takes time, and one that starts a background task.
const WORK: &str = "fixture_work";
const TASK: &str = "fixture_task";

/// The scenarios with a server under test.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "turns",
        about: "four turns: streamed text, a slow tool, a failing model, a cancelled one",
        needs: &[MODEL],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(turns(stage))),
    },
    Scenario {
        name: "read-at-once",
        about: "reads what is stored as soon as a tool result is told, while the turn goes on",
        needs: &[MODEL],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(read_at_once(stage))),
    },
    Scenario {
        name: "any-model",
        about: "two turns with whatever model the server has, then what is stored",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(any_model(stage))),
    },
    Scenario {
        name: "tasks",
        about: "a task of one turn reports during the next and ends after it; then a reconnect",
        needs: &[MODEL],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(tasks(stage))),
    },
    Scenario {
        name: "several-connections",
        about: "three connections, two sessions: a busy one, a quiet one, and one that listens to nothing",
        needs: &[MODEL, CONNECTIONS],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(several_connections(stage))),
    },
    Scenario {
        name: "reconnect",
        about: "two turns, then another connection that subscribes to the session and goes on",
        needs: &[MODEL],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(reconnect(stage))),
    },
    Scenario {
        name: "restart",
        about: "a turn with a tool and a failed one, then the server is restarted and read",
        needs: &[MODEL, RESTART],
        variant: Some("persistent"),
        isolation: Isolation::Own,
        run: Act::Server(|stage| Box::pin(restart(stage))),
    },
];

/// A turn whose model speaks in pieces, so far apart.
async fn spoken(stage: &Stage, lines: &mut Lines, session: &str) -> Result<(), DriveError> {
    const PIECES: [&str; 5] = ["The ", "rain ", "falls ", "on ", "the roof."];
    const APART: Duration = Duration::from_millis(150);
    let token = stage.token();
    stage.model()?.says_in_pieces(&token, &PIECES, APART);
    stage.scripted(
        &token,
        json!({ "deltas": PIECES, "says": PIECES.concat(), "spokeMs": 600 }),
    );
    lines.turn(session, &token).await?;
    Ok(())
}

/// A turn whose model calls a tool that takes time and reports progress.
async fn worked(stage: &Stage, lines: &mut Lines, session: &str) -> Result<(), DriveError> {
    let token = stage.token();
    let result = json!({ "files": [token, "b"], "count": 2 });
    let arguments = json!({ "ms": 300, "reports": 2, "result": result });
    let says = "Two files.";
    stage
        .model()?
        .calls_then_says(&token, &[(WORK, arguments.clone())], says);
    stage.scripted(
        &token,
        json!({ "result": result, "arguments": arguments, "workedMs": 300, "says": says }),
    );
    lines.turn(session, &token).await?;
    Ok(())
}

async fn failed(stage: &Stage, lines: &mut Lines, session: &str) -> Result<(), DriveError> {
    let token = stage.token();
    stage.model()?.fails(&token, 400);
    lines.turn(session, &token).await?;
    Ok(())
}

/// What the model says is its own affair: only what holds for every turn can be seen.
async fn any_model(stage: &Stage) -> Result<(), DriveError> {
    stage.label("any-model");
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    for _ in 0..2 {
        let token = stage.token();
        lines.turn(&session, &token).await?;
    }
    stage.label("stored");
    lines.stored(&session).await?;
    lines.close().await;
    Ok(())
}

async fn turns(stage: &Stage) -> Result<(), DriveError> {
    stage.label("turns");
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    stage.label("text");
    spoken(stage, &mut lines, &session).await?;
    stage.label("tool");
    worked(stage, &mut lines, &session).await?;
    stage.label("failed");
    failed(stage, &mut lines, &session).await?;

    stage.label("cancelled");
    let token = stage.token();
    stage.model()?.says_and_waits(&token, "So it ", "goes.");
    let prompt = lines.prompt(&session, &token).await?;
    lines.event("assistant_delta").await;
    lines
        .ask("session/cancel", json!({ "session_id": session }))
        .await?;
    lines.over(&prompt).await;
    stage.model()?.go_on(&token);

    stage.label("stored");
    lines.stored(&session).await?;
    lines.close().await;
    Ok(())
}

/// The model goes on only after the record was read.
async fn read_at_once(stage: &Stage) -> Result<(), DriveError> {
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    let token = stage.token();
    let arguments = json!({ "ms": 10, "result": { "token": token } });
    let asked = When::new().last_user(&token);
    let calls = Reply::new().calls([Call::new(WORK, arguments)]);
    let says = Reply::text("").gate(&token).say("Done.");
    let script = Script::new(&token)
        .rule(Rule::new("calls").when(asked.clone().step(0)).reply(calls))
        .rule(Rule::new("says").when(asked).reply(says));
    stage.model()?.load(script);

    let prompt = lines.prompt(&session, &token).await?;
    lines.event("tool_result").await;
    stage.label("read-at-once");
    lines.stored(&session).await?;
    stage.label("goes-on");
    stage.model()?.go_on(&token);
    lines.over(&prompt).await;
    lines.close().await;
    Ok(())
}

/// The task reports every 400 ms, three times. The second turn ends once it has reported.
async fn tasks(stage: &Stage) -> Result<(), DriveError> {
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    stage.label("turn-a");
    let token = stage.token();
    let task = json!({ "steps": 3, "stepMs": 400 });
    stage
        .model()?
        .calls_then_says(&token, &[(TASK, task)], "It has begun.");
    stage.scripted(&token, json!({ "startsTask": true }));
    lines.turn(&session, &token).await?;

    stage.label("turn-b");
    let token = stage.token();
    stage.model()?.says_and_waits(&token, "Mean", "while.");
    let prompt = lines.prompt(&session, &token).await?;
    lines.event("assistant_delta").await;
    lines.event("task_updated").await;
    stage.model()?.go_on(&token);
    lines.over(&prompt).await;

    stage.label("after-b");
    lines.task_end().await;
    stage.label("turn-c");
    spoken(stage, &mut lines, &session).await?;
    lines.close().await;

    stage.label("reconnected");
    let mut again = stage.lines().await?;
    again.subscribe(&session).await?;
    again.close().await;
    Ok(())
}

async fn several_connections(stage: &Stage) -> Result<(), DriveError> {
    stage.label("quiet");
    let mut busy = stage.lines().await?;
    let mut quiet = stage.lines().await?;
    let mut deaf = stage.lines().await?;
    let one = busy.session().await?;
    let two = quiet.session().await?;
    failed(stage, &mut quiet, &two).await?;
    stage.label("busy");
    spoken(stage, &mut busy, &one).await?;
    worked(stage, &mut busy, &one).await?;
    stage.label("quiet-again");
    failed(stage, &mut quiet, &two).await?;
    deaf.ask("ping", json!({})).await?;

    stage.label("shared");
    let shared = busy.session().await?;
    quiet.subscribe(&shared).await?;
    worked(stage, &mut busy, &shared).await?;
    quiet.event("turn_completed").await;
    stage.label("two-sessions");
    spoken(stage, &mut busy, &one).await?;
    spoken(stage, &mut busy, &shared).await?;
    quiet.event("turn_completed").await;
    for lines in [busy, quiet, deaf] {
        lines.close().await;
    }
    Ok(())
}

async fn reconnect(stage: &Stage) -> Result<(), DriveError> {
    stage.label("live");
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    worked(stage, &mut lines, &session).await?;
    spoken(stage, &mut lines, &session).await?;
    lines.close().await;

    stage.label("reconnected");
    let mut again = stage.lines().await?;
    again.subscribe(&session).await?;
    stage.label("goes-on");
    spoken(stage, &mut again, &session).await?;
    again.close().await;
    Ok(())
}

async fn restart(stage: &Stage) -> Result<(), DriveError> {
    stage.label("live");
    let mut lines = stage.lines().await?;
    let session = lines.session().await?;
    worked(stage, &mut lines, &session).await?;
    failed(stage, &mut lines, &session).await?;
    lines.close().await;
    stage.restart().await?;

    stage.label("restarted");
    let mut again = stage.lines().await?;
    again.subscribe(&session).await?;
    again.stored(&session).await?;
    again.close().await;
    Ok(())
}
