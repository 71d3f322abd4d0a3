//! One suite of tests, run on every store.

use std::sync::Arc;

use serde_json::json;
use turnwire_spec::covel::vocabulary::JobStatus;

use super::memory::MemoryStore;
use super::sqlite::SqliteStore;
use super::testing::{at, message, session, stored, tool_call, write};
use super::{Ordinal, SessionPatch, Store, StoreError, Write};
use crate::engine::ids::SessionKey;
use crate::engine::model::{
    ExecutionEnd, ExecutionRow, Job, Object, Origin, PluginDatum, Record, Session, SessionStatus,
    Shelf, TraceEvent,
};

/// A store of one kind, with what must outlive it.
struct Bench {
    store: Arc<dyn Store>,
    _folder: Option<tempfile::TempDir>,
}

async fn memory() -> Bench {
    Bench {
        store: Arc::new(MemoryStore::new()),
        _folder: None,
    }
}

async fn sqlite() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("store.sqlite"))
        .await
        .unwrap();
    Bench {
        store: Arc::new(store),
        _folder: Some(folder),
    }
}

macro_rules! on_every_store {
    ($($name:ident)*) => {
        mod on_memory {
            $(#[tokio::test]
            async fn $name() {
                let bench = super::memory().await;
                super::$name(&*bench.store).await;
            })*
        }
        mod on_sqlite {
            $(#[tokio::test]
            async fn $name() {
                let bench = super::sqlite().await;
                super::$name(&*bench.store).await;
            })*
        }
    };
}

on_every_store! {
    a_session_id_is_taken_once
    a_deleted_session_leaves_nothing_behind
    a_batch_for_a_former_life_of_the_session_is_refused
    a_batch_with_one_bad_write_changes_nothing
    sessions_are_listed_by_world_oldest_first
    messages_are_read_in_windows_that_join_without_gap
    a_message_id_is_unique_over_all_sessions
    a_message_is_adopted_by_one_turn_only
    plugin_data_are_replaced_and_removed_by_key
    records_are_replaced_in_place_and_read_by_shelf
    all_data_of_all_plugins_are_read_together
    a_logical_turn_counts_once
    changing_the_session_record_keeps_what_is_not_named
    the_latest_execution_is_the_one_that_started_last
    a_tool_call_keeps_its_place_when_its_record_is_completed
    a_job_never_goes_back
    open_jobs_are_those_without_an_end
    a_dropped_job_is_gone
    traces_keep_their_order_and_are_dropped_for_a_session_that_is_gone
}

fn datum(key: &str, value: i64) -> PluginDatum {
    PluginDatum {
        plugin_id: "codex".into(),
        namespace: "entries".into(),
        key: key.into(),
        value: json!(value),
        updated_at: at(2),
    }
}

fn execution(key: &SessionKey, turn: &str, end: Option<ExecutionEnd>) -> ExecutionRow {
    ExecutionRow {
        session_id: key.id.clone(),
        turn_id: turn.into(),
        logical_turn_id: turn.into(),
        request_id: "rq-1".into(),
        trace_id: "tr-1".into(),
        origin: Origin::Player,
        retry: None,
        input_message_id: None,
        started_at: at(3),
        end,
    }
}

fn job(key: &SessionKey, id: &str, status: JobStatus, sequence: u64) -> Job {
    Job {
        id: id.into(),
        session_id: key.id.clone(),
        plugin_id: "codex".into(),
        runtime_id: "painter".into(),
        status,
        sequence,
        attempt: 0,
        payload: json!(null),
        progress: None,
        message: None,
        source_turn_id: None,
        result: None,
        error: None,
        enqueued_at: at(4),
        updated_at: at(4),
        started_at: None,
        finished_at: None,
    }
}

async fn a_session_id_is_taken_once(store: &dyn Store) {
    stored(store, "s-1").await;

    let again = store.create_session(&session("s-1", "second", 5)).await;

    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    assert_eq!(
        store.session(&"s-1".into()).await.unwrap(),
        Some(session("s-1", "first", 0))
    );
}

