//! The mock against other mocks of LLM providers, in one run: `cargo bench -p turnwire-mock --bench providers`.
//!
//! Every server is a process of its own, says the same text in pieces of the same size, and is loaded by the same
//! [`load`] generator in turns. Measured are answers per second (plain and streamed), the time to the first byte,
//! and resident memory. The run fails when a promise of [`PROMISES`] is not kept, or when a peer is missing.
//!
//! - [`load`]: connections that ask and read; [`peers`]: the servers and how they are started.
//!
//! Started with `--serve`, this program is our own server.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints"
)]
#![allow(
    clippy::unwrap_used,
    clippy::exit,
    reason = "a benchmark that cannot go on ends"
)]

mod load;
mod peers;

use std::time::Duration;

use load::{Kind, Load};
use peers::{PEERS, Peer};

/// What is promised.
struct Promises {
    /// Streamed answers per second, times those of the best peer.
    streamed: f64,
    /// Plain answers per second, times those of the best peer.
    plain: f64,
    /// Resident memory after the load, in bytes.
    resident: u64,
    /// Time to the first byte that 99 of 100 answers keep, one at a time.
    first_byte: Duration,
}

const PROMISES: Promises = Promises {
    streamed: 5.0,
    plain: 1.0,
    resident: 20 << 20,
    first_byte: Duration::from_millis(1),
};

/// Turns; of each number the best turn counts.
const ROUNDS: usize = 3;
/// Time of one measurement.
const FOR: Duration = Duration::from_secs(2);
/// Connections that ask at the same time.
const CONNECTIONS: usize = 16;
/// Answers for the time to the first byte, one at a time.
const SINGLE: usize = 4_000;

/// What was measured of a server.
#[derive(Clone, Debug, Default)]
struct Measured {
    streamed: f64,
    plain: f64,
    first_byte: Duration,
    idle: u64,
    resident: u64,
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(place) = args.iter().position(|arg| arg == "--serve") {
        return peers::serve(args[place + 1].parse().unwrap());
    }
    if !args.iter().any(|arg| arg == "--bench") {
        // `cargo test` runs benchmarks to see that they build.
        return;
    }
    let only: Vec<&String> = args[1..]
        .iter()
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let wanted = |peer: &&Peer| only.is_empty() || only.iter().any(|name| *name == peer.name);
    let mut running = Vec::new();
    for peer in PEERS.iter().filter(wanted) {
        match peer.start() {
            Ok(server) => running.push(server),
            Err(why) => {
                drop(running);
                eprintln!("{}: {why}", peer.name);
                std::process::exit(2);
            }
        }
    }
    let measured = measure(&mut running);
    report(
        &running.iter().map(|server| server.peer).collect::<Vec<_>>(),
        &measured,
    );
    let broken = broken(&measured);
    // `exit` drops nothing, and dropping is what ends the servers.
    drop(running);
    if only.is_empty() && !broken.is_empty() {
        eprintln!("not kept: {}", broken.join("; "));
        std::process::exit(1);
    }
}

fn measure(running: &mut [peers::Running]) -> Vec<Measured> {
    let mut measured: Vec<Measured> = running
        .iter()
        .map(|server| Measured {
            idle: server.resident(),
            first_byte: Duration::MAX,
            ..Measured::default()
        })
        .collect();
    let answers: Vec<_> = running
        .iter()
        .map(|server| load::look(server.address))
        .collect();
    for (server, answer) in running.iter().zip(&answers) {
        assert_eq!(
            answer.text,
            peers::TEXT,
            "{} says something else",
            server.peer.name
        );
        println!(
            "{}: {} events, {} bytes a stream",
            server.peer.name, answer.events, answer.bytes
        );
    }
    for _ in 0..ROUNDS {
        for (server, measured) in running.iter().zip(&mut measured) {
            let load = Load::new(server.address);
            let streamed = load.per_second(Kind::Streamed, CONNECTIONS, FOR);
            let plain = load.per_second(Kind::Plain, CONNECTIONS, FOR);
            let first = load.first_byte(SINGLE, FOR);
            measured.streamed = measured.streamed.max(streamed);
            measured.plain = measured.plain.max(plain);
            measured.first_byte = measured.first_byte.min(first);
            measured.resident = measured.resident.max(server.resident());
        }
    }
    measured
}

fn report(peers: &[&Peer], measured: &[Measured]) {
    println!("\n| server | streamed /s | plain /s | first byte p99 | idle | after the load |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (peer, measured) in peers.iter().zip(measured) {
        println!(
            "| {} {} | {:.0} | {:.0} | {:.2} ms | {:.1} MiB | {:.1} MiB |",
            peer.name,
            peer.version,
            measured.streamed,
            measured.plain,
            measured.first_byte.as_secs_f64() * 1000.0,
            mebibytes(measured.idle),
            mebibytes(measured.resident),
        );
    }
    if let Some((own, others)) = measured.split_first()
        && !others.is_empty()
    {
        println!(
            "\nto the better peer: streamed {:.1} times, plain {:.2} times",
            own.streamed / best(others, |peer| peer.streamed),
            own.plain / best(others, |peer| peer.plain),
        );
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn best(others: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    others.iter().map(of).fold(0.0, f64::max)
}

/// The promises that are not kept, in words.
fn broken(measured: &[Measured]) -> Vec<String> {
    let Some((own, others)) = measured.split_first() else {
        return vec!["nothing was measured".to_owned()];
    };
    let mut broken = Vec::new();
    let mut hold = |kept: bool, what: String| {
        if !kept {
            broken.push(what);
        }
    };
    let streamed = own.streamed / best(others, |peer| peer.streamed);
    let plain = own.plain / best(others, |peer| peer.plain);
    hold(
        streamed >= PROMISES.streamed,
        format!("streamed {streamed:.1} times the better peer"),
    );
    hold(
        plain >= PROMISES.plain,
        format!("plain {plain:.2} times the better peer"),
    );
    hold(
        own.resident < PROMISES.resident,
        format!("{:.1} MiB resident", mebibytes(own.resident)),
    );
    hold(
        own.first_byte < PROMISES.first_byte,
        format!("first byte {:?}", own.first_byte),
    );
    broken
}
