//! Playing a case of `session-update`: a session on one connection, what the case does to it, and a finale that is
//! valid again.
//!
//! In the finale the client connects, and the server tells it the facts of the session as after any reconnect; then the
//! client forgets everything, and connects once more. What it shows must be these facts: see [`Model`].

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    bytes,
    case::{Case, Frame, Loss, Step},
    frames::{UPDATES, frame},
    steps::Steps,
};
use crate::{
    drivers::{DriveError, lines::server::LineServer},
    fuzz::envelopes::body,
    scenarios::session_update::client::{answer, envelope},
    stage::TesteeStage,
};

/// The session of a case.
const SESSION: &str = "fuzzed";
/// The turn that the frames of a case are about.
const FUZZED: &str = "tw-turn-fuzzed";
/// How often the finale looks at what is shown.
const LOOKS_EVERY: Duration = Duration::from_millis(20);
/// How long the server waits for a client that has had a wrong answer, before it hangs up.
const PUZZLED: Duration = Duration::from_millis(100);

/// Plays a case with a fresh client that may take so long for anything. What is wrong, in words; nothing when all is
/// well.
///
/// # Errors
///
/// When there is no port.
pub(super) async fn play(
    stage: &TesteeStage,
    case: &Case,
    number: u64,
    longest: Duration,
) -> Result<Option<String>, DriveError> {
    // Requests are answered by the player, since answers are changed, too.
    let server = LineServer::start(stage.recorder().clone(), |_| None).await?;
    let mut talk = Talk {
        steps: Steps::new(stage, longest),
        server,
        taken: 0,
        sequence: 0,
        sent: 0,
    };
    Ok(talk.play(case, &Model { number }).await.err())
}

struct Talk<'a> {
    steps: Steps<'a>,
    server: LineServer,
    /// Requests that were answered, or passed over.
    taken: usize,
    /// Number of the last event on this connection.
    sequence: u64,
    /// Events so far.
    sent: u64,
}