async fn a_deleted_session_leaves_nothing_behind(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let writes = vec![
        Write::InsertMessage(message(&key, "m-1")),
        Write::PutDatum(datum("a", 1)),
        Write::Execution(execution(&key, "t-1", None)),
        Write::ToolCall(tool_call(&key, 0, false)),
        Write::CountTurn("t-1".into()),
        Write::Job(job(&key, "j-1", JobStatus::Queued, 0)),
        Write::PutRecord(Record {
            shelf: Shelf::Snapshot,
            id: "r-1".into(),
            doc: json!(1),
        }),
    ];
    write(store, &key, writes).await.unwrap();

    assert!(store.delete_session(&key).await.unwrap());
    assert!(!store.delete_session(&key).await.unwrap());
    let again = session("s-1", "second", 9);
    store.create_session(&again).await.unwrap();

    let id = &key.id;
    assert_eq!(store.messages(id).await.unwrap(), []);
    assert_eq!(store.message(&"m-1".into()).await.unwrap(), None);
    assert_eq!(
        store
            .plugin_data(id, &"codex".into(), "entries")
            .await
            .unwrap(),
        []
    );
    assert_eq!(store.latest_execution(id).await.unwrap(), None);
    assert_eq!(store.executions(id).await.unwrap(), []);
    assert_eq!(store.tool_calls(id).await.unwrap(), []);
    assert_eq!(store.jobs(id).await.unwrap(), []);
    let records = store.records(id, Shelf::Snapshot).await.unwrap();
    assert_eq!(records, []);
    write(store, &again.key(), vec![Write::CountTurn("t-1".into())])
        .await
        .unwrap();
    assert_eq!(
        store
            .session(id)
            .await
            .unwrap()
            .unwrap()
            .completed_player_turns,
        1
    );
}

async fn a_batch_for_a_former_life_of_the_session_is_refused(store: &dyn Store) {
    let former = stored(store, "s-1").await;
    store.delete_session(&former).await.unwrap();
    store
        .create_session(&session("s-1", "second", 9))
        .await
        .unwrap();

    let late = write(store, &former, vec![Write::PutDatum(datum("a", 1))]).await;

    assert_eq!(late, Err(StoreError::Gone("s-1".into())));
    assert_eq!(
        store
            .plugin_data(&"s-1".into(), &"codex".into(), "entries")
            .await
            .unwrap(),
        []
    );
}

async fn a_batch_with_one_bad_write_changes_nothing(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    write(
        store,
        &key,
        vec![Write::InsertMessage(message(&key, "m-1"))],
    )
    .await
    .unwrap();

    let writes = vec![
        Write::PutDatum(datum("a", 1)),
        Write::CountTurn("t-1".into()),
        Write::InsertMessage(message(&key, "m-2")),
        Write::InsertMessage(message(&key, "m-1")),
    ];
    let refused = write(store, &key, writes).await;

    assert!(
        matches!(refused, Err(StoreError::Conflict(_))),
        "{refused:?}"
    );
    assert_eq!(store.messages(&key.id).await.unwrap().len(), 1);
    assert_eq!(
        store
            .plugin_data(&key.id, &"codex".into(), "entries")
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        store
            .session(&key.id)
            .await
            .unwrap()
            .unwrap()
            .completed_player_turns,
        0
    );
}

async fn sessions_are_listed_by_world_oldest_first(store: &dyn Store) {
    for (id, world, created) in [("b", Some("w"), 2), ("a", Some("w"), 1), ("c", None, 0)] {
        let session = Session {
            world_id: world.map(Into::into),
            ..session(id, id, created)
        };
        store.create_session(&session).await.unwrap();
    }
    let ids = |sessions: Vec<Session>| {
        sessions
            .into_iter()
            .map(|s| s.id.to_string())
            .collect::<Vec<_>>()
    };

    assert_eq!(ids(store.sessions(None).await.unwrap()), ["c", "a", "b"]);
    assert_eq!(ids(store.sessions(Some("w")).await.unwrap()), ["a", "b"]);
    assert_eq!(ids(store.sessions(Some("x")).await.unwrap()), [""; 0]);
}

async fn messages_are_read_in_windows_that_join_without_gap(store: &dyn Store) {
    let other = stored(store, "s-0").await;
    let key = stored(store, "s-1").await;
    for n in 0..7 {
        write(
            store,
            &key,
            vec![Write::InsertMessage(message(&key, &format!("m-{n}")))],
        )
        .await
        .unwrap();
        write(
            store,
            &other,
            vec![Write::InsertMessage(message(&other, &format!("o-{n}")))],
        )
        .await
        .unwrap();
    }

    let mut before = None;
    let mut seen = Vec::new();
    loop {
        let page = store.messages_before(&key.id, before, 3).await.unwrap();
        let ids: Vec<_> = page.rows.iter().map(|m| m.id.to_string()).collect();
        seen.splice(0..0, ids);
        match page.first {
            Some(first) => before = Some(first),
            None => break,
        }
    }

    assert_eq!(seen, ["m-0", "m-1", "m-2", "m-3", "m-4", "m-5", "m-6"]);
    assert_eq!(
        store
            .messages_before(&key.id, Some(Ordinal(0)), 3)
            .await
            .unwrap()
            .rows,
        []
    );
    assert_eq!(store.messages(&key.id).await.unwrap().len(), 7);
}

