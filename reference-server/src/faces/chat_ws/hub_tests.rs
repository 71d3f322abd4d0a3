//! Sockets without sockets: what comes into which outbox, and in which order.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::engine::ids::{Incarnation, SessionKey};
use crate::engine::model::{ExecutionEnd, ExecutionRow, Origin};

struct Bench {
    hub: Hub,
}

struct Socket {
    id: SocketId,
    queue: UnboundedReceiver<Utf8Bytes>,
}

impl Bench {
    fn new() -> Self {
        let settings = Settings {
            projects: vec!["garden".to_owned()],
            plugins: Vec::new(),
            context_limits: Vec::new(),
            kept_frames: 100,
            max_sockets: 10,
        };
        let scale = TimeScale::REAL;
        Self {
            hub: Hub::new(&settings, scale, Some("m".to_owned())),
        }
    }

    fn socket(&self) -> Socket {
        let (outbox, queue) = Outbox::new(1 << 20, CancellationToken::new());
        let id = self.hub.join(Arc::new(outbox));
        Socket { id, queue }
    }

    fn happens(&self, session: &str, turn: &str, what: Happened) {
        let key = SessionKey {
            id: session.into(),
            incarnation: Incarnation::of_nonce(b"life"),
        };
        let (turn, at) = (turn.into(), Timestamp::UNIX_EPOCH);
        self.hub
            .apply(&Happening::passing(&key, Some(&turn), "n", at, what));
    }

    fn begins(&self, session: &str, turn: &str) {
        let what = Happened::TurnStarted {
            input_chars: 1,
            input: Some(format!("input of {turn}").as_str().into()),
        };
        self.happens(session, turn, what);
    }

    fn says(&self, session: &str, turn: &str, text: &str) {
        let delta = text.to_owned();
        self.happens(session, turn, Happened::Text { delta });
    }

    fn ends(&self, session: &str, turn: &str) {
        let row = ExecutionRow {
            session_id: session.into(),
            turn_id: turn.into(),
            logical_turn_id: turn.into(),
            request_id: "r".into(),
            trace_id: "t".into(),
            origin: Origin::Player,
            retry: None,
            input_message_id: None,
            started_at: Timestamp::UNIX_EPOCH,
            end: Some(ExecutionEnd {
                committed: true,
                error: None,
                abort_reason: None,
                ended_at: Timestamp::UNIX_EPOCH,
            }),
        };
        self.happens(session, turn, Happened::TurnEnded(row));
    }

    fn subscribe(&self, socket: &Socket, session: &str, replay: bool, last: f64) {
        self.hub.subscribe(socket.id, &session.into(), replay, last);
    }
}