impl Talk<'_> {
    async fn play(&mut self, case: &Case, model: &Model) -> Result<(), String> {
        self.open().await?;
        let look = json!({ "step": "show" });
        for step in &case.steps {
            self.step(step).await?;
            self.steps.lives(&look, step).await?;
        }
        self.finale(model).await
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Event(frame) => {
                if !self.server.is_open().await {
                    self.open().await?;
                }
                let line = self.event(frame);
                self.send(&line, frame).await;
            }
            Step::Frame(change) => {
                // Whatever becomes of it: afterwards the client connects in good order.
                self.connect(Some(change)).await?;
            }
            Step::Lose { how } => self.lose(*how).await,
            Step::Person { .. } | Step::Drop { .. } | Step::Line { .. } => {}
        }
        Ok(())
    }

    /// Lets the client connect and subscribe in good order; twice, when the first connection is refused.
    async fn open(&mut self) -> Result<(), String> {
        if self.connect(None).await? || self.connect(None).await? {
            Ok(())
        } else {
            Err("it does not subscribe when a session is opened".to_owned())
        }
    }

    /// Lets the client connect, with a change to one of the answers that it gets. Whether it has subscribed.
    async fn connect(&mut self, change: Option<&Frame>) -> Result<bool, String> {
        self.server.hang_up().await;
        self.taken = self.server.heard();
        self.sequence = 0;
        let step = json!({ "step": "open", "url": self.server.url(), "session": SESSION });
        self.steps.tell(&step).await?;
        let mut subscribed = false;
        let mut puzzled = None;
        {
            let shown = self.steps.shown(&step);
            tokio::pin!(shown);
            loop {
                let request = tokio::select! {
                    shown = &mut shown => {
                        shown?;
                        break;
                    }
                    request = self.server.request(self.taken) => request,
                    () = until(puzzled) => {
                        self.server.hang_up().await;
                        puzzled = None;
                        continue;
                    }
                };
                self.taken += 1;
                let Some(answer) = answer(&request) else {
                    continue;
                };
                subscribed |= request["method"] == "session/subscribe"
                    && request["params"]["session_id"] == SESSION;
                let place = u8::from(request["method"] == "session/subscribe");
                match change.filter(|change| change.frame % 2 == place) {
                    None => self.server.say(&answer).await,
                    Some(change) => {
                        let line = body::changed(answer, &change.changes);
                        send(&self.server, &line, change).await;
                        puzzled = Some(Instant::now() + PUZZLED);
                    }
                }
            }
        }
        Ok(subscribed)
    }

    fn event(&mut self, change: &Frame) -> Vec<u8> {
        let (kind, payload) = frame(UPDATES, change.frame);
        self.sent += 1;
        self.sequence += 1;
        let value = if kind == "response" {
            json!({ "kind": kind, "request_id": self.sent, "result": payload })
        } else {
            let turn = if kind == "task_updated" { "" } else { FUZZED };
            envelope(self.sequence, &fact(turn, self.sent, &kind, payload))
        };
        body::changed(value, &change.changes)
    }

    async fn send(&self, line: &[u8], how: &Frame) {
        send(&self.server, line, how).await;
    }

    async fn lose(&mut self, how: Loss) {
        match how {
            Loss::End | Loss::Reset => {}
            Loss::Refused => self.server.refuse_next(),
            Loss::Half => {
                let line = self.event(&Frame::default());
                self.server.say_raw(&[&line[..line.len() / 2]]).await;
            }
        }
        self.server.hang_up().await;
    }

    /// Ends what is open, and brings the client up to date; then the same for a client that knows nothing.
    async fn finale(&mut self, model: &Model) -> Result<(), String> {
        self.steps.label("finale");
        self.open().await?;
        self.tell(model).await?;
        self.settle(|state| model.kept_fault(state)).await?;
        self.steps.label("restart");
        self.steps.take(&json!({ "step": "restart" })).await?;
        self.open().await?;
        self.tell(model).await?;
        self.settle(|state| model.fresh_fault(state)).await
    }

    async fn tell(&mut self, model: &Model) -> Result<(), String> {
        for fact in model.facts() {
            self.sequence += 1;
            self.server.say(&envelope(self.sequence, &fact)).await;
        }
        Ok(())
    }

    /// Looks until nothing is wrong, or the client has had its time.
    async fn settle(&self, fault: impl Fn(&Value) -> Option<String>) -> Result<(), String> {
        let until = Instant::now() + self.steps.longest();
        loop {
            let state = self.steps.take(&json!({ "step": "show" })).await?;
            let Some(fault) = fault(&state) else {
                return Ok(());
            };
            if Instant::now() > until {
                return Err(fault);
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    }
}

/// Waits until then; for ever without a time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn send(server: &LineServer, line: &[u8], how: &Frame) {
    let line = bytes::line(line, how.wrap);
    for _ in 0..=u8::from(how.again) {
        server.say_raw(&bytes::pieces(&line, how.pieces)).await;
    }
}

/// An event with its common members. The same number is the same event.
fn fact(turn: &str, number: u64, kind: &str, members: Value) -> Value {
    let mut event = json!({
        "type": kind,
        "ts": "2030-05-01T10:00:00.000006Z",
        "event_id": format!("{number:032x}"),
        "session_id": SESSION,
        "turn_id": turn,
    });
    if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
        event.extend(members);
    }
    event
}

/// What a client shows in the end.
struct Model {
    number: u64,
}

/// The turn that completes.
const DONE: &str = "tw-turn-done";
/// The turn that fails.
const FAILED: &str = "tw-turn-failed";
/// The tool call of the turn that completes.
const CALL: &str = "tw-call";
/// The task that ends.
const TASK: &str = "tw-task";

impl Model {
    fn text(&self) -> String {
        format!("what was told in case {}", self.number)
    }

