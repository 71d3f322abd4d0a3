//! One turn of a session: what happens in it as frames, and the frames that are kept.
//!
//! ```text
//! begins ──> text, tools, boundaries ──> [notice] ──> complete ──> lingers ──> gone
//! ```
//!
//! An assistant message ends with `chat:message_boundary`: when the model has answered, or its text is void.
//! What was sent is never taken back.
//!
//! Source: seed 004, lines 37-41, 46 and 49; public sources for the usage of several model calls.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use turnwire_spec::chat_ws::server::{
    Active, Complete, Notice, Place, Response, Routing, ToolCall, ToolStart, Usage,
};
use turnwire_spec::chat_ws::{NoticeKind, ServerFrame, TurnNotice, limits};
use turnwire_spec::covel::payloads::models;
use turnwire_spec::covel::vocabulary::StopReason;

use super::hub::SocketId;
use crate::engine::happening::Happened;
use crate::engine::ids::SessionId;
use crate::engine::model::{ExecutionRow, ToolOutcome, ToolRecord};
use crate::gateway::ErrorKind;

/// Bytes of frames that are kept of one turn; the oldest frames go first.
const KEPT_BYTES: usize = 8 << 20;

/// A frame that waits for its number.
pub(super) type Numbered = Box<dyn FnOnce(Routing) -> ServerFrame>;

/// One turn.
pub(super) struct Turn {
    /// Its place among the turns of this process.
    pub(super) number: u64,
    /// The socket that asked for it.
    pub(super) origin: Option<SocketId>,
    /// When it ended.
    pub(super) ended: Option<Instant>,
    job: String,
    place: Place,
    model: Option<String>,
    next: u64,
    kept: VecDeque<(u64, Utf8Bytes)>,
    /// How many are kept.
    most: usize,
    kept_bytes: usize,
    /// Whether text was sent since the last boundary.
    speaking: bool,
    usage: Option<models::Usage>,
    most_output: u64,
    failure: Option<Failure>,
}

/// Why a runtime of the turn failed.
struct Failure {
    error: String,
    kind: Option<ErrorKind>,
    stop: Option<StopReason>,
}

impl Turn {
    pub(super) fn new(
        number: u64,
        job: &str,
        place: Place,
        origin: Option<SocketId>,
        model: Option<String>,
        most: usize,
    ) -> Self {
        Self {
            number,
            origin,
            ended: None,
            job: job.to_owned(),
            place,
            model,
            next: 0,
            kept: VecDeque::new(),
            most,
            kept_bytes: 0,
            speaking: false,
            usage: None,
            most_output: 0,
            failure: None,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn active(&self, session: &SessionId) -> Active {
        Active {
            project_slug: self.place.project_slug.clone(),
            target: self.place.target.clone(),
            session_id: session.as_str().to_owned(),
            job_id: Some(self.job.clone()),
            running: true,
        }
    }

    /// Gives a frame the next number and keeps it; the oldest frames make room.
    pub(super) fn keep(&mut self, frame: Numbered) -> Utf8Bytes {
        let seq = self.next;
        self.next += 1;
        let text: Utf8Bytes = frame(Routing {
            project_slug: self.place.project_slug.clone(),
            target: self.place.target.clone(),
            session_id: Some(self.place.session_id.clone()),
            job_id: Some(self.job.clone()),
            seq,
        })
        .to_text()
        .into();
        self.kept_bytes += text.len();
        self.kept.push_back((seq, text.clone()));
        while self.kept.len() > self.most || (self.kept_bytes > KEPT_BYTES && self.kept.len() > 1) {
            if let Some((_, oldest)) = self.kept.pop_front() {
                self.kept_bytes -= oldest.len();
            }
        }
        text
    }

    /// The frames after a number; `None` when some of them are gone.
    pub(super) fn after(&self, last: f64) -> Option<impl Iterator<Item = &Utf8Bytes>> {
        let oldest = self.kept.front().map_or(self.next, |(seq, _)| *seq);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a turn has fewer than 2^52 frames"
        )]
        let reaches = |seq: u64| seq as f64;
        let missed = last < reaches(oldest) - 1.0;
        let newer = self
            .kept
            .iter()
            .filter(move |(seq, _)| reaches(*seq) > last)
            .map(|(_, text)| text);
        (!missed).then_some(newer)
    }

