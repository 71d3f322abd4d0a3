//! The subscription stream: what is written in which order, and readers that stall.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use jiff::Timestamp;

use super::*;
use crate::bus::{Bus, BusLimits};
use crate::engine::ids::Incarnation;
use crate::engine::model::{DomainEvent, Object};
use crate::engine::ports::{Delivery, Invalidation, Publisher, RandomIds, SystemClock};
use crate::faces::test_wire::{LIMITS, NEVER, Seen, start};
use crate::faces::writer::End;

const HEARTBEAT: Duration = limits::HEARTBEAT_EVERY;

/// A bus with one session, and the ways to subscribe to it.
struct Rig {
    bus: Bus,
    key: SessionKey,
    rereads: Arc<AtomicUsize>,
}

/// An open subscription with what its wire saw.
struct Open {
    queue: FrameQueue,
    seen: Arc<Seen>,
}

impl Rig {
    fn new() -> Self {
        let limits = BusLimits::at(turnwire_spec::covel::limits::TimeScale::REAL);
        Self {
            bus: Bus::new(limits, Arc::new(RandomIds)),
            key: life("1"),
            rereads: Arc::default(),
        }
    }

    fn emit(&self, number: u64) {
        self.emit_in(&self.key, number);
    }

    fn emit_in(&self, key: &SessionKey, number: u64) {
        let payload = Object::from_iter([("number".to_owned(), number.into())]);
        let event = DomainEvent {
            kind: "plugin-data.changed",
            topic: Topic::Plugin,
            session: key.clone(),
            turn_id: None,
            source: None,
            payload,
            timestamp: Timestamp::UNIX_EPOCH,
        };
        self.bus.publish(&event, Delivery::Live).unwrap();
    }

    /// Subscribes over a wire whose writes take so long, by their number from 1. The store answers
    /// rereads after `reread_takes`, with `is_same`.
    fn subscribe_over(
        &self,
        cursor: Option<&str>,
        write_takes: impl FnMut(usize) -> Duration + Send + 'static,
        reread_takes: Duration,
        is_same: bool,
    ) -> Open {
        let (queue, seen) = start(write_takes, None, Duration::ZERO);
        let listener = self.bus.listen(&self.key.id);
        let topics = TopicSelection::ALL;
        let subscription = listener.attach(self.key.clone(), &topics, cursor).unwrap();
        let rereads = Arc::clone(&self.rereads);
        let stream = Stream {
            subscription,
            queue: queue.clone(),
            limits: LIMITS,
            topics,
            reread: Box::new(move |_| {
                rereads.fetch_add(1, Ordering::SeqCst);
                Box::pin(async move {
                    tokio::time::sleep(reread_takes).await;
                    is_same
                })
            }),
            clock: Arc::new(SystemClock),
            heartbeat: HEARTBEAT,
            _place: None,
        };
        tokio::spawn(stream.run());
        Open { queue, seen }
    }

    fn subscribe(&self, cursor: Option<&str>) -> Open {
        self.subscribe_over(cursor, |_| Duration::ZERO, Duration::ZERO, true)
    }

    fn rereads(&self) -> usize {
        self.rereads.load(Ordering::SeqCst)
    }
}

fn life(incarnation: &str) -> SessionKey {
    SessionKey {
        id: SessionId::from("s"),
        incarnation: Incarnation::from(incarnation),
    }
}

