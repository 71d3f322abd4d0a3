//! What a client hears: turns, tools, tasks, reconnects, and how faulty lines are answered.

use serde_json::{Value, json};
use turnwire_reference::Server;

use crate::support::{Client, config_of, rig};

#[tokio::test]
async fn a_turn_with_a_tool_is_told_in_one_wrapper_and_rebuilt_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(Some(&folder.path().join("t.db"))).await;
    let work = json!({ "ms": 20, "reports": 1, "result": { "files": 7 } });
    rig.calls_then_says("count", &[("fixture_work", work)], "Seven files.");
    let mut client = Client::ready(&rig).await;
    let session = client.session().await;

    let prompt = json!({ "session_id": session, "input": "count them" });
    let prompted = client.ask("session/prompt", prompt).await;

    let types = client.types();
    let order = [
        "turn_started",
        "tool_input_delta",
        "tool_requested",
        "tool_progress",
        "tool_result",
        "assistant_delta",
        "assistant_message_completed",
        "turn_completed",
    ];
    let places: Vec<_> = order
        .iter()
        .map(|kind| types.iter().position(|found| found == kind).unwrap())
        .collect();
    assert!(places.is_sorted(), "{types:?}");
    for (place, event) in client.events.iter().enumerate() {
        assert_eq!(event["sequence"], place + 1);
        assert_eq!(event["session_id"], json!(session));
        assert_eq!(event["turn_id"], prompted["turn_id"]);
        assert_eq!(event["event"]["turn_id"], event["turn_id"]);
    }

    let live = client.durable();
    rig.server.shutdown().await;
    let again = Server::start(config_of(&rig.mock, Some(&folder.path().join("t.db"))))
        .await
        .unwrap();
    let mut client = Client::connect(again.session_update_addr().unwrap()).await;
    client.ask("initialize", json!({})).await;
    let subscribed = client
        .ask("session/subscribe", json!({ "session_id": session }))
        .await;

    assert_eq!(subscribed["rebuilt"], json!(live.len()));
    assert_eq!(client.durable(), live);
    assert_eq!(client.events.len(), live.len());
    let stored = client
        .ask("session/replay", json!({ "session_id": session }))
        .await;
    assert_eq!(stored["turn_state"]["status"], "completed");
    assert_eq!(stored["tools"][0]["arguments"]["result"]["files"], 7);
    assert_eq!(stored["messages"][1]["content"], "Seven files.");
}

#[tokio::test]
async fn a_task_outlives_its_turn_and_its_end_has_one_id() {
    let rig = rig(None).await;
    let task = json!({ "steps": 2, "stepMs": 60 });
    rig.calls_then_says("start", &[("fixture_task", task)], "Started.");
    let mut client = Client::ready(&rig).await;
    let session = client.session().await;
    let prompt = |input: &str| json!({ "session_id": session, "input": input });
    let first = client.ask("session/prompt", prompt("start it")).await;
    client.ask("session/prompt", prompt("and go on")).await;

    // It may have ended before the second turn has.
    let ends = |event: &&Value| event["event"]["task"]["status"] == "completed";
    while !client.events.iter().any(|event| ends(&event)) {
        client.next().await.expect("the end of the task");
    }
    let of_task = |event: &&Value| event["event"]["type"] == "task_updated";
    for event in client.events.iter().filter(of_task) {
        assert_eq!(event["turn_id"], "");
        assert_eq!(event["event"]["origin_turn_id"], first["turn_id"]);
    }
    let ended = client.events.iter().find(ends).cloned().unwrap();

    assert_eq!(ended["durability"], "durable");
    let mut other = Client::ready(&rig).await;
    other
        .ask("session/subscribe", json!({ "session_id": session }))
        .await;
    let last = other.events.last().unwrap();
    assert_eq!(last["event"], ended["event"]);
}