async fn a_message_id_is_unique_over_all_sessions(store: &dyn Store) {
    let first = stored(store, "s-1").await;
    let second = stored(store, "s-2").await;
    write(
        store,
        &first,
        vec![Write::InsertMessage(message(&first, "m-1"))],
    )
    .await
    .unwrap();

    let taken = write(
        store,
        &second,
        vec![Write::InsertMessage(message(&second, "m-1"))],
    )
    .await;

    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    let owner = store
        .message(&"m-1".into())
        .await
        .unwrap()
        .unwrap()
        .session_id;
    assert_eq!(owner.as_str(), "s-1");
}

async fn a_message_is_adopted_by_one_turn_only(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let adopt = |turn: &str| Write::AdoptMessage {
        id: "m-1".into(),
        turn: turn.into(),
    };
    assert!(
        write(store, &key, vec![adopt("t-1")]).await.is_err(),
        "no such message"
    );

    let together = vec![Write::InsertMessage(message(&key, "m-1")), adopt("t-1")];
    write(store, &key, together).await.unwrap();
    write(store, &key, vec![adopt("t-1")]).await.unwrap();

    let other = write(store, &key, vec![adopt("t-2")]).await;
    assert!(matches!(other, Err(StoreError::Conflict(_))), "{other:?}");
    let stored = store.messages(&key.id).await.unwrap().remove(0);
    assert_eq!(stored.turn_id, Some("t-1".into()));
    assert_eq!(stored.created_at, at(1));
}

async fn plugin_data_are_replaced_and_removed_by_key(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let writes = vec![
        Write::PutDatum(datum("b", 1)),
        Write::PutDatum(datum("a", 2)),
    ];
    write(store, &key, writes).await.unwrap();
    write(store, &key, vec![Write::PutDatum(datum("b", 3))])
        .await
        .unwrap();

    let plugin = "codex".into();
    let rows = store
        .plugin_data(&key.id, &plugin, "entries")
        .await
        .unwrap();
    assert_eq!(rows, [datum("a", 2), datum("b", 3)]);
    assert_eq!(
        store.plugin_data(&key.id, &plugin, "other").await.unwrap(),
        []
    );

    let delete = Write::DeleteDatum {
        plugin: plugin.clone(),
        namespace: "entries".into(),
        key: "a".into(),
    };
    write(store, &key, vec![delete.clone(), delete])
        .await
        .unwrap();
    assert_eq!(
        store
            .plugin_data(&key.id, &plugin, "entries")
            .await
            .unwrap(),
        [datum("b", 3)]
    );
}

async fn records_are_replaced_in_place_and_read_by_shelf(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let record = |shelf, id: &str, n: i64| Record {
        shelf,
        id: id.into(),
        doc: json!({ "n": n }),
    };
    let put = |record: Record| Write::PutRecord(record);
    let writes = vec![
        put(record(Shelf::Suspension, "a", 1)),
        put(record(Shelf::Suspension, "b", 2)),
        put(record(Shelf::Snapshot, "a", 3)),
    ];
    write(store, &key, writes).await.unwrap();
    let again = vec![put(record(Shelf::Suspension, "a", 4))];
    write(store, &key, again).await.unwrap();

    let kept = store.records(&key.id, Shelf::Suspension).await.unwrap();

    assert_eq!(
        kept,
        [
            record(Shelf::Suspension, "a", 4),
            record(Shelf::Suspension, "b", 2)
        ]
    );
    let other = store.records(&key.id, Shelf::Snapshot).await.unwrap();
    assert_eq!(other, [record(Shelf::Snapshot, "a", 3)]);
    let none = store.records(&"s-2".into(), Shelf::Snapshot).await.unwrap();
    assert_eq!(none, []);
}

async fn all_data_of_all_plugins_are_read_together(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let of = |plugin: &str, name: &str| PluginDatum {
        plugin_id: plugin.into(),
        ..datum(name, 1)
    };
    let writes = [of("b", "k"), of("a", "z"), of("a", "k")].map(Write::PutDatum);
    write(store, &key, writes.into()).await.unwrap();

    let all = store.all_plugin_data(&key.id).await.unwrap();

    assert_eq!(all, [of("a", "k"), of("a", "z"), of("b", "k")]);
}

async fn a_logical_turn_counts_once(store: &dyn Store) {
    let key = stored(store, "s-1").await;

    for turn in ["t-1", "t-1", "t-2"] {
        write(store, &key, vec![Write::CountTurn(turn.into())])
            .await
            .unwrap();
    }

    assert_eq!(
        store
            .session(&key.id)
            .await
            .unwrap()
            .unwrap()
            .completed_player_turns,
        2
    );
    assert_eq!(
        store.sessions(None).await.unwrap()[0].completed_player_turns,
        2
    );
}

