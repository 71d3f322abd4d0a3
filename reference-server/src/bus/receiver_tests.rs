//! The receiver of frames from other processes: order, gaps, and which states are kept.

use proptest::prelude::*;

use super::*;

const WAIT: Duration = Duration::from_secs(2);
const NOW: Duration = Duration::ZERO;

type Bus = Receiver<&'static str, u64>;

fn receiver() -> Bus {
    Receiver::new(ReceiverLimits {
        states: 1024,
        parked: 64,
        wait: WAIT,
    })
}

/// Frame `seq` of a stream; its event is its number.
fn frame<K>(origin: &str, session: K, stream: &str, seq: u64) -> Incoming<K, u64> {
    Incoming {
        origin: origin.into(),
        session,
        stream: stream.into(),
        seq,
        event: seq,
    }
}

fn feed(bus: &mut Bus, seqs: &[u64]) -> Vec<Output<&'static str, u64>> {
    seqs.iter()
        .flat_map(|seq| bus.receive(frame("o", "s", "t", *seq), NOW))
        .collect()
}

fn event<K>(session: K, seq: u64) -> Output<K, u64> {
    Output::Deliver {
        session,
        event: seq,
    }
}

fn reset<K>(session: K) -> Output<K, u64> {
    Output::Reset { session }
}

/// A receiver with a state for each of the sessions 0 to 1023, in that order; those for which
/// `has_hole` holds wait for frame 2, and have frame 3 parked.
fn full(has_hole: impl Fn(u32) -> bool) -> Receiver<u32, u64> {
    let mut bus = Receiver::new(ReceiverLimits {
        states: 1024,
        parked: 64,
        wait: WAIT,
    });
    for session in 0..1024 {
        bus.receive(frame("o", session, "t", 1), NOW);
        if has_hole(session) {
            bus.receive(frame("o", session, "t", 3), NOW);
        }
    }
    bus
}

/// COV-SUB-129.
#[test]
fn each_origin_session_and_stream_is_checked_on_its_own_from_one() {
    let mut bus = receiver();
    let mut out = Vec::new();
    for (origin, session, stream, seq) in [
        ("o1", "s1", "t1", 1),
        ("o1", "s1", "t1", 2),
        ("o2", "s1", "t2", 1),
        ("o2", "s1", "t2", 2),
    ] {
        out.extend(bus.receive(frame(origin, session, stream, seq), NOW));
    }

    assert_eq!(
        out,
        [
            event("s1", 1),
            event("s1", 2),
            event("s1", 1),
            event("s1", 2)
        ]
    );
}

/// COV-SUB-130.
#[test]
fn a_new_stream_that_starts_at_one_is_accepted_without_a_reset() {
    let mut bus = receiver();
    feed(&mut bus, &[1, 2, 3]);

    assert_eq!(bus.receive(frame("o", "s", "t2", 1), NOW), [event("s", 1)]);
}

/// COV-SUB-131.
#[test]
fn a_new_stream_that_starts_later_is_a_gap() {
    let mut bus = receiver();

    assert_eq!(feed(&mut bus, &[3]), []);
    assert_eq!(bus.expire(WAIT), [reset("s"), event("s", 3)]);
}

/// COV-SUB-132.
#[test]
fn the_next_frame_of_an_evicted_stream_is_a_gap() {
    let mut bus = full(|_| false);
    bus.receive(frame("o", 5000, "t", 1), NOW);
    assert_eq!(bus.current_stream("o", &0), None, "session 0 was evicted");

    bus.receive(frame("o", 0, "t", 2), NOW);

    assert_eq!(bus.expire(WAIT), [reset(0), event(0, 2)]);
}

/// COV-SUB-133.
#[test]
fn a_frame_that_comes_early_waits_for_the_one_before_it() {
    assert_eq!(
        feed(&mut receiver(), &[1, 3, 2]),
        [event("s", 1), event("s", 2), event("s", 3)]
    );
}

/// COV-SUB-134.
#[test]
fn events_from_before_the_hole_are_delivered_before_the_reset() {
    let mut bus = receiver();
    let mut out = feed(&mut bus, &[1, 2, 5]);
    out.extend(bus.expire(WAIT));

    assert_eq!(
        out,
        [event("s", 1), event("s", 2), reset("s"), event("s", 5)]
    );
}

