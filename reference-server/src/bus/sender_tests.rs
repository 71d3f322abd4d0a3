//! The sender of frames to other processes: its limit, and the numbers of what it drops.

use std::io;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::bus::receiver::{Incoming, Output, Receiver, ReceiverLimits};

const LIMITS: SenderLimits = SenderLimits {
    waiting: 256,
    lanes: 4096,
};

type Frame = Outgoing<&'static str, u64>;

/// A transport that takes frames only as long as it has permits, and shows what it took.
struct Gate {
    permits: Arc<Semaphore>,
    taken: mpsc::UnboundedSender<Frame>,
}

impl Transport<&'static str, u64> for Gate {
    async fn publish(&self, frame: Frame) -> Result<(), TransportError> {
        let permit = self.permits.acquire().await;
        permit
            .map_err(|error| TransportError(error.to_string()))?
            .forget();
        self.taken
            .send(frame)
            .map_err(|error| TransportError(error.to_string()))
    }
}

/// A sender over a transport that hangs until permits come.
fn blocked() -> (
    Sender<&'static str, u64>,
    Arc<Semaphore>,
    mpsc::UnboundedReceiver<Frame>,
) {
    let permits = Arc::new(Semaphore::new(0));
    let (taken, frames) = mpsc::unbounded_channel();
    let gate = Gate {
        permits: Arc::clone(&permits),
        taken,
    };
    (
        Sender::start(Lanes::new(LIMITS, "g".into()), gate),
        permits,
        frames,
    )
}

async fn drain(frames: &mut mpsc::UnboundedReceiver<Frame>) -> Vec<Frame> {
    let mut all = Vec::new();
    while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_secs(1), frames.recv()).await {
        all.push(frame);
    }
    all
}

/// Collects the log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn capture(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// COV-SUB-149.
#[tokio::test(start_paused = true)]
async fn a_session_holds_at_most_256_frames() {
    let (sender, _permits, _frames) = blocked();
    for event in 0..400 {
        sender.emit(&"s", event);
        tokio::task::yield_now().await;
        assert!(sender.held(&"s") <= 256);
    }

    assert_eq!(sender.held(&"s"), 256);
}

/// COV-SUB-150.
#[tokio::test(start_paused = true)]
async fn frames_beyond_the_limit_are_dropped_with_a_warning() {
    let log = Log::default();
    let _capturing = log.capture();
    let (sender, permits, mut frames) = blocked();
    for event in 0..300 {
        sender.emit(&"s", event);
    }
    permits.add_permits(1000);

    let sent = drain(&mut frames).await;

    assert!(log.text().contains("WARN"), "{}", log.text());
    assert!(sent.iter().all(|frame| frame.event < 256));
}

/// COV-SUB-151.
#[tokio::test(start_paused = true)]
async fn a_full_queue_of_one_session_drops_no_frame_of_another() {
    let (sender, permits, mut frames) = blocked();
    for event in 0..400 {
        sender.emit(&"a", event);
    }
    sender.emit(&"b", 7);
    assert_eq!(sender.held(&"b"), 1);
    permits.add_permits(1000);

    let sent = drain(&mut frames).await;

    assert!(
        sent.iter()
            .any(|frame| frame.session == "b" && frame.event == 7)
    );
}

/// COV-SUB-152.
#[tokio::test(start_paused = true)]
async fn after_dropped_frames_the_receiver_finds_the_missing_range() {
    let (sender, permits, mut frames) = blocked();
    for event in 0..300 {
        sender.emit(&"s", event);
    }
    permits.add_permits(1000);
    let mut sent = drain(&mut frames).await;
    sender.emit(&"s", 1000);
    sent.extend(drain(&mut frames).await);

    let limits = ReceiverLimits {
        states: 8,
        parked: 64,
        wait: Duration::from_secs(2),
    };
    let mut receiver = Receiver::new(limits);
    let mut out = Vec::new();
    for Outgoing {
        stream,
        session,
        seq,
        event,
    } in sent
    {
        let frame = Incoming {
            origin: "o".into(),
            stream,
            session,
            seq,
            event,
        };
        out.extend(receiver.receive(frame, Duration::ZERO));
    }
    out.extend(receiver.expire(Duration::from_secs(2)));

    let end = &out[out.len() - 2..];
    assert_eq!(
        end,
        [
            Output::Reset { session: "s" },
            Output::Deliver {
                session: "s",
                event: 1000
            }
        ]
    );
}

/// COV-SUB-188.
#[tokio::test(start_paused = true)]
async fn at_the_limit_the_new_frames_are_dropped_and_the_waiting_ones_stay() {
    let (sender, permits, mut frames) = blocked();
    for event in 0..400 {
        sender.emit(&"s", event);
    }
    permits.add_permits(1000);

    let sent: Vec<u64> = drain(&mut frames)
        .await
        .into_iter()
        .map(|frame| frame.event)
        .collect();

    assert_eq!(sent, (0..256).collect::<Vec<_>>());
}

/// COV-SUB-189.
#[tokio::test(start_paused = true)]
async fn dropping_a_frame_writes_a_warning_to_the_log() {
    let log = Log::default();
    let _capturing = log.capture();
    let (sender, _permits, _frames) = blocked();
    for event in 0..256 {
        sender.emit(&"s", event);
    }
    assert_eq!(log.text(), "");

    sender.emit(&"s", 256);

    assert!(log.text().contains("dropped a frame"), "{}", log.text());
}

#[test]
fn the_numbers_of_a_session_rise_by_one_and_count_what_is_dropped() {
    let mut lanes = Lanes::new(
        SenderLimits {
            waiting: 2,
            lanes: 8,
        },
        "g".into(),
    );
    for event in 0..2 {
        assert_eq!(lanes.offer(&"s", event), Ok(()));
    }
    assert_eq!(lanes.offer(&"s", 2), Err(Dropped { seq: 3 }));
    lanes.take();
    lanes.sent(&"s");
    assert_eq!(lanes.offer(&"s", 3), Ok(()));

    let seqs: Vec<u64> = std::iter::from_fn(|| lanes.take())
        .map(|frame| frame.seq)
        .collect();
    assert_eq!(seqs, [2, 4]);
}

#[test]
fn a_session_whose_numbering_was_forgotten_goes_on_as_a_new_stream() {
    let mut lanes = Lanes::new(
        SenderLimits {
            waiting: 2,
            lanes: 1,
        },
        "g".into(),
    );
    let mut send = |session: &'static str| {
        lanes.offer(&session, 0).unwrap();
        let frame = lanes.take().unwrap();
        lanes.sent(&session);
        frame
    };

    let first = send("a");
    assert_eq!(send("a").stream, first.stream);
    send("b");
    let later = send("a");

    assert_ne!(later.stream, first.stream);
    assert_eq!(later.seq, 1);
}
