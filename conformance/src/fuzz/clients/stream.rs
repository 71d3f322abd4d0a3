//! Playing a case of `sse`: one stream of random lines, and what a reader must have read of it.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use turnwire_spec::sse::{Decoder, Limits};

use super::{
    bytes::{ENDS, LINES, pieces},
    case::{Case, Step},
};
use crate::{
    drivers::{DriveError, scripted::Reply},
    stage::ClientStage,
};

/// Name of the label, and of the path.
const LABEL: &str = "fuzzed";
/// The last event of every stream: what came before cannot run into it.
const LAST: &str = "\n\nevent: two\ndata: last\n\n";

/// Plays a case with a fresh reader. What is wrong, in words; nothing when all is well.
///
/// # Errors
///
/// When the reader does not start.
pub(super) async fn play(stage: &ClientStage, case: &Case) -> Result<Option<String>, DriveError> {
    stage.begin(LABEL).await?;
    let what = read(stage, case).await.err();
    stage.end().await;
    Ok(what)
}

async fn read(stage: &ClientStage, case: &Case) -> Result<(), String> {
    let mut asked = match stage.request().await {
        Some(asked) => asked,
        None => {
            return Err(match stage.ended().await {
                Some(why) => format!("it ended: {why}"),
                None => "it does not connect".to_owned(),
            });
        }
    };
    asked.open_events().await;
    let mut whole = b"retry: 30\n".to_vec();
    asked.send(&whole).await;
    for step in &case.steps {
        let Step::Line {
            line,
            end,
            pieces: length,
        } = step
        else {
            continue;
        };
        let line = LINES[usize::from(*line) % LINES.len()];
        let bytes = [line, ENDS[usize::from(*end) % ENDS.len()]].concat();
        for piece in pieces(&bytes, *length) {
            asked.send(piece).await;
        }
        whole.extend(bytes);
    }
    asked.send(LAST).await;
    asked.finish().await;
    whole.extend(LAST.as_bytes());
    let wanted = model(&whole);
    let seen = Mutex::new((Vec::new(), false));
    let fits = |reports: &[Value]| {
        let events: Vec<Value> = reports
            .iter()
            .filter_map(|report| report.get("event").cloned())
            .collect();
        let fits = events == wanted || is_whole(&events);
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = (events, !reports.is_empty());
        fits
    };
    let heard = stage.heard(fits, stage.longest()).await;
    let (seen, reports) = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = stage.ended().await {
        return Err(format!("it ended: {why}"));
    }
    // Of a reader that reports nothing, no events are known.
    if (heard || reports)
        && let Some(what) = difference(&wanted, &seen)
    {
        return Err(what);
    }
    // It is still there, and comes back.
    match stage.request().await {
        Some(mut again) => {
            again.reply(Reply::empty(204)).await;
            Ok(())
        }
        None => Err(match stage.ended().await {
            Some(why) => format!("it ended: {why}"),
            None => "it does not connect again".to_owned(),
        }),
    }
}

/// Whether the last event is among them, right or wrong: nothing of the stream comes after it, and nobody need wait.
fn is_whole(events: &[Value]) -> bool {
    let last = events.last();
    last.is_some_and(|last| last["type"] == "two" && last["data"] == "last")
}

/// The events of a stream, as they are reported.
fn model(bytes: &[u8]) -> Vec<Value> {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(Limits::NONE);
    // Without limits there is no overflow.
    let _ = decoder.feed(bytes, |event| {
        events.push(json!({
            "type": event.event, "data": event.data, "lastEventId": event.last_event_id,
        }));
    });
    decoder.finish();
    events
}

/// What differs first.
fn difference(wanted: &[Value], seen: &[Value]) -> Option<String> {
    let place =
        (0..wanted.len().max(seen.len())).find(|place| wanted.get(*place) != seen.get(*place))?;
    let show = |events: &[Value]| {
        events
            .get(place)
            .map_or_else(|| "nothing".to_owned(), Value::to_string)
    };
    Some(format!(
        "events: number {} is {}, it reads {}",
        place + 1,
        show(wanted),
        show(seen)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_told_the_last_event_is_not_waited_for_whatever_it_told_before() {
        let event =
            |kind: &str, data: &str| json!({ "type": kind, "data": data, "lastEventId": "7" });
        assert!(is_whole(&[event("message", ""), event("two", "last")]));
        assert!(!is_whole(&[event("two", "last"), event("message", "a")]));
        assert!(!is_whole(&[event("message", "last")]));
        assert!(!is_whole(&[]));
        let whole = model(LAST.as_bytes());
        assert!(is_whole(&whole), "{whole:?}");
    }
}