/// COV-SUB-137.
#[test]
fn events_from_behind_the_hole_are_delivered_after_the_reset() {
    let mut bus = receiver();
    feed(&mut bus, &[1, 2, 5, 6]);

    assert_eq!(bus.expire(WAIT), [reset("s"), event("s", 5), event("s", 6)]);
}

/// COV-SUB-140.
#[test]
fn an_origin_and_session_have_one_state_whatever_the_number_of_streams() {
    let mut bus = receiver();
    for stream in 0..100 {
        bus.receive(frame("o", "s", &format!("t{stream}"), 1), NOW);
    }

    assert_eq!(bus.len(), 1);
}

/// COV-SUB-141.
#[test]
fn a_new_stream_reclaims_the_state_of_the_old_one() {
    let mut bus = receiver();
    feed(&mut bus, &[1, 2]);
    bus.receive(frame("o", "s", "t2", 1), NOW);

    assert_eq!(bus.len(), 1);
    assert_eq!(bus.current_stream("o", &"s"), Some("t2"));
}

/// COV-SUB-142.
#[test]
fn waiting_events_of_a_replaced_stream_come_before_the_new_stream() {
    let mut bus = receiver();
    feed(&mut bus, &[1, 3]);

    let out = bus.receive(frame("o", "s", "t2", 1), NOW);

    assert_eq!(out.iter().filter(|out| **out != reset("s")).count(), 2);
    assert_eq!(out[out.len() - 2..], [event("s", 3), event("s", 1)]);
}

/// COV-SUB-143.
#[test]
fn delivering_the_waiting_events_of_a_replaced_stream_resets() {
    let mut bus = receiver();
    feed(&mut bus, &[1, 3]);

    assert_eq!(bus.receive(frame("o", "s", "t2", 1), NOW)[0], reset("s"));
}

/// COV-SUB-144.
#[test]
fn there_are_never_more_than_1024_receiving_states() {
    let mut bus = Receiver::new(ReceiverLimits {
        states: 1024,
        parked: 64,
        wait: WAIT,
    });
    for session in 0..2000 {
        bus.receive(frame("o", session, "t", 1), NOW);
        assert!(bus.len() <= 1024);
    }

    assert_eq!(bus.len(), 1024);
}

/// COV-SUB-145.
#[test]
fn the_longest_idle_state_without_waiting_events_is_evicted() {
    let mut bus = full(|_| false);
    bus.receive(frame("o", 0, "t", 2), NOW);
    bus.receive(frame("o", 5000, "t", 1), NOW);

    assert_eq!(bus.current_stream("o", &0), Some("t"));
    assert_eq!(bus.current_stream("o", &1), None);
}

/// COV-SUB-146.
#[test]
fn a_state_with_waiting_events_outlives_those_without() {
    let mut bus = full(|session| session == 0);
    bus.receive(frame("o", 5000, "t", 1), NOW);

    assert_eq!(bus.current_stream("o", &1), None);
    assert_eq!(
        bus.receive(frame("o", 0, "t", 2), NOW),
        [event(0, 2), event(0, 3)]
    );
}

/// COV-SUB-147.
#[test]
fn among_states_that_all_wait_the_longest_idle_delivers_and_goes() {
    let mut bus = full(|_| true);

    let out = bus.receive(frame("o", 5000, "t", 1), NOW);

    assert!(out.contains(&event(0, 3)));
    assert_eq!(bus.current_stream("o", &0), None);
    assert_eq!(bus.len(), 1024);
}

/// COV-SUB-148.
#[test]
fn evicting_a_state_with_waiting_events_resets_its_session() {
    let mut bus = full(|_| true);

    let out = bus.receive(frame("o", 5000, "t", 1), NOW);

    assert_eq!(out, [reset(0), event(0, 3), event(5000, 1)]);
}

/// COV-SUB-183.
#[test]
fn late_but_complete_frames_cause_no_reset() {
    let mut bus = receiver();

    let out = feed(&mut bus, &[2, 1, 4, 3, 5]);

    assert_eq!(out, (1..=5).map(|seq| event("s", seq)).collect::<Vec<_>>());
    assert_eq!(bus.expire(WAIT * 100), []);
}

/// COV-SUB-185.
#[test]
fn interleaved_origins_are_no_gap() {
    let mut bus = receiver();
    let mut out = Vec::new();
    for (origin, seq) in [("a", 1), ("b", 1), ("a", 2), ("b", 2)] {
        out.extend(bus.receive(frame(origin, "s", "t", seq), NOW));
    }

    assert_eq!(
        out,
        [event("s", 1), event("s", 1), event("s", 2), event("s", 2)]
    );
    assert_eq!(bus.next_deadline(), None);
}

