//! What waits to be said next, across the ends of turns and of processes.

use serde_json::{Value, json};
use turnwire_mock::{Reply, Rule, Script};
use turnwire_reference::StoreChoice;

use crate::support::{Bench, Client};

fn scripted(bench: &Bench, on: &str, reply: Reply) {
    bench.mock().load(Script::from(Rule::on(on).reply(reply)));
}

async fn begin(client: &mut Client, session: &str, message: &str) -> Value {
    let payload = json!({ "projectSlug": "scratch", "sessionId": session, "message": message });
    client.send("chat:send", payload).await;
    client.next("chat:active").await
}

async fn set(client: &mut Client, session: &str, text: &str) {
    let payload = json!({ "projectSlug": "scratch", "sessionId": session, "text": text });
    client.send("chat:set_queue", payload).await;
}

/// Queues during a turn.
async fn queue(client: &mut Client, session: &str, text: &str) {
    set(client, session, text).await;
    // The queue is set before anything that this socket sends later is looked at.
    assert!(client.is_alive().await);
}

async fn drained(client: &mut Client, text: &str) {
    assert_eq!(client.next("chat:queued_flushed").await["text"], text);
    assert_eq!(client.next("chat:complete").await["success"], true);
}

#[tokio::test]
async fn the_queue_is_taken_after_a_success_a_failure_a_cancel_and_a_command() {
    let bench = Bench::with(|config| config.time_scale = 0.01).await;
    scripted(&bench, "wait", Reply::text("one").gate("gate").say("two"));
    scripted(
        &bench,
        "hold",
        Reply::text("three").gate("never").say("four"),
    );
    scripted(&bench, "fail", Reply::error(400));
    let mut client = bench.socket().await;
    let session = client.chat("hello").await;
    let subscribe = json!({ "projectSlug": "scratch", "sessionId": session });
    client.send("chat:subscribe", subscribe).await;

    begin(&mut client, &session, "wait").await;
    queue(&mut client, &session, "after a success").await;
    bench.mock().open("gate");
    assert_eq!(client.next("chat:complete").await["success"], true);
    drained(&mut client, "after a success").await;

    begin(&mut client, &session, "hold").await;
    queue(&mut client, &session, "after a cancel").await;
    let job = begin_job(&mut client, &session).await;
    client.send("chat:cancel", json!({ "jobId": job })).await;
    assert_eq!(client.next("chat:complete").await["success"], false);
    drained(&mut client, "after a cancel").await;

    set(&mut client, &session, "fail, and this is idle").await;
    client.next("chat:queued_flushed").await;
    assert_eq!(client.next("chat:complete").await["success"], false);

    set(&mut client, &session, "/compact").await;
    assert_eq!(client.next("chat:queued_flushed").await["text"], "/compact");
    let note = client.next("chat:response").await;
    assert!(
        note["chunk"].as_str().unwrap().contains("compacted"),
        "{note}"
    );
}

/// The job that runs in a session, as a new subscription is told.
async fn begin_job(client: &mut Client, session: &str) -> Value {
    let subscribe = json!({ "projectSlug": "scratch", "sessionId": session });
    client.send("chat:subscribe", subscribe).await;
    loop {
        let active = client.next("chat:active").await;
        if active["running"] == true {
            return active["jobId"].clone();
        }
    }
}

#[tokio::test]
async fn a_queued_text_outlives_the_process_and_is_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chats.db");
    let session = {
        let bench = Bench::with(|config| config.store = StoreChoice::Sqlite(file.clone())).await;
        scripted(&bench, "wait", Reply::text("one").gate("gate").say("two"));
        let mut client = bench.socket().await;
        let session = client.chat("hello").await;
        begin(&mut client, &session, "wait").await;
        queue(&mut client, &session, "after the crash").await;
        bench.server.kill().await;
        session
    };
    let bench = Bench::with(|config| config.store = StoreChoice::Sqlite(file.clone())).await;
    let mut client = bench.socket().await;
    let subscribe = json!({ "projectSlug": "scratch", "sessionId": session });
    client.send("chat:subscribe", subscribe).await;
    begin(&mut client, &session, "go on").await;
    assert_eq!(client.next("chat:complete").await["success"], true);
    drained(&mut client, "after the crash").await;
    begin(&mut client, &session, "and again").await;
    client.next("chat:complete").await;
    let late = tokio::time::timeout(
        std::time::Duration::from_millis(300),
        client.next("chat:queued_flushed"),
    );
    assert!(late.await.is_err(), "it was taken a second time");
}