async fn changing_the_session_record_keeps_what_is_not_named(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let paused = SessionPatch {
        status: Some(SessionStatus::Paused),
        ..SessionPatch::at(at(5))
    };
    let plugins = SessionPatch {
        active_plugins: Some(vec![]),
        ..SessionPatch::at(at(6))
    };

    let writes = vec![
        Write::CountTurn("t-1".into()),
        Write::PatchSession(paused),
        Write::PatchSession(plugins),
    ];
    write(store, &key, writes).await.unwrap();

    let expected = Session {
        status: SessionStatus::Paused,
        active_plugins: vec![],
        completed_player_turns: 1,
        updated_at: at(6),
        ..session("s-1", "first", 0)
    };
    assert_eq!(store.session(&key.id).await.unwrap(), Some(expected));
}

async fn the_latest_execution_is_the_one_that_started_last(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    assert_eq!(store.latest_execution(&key.id).await.unwrap(), None);
    let end = ExecutionEnd {
        committed: true,
        error: None,
        abort_reason: None,
        ended_at: at(8),
    };

    for (turn, end) in [("t-2", None), ("t-1", None), ("t-2", Some(end.clone()))] {
        write(
            store,
            &key,
            vec![Write::Execution(execution(&key, turn, end))],
        )
        .await
        .unwrap();
    }

    assert_eq!(
        store.latest_execution(&key.id).await.unwrap(),
        Some(execution(&key, "t-1", None))
    );
    let former = store.execution(&key.id, &"t-2".into()).await.unwrap();
    assert_eq!(former, Some(execution(&key, "t-2", Some(end))));
}

async fn a_tool_call_keeps_its_place_when_its_record_is_completed(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    for (nth, end) in [(0, false), (1, false), (0, true)] {
        let record = tool_call(&key, nth, end);
        write(store, &key, vec![Write::ToolCall(record)])
            .await
            .unwrap();
    }

    assert_eq!(
        store.tool_calls(&key.id).await.unwrap(),
        [tool_call(&key, 0, true), tool_call(&key, 1, false)]
    );
}

async fn a_job_never_goes_back(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    write(
        store,
        &key,
        vec![Write::Job(job(&key, "j-1", JobStatus::Queued, 0))],
    )
    .await
    .unwrap();
    write(
        store,
        &key,
        vec![Write::Job(job(&key, "j-1", JobStatus::Running, 1))],
    )
    .await
    .unwrap();

    let again = write(
        store,
        &key,
        vec![Write::Job(job(&key, "j-1", JobStatus::Failed, 1))],
    )
    .await;

    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    let stored = store.job(&key.id, &"j-1".into()).await.unwrap().unwrap();
    assert_eq!(stored.status, JobStatus::Running);
}

async fn open_jobs_are_those_without_an_end(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let writes = vec![
        Write::Job(job(&key, "j-1", JobStatus::Succeeded, 2)),
        Write::Job(job(&key, "j-2", JobStatus::Queued, 0)),
        Write::Job(job(&key, "j-3", JobStatus::Running, 1)),
    ];
    write(store, &key, writes).await.unwrap();

    let open = store.open_jobs().await.unwrap();

    assert_eq!(
        open.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(),
        ["j-2", "j-3"]
    );
    assert_eq!(store.jobs(&key.id).await.unwrap().len(), 3);
}

async fn a_dropped_job_is_gone(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    write(
        store,
        &key,
        vec![Write::Job(job(&key, "j-1", JobStatus::Failed, 2))],
    )
    .await
    .unwrap();

    let drop = Write::DropJob("j-1".into());
    write(store, &key, vec![drop.clone(), drop]).await.unwrap();

    assert_eq!(store.jobs(&key.id).await.unwrap(), []);
}

async fn traces_keep_their_order_and_are_dropped_for_a_session_that_is_gone(store: &dyn Store) {
    let key = stored(store, "s-1").await;
    let trace = |n: i64| TraceEvent {
        id: format!("e-{n}"),
        session_id: key.id.clone(),
        kind: "hook.fired".into(),
        turn_id: "t-1".into(),
        trace_id: "tr-1".into(),
        payload: Object::from_iter([("n".to_owned(), json!(n))]),
        timestamp: at(n),
    };
    store
        .append_traces(&key, &[trace(0), trace(1)])
        .await
        .unwrap();
    store.append_traces(&key, &[trace(2)]).await.unwrap();

    let newest = store.traces_before(&key.id, None, 2).await.unwrap();
    assert_eq!(newest.rows, [trace(1), trace(2)]);
    let older = store.traces_before(&key.id, newest.first, 2).await.unwrap();
    assert_eq!(older.rows, [trace(0)]);

    store.delete_session(&key).await.unwrap();
    store.append_traces(&key, &[trace(3)]).await.unwrap();
    assert_eq!(
        store.traces_before(&key.id, None, 9).await.unwrap().rows,
        []
    );
}
