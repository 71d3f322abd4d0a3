use serde_json::{Value, json};
use turnwire_spec::covel::limits::BODY_BYTES;

use crate::support::fast;

#[tokio::test]
async fn a_session_is_made_read_listed_changed_and_deleted() {
    let rig = fast().await;
    let body = json!({ "id": "tale-1", "worldId": "w", "locale": "de", "plugins": ["story"] });
    let mut record = rig.client.session_with(body.clone()).await;
    let token = record
        .as_object_mut()
        .unwrap()
        .shift_remove("ownerToken")
        .unwrap();
    assert!(token.as_str().unwrap().len() >= 32);

    assert_eq!(rig.client.get("/api/sessions/tale-1").await.json(), record);
    rig.client.session_with(json!({ "worldId": "other" })).await;
    let listed = rig.client.get("/api/sessions?worldId=w").await.json();
    assert_eq!(listed, json!({ "items": [record] }));

    let again = rig.client.post("/api/sessions", body).await;
    assert_eq!(
        (again.status, again.code().as_str()),
        (409, "session_already_exists")
    );
    let path = "/api/sessions/tale-1";
    let ended = rig
        .client
        .ask("PATCH", path, &[], Some(r#"{"status":"ended"}"#))
        .await;
    assert_eq!(ended.json()["status"], "ended");
    let revived = rig
        .client
        .ask("PATCH", path, &[], Some(r#"{"status":"active"}"#))
        .await;
    assert_eq!(
        (revived.status, revived.code().as_str()),
        (409, "session_ended")
    );
    assert_eq!(rig.client.ask("DELETE", path, &[], None).await.status, 200);
    let gone = rig.client.get(path).await;
    assert_eq!(
        (gone.status, gone.code().as_str()),
        (404, "session_not_found")
    );
    assert_eq!(gone.json()["error"], "Session not found: tale-1");
}

#[tokio::test]
async fn a_session_that_makes_no_sense_is_not_made() {
    let rig = fast().await;
    for body in [
        json!({ "id": "a b" }),
        json!({ "id": "" }),
        json!({ "worldId": "x".repeat(65) }),
        json!({ "plugins": "story" }),
        json!({ "plugins": ["nobody"] }),
        json!([]),
    ] {
        let answer = rig.client.post("/api/sessions", body.clone()).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.json()["error"].is_string());
    }
}

#[tokio::test]
async fn a_played_turn_is_in_every_query() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let frames = rig.client.turn(&session, "Hello").await;
    let turn = &frames[0]["turnId"];
    let of = |what: &str| format!("/api/sessions/{session}/{what}");

    let view = rig.client.get(&of("view")).await.json();
    assert_eq!(view["messages"][0]["content"], "Hello");
    assert_eq!(view["messages"][1]["content"], "Rain falls.");
    assert_eq!(view["messages"][1]["turnId"], *turn);
    assert_eq!(view["session"]["completedPlayerTurns"], 1);
    assert_eq!(view["execution"]["state"], "completed");
    assert_eq!(view["messagesCursor"], Value::Null);
    assert!(
        view["steps"]
            .as_array()
            .unwrap()
            .iter()
            .any(|step| step["turnId"] == *turn)
    );

    let messages = rig.client.get(&of("messages")).await.json();
    assert_eq!(messages.as_array().unwrap().len(), 2);
    let page = rig.client.get(&of("messages/page?limit=1")).await.json();
    assert_eq!(page["items"], json!([messages[1]]));
    let cursor = page["nextCursor"].as_str().unwrap();
    let before = rig
        .client
        .get(&of(&format!("messages/page?limit=1&cursor={cursor}")))
        .await
        .json();
    assert_eq!(before["items"], json!([messages[0]]));

    let trace = rig
        .client
        .get(&format!("/api/traces/{session}"))
        .await
        .json();
    let kinds: Vec<_> = trace["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["type"])
        .collect();
    assert!(kinds.contains(&&json!("llm.calling")), "{kinds:?}");
    assert_eq!(trace["nextCursor"], Value::Null);
    let turns = rig
        .client
        .get(&format!("/api/traces/{session}/turns/page"))
        .await
        .json();
    assert_eq!(turns["turns"][0]["turnId"], *turn);
    assert_eq!(turns["turns"][0]["events"][1]["eventOrder"], 1);
}

#[tokio::test]
async fn the_other_queries_answer_in_their_shapes() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    rig.client.put_datum(&session, "k", json!({ "n": 1 })).await;
    let of = async |what: &str| {
        rig.client
            .get(&format!("/api/sessions/{session}/{what}"))
            .await
            .json()
    };

    assert_eq!(of("characters").await, json!({ "items": [] }));
    assert_eq!(of("state").await, json!({ "tables": {} }));
    assert_eq!(of("approvals").await, json!({ "items": [] }));
    assert_eq!(of("runtime-jobs").await, json!({ "items": [] }));
    assert_eq!(of("execution").await, json!({ "state": "idle" }));
    assert_eq!(
        rig.client.get("/api/worlds").await.json(),
        json!({ "items": [] })
    );
    let rows = of("plugin-data/codex/notes").await;
    assert_eq!(rows["items"][0]["value"], json!({ "n": 1 }));
    assert_eq!(of("plugin-data/codex/notes/k").await["key"], "k");
    assert_eq!(
        of("plugin-data/codex/_hidden").await,
        json!({ "items": [] })
    );
    let plugins = of("plugins").await;
    assert_eq!(plugins["active"].as_array().unwrap().len(), 2);

    let health = rig.client.get("/api/health").await.json();
    for member in [
        "status",
        "version",
        "bootId",
        "timestamp",
        "storage",
        "vector",
    ] {
        assert!(health.get(member).is_some(), "{member}");
    }
}

#[tokio::test]
async fn plugins_are_switched_on_and_off() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let path = format!("/api/sessions/{session}/plugins/turnwire-fixtures");
    let off = rig.client.ask("DELETE", &path, &[], None).await.json();
    assert_eq!(off, json!({ "ok": true, "activePluginIds": ["story"] }));
    let plugins = rig
        .client
        .get(&format!("/api/sessions/{session}/plugins"))
        .await
        .json();
    let available = plugins["available"].as_array().unwrap();
    let is_ours = |plugin: &Value| plugin["id"] == "turnwire-fixtures";
    assert!(available.iter().any(is_ours), "{plugins}");
    let refused = rig.client.rpc(&session, "burst", Value::Null).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (404, "plugin_not_active")
    );
    let on = rig.client.ask("PUT", &path, &[], None).await.json();
    assert_eq!(on["activePluginIds"], json!(["story", "turnwire-fixtures"]));
}

