//! Conversations about what a turn tells while it runs: every way in which its tool loop can end, tools that work
//! and tools that fail, runtimes beside the story, stops, failed commits; and the trace of all that.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::{Call, Finish, Reply, Rule, Script, Usage, When};

use super::{
    Scenario,
    watching::{read_session, settle, watch},
};
use crate::{
    drivers::{DriveError, http},
    scenarios::Act,
    stage::{Session, Stage, Subscribe},
    transcript::views::stream::StreamFrame,
};

/// How long an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);

/// The plugin whose runtime keeps notes after the story.
const NOTES: &str = "turnwire-notes";

/// The scenarios of this area.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        needs: &["fixture-tools"],
        ..Scenario::shared(
            "loop-answers",
            "a turn whose model answers at once, and one whose model prepares and calls a tool first",
            Act::Server(|stage| Box::pin(loop_answers(stage))),
        )
    },
    Scenario::shared(
        "loop-repairs",
        "turns whose model gives an empty answer: one that it mends when it is told, one that it does not",
        Act::Server(|stage| Box::pin(loop_repairs(stage))),
    ),
    Scenario {
        needs: &["fixture-tools"],
        ..Scenario::shared(
            "loop-step-limit",
            "turns whose model calls tools until its steps run out: one that it then answers, one that it does not",
            Act::Server(|stage| Box::pin(loop_step_limit(stage))),
        )
    },
    Scenario::shared(
        "loop-failures",
        "turns whose model call is refused, refused and then answered, and cut at the limit of its output",
        Act::Server(|stage| Box::pin(loop_failures(stage))),
    ),
    Scenario {
        needs: &["fixture-tools"],
        ..Scenario::shared(
            "tools-of-a-turn",
            "turns that call tools: good and bad calls side by side, events, jobs, then their trace",
            Act::Server(|stage| Box::pin(tools_of_a_turn(stage))),
        )
    },
    Scenario {
        needs: &["fixture-notes"],
        ..Scenario::shared(
            "runtimes-beside-the-story",
            "turns with a function runtime after the story: kept, refused at the commit, skipped",
            Act::Server(|stage| Box::pin(runtimes_beside(stage))),
        )
    },
    Scenario {
        needs: &["fixture-tools"],
        ..Scenario::shared(
            "player-stops",
            "stops a turn while its model speaks, while its tool works, and before it begins",
            Act::Server(|stage| Box::pin(player_stops(stage))),
        )
    },
    Scenario {
        needs: &["fail-commit", "fail-publish"],
        ..Scenario::shared(
            "commit-outcomes",
            "a turn that is saved, one whose transaction fails, one whose events cannot be published",
            Act::Server(|stage| Box::pin(commit_outcomes(stage))),
        )
    },
    Scenario::shared(
        "busy-session",
        "an action that waits for another one until it is refused",
        Act::Server(|stage| Box::pin(busy_session(stage))),
    ),
];

/// Reads what a session holds: its record, view, messages and trace.
pub(super) async fn read_all(
    stage: &Stage,
    session: &Session,
    label: &str,
) -> Result<(), DriveError> {
    read_session(stage, session, label).await?;
    trace(stage, session).await
}

pub(super) async fn trace(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    for path in [
        format!("/api/traces/{}", session.id),
        format!("/api/traces/{}/turns/page", session.id),
    ] {
        let call = http::Call::get(path);
        stage
            .send(call.bearer(session.owner_token.as_deref()))
            .await?;
    }
    Ok(())
}

