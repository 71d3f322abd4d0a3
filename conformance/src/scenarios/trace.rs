//! Conversations whose trace is read: slow tools and models, long errors, a runtime that hides its content, and the
//! slash commands of plugins.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::{Call, Position, Reply, Usage, script::CutHow};

use super::{
    Scenario,
    events_turn::{abort, read_all, trace, turn},
    watching::{settle, watch},
};
use crate::{
    drivers::{DriveError, http},
    scenarios::Act,
    stage::{Session, Stage, Subscribe},
};

/// How long an event may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);
/// Longer than what counts as slow.
const SLOW_MS: u64 = 1_200;
/// The plugin whose runtime hides its content.
const CONCEALED: &str = "turnwire-concealed";

/// The scenarios of `covel-trace` and `covel-forwarding`.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        needs: &["fixture-tools"],
        ..Scenario::shared(
            "trace-of-slow-calls",
            "turns with a slow tool, a slow model, a slow model that breaks off and a tool whose error is long, then their trace",
            Act::Server(|stage| Box::pin(slow_calls(stage))),
        )
    },
    Scenario {
        needs: &["fixture-concealed", "fixture-tools"],
        ..Scenario::shared(
            "concealed-runtime",
            "turns with a runtime after the story that hides its content: it works, its model fails, it is stopped",
            Act::Server(|stage| Box::pin(concealed_runtime(stage))),
        )
    },
];

/// The scenarios of slash commands.
pub const COMMANDS: &[Scenario] = &[Scenario {
    needs: &["fixture-commands"],
    ..Scenario::shared(
        "plugin-commands",
        "a slash command as it is typed and as an interface calls it, one that fails, and wrong arguments",
        Act::Server(|stage| Box::pin(plugin_commands(stage))),
    )
}];

fn work(arguments: Value) -> Call {
    Call::new("fixture_work", arguments)
}

async fn slow_calls(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    previewed_turn(stage, &session).await?;
    // The head of the answer comes at once; reading the rest takes long.
    let slowly = || {
        let pieces = ["One ", "by ", "one ", "they ", "come ", "in."];
        let between = Duration::from_millis(SLOW_MS / 4);
        Reply::new().pieces(pieces).per_token(between)
    };
    turn(stage, &session, "slow-model", [slowly()]).await?;
    let cut = slowly().cut(Position::Tokens(5), CutHow::Close);
    let replies = [cut, Reply::text("At last.")];
    turn(stage, &session, "slow-failure", replies).await?;
    let cut =
        Reply::text("It breaks off, whatever one tries.").cut(Position::Tokens(1), CutHow::Close);
    turn(stage, &session, "broken-stream", [cut]).await?;
    let long = "x".repeat(3_000);
    let fails = work(json!({ "fail": true, "result": long }));
    let replies = [Reply::new().calls([fails]), Reply::text("It broke.")];
    turn(stage, &session, "long-error", replies).await?;
    let usage = Usage {
        input: 55,
        output: 5,
        cached: 40,
        ..Usage::default()
    };
    let cached = Reply::text("This was known before.").usage(usage);
    turn(stage, &session, "cached-usage", [cached]).await?;
    held_turn(stage, &session).await?;
    stage.label("read-slow");
    trace(stage, &session).await?;
    stage.label("trace-delete");
    stage.delete_session(&session).await?;
    stage.label("trace-after-delete");
    trace(stage, &session).await
}

/// A turn that writes a row and emits an event, and then works on while its rows are read.
async fn previewed_turn(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    let token = stage.token();
    let calls = Reply::new().calls([
        Call::new(
            "plugin_data_set",
            json!({ "namespace": "harness", "key": "seen", "value": 1 }),
        ),
        Call::new(
            "emit-event",
            json!({ "topic": "door.seen", "data": { "door": 3 } }),
        ),
        work(json!({ "ms": SLOW_MS, "result": "took its time" })),
    ]);
    stage
        .model()?
        .answers_in_turn(&token, [calls, Reply::text("That took long.")]);
    stage.label("previewed-turn");
    let mut stream = stage.say(session, &token).await?;
    stream
        .read_until("domain-event.previewed", stage.patience(SOON))
        .await;
    stage.label("read-in-turn");
    stage.query(session, "/plugin-data/story/harness").await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("read-after-turn");
    stage.query(session, "/plugin-data/story/harness").await?;
    Ok(())
}

/// A turn whose model stops in the middle of its text, until its trace was read.
async fn held_turn(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    let token = stage.token();
    stage
        .model()?
        .says_and_waits(&token, "One half of it. ", "And the other.");
    stage.label("held-traced");
    let mut stream = stage.say(session, &token).await?;
    stream
        .read_until("narrative.delta", stage.patience(3 * SOON))
        .await;
    stage.label("read-while-held");
    trace(stage, session).await?;
    stage.model()?.go_on(&token);
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    Ok(())
}

