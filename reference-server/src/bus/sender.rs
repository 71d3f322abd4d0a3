//! The sending side of the transport between processes: numbers the frames of each session and holds
//! those that wait for the transport, within a bound.
//!
//! [`Lanes`] is the state, without I/O; [`Sender`] is the task that moves frames from it to a
//! [`Transport`], one at a time. A frame gets its number when it is emitted, even when it is dropped
//! for a full lane: the receiver sees the missing number and resets.
//!
//! What a frame holds and how long it may be is the transport's business.
//!
//! Source: seed 000, lines 706 and 774.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The sizes of [`Lanes`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SenderLimits {
    /// Frames of one session that are held, the one being sent included.
    pub waiting: usize,
    /// Sessions whose numbering is remembered. One that was forgotten goes on as a new stream.
    pub lanes: usize,
}

/// One frame on its way out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outgoing<K, E> {
    /// The generation of the sender for this session; never empty.
    pub stream: String,
    /// The session that the event belongs to.
    pub session: K,
    /// Number of the frame in its stream, from 1.
    pub seq: u64,
    /// What it brings.
    pub event: E,
}

/// A frame was dropped, because as many as may be held wait already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("frame {seq} dropped: the transport holds up the frames of its session")]
pub struct Dropped {
    /// The number of the dropped frame, which no other frame gets.
    pub seq: u64,
}

/// The frames that wait, in the order of their emission, and the numbering of each session.
pub struct Lanes<K, E> {
    limits: SenderLimits,
    /// Identifies this process's life; every stream name starts with it.
    generation: String,
    queue: VecDeque<Outgoing<K, E>>,
    lanes: HashMap<K, Lane>,
    /// The lanes that hold nothing, by the tick of their last frame.
    empty: BTreeMap<u64, K>,
    tick: u64,
    streams: u64,
}

struct Lane {
    stream: String,
    last_seq: u64,
    held: usize,
    used_tick: u64,
}

impl<K: Clone + Eq + Hash, E> Lanes<K, E> {
    /// No frames yet. `generation` is a text that no other life of any process has.
    #[must_use]
    pub fn new(limits: SenderLimits, generation: String) -> Self {
        Self {
            limits,
            generation,
            queue: VecDeque::new(),
            lanes: HashMap::new(),
            empty: BTreeMap::new(),
            tick: 0,
            streams: 0,
        }
    }

    /// Numbers the event and holds its frame.
    ///
    /// # Errors
    ///
    /// [`Dropped`] when the session holds as many frames as it may; those stay.
    pub fn offer(&mut self, session: &K, event: E) -> Result<(), Dropped> {
        let limit = self.limits.waiting;
        let lane = self.lane(session);
        lane.last_seq += 1;
        let seq = lane.last_seq;
        if lane.held >= limit {
            return Err(Dropped { seq });
        }
        lane.held += 1;
        let stream = lane.stream.clone();
        self.queue.push_back(Outgoing {
            stream,
            session: session.clone(),
            seq,
            event,
        });
        Ok(())
    }

    /// The frame to send next; it counts as held until [`sent`](Self::sent).
    pub fn take(&mut self) -> Option<Outgoing<K, E>> {
        self.queue.pop_front()
    }

    /// The transport is done with one frame of this session, for better or worse.
    pub fn sent(&mut self, session: &K) {
        self.tick += 1;
        if let Some(lane) = self.lanes.get_mut(session) {
            lane.held = lane.held.saturating_sub(1);
            lane.used_tick = self.tick;
            if lane.held == 0 {
                self.empty.insert(self.tick, session.clone());
            }
        }
    }

    /// Frames of this session that are held.
    #[must_use]
    pub fn held(&self, session: &K) -> usize {
        self.lanes.get(session).map_or(0, |lane| lane.held)
    }

    fn lane(&mut self, session: &K) -> &mut Lane {
        let is_full = self.lanes.len() >= self.limits.lanes;
        if is_full
            && !self.lanes.contains_key(session)
            && let Some((_, oldest)) = self.empty.pop_first()
        {
            self.lanes.remove(&oldest);
        }
        let Self {
            lanes,
            streams,
            generation,
            empty,
            ..
        } = self;
        let lane = lanes.entry(session.clone()).or_insert_with(|| {
            *streams += 1;
            Lane {
                stream: format!("{generation}.{streams}"),
                last_seq: 0,
                held: 0,
                used_tick: 0,
            }
        });
        empty.remove(&lane.used_tick);
        lane
    }
}

/// What carries frames to the other processes.
pub trait Transport<K, E>: Send + Sync + 'static {
    /// Sends one frame; returns when the transport has taken it.
    ///
    /// # Errors
    ///
    /// When it was not taken. It is not sent again: its receivers find the hole.
    fn publish(
        &self,
        frame: Outgoing<K, E>,
    ) -> impl Future<Output = Result<(), TransportError>> + Send;
}

/// Why the transport did not take a frame.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the transport failed: {0}")]
pub struct TransportError(pub String);

/// Moves frames to a transport, one at a time, in the order of their emission.
///
/// Ends, with its task, when it is dropped; frames that wait then are not sent.
pub struct Sender<K, E> {
    shared: Arc<Shared<K, E>>,
    stop: CancellationToken,
}

struct Shared<K, E> {
    lanes: Mutex<Lanes<K, E>>,
    work: Notify,
}

impl<K, E> Shared<K, E> {
    fn lanes(&self) -> std::sync::MutexGuard<'_, Lanes<K, E>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, E> Sender<K, E>
where
    K: Clone + Eq + Hash + Send + 'static,
    E: Send + 'static,
{
    /// Starts the task that sends over `transport`.
    pub fn start(lanes: Lanes<K, E>, transport: impl Transport<K, E>) -> Self {
        let shared = Arc::new(Shared {
            lanes: Mutex::new(lanes),
            work: Notify::new(),
        });
        let stop = CancellationToken::new();
        let work = send_all(Arc::clone(&shared), transport);
        let until = stop.clone();
        tokio::spawn(async move { until.run_until_cancelled(work).await });
        Self { shared, stop }
    }

    /// Sends the event when its turn comes. Never waits; a full lane drops it with a warning.
    pub fn emit(&self, session: &K, event: E) {
        let offered = self.shared.lanes().offer(session, event);
        match offered {
            Ok(()) => self.shared.work.notify_one(),
            Err(Dropped { seq }) => {
                tracing::warn!(
                    seq,
                    "transport does not keep up: dropped a frame, receivers will reset"
                );
            }
        }
    }

    /// Frames of this session that are held.
    #[must_use]
    pub fn held(&self, session: &K) -> usize {
        self.shared.lanes().held(session)
    }
}

impl<K, E> Drop for Sender<K, E> {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn send_all<K, E>(shared: Arc<Shared<K, E>>, transport: impl Transport<K, E>)
where
    K: Clone + Eq + Hash,
{
    loop {
        let next = shared.lanes().take();
        let Some(frame) = next else {
            shared.work.notified().await;
            continue;
        };
        let session = frame.session.clone();
        if let Err(error) = transport.publish(frame).await {
            tracing::warn!(%error, "a frame was not sent, receivers will reset");
        }
        shared.lanes().sent(&session);
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