/// A turn whose player says something that the model has these replies for, one for each of its steps.
pub(super) async fn turn(
    stage: &Stage,
    session: &Session,
    label: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> Result<(), DriveError> {
    let token = stage.token();
    stage.model()?.answers_in_turn(&token, replies);
    stage.label(label);
    stage
        .say(session, &token)
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    Ok(())
}

/// A turn whose model goes by these rules whatever the loop itself says to it: a repair or a finalizer has user
/// messages of its own, which do not hold the token.
async fn ruled_turn(
    stage: &Stage,
    session: &Session,
    label: &str,
    rules: impl IntoIterator<Item = Rule>,
) -> Result<(), DriveError> {
    let token = stage.token();
    let of_token = |rule: Rule| {
        let when = When {
            any_message: When::new().any_message(token.as_str()).any_message,
            ..rule.when.clone()
        };
        rule.when(when)
    };
    let script = rules
        .into_iter()
        .fold(Script::new(token.as_str()), |script, rule| {
            script.rule(of_token(rule))
        });
    stage.model()?.load(script);
    stage.label(label);
    stage
        .say(session, &token)
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    Ok(())
}

fn work(arguments: Value) -> Call {
    Call::new("fixture_work", arguments)
}

/// How a model answers in one ending.
enum Plan {
    /// With these, one for each of its steps.
    Replies(Vec<Reply>),
    /// By these rules, which know the session by its one token.
    Rules(Vec<Rule>),
}

/// One turn of a session of its own, which no plan of another ending can reach; then its trace.
async fn ending(stage: &Stage, label: &str, plan: Plan) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    match plan {
        Plan::Replies(replies) => turn(stage, &session, label, replies).await?,
        Plan::Rules(rules) => ruled_turn(stage, &session, label, rules).await?,
    }
    settle(stage, &session, &watcher).await?;
    read_all(stage, &session, &format!("read-{label}")).await?;
    watcher.close().await;
    Ok(())
}

/// No text at all, whatever the step.
fn says_nothing() -> Rule {
    Rule::new("nothing").reply(Reply::text(""))
}

async fn loop_answers(stage: &Stage) -> Result<(), DriveError> {
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    let plain = Reply::text("A quiet road leads north.").usage(usage);
    ending(stage, "ends-plain", Plan::Replies(vec![plain])).await?;
    let prepared = Reply::text("Let me look. ").calls([work(json!({ "result": { "seen": 1 } }))]);
    let replies = vec![prepared, Reply::text("There is a well.")];
    ending(stage, "ends-after-preparation", Plan::Replies(replies)).await
}

async fn loop_repairs(stage: &Stage) -> Result<(), DriveError> {
    let mended = says_nothing().reply(Reply::text("Now there is an answer."));
    ending(stage, "ends-repaired", Plan::Rules(vec![mended])).await?;
    ending(stage, "ends-invalid", Plan::Rules(vec![says_nothing()])).await
}

async fn loop_step_limit(stage: &Stage) -> Result<(), DriveError> {
    let again = || {
        let call = Reply::new().calls([work(json!({ "result": 1 }))]);
        let offered = When::new().offers_tool("fixture_work");
        Rule::new("again").when(offered).priority(1).reply(call)
    };
    let last = |text: &str| Rule::new("last").reply(Reply::text(text));
    let rules = vec![again(), last("So it ends.")];
    ending(stage, "ends-finalized", Plan::Rules(rules)).await?;
    let rules = vec![again(), last("")];
    ending(stage, "ends-out-of-steps", Plan::Rules(rules)).await
}

async fn loop_failures(stage: &Stage) -> Result<(), DriveError> {
    let replies = vec![Reply::error(400)];
    ending(stage, "ends-model-error", Plan::Replies(replies)).await?;
    let replies = vec![Reply::error(503), Reply::text("Here we are.")];
    ending(stage, "ends-after-retry", Plan::Replies(replies)).await?;
    let cut = Reply::text("The story breaks off in the mid").finish(Finish::Length);
    ending(stage, "ends-truncated", Plan::Replies(vec![cut])).await
}