#[tokio::test]
async fn what_leads_nowhere_is_answered_in_json() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let data = format!("/api/sessions/{session}/plugin-data/p/n/k");
    for (method, path, body, status) in [
        ("GET", "/api/nothing", None, 404),
        ("GET", "/", None, 404),
        ("DELETE", "/api/health", None, 405),
        ("POST", "/api/actions", Some("{"), 400),
        (
            "POST",
            "/api/approvals/a1/decision",
            Some(r#"{"decision":"allow"}"#),
            404,
        ),
        (
            "POST",
            "/api/approvals/a1/decision",
            Some(r#"{"decision":"maybe"}"#),
            400,
        ),
        ("PUT", &data, Some(r#"{"valu":1}"#), 400),
        ("GET", &data, None, 404),
    ] {
        let answer = rig.client.ask(method, path, &[], body).await;
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.json()["error"].is_string());
    }
}

#[tokio::test]
async fn bodies_heads_and_origins_have_their_limits() {
    let rig = fast().await;
    let long = format!("\"{}\"", "x".repeat(BODY_BYTES));
    let answer = rig
        .client
        .ask("POST", "/api/actions", &[], Some(&long))
        .await;
    assert_eq!(
        (answer.status, answer.json()["error"].as_str()),
        (413, Some("Payload Too Large"))
    );

    let foreign = [("Origin", "https://evil.test")];
    let answer = rig
        .client
        .ask("POST", "/api/sessions", &foreign, Some("{}"))
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (403, "origin_not_allowed")
    );
    for rebound in [
        &[("Host", "evil.test")][..],
        &[("Host", "evil.test"), ("Origin", "http://evil.test")],
    ] {
        for method in ["GET", "POST"] {
            let body = (method == "POST").then_some("{}");
            let answer = rig.client.ask(method, "/api/sessions", rebound, body).await;
            assert_eq!(answer.status, 403, "{method} {rebound:?}");
        }
    }
    let own = format!("http://{}", rig.client.addr);
    let own = [("Origin", own.as_str())];
    assert_eq!(
        rig.client
            .ask("POST", "/api/sessions", &own, Some("{}"))
            .await
            .status,
        201
    );

    let huge = "x".repeat(300 * 1024);
    let answer = rig
        .client
        .ask("GET", "/api/health", &[("X-Huge", &huge)], None)
        .await;
    assert_eq!(answer.status, 431);
}

#[tokio::test]
async fn an_injected_event_is_sent_and_a_reserved_one_refused() {
    let rig = fast().await;
    let session = rig.client.session_id().await;
    let mut stream = rig.client.subscribe(&format!("sessionId={session}")).await;
    stream.next().await.unwrap();
    let emit = async |topic: &str| {
        let body = json!({ "topic": topic, "sessionId": session, "payload": { "a": 1 } });
        rig.client.post("/api/events/emit", body).await
    };

    for reserved in ["session.invalidated", "system.reset"] {
        assert_eq!(emit(reserved).await.code(), "reserved_event");
    }
    assert_eq!(emit("door.opened").await.json()["ok"], true);
    let event = stream.news().await.unwrap();
    assert_eq!(event.event(), "event.emitted");
    assert_eq!(
        event.json()["payload"],
        json!({ "topic": "door.opened", "data": { "a": 1 } })
    );
    emit("plugin-data.changed").await;
    assert_eq!(stream.news().await.unwrap().event(), "plugin-data.changed");
}
