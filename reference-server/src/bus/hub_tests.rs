//! The hub: who hears which event, and how subscriptions begin, end and are reset.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::timeout;
use turnwire_spec::covel::Topic;

use super::*;
use crate::bus::{Next, Subscription};
use crate::engine::ids::Incarnation;
use crate::engine::model::Object;
use crate::engine::ports::RandomIds;

const LIMITS: BusLimits = BusLimits {
    replay: ReplayLimits {
        buffer: 1000,
        tracked: 256,
        idle_ttl: Duration::from_secs(1800),
    },
    mailbox: 8,
};

fn bus() -> Bus {
    Bus::new(LIMITS, Arc::new(RandomIds))
}

fn key(session: &str, incarnation: &str) -> SessionKey {
    SessionKey {
        id: SessionId::from(session),
        incarnation: Incarnation::from(incarnation),
    }
}

fn event(session: &SessionKey, topic: Topic, number: u64) -> DomainEvent {
    let mut payload = Object::new();
    payload.insert("number".into(), number.into());
    DomainEvent {
        kind: "plugin-data.changed",
        topic,
        session: session.clone(),
        turn_id: None,
        source: None,
        payload,
        timestamp: Timestamp::UNIX_EPOCH,
    }
}

fn emit(bus: &Bus, session: &SessionKey, number: u64) {
    bus.publish(&event(session, Topic::Plugin, number), Delivery::Live)
        .unwrap();
}

fn subscribe(bus: &Bus, session: &SessionKey, cursor: Option<&str>) -> Subscription {
    let listener = bus.listen(&session.id);
    listener
        .attach(session.clone(), &TopicSelection::ALL, cursor)
        .unwrap()
}

fn number(emitted: &Emitted) -> u64 {
    emitted.event.payload["number"].as_u64().unwrap()
}

async fn next(subscription: &mut Subscription) -> Next {
    timeout(Duration::from_secs(5), subscription.next())
        .await
        .unwrap()
}

async fn next_number(subscription: &mut Subscription) -> u64 {
    match next(subscription).await {
        Next::Event(emitted) => number(&emitted),
        other => panic!("no event but {other:?}"),
    }
}

async fn is_quiet(subscription: &mut Subscription) -> bool {
    timeout(Duration::from_secs(5), subscription.next())
        .await
        .is_err()
}

