//! A wrapper around a program that speaks lines on its standard input and output.
//!
//! Bytes pass as they come; a line is recorded when it is whole. What the program says on standard error is its
//! own affair.

use std::process::{ExitStatus, Stdio};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    process::Command,
};

use super::{Tape, body::Ending};
use crate::transcript::{End, ExchangeId, Fact, Side};

/// Longest line that is recorded as one, in bytes; a longer one is recorded in parts.
const LONGEST: usize = 16 << 20;

/// Runs a program between `input` and `output` until it ends, and says how it ended.
///
/// # Errors
///
/// When it cannot be started.
pub async fn run(
    command: &[String],
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin,
    tape: &Tape,
) -> std::io::Result<ExitStatus> {
    let nothing = || std::io::Error::other("no command is named");
    let (program, arguments) = command.split_first().ok_or_else(nothing)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let exchange = tape.next_exchange();
    let mut ending = Ending::new(tape.clone(), exchange);
    let lines = |from| Lines {
        tape: tape.clone(),
        exchange,
        from,
        open: BytesMut::new(),
    };
    let feeding = child.stdin.take().map(|stdin| {
        // It ends with the input, or when the program does not read any more.
        tokio::spawn(pass(input, stdin, lines(Side::Client)))
    });
    if let Some(stdout) = child.stdout.take() {
        // Whoever reads our output may have had enough; the program finds out when it writes.
        let _ = pass(stdout, output, lines(Side::Server)).await;
    }
    let status = child.wait().await?;
    if let Some(feeding) = feeding {
        feeding.abort();
        // What it has heard is told before the end.
        let _ = feeding.await;
    }
    let how = if status.success() {
        End::Complete
    } else {
        End::Broken(status.to_string())
    };
    ending.tell(how);
    Ok(status)
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut lines: Lines,
) -> std::io::Result<()> {
    let mut buffer = BytesMut::with_capacity(16 << 10);
    loop {
        buffer.clear();
        if from.read_buf(&mut buffer).await? == 0 {
            drop(lines);
            return to.shutdown().await;
        }
        // Before it is passed on: an answer to it must not be recorded first.
        lines.hear(&buffer);
        to.write_all(&buffer).await?;
        to.flush().await?;
    }
}

/// Cuts the bytes of one side into lines.
struct Lines {
    tape: Tape,
    exchange: ExchangeId,
    from: Side,
    open: BytesMut,
}

impl Lines {
    fn hear(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.open.extend_from_slice(line);
            self.tell();
            rest = after.get(1..).unwrap_or_default();
        }
        self.open.extend_from_slice(rest);
        if self.open.len() > LONGEST {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let bytes: Bytes = self.open.split().freeze();
        self.tape.tell(Fact::Line {
            exchange: self.exchange,
            from: self.from,
            bytes,
        });
    }
}

impl Drop for Lines {
    /// What stands behind the last line feed is a line as well, also when the recording is ended.
    fn drop(&mut self) {
        if !self.open.is_empty() {
            self.tell();
        }
    }
}