    /// The facts of the session, as they are stored in the end: two turns and the end of a task, which comes twice.
    fn facts(&self) -> Vec<Value> {
        let text = self.text();
        let tool = |mut members: Value| {
            members["tool_call_id"] = json!(CALL);
            members["tool_name"] = json!("search");
            members
        };
        let task = json!({
            "origin_turn_id": DONE,
            "task": { "task_id": TASK, "owner_session_id": SESSION, "origin_turn_id": DONE, "status": "completed" },
        });
        let facts = [
            (DONE, "turn_started", json!({ "user_message_chars": 4 })),
            (
                DONE,
                "tool_requested",
                tool(json!({ "args_preview": "{}", "arguments": self.arguments() })),
            ),
            (
                DONE,
                "tool_result",
                tool(json!({
                    "status": "completed", "result": "{}", "error_type": "", "error_source": "tool",
                    "duration_ms": 7,
                })),
            ),
            (
                DONE,
                "assistant_message_completed",
                json!({ "content": text, "content_chars": text.chars().count() }),
            ),
            (DONE, "turn_completed", json!({ "duration_ms": 9 })),
            (FAILED, "turn_started", json!({ "user_message_chars": 4 })),
            (
                FAILED,
                "turn_failed",
                json!({
                    "error": "no", "error_type": "Overloaded", "status": "failed",
                    "error_source": "runtime",
                }),
            ),
            ("", "task_updated", task),
        ];
        let mut facts: Vec<_> = facts
            .into_iter()
            .zip(1_000_000 + self.number * 100..)
            .map(|((turn, kind, members), number)| fact(turn, number, kind, members))
            .collect();
        facts.extend(facts.last().cloned());
        facts
    }

    fn arguments(&self) -> Value {
        json!({ "case": self.number })
    }

    /// What is wrong with what a client shows that has kept what it was told before: its turns and notices may have
    /// others beside them, and none stands twice.
    fn kept_fault(&self, state: &Value) -> Option<String> {
        let turns = state.get("turns")?.as_array()?;
        let ids: Vec<_> = turns.iter().map(|turn| &turn["turnId"]).collect();
        let twice = |id: &&Value| ids.iter().filter(|other| *other == id).count() > 1;
        if let Some(id) = ids.iter().copied().find(|id| twice(id)) {
            return Some(format!("turns: {id} is shown twice"));
        }
        let of = |id: &str| turns.iter().find(|turn| turn["turnId"] == id);
        self.turn_fault(of(DONE), DONE, "completed", &self.text())
            .or_else(|| self.turn_fault(of(FAILED), FAILED, "failed", ""))
            .or_else(|| Self::notice_fault(state))
    }

    /// What is wrong with what a client shows that knows nothing else.
    fn fresh_fault(&self, state: &Value) -> Option<String> {
        let turns = state.get("turns")?.as_array()?;
        let ids: Vec<_> = turns.iter().map(|turn| &turn["turnId"]).collect();
        if ids != [DONE, FAILED] {
            return Some(format!(
                "turns: {DONE:?} and {FAILED:?} are right after a restart, it shows {ids:?}"
            ));
        }
        let others = state["notices"]
            .as_array()
            .map_or(0, |notices| notices.len().saturating_sub(1));
        self.kept_fault(state)
            .or_else(|| (others > 0).then(|| format!("notices: {others} too many after a restart")))
    }

    fn turn_fault(
        &self,
        turn: Option<&Value>,
        id: &str,
        status: &str,
        text: &str,
    ) -> Option<String> {
        let Some(turn) = turn else {
            return Some(format!("turns: {id} is missing"));
        };
        let wanted = |member: &str, wanted: &str| {
            let shown = turn.get(member)?;
            (shown != wanted).then(|| {
                let shown: String = shown.to_string().chars().take(300).collect();
                format!("{member}: {wanted:?} is right for {id}, it shows {shown}")
            })
        };
        wanted("status", status)
            .or_else(|| wanted("text", text))
            .or_else(|| self.tool_fault(turn).filter(|_| id == DONE))
    }

    fn tool_fault(&self, turn: &Value) -> Option<String> {
        let tools = turn.get("tools")?.as_array()?;
        let [tool] = tools.as_slice() else {
            return Some(format!("tools: one is right, it shows {}", tools.len()));
        };
        let right = tool["callId"] == CALL
            && tool["status"] == "completed"
            && tool["arguments"] == self.arguments();
        (!right).then(|| format!("tools: {CALL} is wrong, it shows {tool}"))
    }

    fn notice_fault(state: &Value) -> Option<String> {
        let notices = state.get("notices")?.as_array()?;
        let count = notices
            .iter()
            .filter(|notice| notice["taskId"] == TASK)
            .count();
        (count != 1).then(|| format!("notices: the end of {TASK} is shown {count} times"))
    }
}
