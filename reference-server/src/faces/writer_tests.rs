//! The bounded writer: one write at a time, and how long a stuck one is waited for.

use std::sync::atomic::Ordering;

use super::*;
use crate::faces::test_wire::{LIMITS, NEVER, start, stuck};

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn frame(number: usize) -> Bytes {
    Bytes::from(number.to_string())
}

fn frames(numbers: std::ops::Range<usize>) -> Vec<Bytes> {
    numbers.map(frame).collect()
}

fn push(queue: &FrameQueue, numbers: std::ops::Range<usize>) {
    for number in numbers {
        queue.push(frame(number)).unwrap();
    }
}

/// Lets the writer begin what it can begin now.
async fn settle() {
    tokio::time::sleep(millis(1)).await;
}

/// COV-LIM-004.
#[tokio::test(start_paused = true)]
async fn the_257th_frame_overflows_the_queue() {
    let (queue, seen) = stuck();
    push(&queue, 0..256);

    assert_eq!(queue.push(frame(256)), Err(Refused));
    assert_eq!(queue.ended().await, End::Overflow);
    settle().await;
    assert!(seen.is_aborted());
}

/// COV-LIM-005.
#[tokio::test(start_paused = true)]
async fn the_frame_in_writing_counts_toward_the_256() {
    let (queue, seen) = stuck();
    push(&queue, 0..1);
    settle().await;
    assert_eq!(seen.begun().len(), 1);
    push(&queue, 1..256);
    assert_eq!(queue.held(), 256);

    assert_eq!(queue.push(frame(256)), Err(Refused));
}

/// COV-LIM-006.
#[tokio::test(start_paused = true)]
async fn exactly_256_frames_are_no_overflow() {
    let (queue, seen) = start(|_| millis(1), None, Duration::ZERO);
    push(&queue, 0..256);

    assert_eq!(queue.finish().await, End::Finished);
    assert_eq!(seen.written(), frames(0..256));
    assert!(!seen.is_aborted());
}

/// COV-LIM-007.
#[tokio::test(start_paused = true)]
async fn one_write_is_in_progress_at_a_time() {
    let (queue, seen) = start(|_| millis(3), None, Duration::ZERO);
    let producers: Vec<_> = (0..20)
        .map(|number| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.push(frame(number)) })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap().unwrap();
    }
    queue.finish().await;

    assert_eq!(seen.written().len(), 20);
    assert_eq!(seen.most_in_progress.load(Ordering::SeqCst), 1);
}

/// COV-LIM-009.
#[tokio::test(start_paused = true)]
async fn writes_below_the_limit_do_not_end_the_connection() {
    let (queue, seen) = start(|_| millis(1500), None, Duration::ZERO);
    push(&queue, 0..5);
    tokio::time::sleep(Duration::from_secs(8)).await;

    assert_eq!(seen.written(), frames(0..5));
    assert_eq!(queue.push(frame(5)), Ok(()));
}

/// COV-LIM-010.
#[tokio::test(start_paused = true)]
async fn draining_ends_after_two_seconds_and_drops_the_rest() {
    let (queue, seen) = start(|_| millis(500), None, Duration::ZERO);
    push(&queue, 0..20);
    let begin = Instant::now();

    assert_eq!(queue.finish().await, End::DrainTimeout);
    assert!(begin.elapsed() <= millis(2500), "{:?}", begin.elapsed());
    assert!(begin.elapsed() >= millis(1900), "{:?}", begin.elapsed());
    settle().await;
    assert!(seen.is_aborted());
    assert!(seen.written().len() < 5);
}

/// COV-LIM-011.
#[tokio::test(start_paused = true)]
async fn closing_waits_two_seconds_at_most() {
    let (queue, seen) = start(|_| Duration::ZERO, None, NEVER);
    let begin = Instant::now();

    assert_eq!(queue.finish().await, End::CloseFailed);
    assert_eq!(begin.elapsed(), Duration::from_secs(2));
    settle().await;
    assert!(seen.is_aborted());
}

/// COV-LIM-012.
#[tokio::test(start_paused = true)]
async fn write_and_close_have_their_own_two_seconds() {
    let (queue, seen) = start(|_| millis(1500), None, millis(1500));
    push(&queue, 0..1);

    assert_eq!(queue.finish().await, End::Finished);
    assert_eq!(seen.written(), frames(0..1));
    assert!(seen.is_closed());
}

/// COV-LIM-084.
#[tokio::test(start_paused = true)]
async fn the_time_of_the_drain_does_not_shorten_the_close() {
    let (queue, seen) = start(|_| millis(150), None, millis(1500));
    push(&queue, 0..10);

    assert_eq!(queue.finish().await, End::Finished);
    assert_eq!(seen.written(), frames(0..10));
    assert!(!seen.is_aborted());
}

/// COV-LIM-021.
#[tokio::test(start_paused = true)]
async fn a_write_error_aborts_the_connection() {
    let (queue, seen) = start(|_| Duration::ZERO, Some(3), Duration::ZERO);
    push(&queue, 0..5);

    assert_eq!(queue.ended().await, End::WriteError);
    settle().await;
    assert!(seen.is_aborted());
}

