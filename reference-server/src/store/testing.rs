//! Builders for tests that need something in a store.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Batch, Purpose, Store, StoreError, Write};
use crate::engine::ids::{Incarnation, SessionKey};
use crate::engine::model::{
    Message, Phase, Role, Session, SessionStatus, ToolEnd, ToolOutcome, ToolRecord,
};

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

pub(crate) fn session(id: &str, life: &str, created_ms: i64) -> Session {
    Session {
        id: id.into(),
        incarnation: Incarnation::of_nonce(life.as_bytes()),
        world_id: None,
        status: SessionStatus::Active,
        phase: Phase::Playing,
        completed_player_turns: 0,
        setup_runtimes: BTreeMap::new(),
        locale: "en".into(),
        active_plugins: vec!["story".into()],
        created_at: at(created_ms),
        updated_at: at(created_ms),
        owner_hash: [7; 32],
    }
}

pub(crate) async fn stored(store: &dyn Store, id: &str) -> SessionKey {
    let session = session(id, "first", 0);
    store.create_session(&session).await.unwrap();
    session.key()
}

pub(crate) async fn write(
    store: &dyn Store,
    key: &SessionKey,
    writes: Vec<Write>,
) -> Result<(), StoreError> {
    store
        .commit(Batch {
            session: key.clone(),
            purpose: Purpose::Outside,
            writes,
        })
        .await
}

pub(crate) fn message(key: &SessionKey, id: &str) -> Message {
    Message {
        id: id.into(),
        session_id: key.id.clone(),
        role: Role::User,
        content: format!("text of {id}"),
        turn_id: None,
        runtime_id: None,
        kind: None,
        block: None,
        actions: None,
        segments: None,
        created_at: at(1),
    }
}

pub(crate) fn tool_call(key: &SessionKey, nth: u64, ended: bool) -> ToolRecord {
    let end = ToolEnd {
        outcome: ToolOutcome::Completed,
        result: "{}".into(),
        error: None,
        duration_ms: 3,
        ended_at: at(5),
    };
    ToolRecord {
        session_id: key.id.clone(),
        turn_id: "t-1".into(),
        runtime_id: "story".into(),
        call_id: "call".into(),
        nth,
        step: 1,
        name: "emit-event".into(),
        arguments: "{}".into(),
        requested_at: at(2),
        end: ended.then_some(end),
    }
}

/// A stored session with messages `m-0`, `m-1`, ...
pub(crate) async fn session_with_messages(store: &dyn Store, count: usize) -> SessionKey {
    let key = stored(store, "s-1").await;
    for n in 0..count {
        write(
            store,
            &key,
            vec![Write::InsertMessage(message(&key, &format!("m-{n}")))],
        )
        .await
        .unwrap();
    }
    key
}
