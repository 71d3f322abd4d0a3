//! The reference server as a program that a profile starts, stops and kills.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::Value;
use turnwire::{
    drivers::{model::ModelServer, target::Instance},
    profile::Profile,
    run::{self, RunPlan},
    stage::{Setting, Stage, Subscribe},
    suites,
    transcript::{Header, record::Recorder},
};

const LONG: Duration = Duration::from_secs(30);

/// A profile of `turnwire serve` on a file that outlives its process.
fn profile() -> Profile {
    let text = format!(
        r#"
        name = "turnwire serve"
        time_scale = 0.01

        [target]
        command = [{program:?}, "serve", "--port", "{{port}}", "--time-scale", "{{time_scale}}"]
        env = {{ TURNWIRE_LLM_BASE_URL = "{{model_url}}", TURNWIRE_DB = "{{home}}/sessions.db" }}

        [session]
        plugins = ["story", "turnwire-fixtures"]

        [limits]
        scenario = "120s"

        [variants.persistent]
        "#,
        program = env!("CARGO_BIN_EXE_turnwire"),
    );
    Profile::parse(&text, Path::new("turnwire.toml")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_with_a_command_plays_scenarios_restarts_among_them() {
    let suite = suites::find("covel-sse").unwrap();
    let profile = profile();
    let launch = profile.launcher();
    let scenarios = ["turn-on-both-streams", "resume-after-restart"];
    let report = run::run(RunPlan {
        scenarios: Some(scenarios.map(|name| suite.scenario(name).unwrap()).to_vec()),
        ..RunPlan::new(suite, profile, launch)
    })
    .await
    .unwrap();

    assert_eq!(report.problems, []);
    assert_eq!(report.skipped, []);
    assert_eq!(report.harness_errors, []);
    assert!(report.exercised.len() > 20, "{:?}", report.exercised.keys());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_comes_back_with_what_was_committed_and_a_new_epoch() {
    let model = ModelServer::start().await.unwrap();
    let profile = profile();
    let launch = profile.launcher();
    let instance = Instance::start(launch, "default", Some(model.base_url()), None)
        .await
        .unwrap();
    let stage = Stage::new(Setting {
        scenario: "killed".to_owned(),
        seed: 1,
        recorder: Recorder::new(Header::default()),
        instance: Arc::new(instance),
        model: Some(model.model()),
        profile: Arc::new(profile),
    })
    .await
    .unwrap();
    let session = stage.session().await.unwrap();
    let committed = stage
        .say_and_reply(&session, "The lamp is lit.")
        .await
        .unwrap()
        .read_to_end(LONG)
        .await;
    assert!(committed.last().unwrap().pointer("/payload/committed") == Some(&Value::Bool(true)));
    let cursor = stage
        .view(&session)
        .await
        .unwrap()
        .need_string("/eventCursor")
        .unwrap();

    // The model keeps silent in the middle of the second turn, and the server dies.
    let token = stage.token();
    stage
        .model()
        .unwrap()
        .says_and_waits(&token, "The door", "opens.");
    let mut stream = stage.say(&session, &token).await.unwrap();
    assert!(stream.read_until("narrative.delta", LONG).await.is_some());
    stage.kill_and_start().await.unwrap();

    let view = String::from_utf8_lossy(&stage.view(&session).await.unwrap().body).into_owned();
    assert!(
        view.contains("The lamp is lit.") && !view.contains("The door"),
        "{view}"
    );
    let mut stream = stage
        .subscribe(&Subscribe::to(&session).after(&cursor))
        .await
        .unwrap();
    let reset = stream.read_until("system.reset", LONG).await.unwrap();
    assert_eq!(
        reset.pointer("/reason").and_then(Value::as_str),
        Some("epoch-change")
    );
    stage.finish().await;
}