#[tokio::test]
async fn events_reach_only_those_who_subscribed_and_each_counts_for_itself() {
    let rig = rig(None).await;
    let mut one = Client::ready(&rig).await;
    let mut two = Client::ready(&rig).await;
    let (mine, other) = (one.session().await, two.session().await);
    let prompt = |session: &str| json!({ "session_id": session, "input": "hello" });

    one.ask("session/prompt", prompt(&mine)).await;
    one.ask("session/prompt", prompt(&mine)).await;
    assert!(two.events.is_empty());
    two.ask("session/subscribe", json!({ "session_id": mine }))
        .await;
    one.ask("session/prompt", prompt(&other)).await;
    let turn = one.ask("session/prompt", prompt(&mine)).await;
    two.until("turn_completed").await;
    while two.events.last().unwrap()["turn_id"] != turn["turn_id"]
        || two.types().last() != Some(&"turn_completed")
    {
        two.next().await;
    }

    let sequences: Vec<_> = two
        .events
        .iter()
        .map(|event| event["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
    assert!(
        one.events
            .iter()
            .all(|event| event["session_id"] == json!(mine)),
        "nothing of a session that was not subscribed to"
    );
    let of_turn = |client: &Client| -> Vec<Value> {
        let ours = client
            .events
            .iter()
            .filter(|event| event["turn_id"] == turn["turn_id"]);
        ours.map(|event| event["event"].clone()).collect()
    };
    assert_eq!(of_turn(&one), of_turn(&two));
}

#[tokio::test]
async fn whoever_subscribes_in_the_middle_of_a_turn_misses_no_fact_and_hears_none_twice() {
    let rig = rig(None).await;
    rig.hangs("slowly");
    let mut one = Client::ready(&rig).await;
    let session = one.session().await;
    let prompt = json!({ "session_id": session, "input": "slowly" });
    let prompted = one.begin("session/prompt", prompt).await;
    one.until("assistant_delta").await;

    let mut two = Client::ready(&rig).await;
    two.ask("session/subscribe", json!({ "session_id": session }))
        .await;
    rig.mock.mock().open("slowly");
    one.response(prompted).await;
    two.until("turn_completed").await;

    assert_eq!(one.durable(), two.durable());
}

#[tokio::test]
async fn a_cancelled_turn_says_so_and_the_prompt_is_answered() {
    let rig = rig(None).await;
    rig.hangs("slowly");
    let mut client = Client::ready(&rig).await;
    let session = client.session().await;
    let of = json!({ "session_id": session });
    assert_eq!(
        client.refused("session/cancel", of.clone()).await,
        "TurnNotActive"
    );
    let prompt = json!({ "session_id": session, "input": "slowly" });
    let prompted = client.begin("session/prompt", prompt).await;
    client.until("assistant_delta").await;
    let wrong = json!({ "session_id": session, "turn_id": "turn-x" });
    assert_eq!(
        client.refused("session/cancel", wrong).await,
        "TurnNotActive"
    );

    client.ask("session/cancel", of).await;
    let answer = client.response(prompted).await;

    assert_eq!(answer["result"]["ok"], true);
    let last = client.events.last().unwrap();
    assert_eq!(last["event"]["type"], "turn_cancelled");
    assert_eq!(last["durability"], "durable");
}

#[tokio::test]
async fn faulty_lines_are_answered_and_the_connection_goes_on() {
    let rig = rig(None).await;
    let mut client = rig.connect().await;
    let mut refused = Vec::new();
    for line in [
        "\n".to_owned(),
        "{\n".to_owned(),
        format!("\"{}\"\n", "x".repeat(2 << 20)),
        "{\"kind\":\"request\",\"request_id\":true,\"method\":\"ping\"}\r\n".to_owned(),
        "{\"kind\":\"request\",\"request_id\":\"a\",\"method\":\"session/list\"}\n".to_owned(),
        "{\"kind\":\"request\",\"request_id\":\"a\",\"method\":\"initialize\"}\n{\"kind\":\"request\",\"request_id\":\"b\",\"method\":\"session/fly\"}\n".to_owned(),
    ] {
        client.send_bytes(line.as_bytes()).await;
        let answer = client.next().await.unwrap();
        refused.push(answer["error"]["type"].clone());
    }
    let answer = client.next().await.unwrap();
    refused.push(answer["error"]["type"].clone());
    client.send_bytes(b"{\"kind\":\"\xff\"}\n").await;
    refused.push(client.next().await.unwrap()["error"]["type"].clone());

    assert_eq!(
        Value::from(refused),
        json!([
            "ParseError",
            "ParseError",
            "ParseError",
            "InvalidRequest",
            "ServerNotReady",
            null,
            "MethodNotFound",
            "ParseError"
        ])
    );
    assert_eq!(client.ask("ping", json!({})).await, json!({ "ok": true }));
}

#[tokio::test]
async fn over_pipes_the_end_of_the_input_stops_the_turn_and_its_end_is_written() {
    let rig = rig(None).await;
    rig.hangs("slowly");
    let (theirs, ours) = tokio::io::duplex(64 * 1024);
    let (mut to, mut from) = {
        let (from, to) = tokio::io::split(ours);
        (to, tokio::io::BufReader::new(from))
    };
    let (input, output) = tokio::io::split(theirs);
    let serving = rig.server.serve_session_update(input, output);
    let talking = async {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
        let mut line = String::new();
        to.write_all(b"{\"kind\":\"request\",\"request_id\":1,\"method\":\"initialize\"}\n")
            .await
            .unwrap();
        to.write_all(b"{\"kind\":\"request\",\"request_id\":2,\"method\":\"session/new\"}\n")
            .await
            .unwrap();
        from.read_line(&mut line).await.unwrap();
        line.clear();
        from.read_line(&mut line).await.unwrap();
        let made: Value = serde_json::from_str(&line).unwrap();
        let session = &made["result"]["session_id"];
        let prompt = json!({ "kind": "request", "request_id": 3, "method": "session/prompt",
            "params": { "session_id": session, "input": "slowly" } });
        to.write_all(format!("{prompt}\n").as_bytes())
            .await
            .unwrap();
        while !line.contains("assistant_delta") {
            line.clear();
            from.read_line(&mut line).await.unwrap();
        }
        to.shutdown().await.unwrap();
        let mut rest = Vec::new();
        loop {
            line.clear();
            if from.read_line(&mut line).await.unwrap() == 0 {
                break rest;
            }
            let message: Value = serde_json::from_str(&line).unwrap();
            rest.push(
                message["event"]["type"]
                    .as_str()
                    .unwrap_or("response")
                    .to_owned(),
            );
        }
    };

    let ((), rest) = tokio::join!(serving, talking);

    let end: Vec<_> = rest.iter().rev().take(2).rev().collect();
    assert_eq!(end, ["turn_cancelled", "response"]);
}

#[tokio::test]
async fn a_shutdown_is_answered_last_and_ends_the_connection() {
    let rig = rig(None).await;
    rig.hangs("slowly");
    let mut client = Client::ready(&rig).await;
    let session = client.session().await;
    let prompt = json!({ "session_id": session, "input": "slowly" });
    client.begin("session/prompt", prompt).await;
    client.until("assistant_delta").await;

    client.ask("shutdown", json!({})).await;

    assert!(client.types().contains(&"turn_cancelled"));
    assert!(client.next().await.is_none());
}
