//! Ports for programs that are started.
//!
//! Between the choice of a port and the moment in which a program listens there lies the program's start: seconds, on a
//! busy machine. Meanwhile nobody else may be told the same port, or two programs are taken for one: the second cannot
//! listen, and whoever looks whether it is ready is answered by the first. So ports are handed out one after the other,
//! and lie below those that a system gives to connections.

use std::{
    io,
    net::TcpListener,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// The lowest port that is handed out.
const LOWEST: u16 = 10_240;
/// How many there are: up to the lowest that Linux gives to connections.
const COUNT: u32 = 22_528;
/// Distance between the first ports of two processes with successive ids; it has no factor in common with the count.
const APART: u32 = 7919;
/// Ports that are looked at before one of the system's choice is taken.
const LOOKS: usize = 2000;

/// Ports that this process has looked at.
static HANDED_OUT: AtomicU32 = AtomicU32::new(0);

/// A port of the loopback device on which nobody listens, and which this process has not handed out before.
///
/// # Errors
///
/// When there is none.
pub(super) fn free() -> io::Result<u16> {
    let first = process::id().wrapping_mul(APART);
    for _ in 0..LOOKS {
        let number = first.wrapping_add(HANDED_OUT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = LOWEST.saturating_add(u16::try_from(number).unwrap_or_default());
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_programs_are_told_the_same_port() {
        let ports: Vec<u16> = (0..1500).map(|_| free().unwrap()).collect();
        let different: BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(different.len(), ports.len());
    }
}