async fn tools_of_a_turn(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;

    let key = stage.token();
    let mixed = Reply::new().calls([
        Call::new(
            "plugin_data_set",
            json!({ "namespace": "harness", "key": key, "value": { "a": 1, "b": 2 } }),
        ),
        Call::new(
            "emit-event",
            json!({ "topic": "door.opened", "data": { "door": 3 } }),
        ),
        Call::new("emit-event", json!({ "topic": "door.opened", "data": 7 })),
        work(json!({ "fail": true })),
        Call::new("no_such_tool", json!({})),
    ]);
    turn(
        stage,
        &session,
        "tools-mixed",
        [mixed, Reply::text("The door is open.")],
    )
    .await?;
    settle(stage, &session, &watcher).await?;
    stage.label("read-row");
    stage.query(&session, "/plugin-data/story/harness").await?;
    stage
        .query(&session, &format!("/plugin-data/story/harness/{key}"))
        .await?;

    let write = |value: Value| {
        Reply::new().calls([Call::new(
            "plugin_data_set",
            json!({ "namespace": "harness", "key": key, "value": value }),
        )])
    };
    turn(
        stage,
        &session,
        "tools-overwrite",
        [write(json!({ "a": 1, "b": 3 })), Reply::text("Changed.")],
    )
    .await?;
    settle(stage, &session, &watcher).await?;
    stage.label("read-row-again");
    stage
        .query(&session, &format!("/plugin-data/story/harness/{key}"))
        .await?;

    let reserved = Reply::new().calls([Call::new(
        "plugin_data_set",
        json!({ "namespace": "_runtime_jobs", "key": key, "value": 1 }),
    )]);
    turn(
        stage,
        &session,
        "tools-reserved",
        [reserved, Reply::text("That is not allowed.")],
    )
    .await?;

    let lost = Reply::new().calls([
        Call::new(
            "plugin_data_set",
            json!({ "namespace": "harness", "key": format!("{key}-lost"), "value": 1 }),
        ),
        Call::new("emit-event", json!({ "topic": "door.lost" })),
    ]);
    turn(stage, &session, "tools-lost", [lost, Reply::error(400)]).await?;
    settle(stage, &session, &watcher).await?;
    stage.label("read-lost");
    stage.query(&session, "/plugin-data/story/harness").await?;

    let job = Reply::new().calls([Call::new("fixture_task", json!({ "steps": 2 }))]);
    turn(
        stage,
        &session,
        "tools-job",
        [job, Reply::text("Somebody works on it.")],
    )
    .await?;
    let ended = |frames: &[StreamFrame]| {
        let state = |frame: &StreamFrame| {
            frame
                .pointer("/payload/state")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let done = frames
            .iter()
            .any(|frame| state(frame).as_deref() == Some("succeeded"));
        done.then_some(())
    };
    watcher.wait_until(stage.patience(SOON), ended).await;
    settle(stage, &session, &watcher).await?;
    stage.label("read-jobs");
    stage.query(&session, "/runtime-jobs").await?;
    read_all(stage, &session, "read-tools").await?;
    watcher.close().await;
    Ok(())
}

async fn runtimes_beside(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[NOTES]).await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    let traced = Subscribe::to(&session).topics(&["trace"]);
    let traced = watch(stage, "watch-trace-runtimes", &traced).await?;
    turn(
        stage,
        &session,
        "kept",
        [Reply::text("It is written down.")],
    )
    .await?;
    settle(stage, &session, &watcher).await?;

    let token = stage.token();
    stage.model()?.says(&token, "Nobody will know.");
    stage.label("dropped");
    stage
        .say(&session, &format!("{token} is a secret"))
        .await?
        .read_to_end(stage.patience(TURN_WITHIN))
        .await;
    settle(stage, &session, &watcher).await?;
    turn(stage, &session, "skipped", [Reply::error(400)]).await?;
    settle(stage, &session, &watcher).await?;
    stage.label("read-notes");
    stage
        .query(&session, &format!("/plugin-data/{NOTES}/notes"))
        .await?;
    read_all(stage, &session, "read-runtimes").await?;
    watcher.close().await;
    traced.close().await;
    Ok(())
}

pub(super) async fn abort(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    let call = http::Call::post(session.path("/abort"));
    stage
        .send(call.bearer(session.owner_token.as_deref()).json(&json!({})))
        .await?;
    Ok(())
}

