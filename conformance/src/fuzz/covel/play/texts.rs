//! What a case stores and says, and what frames tell of it.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_spec::cursor::CursorBuf;

use crate::{
    drivers::{DriveError, http::Reading},
    fuzz::covel::NAMESPACE,
    stage::{Session, Stage},
    transcript::views::{covel::cursor, stream::StreamFrame},
};

/// Stores values with these numbers.
pub(super) async fn store(
    stage: &Stage,
    session: &Session,
    first: u32,
    count: u8,
) -> Result<(), DriveError> {
    let plugin = stage.data_plugin().to_owned();
    for number in first..first + u32::from(count) {
        stage
            .put_plugin_data(session, &plugin, NAMESPACE, &key(number), value(number))
            .await?;
    }
    Ok(())
}

/// Few keys, so that values replace each other.
pub(super) fn key(number: u32) -> String {
    format!("k{}", number % 3)
}

pub(super) fn value(number: u32) -> Value {
    json!({ "w": number })
}

pub(super) fn text(words: u8) -> String {
    const WORDS: [&str; 5] = ["The", "river", "rises", "over", "night."];
    let words = WORDS.iter().cycle().take(usize::from(words.max(1)));
    words.copied().collect::<Vec<_>>().join(" ")
}

/// The cursor so many events further.
pub(super) fn after(at: &CursorBuf, events: i64) -> String {
    let seq = at.seq.saturating_add_signed(events);
    CursorBuf::new(at.epoch.clone(), seq).to_string()
}

/// The position that a frame tells.
pub(super) fn told(frame: &StreamFrame) -> Option<CursorBuf> {
    let text = match frame.event_type() {
        "system.connected" | "system.reset" => frame.member("cursor")?.as_str()?,
        _ => frame.frame.id()?,
    };
    cursor(text)
}

/// The cursor of a client after these frames: that of an event or a reset; that of `system.connected` only for a
/// client that has none.
pub(super) fn learn(position: &mut Option<String>, frames: &[StreamFrame]) {
    for frame in frames.iter().filter(|frame| frame.frame.terminated) {
        let known = frame.event_type() == "system.connected" && position.is_some();
        if let Some(at) = told(frame).filter(|_| !known) {
            *position = Some(at.to_string());
        }
    }
}

pub(super) fn holds(frame: &StreamFrame, number: u32) -> bool {
    let value = frame.pointer("/payload/changes/0/value/w");
    value.and_then(Value::as_u64) == Some(number.into())
}

/// Waits until the event of a value has come, or nothing more comes.
pub(super) async fn wait_for_value(reading: &Reading, number: u32, within: Duration) {
    // As long as something comes, the rest may be on its way.
    let mut looked_at = 0;
    loop {
        let from = looked_at;
        let has = |frames: &[StreamFrame]| {
            let new = frames.get(from..).unwrap_or_default();
            new.iter().any(|frame| holds(frame, number)).then_some(())
        };
        let found = reading.wait_until(within, has).await.is_some();
        looked_at = reading.mark();
        if found || looked_at == from || reading.ended().is_some() {
            return;
        }
    }
}
