//! What only a store in a file has: a life after the process, a schema version, room to keep.

use super::sqlite::SqliteStore;
use super::testing::{at, message, stored, write};
use super::{Store, TRACES_KEPT, Write};
use crate::engine::model::{Object, TraceEvent};

#[tokio::test]
async fn a_file_is_read_again_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let first = SqliteStore::open(&path).await.unwrap();
    let key = stored(&first, "s-1").await;
    write(
        &first,
        &key,
        vec![Write::InsertMessage(message(&key, "m-1"))],
    )
    .await
    .unwrap();
    // No close: the process died.
    std::mem::forget(first);

    let second = SqliteStore::open(&path).await.unwrap();

    assert_eq!(
        second.messages(&key.id).await.unwrap(),
        [message(&key, "m-1")]
    );
}

#[tokio::test]
async fn a_file_of_another_schema_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("PRAGMA user_version = 99")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;

    let refused = SqliteStore::open(&path).await.unwrap_err();

    assert!(refused.to_string().contains("version 99"), "{refused}");
}

#[tokio::test]
async fn old_traces_are_dropped_and_new_ones_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("store.sqlite"))
        .await
        .unwrap();
    let key = stored(&store, "s-1").await;
    let trace = |n: usize| TraceEvent {
        id: format!("e-{n}"),
        session_id: key.id.clone(),
        kind: "hook.fired".into(),
        turn_id: "t-1".into(),
        trace_id: "tr-1".into(),
        payload: Object::new(),
        timestamp: at(1),
    };
    let many: Vec<_> = (0..TRACES_KEPT + 50).map(trace).collect();
    store.append_traces(&key, &many).await.unwrap();

    for n in 0..256 {
        store
            .append_traces(&key, &[trace(many.len() + n)])
            .await
            .unwrap();
    }

    let kept = store
        .traces_before(&key.id, None, usize::MAX)
        .await
        .unwrap()
        .rows;
    assert!(
        kept.len() >= TRACES_KEPT && kept.len() < many.len() + 256,
        "{}",
        kept.len()
    );
    assert_eq!(kept.last().unwrap().id, format!("e-{}", many.len() + 255));
}
