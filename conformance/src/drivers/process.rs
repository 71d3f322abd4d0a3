//! What the harness needs of every program that it starts: its process group, and its last words.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Lines of output that are kept.
pub(super) const LINES: usize = 200;
/// Bytes of one line that are kept.
const LINE_BYTES: usize = 2000;

/// The process group of a program.
#[derive(Debug)]
pub(super) struct Group(pub(super) Option<u32>);

impl Group {
    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let id = self
            .0
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        if let Some(id) = id {
            // An error means that nobody is left to be told.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }

    #[cfg(unix)]
    pub(super) fn ask_to_stop(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    #[cfg(unix)]
    pub(super) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    #[cfg(not(unix))]
    pub(super) fn ask_to_stop(&self) {}

    #[cfg(not(unix))]
    pub(super) fn kill(&self) {}
}

/// The last lines of an output.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring(Arc<Mutex<VecDeque<String>>>);

impl Ring {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// Reads a pipe to its end. A line that is too long loses its end.
    pub(super) async fn follow(self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8192];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            for &byte in &buffer[..count] {
                if byte == b'\n' {
                    self.push(&line);
                    line.clear();
                } else if line.len() < LINE_BYTES {
                    line.push(byte);
                }
            }
        }
        if !line.is_empty() {
            self.push(&line);
        }
    }
}
