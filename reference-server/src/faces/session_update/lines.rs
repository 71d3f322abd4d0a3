//! Reads lines of bounded length: a longer one is skipped to its end, in no more memory than its bound.

use tokio::io::{AsyncRead, AsyncReadExt as _};
use turnwire_spec::session_update::limits::LINE_BYTES;

/// Bytes that are read at a time.
const CHUNK: usize = 16 * 1024;

/// One line, or what stands in its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Line {
    /// The bytes, without LF or CR LF.
    Whole(Vec<u8>),
    /// It is longer than [`LINE_BYTES`]; none of it was kept.
    TooLong,
}

/// The lines of an input.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that hold no LF.
    searched: usize,
    skipping: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            searched: 0,
            skipping: false,
            ended: false,
        }
    }

    /// The next line; `None` at the end of the input, or when it breaks. A last line may lack its LF.
    ///
    /// Nothing is lost when the returned future is dropped.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.take() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            let mut chunk = [0; CHUNK];
            match self.input.read(&mut chunk).await {
                Ok(read @ 1..) => self.buffer.extend_from_slice(&chunk[..read]),
                Ok(_) | Err(_) => self.ended = true,
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let found = self.buffer[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n');
        if let Some(found) = found {
            let end = self.searched + found;
            let rest = self.buffer.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.buffer, rest);
            self.searched = 0;
            line.pop();
            if std::mem::take(&mut self.skipping) {
                return self.take();
            }
            return Some(bounded(line));
        }
        self.searched = self.buffer.len();
        if self.skipping {
            self.clear();
        } else if self.buffer.len() > LINE_BYTES + 1 {
            self.clear();
            self.skipping = true;
            return Some(Line::TooLong);
        } else if self.ended && !self.buffer.is_empty() {
            self.searched = 0;
            return Some(bounded(std::mem::take(&mut self.buffer)));
        }
        None
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.searched = 0;
    }
}

fn bounded(mut line: Vec<u8>) -> Line {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    if line.len() > LINE_BYTES {
        Line::TooLong
    } else {
        Line::Whole(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(input);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await {
            found.push(line);
        }
        found
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_with_lf_or_cr_lf_and_the_last_one_may_end_with_the_input() {
        assert_eq!(
            all(b"a\nb\r\n\nc").await,
            [whole("a"), whole("b"), whole(""), whole("c")]
        );
        assert_eq!(all(b"").await, []);
    }

    #[tokio::test]
    async fn a_line_of_the_longest_length_is_read_and_a_longer_one_is_skipped() {
        let longest = "x".repeat(LINE_BYTES);
        assert_eq!(
            all(format!("{longest}\r\nb\n").as_bytes()).await,
            [whole(&longest), whole("b")]
        );
        assert_eq!(
            all(format!("{longest}x\nb\n").as_bytes()).await,
            [Line::TooLong, whole("b")]
        );
        let endless = "x".repeat(3 * LINE_BYTES);
        assert_eq!(
            all(format!("{endless}\nb\n").as_bytes()).await,
            [Line::TooLong, whole("b")]
        );
    }

    #[tokio::test]
    async fn a_line_may_come_byte_by_byte() {
        let mut mock = tokio_test::io::Builder::new();
        for byte in b"ab\r\nc\n" {
            mock.read(&[*byte]);
        }
        let mut lines = Lines::new(mock.build());
        assert_eq!(lines.next().await, Some(whole("ab")));
        assert_eq!(lines.next().await, Some(whole("c")));
    }
}