async fn player_stops(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    stage.label("abort-idle");
    abort(stage, &session).await?;

    let token = stage.token();
    stage
        .model()?
        .says_and_waits(&token, "Halfway through the ", "sentence.");
    stage.label("stopped-speaking");
    let mut stream = stage.say(&session, &token).await?;
    stream
        .read_until("narrative.delta", stage.patience(SOON))
        .await;
    stage.label("abort");
    abort(stage, &session).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.model()?.go_on(&token);

    let token = stage.token();
    let write = json!({ "namespace": "harness", "key": token, "value": 1 });
    let calls = [
        ("plugin_data_set", write),
        ("emit-event", json!({ "topic": "door.stopped" })),
        ("fixture_work", json!({ "ms": 20_000 })),
        // Never runs: the turn is stopped before it.
        ("fixture_work", json!({ "result": "not-run" })),
    ];
    stage.model()?.calls_then_says(&token, &calls, "Too late.");
    stage.label("stopped-working");
    let mut stream = stage.say(&session, &token).await?;
    stream
        .read_up_to(stage.patience(SOON), |frame| {
            frame.event_type() == "tool.calling"
                && frame.pointer("/payload/toolName") == Some(&json!("fixture_work"))
        })
        .await;
    stage.label("abort");
    abort(stage, &session).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    settle(stage, &session, &watcher).await?;
    stage.label("read-stopped");
    stage.query(&session, "/plugin-data/story/harness").await?;
    stage.execution(&session).await?;
    read_all(stage, &session, "read-stops").await?;
    watcher.close().await;
    Ok(())
}

async fn commit_outcomes(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    let traced = Subscribe::to(&session).topics(&["trace"]);
    let traced = watch(stage, "watch-trace-commits", &traced).await?;
    stage.label("record-before");
    stage.query(&session, "").await?;
    outcome(stage, &session, "saved", "It counts.").await?;
    stage.query(&session, "").await?;
    settle(stage, &session, &watcher).await?;

    stage.label("plan-commit");
    stage.fixture(&session, "fail-commit", json!({})).await?;
    outcome(stage, &session, "refused", "It does not count.").await?;
    stage.query(&session, "").await?;
    settle(stage, &session, &watcher).await?;

    stage.label("plan-publish");
    stage
        .fixture(&session, "fail-publish", json!({ "nth": [1] }))
        .await?;
    outcome(stage, &session, "unpublished", "It counts as well.").await?;
    watcher.wait_for("system.reset", stage.patience(SOON)).await;
    traced
        .wait_for("commit.fanout.failed", stage.patience(SOON))
        .await;
    read_all(stage, &session, "read-outcomes").await?;
    watcher.close().await;
    traced.close().await;
    Ok(())
}

/// A turn that writes a row named like it, and what can be read of that.
async fn outcome(
    stage: &Stage,
    session: &Session,
    name: &str,
    text: &str,
) -> Result<(), DriveError> {
    let write = json!({ "namespace": "harness", "key": name, "value": { "n": 1 } });
    let replies = [
        Reply::new().calls([Call::new("plugin_data_set", write)]),
        Reply::text(text),
    ];
    turn(stage, session, &format!("outcome-{name}"), replies).await?;
    stage.label(&format!("read-{name}"));
    stage.query(session, "/plugin-data/story/harness").await?;
    stage.messages(session).await.map(drop)
}

async fn busy_session(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let token = stage.token();
    stage
        .model()?
        .says_and_waits(&token, "This takes ", "its time.");
    stage.label("busy-holder");
    let mut holder = stage.say(&session, &token).await?;
    holder
        .read_until("narrative.delta", stage.patience(SOON))
        .await;
    stage.label("busy-waiting");
    let second = stage.token();
    let mut waiting = stage.say(&session, &second).await?;
    // Once before the lock is given up, and once while it is still waited for.
    waiting.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.model()?.go_on(&token);
    holder.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("read-busy");
    stage.messages(&session).await?;
    Ok(())
}