    /// What happens between the start and the end.
    pub(super) fn during(&mut self, what: &Happened) -> Vec<Numbered> {
        match what {
            Happened::Text { delta } if !delta.is_empty() => {
                self.speaking = true;
                vec![response(delta)]
            }
            Happened::TextVoided { .. } => self.boundary(),
            Happened::Usage(usage) => {
                self.count(usage);
                self.boundary()
            }
            Happened::ToolRequested(record) => vec![tool_start(record)],
            Happened::ToolEnded(record) => tool_call(record).into_iter().collect(),
            Happened::RuntimeFailed { error, kind, stop } => {
                self.failure.get_or_insert(Failure {
                    error: error.clone(),
                    kind: *kind,
                    stop: *stop,
                });
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The frames of a slash command.
    pub(super) fn command(&mut self, note: &str, success: bool) -> Vec<Numbered> {
        self.speaking = true;
        self.model = None;
        let mut frames = vec![response(note)];
        frames.extend(self.boundary());
        let error = (!success).then(|| note.to_owned());
        frames.push(complete(success, error, None, None));
        frames
    }

    /// The frames of the end.
    pub(super) fn end(
        &mut self,
        row: &ExecutionRow,
        limit: impl Fn(Option<&str>) -> u64,
    ) -> Vec<Numbered> {
        let mut frames = self.boundary();
        let end = row.end.as_ref();
        let success = end.is_some_and(|end| end.committed);
        let error = end.and_then(|end| end.error.clone());
        let was_stopped = end.is_some_and(|end| end.abort_reason.is_some());
        if !success && !was_stopped {
            let notice = self.notice(error.as_deref().unwrap_or("the turn failed"));
            frames.push(Box::new(|routing| {
                ServerFrame::Notice(Notice { routing, notice })
            }));
        }
        let limit = limit(self.model.as_deref());
        let usage = self.usage.as_ref().map(|usage| {
            let (read, creation) = (
                usage.cached_input_tokens.unwrap_or_default(),
                usage.cache_write_input_tokens.unwrap_or_default(),
            );
            let input = usage.input_tokens.saturating_sub(read + creation);
            Usage::of(input, self.most_output, read, creation, limit)
        });
        let model = usage.and_then(|_| self.model.clone());
        frames.push(complete(success, error, model, usage));
        frames
    }

    /// Ends the assistant message that is open.
    fn boundary(&mut self) -> Vec<Numbered> {
        if std::mem::take(&mut self.speaking) {
            vec![Box::new(ServerFrame::Boundary)]
        } else {
            Vec::new()
        }
    }

    /// Of several model calls, the one with the largest context counts, the later one of two.
    fn count(&mut self, usage: &models::Usage) {
        if usage.input_tokens == 0 && usage.output_tokens == 0 {
            return;
        }
        self.most_output = self.most_output.max(usage.output_tokens);
        let largest = self.usage.as_ref().map_or(0, |usage| usage.input_tokens);
        if usage.input_tokens >= largest {
            self.usage = Some(usage.clone());
        }
    }

    fn notice(&self, error: &str) -> TurnNotice {
        let failure = self.failure.as_ref();
        let kind = failure.and_then(|failure| failure.kind);
        let told = failure.map_or(error, |failure| failure.error.as_str());
        let (word, message, retryable) = match (kind, failure.and_then(|failure| failure.stop)) {
            (Some(ErrorKind::RateLimited), _) => (NoticeKind::UsageLimit, told, false),
            (None, Some(StopReason::MaxSteps)) => {
                (NoticeKind::MaxTurns, "The turn took too many rounds.", true)
            }
            (kind, _) => {
                let hopeless = matches!(
                    kind,
                    Some(
                        ErrorKind::MissingKey
                            | ErrorKind::Config
                            | ErrorKind::Unauthorized
                            | ErrorKind::Quota
                            | ErrorKind::BadRequest
                    )
                );
                let message = "The turn ended without an answer.";
                (NoticeKind::Error, message, !hopeless)
            }
        };
        let is_limit = word == NoticeKind::UsageLimit;
        TurnNotice {
            kind: Some(word.name().to_owned()),
            message: Some(message.to_owned()),
            reset_time: is_limit.then(|| reset_time(told)).flatten(),
            detail: (!is_limit).then(|| told.to_owned()),
            retryable,
        }
    }
}

/// What follows "reset" or "resets" in the words of a provider.
fn reset_time(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("reset")? + "reset".len();
    let rest = text.get(start..)?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    let rest = rest.trim_matches(|c: char| c == ' ' || c == '.' || c == ':');
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn response(chunk: &str) -> Numbered {
    let chunk = chunk.to_owned();
    Box::new(|routing| ServerFrame::Response(Response { routing, chunk }))
}

fn complete(
    success: bool,
    error: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
) -> Numbered {
    Box::new(move |routing| {
        ServerFrame::Complete(Complete {
            routing,
            success,
            error,
            model,
            usage,
        })
    })
}

fn tool_start(record: &ToolRecord) -> Numbered {
    let (tool_name, id) = (record.name.clone(), use_id(record));
    let input_summary = summary(&record.arguments);
    Box::new(move |routing| {
        ServerFrame::ToolStart(ToolStart {
            routing,
            tool_name,
            input_summary,
            tool_use_id: Some(id),
            parent_tool_use_id: None,
        })
    })
}

/// The result of a tool. One that was never run, because the turn was stopped, has none.
fn tool_call(record: &ToolRecord) -> Option<Numbered> {
    let end = record.end.as_ref()?;
    if end.outcome == ToolOutcome::Cancelled {
        return None;
    }
    let (tool_name, id) = (record.name.clone(), use_id(record));
    let input_summary = summary(&record.arguments);
    let (output, is_error) = (end.result.clone(), end.outcome != ToolOutcome::Completed);
    #[expect(
        clippy::cast_precision_loss,
        reason = "no tool works for 2^52 milliseconds"
    )]
    let duration = end.duration_ms as f64;
    Some(Box::new(move |routing| {
        ServerFrame::ToolCall(ToolCall {
            routing,
            tool_name,
            input_summary,
            output,
            is_error,
            duration_ms: Some(duration),
            tool_use_id: Some(id),
        })
    }))
}

/// Providers may give an id once more in another step; the place in the turn is unique.
fn use_id(record: &ToolRecord) -> String {
    format!("{}-{}", record.turn_id, record.nth)
}

/// One line on what a tool is asked.
fn summary(arguments: &str) -> Option<String> {
    const TELLING: [&str; 7] = [
        "command",
        "file_path",
        "path",
        "pattern",
        "url",
        "query",
        "topic",
    ];
    let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    let text = TELLING
        .iter()
        .find_map(|name| arguments.get(*name)?.as_str())?;
    match text.char_indices().nth(limits::SUMMARY_CHARS) {
        None => Some(text.to_owned()),
        Some((cut, _)) => Some(format!("{}...", &text[..cut])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn() -> Turn {
        Turn::new(
            1,
            "j",
            Place::of("garden", "s"),
            None,
            None,
            limits::KEPT_FRAMES,
        )
    }

    fn numbers(turn: &Turn, last: f64) -> Option<usize> {
        turn.after(last).map(Iterator::count)
    }

    #[test]
    fn a_gap_is_replayed_as_long_as_the_buffer_covers_it() {
        let mut turn = turn();
        assert_eq!(numbers(&turn, -1.0), Some(0));
        for _ in 0..limits::KEPT_FRAMES + 10 {
            turn.keep(response("x"));
        }
        let newest = (limits::KEPT_FRAMES + 9) as f64;
        assert_eq!(numbers(&turn, 9.0), Some(limits::KEPT_FRAMES));
        assert_eq!(numbers(&turn, 8.0), None);
        assert_eq!(numbers(&turn, -1.0), None);
        assert_eq!(numbers(&turn, newest - 1.0), Some(1));
        assert_eq!(numbers(&turn, newest), Some(0));
        assert_eq!(numbers(&turn, newest + 100.0), Some(0));
    }

    #[test]
    fn long_frames_leave_room_for_themselves_alone() {
        let mut turn = turn();
        for _ in 0..20 {
            turn.keep(response(&"x".repeat(1 << 20)));
        }
        assert!(turn.kept_bytes <= KEPT_BYTES);
        assert!(turn.kept.len() >= 7);
    }

    #[test]
    fn the_call_with_the_largest_context_counts() {
        let mut turn = turn();
        for (input, output, cached) in [
            (100_000, 5_101, 10),
            (292_101, 10, 282_000),
            (200_000, 7, 0),
        ] {
            turn.count(&models::Usage {
                input_tokens: input,
                output_tokens: output,
                cached_input_tokens: Some(cached),
                cache_write_input_tokens: Some(101),
            });
        }
        let usage = turn.usage.clone().unwrap();
        assert_eq!((usage.input_tokens, turn.most_output), (292_101, 5_101));
    }

    #[test]
    fn the_reset_time_is_what_follows_the_word() {
        let of = |text| reset_time(text);
        assert_eq!(
            of("Usage limit reached, resets 03:00 (UTC)").as_deref(),
            Some("03:00 (UTC)")
        );
        assert_eq!(
            of("Try again after the reset at noon.").as_deref(),
            Some("noon")
        );
        assert_eq!(of("Too many requests"), None);
    }

    #[test]
    fn a_long_command_is_cut() {
        let long = format!(r#"{{"command":"{}"}}"#, "é".repeat(300));
        let shown = summary(&long).unwrap();
        assert_eq!(shown.chars().count(), limits::SUMMARY_CHARS + 3);
        assert_eq!(summary(r#"{"other":1}"#), None);
        assert_eq!(summary("no json"), None);
    }
}
