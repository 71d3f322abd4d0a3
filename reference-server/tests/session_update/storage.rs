//! What a session leaves in the store.

use serde_json::json;
use sqlx::Row as _;
use turnwire_mock::{Reply, Rule, Script};

use crate::support::{Client, rig};

/// SUP-027: a turn that a hundred deltas told of leaves as many rows as one that a few did.
#[tokio::test]
async fn a_turn_is_stored_as_facts_however_many_events_told_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.db");
    let rig = rig(Some(&file)).await;
    for (word, pieces) in [("briefly", 2), ("at length", 100)] {
        let reply = Reply::new().pieces(vec!["rain "; pieces]);
        rig.mock.load(Script::from(Rule::on(word).reply(reply)));
    }
    let mut client = Client::ready(&rig).await;
    let mut rows = Vec::new();
    for word in ["briefly", "at length"] {
        let session = client.session().await;
        let before = client.events.len();
        client
            .ask(
                "session/prompt",
                json!({ "session_id": session, "input": word }),
            )
            .await;
        rows.push((client.events.len() - before, stored(&file, &session).await));
    }

    assert!(rows[1].0 > rows[0].0 + 90, "{rows:?}");
    assert_eq!(rows[0].1, rows[1].1);
}

/// How many rows each table has of a session.
async fn stored(file: &std::path::Path, session: &str) -> Vec<(String, i64)> {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let tables = sqlx::query(
        "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND c.name = 'session_id' ORDER BY m.name",
    );
    let mut found = Vec::new();
    for row in tables.fetch_all(&pool).await.unwrap() {
        let table: String = row.get(0);
        let sql = format!("SELECT count(*) FROM {table} WHERE session_id = ?1");
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(session);
        found.push((table, count.fetch_one(&pool).await.unwrap()));
    }
    found
}