/// COV-SUB-186.
#[test]
fn interleaved_sessions_are_no_gap() {
    let mut bus = receiver();
    let mut out = Vec::new();
    for (session, seq) in [("s", 1), ("t", 1), ("s", 2), ("t", 2)] {
        out.extend(bus.receive(frame("o", session, "stream", seq), NOW));
    }

    assert_eq!(
        out,
        [event("s", 1), event("t", 1), event("s", 2), event("t", 2)]
    );
    assert_eq!(bus.next_deadline(), None);
}

/// COV-SUB-187.
#[test]
fn evicting_a_calm_state_resets_nothing_until_its_stream_goes_on() {
    let mut bus = full(|_| false);

    assert_eq!(bus.receive(frame("o", 5000, "t", 1), NOW), [event(5000, 1)]);
    assert_eq!(bus.expire(WAIT * 100), []);

    bus.receive(frame("o", 0, "t", 2), NOW);
    assert_eq!(bus.expire(WAIT), [reset(0), event(0, 2)]);
}

#[test]
fn a_hole_is_given_up_when_its_wait_is_over_and_not_before() {
    let mut bus = receiver();
    bus.receive(frame("o", "s", "t", 2), Duration::from_secs(5));

    assert_eq!(bus.next_deadline(), Some(Duration::from_secs(7)));
    assert_eq!(bus.expire(Duration::from_millis(6_999)), []);
    assert_eq!(
        bus.expire(Duration::from_secs(7)),
        [reset("s"), event("s", 2)]
    );
    assert_eq!(bus.next_deadline(), None);
}

#[test]
fn a_second_hole_gets_its_own_wait_and_its_own_reset() {
    let mut bus = receiver();
    feed(&mut bus, &[2, 4]);

    assert_eq!(bus.expire(WAIT), [reset("s"), event("s", 2)]);
    assert_eq!(bus.expire(WAIT), []);
    assert_eq!(bus.expire(WAIT * 2), [reset("s"), event("s", 4)]);
}

#[test]
fn a_frame_that_was_delivered_or_is_parked_is_ignored_when_it_comes_again() {
    let mut bus = receiver();

    assert_eq!(feed(&mut bus, &[1, 1, 3, 3, 1]), [event("s", 1)]);
    assert_eq!(feed(&mut bus, &[2, 2, 3]), [event("s", 2), event("s", 3)]);
}

#[test]
fn a_stream_parks_64_frames_and_gives_up_the_hole_at_the_next() {
    let mut bus = receiver();
    let parked: Vec<u64> = (2..=65).collect();
    assert_eq!(feed(&mut bus, &parked), []);

    let out = feed(&mut bus, &[66]);

    assert_eq!(out[0], reset("s"));
    assert_eq!(
        out[1..],
        (2..=66).map(|seq| event("s", seq)).collect::<Vec<_>>()
    );
}

proptest! {
    /// A permutation that moves no frame further than the receiver parks arrives as it was sent.
    #[test]
    fn any_shuffle_without_loss_is_put_right(
        seqs in Just((1..=60_u64).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut bus = receiver();
        let out = feed(&mut bus, &seqs);

        prop_assert_eq!(out, (1..=60).map(|seq| event("s", seq)).collect::<Vec<_>>());
    }

    /// With frames lost anywhere, events come in order, and a reset stands wherever one is missing.
    #[test]
    fn between_two_events_with_a_hole_stands_a_reset(
        sent in proptest::collection::btree_set(1..40_u64, 1..30),
    ) {
        let mut bus = receiver();
        let mut out = feed(&mut bus, &sent.iter().copied().collect::<Vec<_>>());
        let mut now = NOW;
        while let Some(deadline) = bus.next_deadline() {
            now = now.max(deadline);
            out.extend(bus.expire(now));
        }

        let mut last = 0;
        let mut was_reset = false;
        let mut delivered = Vec::new();
        for output in out {
            match output {
                Output::Reset { .. } => was_reset = true,
                Output::Deliver { event, .. } => {
                    prop_assert_eq!(event != last + 1, was_reset);
                    last = event;
                    was_reset = false;
                    delivered.push(event);
                }
            }
        }
        prop_assert_eq!(delivered, sent.into_iter().collect::<Vec<_>>());
    }
}
