//! Which topics can be asked for, and what each delivers.

use std::time::Duration;

use serde_json::json;
use turnwire_spec::covel::{SUBSCRIPTION_TOPICS, Topic};

use crate::{
    drivers::DriveError,
    scenarios::{Act, Isolation, Scenario},
    stage::{Session, Stage, Subscribe},
};

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "topics-accepted",
        about: "subscribes to each of the ten topics alone, and to one that does not exist",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(topics_accepted(stage))),
    },
    Scenario {
        name: "topics-delivered",
        about: "six subscriptions to different topics of one session, through a turn with a tool and a hook, a job and a write",
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Server(|stage| Box::pin(topics_delivered(stage))),
    },
];

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

async fn topics_accepted(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    for topic in SUBSCRIPTION_TOPICS {
        stage.label("topic-alone");
        let mut stream = stage
            .subscribe(&Subscribe::to(&session).topics(&[topic.name()]))
            .await?;
        stream
            .read_until("system.connected", stage.patience(SOON))
            .await;
        stream.close();
    }
    stage.label("topic-unknown");
    let how = Subscribe::to(&session)
        .topics(&["everything"])
        .wrong_on_purpose("no such topic");
    let unknown = stage.subscribe(&how).await?.keep_reading();
    stage.label("turn");
    stage
        .say_and_reply(&session, "As you wish.")
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    stage.publish_one(&session).await?;
    stage.pause(Duration::from_millis(100)).await;
    unknown.close().await;
    Ok(())
}

async fn topics_delivered(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let ordinary: Vec<&str> = SUBSCRIPTION_TOPICS
        .iter()
        .filter(|topic| !matches!(topic, Topic::Trace | Topic::Hooks))
        .map(|topic| topic.name())
        .collect();
    let mut open = Vec::new();
    for topics in [
        &["job"][..],
        &["plugin"],
        &["trace"],
        &["hooks"],
        &["game"],
        &ordinary,
    ] {
        stage.label(&format!(
            "topics-{}",
            if topics.len() > 1 {
                "ordinary"
            } else {
                topics[0]
            }
        ));
        let stream = stage
            .subscribe(&Subscribe::to(&session).topics(topics))
            .await?
            .keep_reading();
        stream
            .wait_for("system.connected", stage.patience(SOON))
            .await;
        open.push(stream);
    }
    everything_once(stage, &session).await?;
    if let [job, plugin, trace, hooks, ..] = &open[..] {
        job.wait_count("job-status.updated", 3, stage.patience(SOON))
            .await;
        plugin
            .wait_count("plugin-data.changed", 2, stage.patience(SOON))
            .await;
        trace.wait_for("tool.completed", stage.patience(SOON)).await;
        hooks.wait_for("hook.fired", stage.patience(SOON)).await;
    }
    stage.pause(Duration::from_millis(100)).await;
    for stream in open {
        stream.close().await;
    }
    Ok(())
}

/// A turn with a tool call and a hook, a job, a write.
async fn everything_once(stage: &Stage, session: &Session) -> Result<(), DriveError> {
    stage.label("turn");
    let token = stage.token();
    let write = json!({ "namespace": "harness", "key": token, "value": 1 });
    stage
        .model()?
        .calls_then_says(&token, &[("plugin_data_set", write)], "Done.");
    stage
        .say(session, &token)
        .await?
        .read_to_end(stage.patience(SOON))
        .await;
    stage.label("job");
    stage
        .fixture(session, "queue-job", json!({ "steps": 1 }))
        .await?;
    stage.label("write");
    stage.publish_one(session).await?;
    Ok(())
}