#[tokio::test(start_paused = true)]
async fn an_event_reaches_every_subscriber_of_its_session_and_no_other() {
    let bus = bus();
    let (a, b) = (key("a", "1"), key("b", "1"));
    let mut first = subscribe(&bus, &a, None);
    let mut second = subscribe(&bus, &a, None);
    let mut other = subscribe(&bus, &b, None);
    emit(&bus, &a, 7);

    assert_eq!(next_number(&mut first).await, 7);
    assert_eq!(next_number(&mut second).await, 7);
    assert!(is_quiet(&mut other).await);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_gets_its_topics_only_live_and_replayed() {
    let bus = bus();
    let session = key("s", "1");
    bus.publish(&event(&session, Topic::Plugin, 1), Delivery::Live)
        .unwrap();
    let cursor = bus.cursor(&session);
    bus.publish(&event(&session, Topic::Plugin, 2), Delivery::Live)
        .unwrap();
    bus.publish(&event(&session, Topic::Job, 3), Delivery::Live)
        .unwrap();
    let job = TopicSelection::Some(vec![Topic::Job]);
    let mut subscription = bus
        .listen(&session.id)
        .attach(session.clone(), &job, Some(&cursor))
        .unwrap();

    let Some(Resume::Replay(events)) = subscription.take_resume() else {
        panic!("no replay")
    };
    assert_eq!(
        events.iter().map(|event| number(event)).collect::<Vec<_>>(),
        [3]
    );
    bus.publish(&event(&session, Topic::Plugin, 4), Delivery::Live)
        .unwrap();
    bus.publish(&event(&session, Topic::Job, 5), Delivery::Live)
        .unwrap();
    assert_eq!(next_number(&mut subscription).await, 5);
}

/// COV-BUS-049.
#[tokio::test(start_paused = true)]
async fn what_comes_between_listening_and_attaching_is_in_the_cursor_and_not_sent_twice() {
    let bus = bus();
    let session = key("s", "1");
    let listener = bus.listen(&session.id);
    emit(&bus, &session, 1);
    let mut subscription = listener
        .attach(session.clone(), &TopicSelection::ALL, None)
        .unwrap();
    emit(&bus, &session, 2);

    assert_eq!(subscription.position().latest_seq, 1);
    assert_eq!(next_number(&mut subscription).await, 2);
}

#[tokio::test(start_paused = true)]
async fn replay_and_live_events_join_without_a_hole_or_a_double() {
    let bus = bus();
    let session = key("s", "1");
    let cursor = bus.cursor(&session);
    emit(&bus, &session, 1);
    let listener = bus.listen(&session.id);
    emit(&bus, &session, 2);
    let mut subscription = listener
        .attach(session.clone(), &TopicSelection::ALL, Some(&cursor))
        .unwrap();
    emit(&bus, &session, 3);

    let Some(Resume::Replay(events)) = subscription.take_resume() else {
        panic!("no replay")
    };
    assert_eq!(
        events.iter().map(|event| number(event)).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(next_number(&mut subscription).await, 3);
    assert!(is_quiet(&mut subscription).await);
}

/// COV-BUS-053 and COV-BUS-052.
#[tokio::test(start_paused = true)]
async fn listening_alone_creates_and_pins_no_replay_state() {
    let bus = bus();
    let listeners: Vec<_> = (0..300)
        .map(|number| bus.listen(&SessionId::from(format!("s{number}"))))
        .collect();

    assert_eq!(bus.tracked(), 0);
    drop(listeners);
    assert_eq!(bus.listeners(), 0);
}

/// COV-BUS-050.
#[tokio::test(start_paused = true)]
async fn the_buffer_of_a_handshake_is_bounded() {
    let bus = bus();
    let session = key("s", "1");
    let listener = bus.listen(&session.id);
    for number in 0..10_000 {
        emit(&bus, &session, number);
    }

    let ending = listener.attach(session, &TopicSelection::ALL, None).err();
    assert_eq!(ending, Some(Ending::Overflow));
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_does_not_keep_up_is_ended() {
    let bus = bus();
    let session = key("s", "1");
    let mut subscription = subscribe(&bus, &session, None);
    for number in 0..9 {
        emit(&bus, &session, number);
    }

    assert!(matches!(
        next(&mut subscription).await,
        Next::End(Ending::Overflow)
    ));
}

/// COV-BUS-063.
#[tokio::test(start_paused = true)]
async fn a_deletion_ends_the_subscriptions_of_that_life_at_once_whatever_waits() {
    let bus = bus();
    let (old, new) = (key("s", "1"), key("s", "2"));
    let jobs = TopicSelection::Some(vec![Topic::Job]);
    let mut doomed = bus
        .listen(&old.id)
        .attach(old.clone(), &jobs, None)
        .unwrap();
    let mut spared = subscribe(&bus, &new, None);
    emit(&bus, &new, 1);
    bus.invalidate(&old, Invalidation::Deleted);

    assert!(matches!(
        next(&mut doomed).await,
        Next::End(Ending::Deleted)
    ));
    assert_eq!(next_number(&mut spared).await, 1);
    assert!(!bus.tracks(&old));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_during_the_handshake_refuses_that_life_only() {
    let bus = bus();
    let (old, new) = (key("s", "1"), key("s", "2"));
    let (first, second) = (bus.listen(&old.id), bus.listen(&old.id));
    bus.invalidate(&old, Invalidation::Deleted);

    assert_eq!(
        first.attach(old, &TopicSelection::ALL, None).err(),
        Some(Ending::Deleted)
    );
    assert!(second.attach(new, &TopicSelection::ALL, None).is_ok());
}

/// COV-BUS-082.
#[tokio::test(start_paused = true)]
async fn an_invalidation_during_the_handshake_refuses_it() {
    let bus = bus();
    let session = key("s", "1");
    let listener = bus.listen(&session.id);
    bus.invalidate(&session, Invalidation::PublishFailed);

    let ending = listener.attach(session, &TopicSelection::ALL, None).err();
    assert_eq!(ending, Some(Ending::Invalidated));
}

/// COV-SUB-134, COV-SUB-136 and COV-SUB-137, at the bus.
#[tokio::test(start_paused = true)]
async fn a_reset_stands_between_the_events_of_the_old_epoch_and_those_of_the_new() {
    let bus = bus();
    let session = key("s", "1");
    let mut subscription = subscribe(&bus, &session, None);
    let old = subscription.position().epoch.clone();
    emit(&bus, &session, 1);
    bus.reset(&session, ResetReason::TransportGap);
    emit(&bus, &session, 2);

    assert_eq!(next_number(&mut subscription).await, 1);
    let Next::Reset(reason, position) = next(&mut subscription).await else {
        panic!("no reset")
    };
    assert_eq!(reason, ResetReason::TransportGap);
    assert_ne!(position.epoch, old);
    assert_eq!((position.oldest_seq, position.latest_seq), (0, 0));

    let mut again = subscribe(&bus, &session, Some(&position.cursor().to_string()));
    let Some(Resume::Replay(events)) = again.take_resume() else {
        panic!("no replay")
    };
    assert_eq!(events[0].id.to_string(), format!("{}:1", position.epoch));
}

/// COV-SUB-135.
#[tokio::test(start_paused = true)]
async fn after_a_gap_the_events_from_before_it_cannot_be_continued() {
    let bus = bus();
    let session = key("s", "1");
    emit(&bus, &session, 1);
    let cursor = bus.cursor(&session);
    emit(&bus, &session, 2);
    bus.reset(&session, ResetReason::TransportGap);

    let mut subscription = subscribe(&bus, &session, Some(&cursor));
    assert_eq!(
        subscription
            .take_resume()
            .map(|resume| matches!(resume, Resume::Reset(_))),
        Some(true)
    );
}

/// COV-BUS-068 and COV-BUS-069, at the bus.
#[tokio::test(start_paused = true)]
async fn an_event_of_another_life_is_dropped_and_asks_for_one_recheck() {
    let bus = bus();
    let (own, other) = (key("s", "1"), key("s", "2"));
    let mut subscription = subscribe(&bus, &own, None);
    emit(&bus, &other, 9);
    assert!(matches!(next(&mut subscription).await, Next::Recheck));
    emit(&bus, &own, 1);

    assert_eq!(next_number(&mut subscription).await, 1);
    assert!(is_quiet(&mut subscription).await);
}

#[tokio::test(start_paused = true)]
async fn a_life_of_a_session_never_replays_the_events_of_another() {
    let bus = bus();
    let (old, new) = (key("s", "1"), key("s", "2"));
    let cursor = bus.cursor(&old);
    emit(&bus, &old, 1);

    let mut subscription = subscribe(&bus, &new, Some(&cursor));
    assert_eq!(
        subscription.take_resume(),
        Some(Resume::Reset(ResetReason::EpochChange))
    );
}

#[tokio::test(start_paused = true)]
async fn diagnostics_are_sent_live_with_an_id_and_never_replayed() {
    let bus = bus();
    let session = key("s", "1");
    let mut live = subscribe(&bus, &session, None);
    let cursor = bus.cursor(&session);
    bus.publish(&event(&session, Topic::Trace, 1), Delivery::Live)
        .unwrap();
    emit(&bus, &session, 2);

    let Next::Event(trace) = next(&mut live).await else {
        panic!("no event")
    };
    assert_eq!(trace.id.seq, 1);
    let mut late = subscribe(&bus, &session, Some(&cursor));
    let Some(Resume::Replay(events)) = late.take_resume() else {
        panic!("no replay")
    };
    assert_eq!(
        events.iter().map(|event| event.id.seq).collect::<Vec<_>>(),
        [2]
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_bus_ends_everybody_and_ignores_events() {
    let bus = bus();
    let session = key("s", "1");
    let mut subscription = subscribe(&bus, &session, None);
    bus.close();
    bus.close();
    emit(&bus, &session, 1);

    assert!(matches!(
        next(&mut subscription).await,
        Next::End(Ending::Closed)
    ));
    let late = bus
        .listen(&session.id)
        .attach(session, &TopicSelection::ALL, None);
    assert_eq!(late.err(), Some(Ending::Closed));
}

/// COV-LIM-032.
#[tokio::test(start_paused = true)]
async fn dropping_a_subscription_releases_its_pin_and_its_place() {
    let bus = bus();
    let session = key("s", "1");
    drop(subscribe(&bus, &session, None));
    for number in 0..256 {
        bus.cursor(&key(&format!("other{number}"), "1"));
    }

    assert_eq!(bus.listeners(), 0);
    assert!(!bus.tracks(&session));
}

#[tokio::test(start_paused = true)]
async fn a_tap_hears_each_event_of_its_session_until_its_guard_goes() {
    let bus = bus();
    let session = key("s", "1");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let guard = bus.tap(
        &session,
        Arc::new(move |event: &DomainEvent| {
            ear.lock()
                .unwrap()
                .push(event.payload["number"].as_u64().unwrap());
        }),
    );
    emit(&bus, &session, 1);
    emit(&bus, &key("t", "1"), 2);
    drop(guard);
    emit(&bus, &session, 3);

    assert_eq!(*heard.lock().unwrap(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_interrupts_a_recheck_that_hangs() {
    let bus = bus();
    let session = key("s", "1");
    let subscription = subscribe(&bus, &session, None);
    bus.invalidate(&session, Invalidation::Deleted);

    let ending = timeout(Duration::from_secs(1), subscription.ended()).await;
    assert_eq!(ending, Ok(Ending::Deleted));
}