async fn concealed_runtime(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session_with(&[CONCEALED]).await?;
    let watcher = watch(stage, "watch", &Subscribe::to(&session)).await?;
    // The first reply is the story's, the others are those of the runtime behind it.
    let story = |text: &str| Reply::text(text);
    let calls = Reply::new().calls([
        work(json!({ "result": "HIDDEN-RESULT", "ms": 1 })),
        work(json!({ "fail": true, "result": "HIDDEN-ERROR" })),
    ]);
    let answer = Reply::text("HIDDEN-ANSWER").reasoning("HIDDEN-THOUGHT");
    let tells = story("Everybody can read this.");
    turn(stage, &session, "concealed", [tells, calls, answer]).await?;
    for (label, status) in [("concealed-fails", 400), ("concealed-fails-again", 401)] {
        let replies = [story("And this."), Reply::error(status)];
        turn(stage, &session, label, replies).await?;
    }
    concealed_stop(stage, &session).await?;
    settle(stage, &session, &watcher).await?;
    read_all(stage, &session, "read-concealed").await?;
    watcher.close().await;
    Ok(())
}

/// Stops the turn while a tool of the concealed runtime works, with another call still to come.
async fn concealed_stop(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    let token = stage.token();
    let calls = Reply::new().calls([work(json!({ "ms": 20_000 })), work(json!({ "result": 1 }))]);
    stage
        .model()?
        .answers_in_turn(&token, [Reply::text("Nearly done."), calls]);
    stage.label("concealed-stopped");
    let mut stream = stage.say(session, &token).await?;
    stream
        .read_until("tool.calling", stage.patience(SOON))
        .await;
    stage.label("abort");
    abort(stage, session).await?;
    stream.read_to_end(stage.patience(TURN_WITHIN)).await;
    Ok(())
}

async fn command(
    stage: &Stage,
    session: &Session,
    label: &str,
    name: &str,
    form: Value,
    wrong: bool,
) -> Result<(), DriveError> {
    let mut body = json!({ "kind": "command", "commandId": format!("{}:{name}", stage.profile().fixture_plugin) });
    for (member, value) in form.as_object().into_iter().flatten() {
        body[member] = value.clone();
    }
    stage.label(label);
    let mut call = http::Call::post(session.path("/plugin-rpc"))
        .bearer(session.owner_token.as_deref())
        .json(&body);
    if wrong {
        call = call.wrong_on_purpose("a command that a server has to refuse");
    }
    let reply = stage.send(call).await?;
    if reply.status == 404 && !wrong {
        return Err(DriveError::NotPossible {
            what: format!("fixture command {name}"),
            why: format!("{} answered 404", reply.request),
        });
    }
    Ok(())
}

async fn plugin_commands(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let watcher = watch(
        stage,
        "watch-trace",
        &Subscribe::to(&session).topics(&["trace", "hooks"]),
    )
    .await?;
    let player = watch(
        stage,
        "watch-player",
        &Subscribe::to(&session).topics(&["turn", "narrative", "plugin"]),
    )
    .await?;
    stage.label("commands-listed");
    stage.query(&session, "/plugins").await?;
    stage.label("record-before-commands");
    stage.query(&session, "").await?;
    // An action stream is open while the commands run.
    let token = stage.token();
    stage
        .model()?
        .says_and_waits(&token, "Wait for the dice. ", "There they are.");
    stage.label("turn-beside-commands");
    let mut beside = stage.say(&session, &token).await?;
    beside
        .read_until("narrative.delta", stage.patience(SOON))
        .await;
    command(
        stage,
        &session,
        "command-typed",
        "roll",
        json!({ "input": "/roll 2d6 label-77" }),
        false,
    )
    .await?;
    let args = json!({ "args": { "notation": "2d6", "label": "label-77" } });
    command(stage, &session, "command-called", "roll", args, false).await?;
    stage.model()?.go_on(&token);
    beside.read_to_end(stage.patience(TURN_WITHIN)).await;
    stage.label("record-after-turn");
    stage.query(&session, "").await?;
    command(
        stage,
        &session,
        "command-again",
        "roll",
        json!({ "input": "/roll 3d4" }),
        false,
    )
    .await?;
    command(
        stage,
        &session,
        "command-again",
        "roll",
        json!({ "args": { "notation": "4d4" } }),
        false,
    )
    .await?;
    stage.label("record-after-commands");
    stage.query(&session, "").await?;
    command(
        stage,
        &session,
        "command-breaks",
        "break",
        json!({ "input": "/break BROKEN-77" }),
        false,
    )
    .await?;
    for form in [
        json!({ "input": "/roll six" }),
        json!({ "args": { "notation": "six" } }),
    ] {
        command(stage, &session, "command-out-of-range", "roll", form, true).await?;
    }
    for form in [
        json!({ "args": { "notation": 7 } }),
        json!({ "args": {} }),
        json!({ "input": "/roll" }),
    ] {
        command(stage, &session, "command-bad-arguments", "roll", form, true).await?;
    }
    settle(stage, &session, &player).await?;
    watcher
        .wait_count("command.completed", 4, stage.patience(SOON))
        .await;
    read_all(stage, &session, "read-commands").await?;
    let plugin = stage.profile().fixture_plugin.clone();
    let path = session.path(&format!("/plugins/{plugin}"));
    stage.label("commands-switch-off");
    stage
        .send(http::Call::delete(path).bearer(session.owner_token.as_deref()))
        .await?;
    stage.label("commands-off");
    stage.query(&session, "/plugins").await?;
    watcher.close().await;
    player.close().await;
    Ok(())
}