/// The event names, and the numbers of ordinary events, of what was written.
fn story(frames: &[Bytes]) -> Vec<String> {
    let one = |frame: &Bytes| {
        let text = std::str::from_utf8(frame).unwrap();
        let name = text
            .strip_prefix("event: ")
            .and_then(|rest| rest.split('\n').next())
            .unwrap();
        match text.split_once("\"number\":") {
            None => name.trim_start_matches("system.").to_owned(),
            Some((_, rest)) => rest.split('}').next().unwrap().to_owned(),
        }
    };
    frames.iter().map(one).collect()
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

const MOMENT: Duration = Duration::from_millis(10);

#[tokio::test(start_paused = true)]
async fn a_subscription_begins_with_connected_and_goes_on_with_what_happens() {
    let rig = Rig::new();
    rig.emit(1);
    let open = rig.subscribe(None);
    pass(MOMENT).await;
    rig.emit(2);
    rig.emit(3);
    pass(MOMENT).await;

    assert_eq!(story(&open.seen.written()), ["connected", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_comes_every_30_seconds_whatever_else_is_sent() {
    let rig = Rig::new();
    let open = rig.subscribe(None);
    for number in 0..13 {
        pass(Duration::from_secs(5)).await;
        rig.emit(number);
    }
    pass(MOMENT).await;

    let heartbeats: Vec<_> = story(&open.seen.written())
        .into_iter()
        .enumerate()
        .filter(|(_, name)| name == "heartbeat")
        .map(|(place, _)| place)
        .collect();
    assert_eq!(heartbeats.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_replay_comes_before_what_happens_meanwhile_and_nothing_twice() {
    let rig = Rig::new();
    let cursor = rig.bus.cursor(&rig.key);
    for number in 1..=600 {
        rig.emit(number);
    }
    let slow = |_| Duration::from_millis(1);
    let open = rig.subscribe_over(Some(&cursor), slow, Duration::ZERO, true);
    for number in 601..=1200 {
        rig.emit(number);
        if number % 4 == 0 {
            pass(Duration::from_millis(1)).await;
        }
    }
    pass(Duration::from_secs(5)).await;

    let mut expected = vec!["connected".to_owned()];
    expected.extend((1..=1200).map(|number| number.to_string()));
    assert_eq!(story(&open.seen.written()), expected);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_cannot_be_continued_gets_a_reset_and_then_live_events() {
    let rig = Rig::new();
    rig.emit(1);
    let open = rig.subscribe(Some("gone:7"));
    pass(MOMENT).await;
    rig.emit(2);
    pass(MOMENT).await;

    assert_eq!(story(&open.seen.written()), ["connected", "reset", "2"]);
}

/// COV-LIM-027.
#[tokio::test(start_paused = true)]
async fn a_stalled_connected_frame_aborts_the_subscription() {
    let rig = Rig::new();
    let open = rig.subscribe_over(None, |_| NEVER, Duration::ZERO, true);

    assert_eq!(open.queue.ended().await, End::WriteTimeout);
}

/// COV-LIM-028.
#[tokio::test(start_paused = true)]
async fn a_stalled_replay_aborts_the_subscription_within_its_bound() {
    let rig = Rig::new();
    let cursor = rig.bus.cursor(&rig.key);
    for number in 0..1000 {
        rig.emit(number);
    }
    let stall = |number| if number == 5 { NEVER } else { Duration::ZERO };
    let begin = Instant::now();
    let open = rig.subscribe_over(Some(&cursor), stall, Duration::ZERO, true);
    pass(Duration::from_secs(1)).await;

    assert_eq!(open.queue.held(), 256);
    assert_eq!(open.queue.ended().await, End::WriteTimeout);
    assert!(begin.elapsed() < Duration::from_millis(2100));
}

/// COV-LIM-029.
#[tokio::test(start_paused = true)]
async fn a_stalled_reset_frame_aborts_the_subscription() {
    let rig = Rig::new();
    let stall = |number| if number == 2 { NEVER } else { Duration::ZERO };
    let open = rig.subscribe_over(Some("gone:7"), stall, Duration::ZERO, true);

    assert_eq!(open.queue.ended().await, End::WriteTimeout);
    assert_eq!(story(&open.seen.begun()), ["connected", "reset"]);
}

/// COV-LIM-030.
#[tokio::test(start_paused = true)]
async fn a_stalled_heartbeat_aborts_an_idle_subscription() {
    let rig = Rig::new();
    let stall = |number| if number == 2 { NEVER } else { Duration::ZERO };
    let begin = Instant::now();
    let open = rig.subscribe_over(None, stall, Duration::ZERO, true);

    assert_eq!(open.queue.ended().await, End::WriteTimeout);
    assert_eq!(begin.elapsed().as_secs(), 32);
}

/// COV-LIM-031 and COV-LIM-086.
#[tokio::test(start_paused = true)]
async fn however_subscriptions_end_their_listeners_leave_the_bus() {
    let rig = Rig::new();
    for number in 0..100 {
        let stall = move |write| {
            if number % 2 == 0 && write == 2 {
                NEVER
            } else {
                Duration::ZERO
            }
        };
        let open = rig.subscribe_over(None, stall, Duration::ZERO, true);
        pass(MOMENT).await;
        match number % 4 {
            0 => rig.emit(number),
            1 => open.queue.abort(),
            2 => (0..300).for_each(|number| rig.emit(number)),
            _ => open.seen.peer_gone.notify_one(),
        }
        open.queue.ended().await;
        pass(MOMENT).await;
    }

    assert_eq!(rig.bus.listeners(), 0);
}

/// COV-LIM-033.
#[tokio::test(start_paused = true)]
async fn an_ended_subscription_sends_no_more_heartbeats() {
    let rig = Rig::new();
    let open = rig.subscribe(None);
    pass(MOMENT).await;
    open.seen.peer_gone.notify_one();
    pass(HEARTBEAT * 3).await;

    assert_eq!(story(&open.seen.begun()), ["connected"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_keep_up_is_broken_off() {
    let rig = Rig::new();
    let stall = |number| if number == 2 { NEVER } else { Duration::ZERO };
    let open = rig.subscribe_over(None, stall, Duration::ZERO, true);
    pass(MOMENT).await;
    for number in 0..300 {
        rig.emit(number);
        tokio::task::yield_now().await;
    }

    assert_eq!(open.queue.ended().await, End::Overflow);
    pass(MOMENT).await;
    assert!(open.seen.is_aborted());
}

/// COV-BUS-081, and COV-BUS-079 with its one reread.
#[tokio::test(start_paused = true)]
async fn lost_events_end_a_live_subscription_with_a_reset() {
    let rig = Rig::new();
    let open = rig.subscribe(None);
    pass(MOMENT).await;
    rig.emit(1);
    rig.bus.invalidate(&rig.key, Invalidation::PublishFailed);
    rig.emit(2);

    assert_eq!(open.queue.ended().await, End::Finished);
    assert_eq!(story(&open.seen.written()), ["connected", "1", "reset"]);
    assert_eq!(rig.rereads(), 1);
}

/// COV-BUS-080.
#[tokio::test(start_paused = true)]
async fn lost_events_of_a_session_that_changed_end_it_without_a_reset() {
    let rig = Rig::new();
    let open = rig.subscribe_over(None, |_| Duration::ZERO, Duration::ZERO, false);
    pass(MOMENT).await;
    rig.bus.invalidate(&rig.key, Invalidation::PublishFailed);

    assert_eq!(open.queue.ended().await, End::Finished);
    assert_eq!(story(&open.seen.written()), ["connected"]);
}

/// COV-BUS-083.
#[tokio::test(start_paused = true)]
async fn lost_events_during_the_replay_close_without_finishing_it() {
    let rig = Rig::new();
    let cursor = rig.bus.cursor(&rig.key);
    for number in 0..1000 {
        rig.emit(number);
    }
    let slow = |_| Duration::from_millis(1);
    let open = rig.subscribe_over(Some(&cursor), slow, Duration::ZERO, true);
    pass(Duration::from_millis(100)).await;
    rig.bus.invalidate(&rig.key, Invalidation::PublishFailed);

    assert_eq!(open.queue.ended().await, End::Finished);
    let story = story(&open.seen.written());
    assert!(story.len() < 500, "{}", story.len());
    assert!(!story.contains(&"reset".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_closes_the_subscription() {
    let rig = Rig::new();
    let open = rig.subscribe(None);
    pass(MOMENT).await;
    rig.bus.invalidate(&rig.key, Invalidation::Deleted);

    assert_eq!(open.queue.ended().await, End::Finished);
    assert_eq!(story(&open.seen.written()), ["connected"]);
}

/// COV-BUS-068.
#[tokio::test(start_paused = true)]
async fn an_event_of_another_life_makes_one_reread_and_is_not_sent() {
    let rig = Rig::new();
    let open = rig.subscribe(None);
    pass(MOMENT).await;
    rig.emit_in(&life("2"), 9);
    pass(MOMENT).await;
    rig.emit(1);
    pass(MOMENT).await;

    assert_eq!(rig.rereads(), 1);
    assert_eq!(story(&open.seen.written()), ["connected", "1"]);
}

/// COV-BUS-071.
#[tokio::test(start_paused = true)]
async fn a_reread_that_fails_or_finds_another_life_closes_the_subscription() {
    let rig = Rig::new();
    let open = rig.subscribe_over(None, |_| Duration::ZERO, Duration::ZERO, false);
    pass(MOMENT).await;
    rig.emit_in(&life("2"), 9);

    assert_eq!(open.queue.ended().await, End::Finished);
    assert_eq!(story(&open.seen.written()), ["connected"]);
}

/// COV-BUS-072.
#[tokio::test(start_paused = true)]
async fn events_that_come_during_a_reread_are_sent_after_it() {
    let rig = Rig::new();
    let half = Duration::from_millis(500);
    let open = rig.subscribe_over(None, |_| Duration::ZERO, half, true);
    pass(MOMENT).await;
    rig.emit_in(&life("2"), 9);
    pass(MOMENT).await;
    for number in 1..=3 {
        rig.emit(number);
    }
    pass(MOMENT).await;
    assert_eq!(story(&open.seen.written()), ["connected"]);
    pass(half).await;

    assert_eq!(story(&open.seen.written()), ["connected", "1", "2", "3"]);
}

/// COV-BUS-073.
#[tokio::test(start_paused = true)]
async fn a_reread_that_hangs_buffers_events_within_a_bound() {
    let rig = Rig::new();
    let open = rig.subscribe_over(None, |_| Duration::ZERO, NEVER, true);
    pass(MOMENT).await;
    rig.emit_in(&life("2"), 9);
    pass(MOMENT).await;
    for number in 0..10_000 {
        rig.emit(number);
    }

    assert_eq!(open.queue.ended().await, End::Aborted);
    assert_eq!(rig.bus.listeners(), 0);
}

/// COV-BUS-074.
#[tokio::test(start_paused = true)]
async fn a_deletion_closes_the_subscription_while_a_reread_hangs() {
    let rig = Rig::new();
    let open = rig.subscribe_over(None, |_| Duration::ZERO, NEVER, true);
    pass(MOMENT).await;
    rig.emit_in(&life("2"), 9);
    pass(MOMENT).await;
    let begin = Instant::now();
    rig.bus.invalidate(&rig.key, Invalidation::Deleted);

    assert_eq!(open.queue.ended().await, End::Finished);
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[test]
fn topics_are_read_and_unknown_ones_named() {
    assert_eq!(topics(None), Ok(TopicSelection::ALL));
    assert_eq!(topics(Some("")), Ok(TopicSelection::ALL));
    let two = TopicSelection::Some(vec![Topic::Job, Topic::Trace]);
    assert_eq!(topics(Some("job, trace,job")), Ok(two));
    let refusal = topics(Some("job,everything")).unwrap_err();
    assert_eq!(refusal.status.as_u16(), 400);
    assert!(refusal.error.contains("everything"), "{}", refusal.error);
}

#[test]
fn the_cursor_in_the_query_wins_over_the_one_in_the_header() {
    let mut headers = HeaderMap::new();
    headers.insert("last-event-id", "e:1".parse().unwrap());
    let cursor = |query| Wanted::read(&Query::parse(query), &headers).unwrap().cursor;

    assert_eq!(
        cursor("sessionId=s&lastEventId=e%3A2").as_deref(),
        Some("e:2")
    );
    assert_eq!(cursor("sessionId=s").as_deref(), Some("e:1"));
    assert!(Wanted::read(&Query::parse("topics=job"), &headers).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_again_when_its_subscription_ends() {
    let rig = Rig::new();
    let places = crate::faces::covel::rates::Places::new(1, 1);
    let held = Arc::new(Mutex::new(Some(places.take(&rig.key.id).unwrap())));
    assert!(places.take(&rig.key.id).is_err());
    let (queue, _seen) = start(|_| NEVER, None, Duration::ZERO);
    let stream = Stream {
        subscription: rig
            .bus
            .listen(&rig.key.id)
            .attach(rig.key.clone(), &TopicSelection::ALL, None)
            .unwrap(),
        queue: queue.clone(),
        limits: LIMITS,
        topics: TopicSelection::ALL,
        reread: Box::new(|_| Box::pin(async { true })),
        clock: Arc::new(SystemClock),
        heartbeat: HEARTBEAT,
        _place: held.lock().unwrap().take(),
    };
    tokio::spawn(stream.run());
    queue.ended().await;
    pass(MOMENT).await;

    assert!(places.take(&rig.key.id).is_ok());
}