/// COV-LIM-022.
#[tokio::test(start_paused = true)]
async fn a_write_that_takes_too_long_aborts_the_connection_after_two_seconds() {
    let (queue, seen) = start(
        |number| if number == 2 { NEVER } else { Duration::ZERO },
        None,
        Duration::ZERO,
    );
    let begin = Instant::now();
    push(&queue, 0..3);

    assert_eq!(queue.ended().await, End::WriteTimeout);
    assert!(begin.elapsed() >= Duration::from_secs(2));
    assert!(begin.elapsed() < millis(2100));
    settle().await;
    assert!(seen.is_aborted());
}

/// COV-LIM-023.
#[tokio::test(start_paused = true)]
async fn after_its_end_a_connection_accepts_nothing() {
    let overflowed = stuck();
    while overflowed.0.push(frame(1)).is_ok() {}
    let failed = start(|_| Duration::ZERO, Some(1), Duration::ZERO);
    push(&failed.0, 0..1);
    let timed_out = stuck();
    push(&timed_out.0, 0..1);

    for (queue, seen) in [overflowed, failed, timed_out] {
        queue.ended().await;
        let begun = seen.begun().len();
        assert_eq!(queue.push(frame(9)), Err(Refused));
        assert_eq!(queue.push_when_room(frame(9)).await, Err(Refused));
        settle().await;
        assert_eq!(seen.begun().len(), begun);
    }
}

/// COV-LIM-024.
#[tokio::test(start_paused = true)]
async fn after_a_failure_no_waiting_frame_is_written() {
    let (queue, seen) = start(|_| Duration::ZERO, Some(2), Duration::ZERO);
    push(&queue, 0..10);
    queue.ended().await;
    tokio::time::sleep(Duration::from_secs(10)).await;

    assert_eq!(seen.begun(), frames(0..2));
}

/// COV-LIM-025.
#[tokio::test(start_paused = true)]
async fn a_stuck_write_is_not_replaced() {
    let (queue, seen) = stuck();
    push(&queue, 0..5);
    tokio::time::sleep(Duration::from_secs(10)).await;

    assert_eq!(seen.begun(), frames(0..1));
}

/// COV-LIM-037.
#[tokio::test(start_paused = true)]
async fn a_frame_is_written_as_it_was_when_it_was_pushed() {
    let (queue, seen) = start(|_| millis(10), None, Duration::ZERO);
    let mut payload = b"before".to_vec();
    queue.push(Bytes::copy_from_slice(&payload)).unwrap();
    payload.copy_from_slice(b"after!");
    queue.finish().await;

    assert_eq!(seen.written(), [Bytes::from_static(b"before")]);
}

/// COV-LIM-040.
#[tokio::test(start_paused = true)]
async fn pushing_never_waits_for_the_peer() {
    let (queue, _seen) = stuck();
    let begin = Instant::now();
    push(&queue, 0..256);

    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_waits_for_room_never_overflows_the_queue() {
    let (queue, seen) = start(|_| millis(1), None, Duration::ZERO);
    for number in 0..1000 {
        queue.push_when_room(frame(number)).await.unwrap();
        assert!(queue.held() <= 256);
    }

    assert_eq!(queue.finish().await, End::Finished);
    assert_eq!(seen.written(), frames(0..1000));
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_waits_for_room_is_refused_when_the_write_is_stuck() {
    let (queue, _seen) = stuck();
    push(&queue, 0..256);
    let begin = Instant::now();

    assert_eq!(queue.push_when_room(frame(256)).await, Err(Refused));
    assert!(begin.elapsed() <= millis(2100), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_when_its_peer_goes() {
    let (queue, seen) = stuck();
    settle().await;
    seen.peer_gone.notify_one();

    assert_eq!(queue.ended().await, End::Gone);
    assert_eq!(queue.push(frame(0)), Err(Refused));
}

#[tokio::test(start_paused = true)]
async fn an_abort_interrupts_a_write() {
    let (queue, seen) = stuck();
    push(&queue, 0..3);
    settle().await;
    queue.abort();

    assert_eq!(queue.ended().await, End::Aborted);
    settle().await;
    assert!(seen.is_aborted());
    assert!(!seen.is_closed());
}

#[tokio::test(start_paused = true)]
async fn the_drain_goes_on_when_nobody_waits_for_it() {
    let (queue, seen) = start(|_| millis(10), None, Duration::ZERO);
    push(&queue, 0..5);
    drop(timeout(millis(1), queue.finish()).await);

    assert_eq!(queue.ended().await, End::Finished);
    assert_eq!(seen.written(), frames(0..5));
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_the_protocol_keep_their_floor_when_scaled() {
    let limits = WriteLimits::at(TimeScale::new(0.001).unwrap());

    assert_eq!(limits.write, limits::IO_FLOOR);
    assert_eq!(WriteLimits::at(TimeScale::REAL), LIMITS);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_stream_leaves_the_connection_alone() {
    let (queue, seen) = stuck();
    queue.abandon();

    assert_eq!(queue.ended().await, End::Abandoned);
    settle().await;
    assert!(!seen.is_aborted());
    assert_eq!(queue.push(frame(0)), Err(Refused));
}