impl Socket {
    /// What came since the last look: kinds without `chat:`, with their number or whether it runs.
    fn got(&mut self) -> String {
        let mut got = Vec::new();
        while let Ok(text) = self.queue.try_recv() {
            let frame: Value = serde_json::from_str(&text).unwrap();
            let kind = frame["type"].as_str().unwrap();
            let kind = kind.strip_prefix("chat:").unwrap_or(kind).to_owned();
            let payload = &frame["payload"];
            let more = [&payload["seq"], &payload["running"]]
                .into_iter()
                .find(|value| !value.is_null());
            got.push(more.map_or(kind.clone(), |more| format!("{kind} {more}")));
        }
        got.join(", ")
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_to_its_origin_and_to_subscribers_and_its_status_to_all() {
    let bench = Bench::new();
    let (mut origin, mut subscriber, mut other) = (bench.socket(), bench.socket(), bench.socket());
    let expected = Expected {
        socket: origin.id,
        model: None,
    };
    bench.hub.expect("input of t".into(), expected);
    bench.subscribe(&subscriber, "s", false, -1.0);
    bench.subscribe(&origin, "s", false, -1.0);
    bench.begins("s", "t");
    bench.says("s", "t", "hello");
    bench.ends("s", "t");

    let all = "active true, response 0, message_boundary 1, complete 2, active false";
    assert_eq!(origin.got(), all);
    assert_eq!(subscriber.got(), all);
    assert_eq!(other.got(), "active true, active false");
}

#[tokio::test(start_paused = true)]
async fn a_replay_ends_where_the_live_frames_begin() {
    let bench = Bench::new();
    bench.begins("s", "t");
    for text in ["a", "b", "c"] {
        bench.says("s", "t", text);
    }
    let mut late = bench.socket();
    assert_eq!(late.got(), "active true");
    bench.subscribe(&late, "s", true, 0.0);
    bench.says("s", "t", "d");
    assert_eq!(
        late.got(),
        "response 1, response 2, active true, response 3"
    );
    bench.subscribe(&late, "s", false, 0.0);
    assert_eq!(late.got(), "active true");
    bench.subscribe(&late, "s", true, -2.0);
    assert_eq!(late.got(), "resync, active true");
}

#[tokio::test(start_paused = true)]
async fn a_finished_turn_lingers_and_is_then_forgotten() {
    let bench = Bench::new();
    bench.begins("s", "t");
    bench.ends("s", "t");
    let mut socket = bench.socket();
    bench.subscribe(&socket, "s", true, -1.0);
    assert_eq!(socket.got(), "complete 0");
    tokio::time::advance(limits::LINGER + Duration::from_millis(1)).await;
    bench.subscribe(&socket, "s", true, -1.0);
    assert_eq!(socket.got(), "");
}

#[tokio::test(start_paused = true)]
async fn the_next_turn_starts_its_own_numbers_and_takes_the_place_of_the_last() {
    let bench = Bench::new();
    let mut socket = bench.socket();
    bench.subscribe(&socket, "s", false, -1.0);
    for turn in ["t-1", "t-2"] {
        bench.begins("s", turn);
        bench.says("s", turn, "x");
        bench.ends("s", turn);
    }
    let once = "active true, response 0, message_boundary 1, complete 2, active false";
    assert_eq!(socket.got(), format!("{once}, {once}"));
    bench.subscribe(&socket, "s", true, 1.0);
    assert_eq!(socket.got(), "complete 2");
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_has_gone_takes_no_turn_with_it() {
    let bench = Bench::new();
    let origin = bench.socket();
    let expected = Expected {
        socket: origin.id,
        model: None,
    };
    bench.hub.expect("input of t".into(), expected);
    bench.begins("s", "t");
    bench.hub.leave(origin.id);
    bench.says("s", "t", "on");
    bench.ends("s", "t");
    let mut next = bench.socket();
    bench.subscribe(&next, "s", true, -1.0);
    assert_eq!(next.got(), "response 0, message_boundary 1, complete 2");
}

#[tokio::test(start_paused = true)]
async fn a_killed_task_is_told_to_all_and_a_taken_queue_to_the_session() {
    let bench = Bench::new();
    let (mut subscriber, mut other) = (bench.socket(), bench.socket());
    bench.subscribe(&subscriber, "s", false, -1.0);
    let text = Some("next".to_owned());
    bench.happens("s", "t", Happened::QueueTaken { text });
    bench.happens("s", "t", Happened::TaskKilled { summary: None });
    assert_eq!(subscriber.got(), "queued_flushed, killed_task");
    assert_eq!(other.got(), "killed_task");
}

#[test]
fn a_frame_has_the_members_of_the_seed() {
    let mut turn = Turn::new(1, "j", Place::of("garden", "s"), None, None, 100);
    let made = turn.during(&Happened::Text { delta: "x".into() });
    let text = turn.keep(made.into_iter().next().unwrap());
    let frame: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        frame,
        json!({"type": "chat:response", "payload": {
            "projectSlug": "garden", "target": "garden", "sessionId": "s", "jobId": "j", "seq": 0, "chunk": "x",
        }})
    );
}

#[test]
fn a_socket_has_a_bounded_number_of_subscriptions() {
    let bench = Bench::new();
    let socket = bench.socket();
    let subscribe = |name: &str| bench.hub.subscribe(socket.id, &name.into(), false, -1.0);
    for n in 0..limits::SUBSCRIPTIONS {
        assert!(subscribe(&format!("s{n}")));
    }
    assert!(subscribe("s0"), "it has this one");
    assert!(!subscribe("one-more"));
    bench.happens("s0", "t", Happened::Deleted);
    assert!(subscribe("one-more"), "one has gone");
    bench.hub.leave(socket.id);
    assert!(bench.hub.state().chats.is_empty());
}
