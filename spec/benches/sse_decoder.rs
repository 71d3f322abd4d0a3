//! The decoder against the crates `sseer` and `eventsource-stream`, on a stream as LLM services
//! send it, fed in pieces of three sizes.
//!
//! Each reader gets the same owned pieces and is used in its natural way: ours is fed, the peers
//! wrap a stream that is always ready and are polled to their end. What a reader does with an event
//! is the same for all: its data is counted. The results go into `docs/src/benchmarks.md`.
//!
//! At the end the ratio to `sseer` is measured once more, side by side, and the run fails when it
//! is below what we promise. The machine should be idle.

use std::convert::Infallible;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, SamplingMode, Throughput};
use futures_util::{FutureExt, Stream, StreamExt, stream};
use turnwire_spec::sse::{Decoder, Limits};

const STREAM_BYTES: usize = 64 << 20;
/// Sizes of the pieces, and how many times faster than `sseer` we promise to be.
const PIECES: [(usize, f64); 3] = [(128, 2.0), (4 << 10, 4.0), (64 << 10, 4.0)];

/// Rounds of the last comparison; fewer for the crate that we promise nothing about.
const ROUNDS: usize = 20;
const FEW_ROUNDS: usize = 3;

/// What a reader saw of a stream; equal for all readers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Tally {
    events: usize,
    data_bytes: usize,
}

impl Tally {
    fn add(&mut self, data: &str) {
        self.events += 1;
        self.data_bytes += black_box(data).len();
    }
}

type Reader = fn(Vec<Bytes>) -> Tally;
const READERS: [(&str, Reader); 3] = [
    ("turnwire", turnwire),
    ("sseer", sseer),
    ("eventsource-stream", eventsource_stream),
];

fn turnwire(pieces: Vec<Bytes>) -> Tally {
    let mut tally = Tally::default();
    let mut decoder = Decoder::new(Limits::default());
    for piece in pieces {
        let fed = decoder.feed(&piece, |event| tally.add(event.data));
        assert_eq!(fed, Ok(()), "no event is near the limit");
    }
    tally
}

fn sseer(pieces: Vec<Bytes>) -> Tally {
    tally(sseer::EventStream::new(always_ready(pieces)), |event| {
        &event.data
    })
}

fn eventsource_stream(pieces: Vec<Bytes>) -> Tally {
    tally(
        eventsource_stream::EventStream::new(always_ready(pieces)),
        |event| &event.data,
    )
}

fn always_ready(pieces: Vec<Bytes>) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
    stream::iter(pieces.into_iter().map(Ok))
}

/// Polls a peer to its end; it is never pending, because its source is always ready.
fn tally<T, E: std::fmt::Debug>(
    mut events: impl Stream<Item = Result<T, E>> + Unpin,
    data: fn(&T) -> &str,
) -> Tally {
    let whole = async {
        let mut tally = Tally::default();
        while let Some(event) = events.next().await {
            tally.add(data(&event.expect("the stream is valid")));
        }
        tally
    };
    whole.now_or_never().expect("the source is always ready")
}

/// Chat completion chunks, each one event with one `data` line of about 300 bytes, the same in
/// every run. One token in sixteen is not ASCII.
fn openai_like() -> Bytes {
    const TOKENS: [&str; 16] = [
        " the",
        " rain",
        " falls",
        ".",
        " on",
        " a",
        " tower",
        ",",
        "\\n\\n",
        " and",
        " Lanterns",
        " shimmering",
        " it",
        " \\\"Who",
        "s",
        " caf\u{e9} \u{2014} \u{96e8}",
    ];
    let mut stream = String::with_capacity(STREAM_BYTES + 512);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    while stream.len() < STREAM_BYTES {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let token = TOKENS[(random >> 60) as usize];
        let padding = &"aZ4kQ9xWb7RtL2mN"[..(random >> 32) as usize % 16];
        stream.push_str(
            "data: {\"id\":\"chatcmpl-C9xQ2nVw7Lr5TzKd1\",\"object\":\"chat.completion.chunk\",\
             \"created\":1764417600,\"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_560af6e559\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"",
        );
        stream.push_str(token);
        stream.push_str("\"},\"logprobs\":null,\"finish_reason\":null}],\"obfuscation\":\"");
        stream.push_str(padding);
        stream.push_str("\"}\n\n");
    }
    stream.push_str("data: [DONE]\n\n");
    stream.into()
}

fn cut(stream: &Bytes, size: usize) -> Vec<Bytes> {
    let starts = (0..stream.len()).step_by(size);
    starts
        .map(|start| stream.slice(start..stream.len().min(start + size)))
        .collect()
}

fn throughput(criterion: &mut Criterion, stream: &Bytes) {
    let mut group = criterion.benchmark_group("sse_decoder");
    group
        .throughput(Throughput::Bytes(stream.len() as u64))
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(2));
    for (size, _) in PIECES {
        let pieces = cut(stream, size);
        for (name, read) in READERS {
            let id = BenchmarkId::new(name, format!("{size} B"));
            group.bench_with_input(id, &pieces, |bencher, pieces| {
                bencher.iter_batched(|| pieces.clone(), read, BatchSize::PerIteration);
            });
        }
    }
    group.finish();
}

/// The best time of each reader in several rounds, in which they take turns: the runs that other
/// processes disturbed least.
fn best_times<const N: usize>(
    readers: [Reader; N],
    pieces: &[Bytes],
    rounds: usize,
) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..rounds {
        for (read, best) in readers.iter().zip(&mut best) {
            let pieces = pieces.to_vec();
            let start = Instant::now();
            black_box(read(pieces));
            *best = start.elapsed().min(*best);
        }
    }
    best
}

/// Prints the best times and how many times faster than `sseer` we are; tells whether the promise
/// is kept.
#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
fn promise_is_kept(stream: &Bytes) -> bool {
    let mut kept = true;
    println!("pieces of   turnwire      sseer   eventsource-stream   turnwire to sseer");
    for (size, promised) in PIECES {
        let pieces = cut(stream, size);
        let [ours, theirs] = best_times([turnwire, sseer], &pieces, ROUNDS);
        let [others] = best_times([eventsource_stream], &pieces, FEW_ROUNDS);
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{size:>7} B {ours:>10.1?} {theirs:>10.1?} {others:>20.1?} {ratio:>12.1} times \
             (promised: {promised:.0})"
        );
        kept &= ratio >= promised;
    }
    kept
}

fn main() -> ExitCode {
    let stream = openai_like();
    for (size, _) in PIECES {
        let tallies = READERS.map(|(_, read)| read(cut(&stream, size)));
        assert!(
            tallies.iter().all(|tally| *tally == tallies[0]),
            "{size}: {tallies:?}"
        );
    }
    let mut criterion = Criterion::default().configure_from_args();
    throughput(&mut criterion, &stream);
    criterion.final_summary();
    if promise_is_kept(&stream) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
