//! Bytes of HTTP over one connection: requests of any form go out, and what comes back is read as an answer.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};

use super::ANSWER_WITHIN;
use crate::transcript::{header, is_event_stream};

/// Longest answer that is read, in bytes.
const LONGEST: usize = 16 << 20;
/// Headers of an answer that are read.
const HEADERS: usize = 64;

/// What came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Status of an answer over HTTP; 0 for messages, and when there is no answer.
    pub status: u16,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body; of an event stream, nothing.
    pub body: Vec<u8>,
    /// Messages: lines, or texts of a WebSocket.
    pub messages: Vec<Vec<u8>>,
    /// How it ended.
    pub end: How,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum How {
    /// It is complete, and the connection can go on.
    #[default]
    Complete,
    /// The connection was closed, a WebSocket with this code.
    Closed(Option<u16>),
    /// Nothing (more) came in time.
    Silent,
}

impl Answer {
    /// Whether it is an event stream.
    pub fn is_stream(&self) -> bool {
        is_event_stream(&self.headers)
    }

    fn ended(end: How) -> Self {
        Self {
            end,
            ..Self::default()
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Wire {
    /// The connection.
    pub stream: TcpStream,
    /// What was read and not yet used.
    pub buffer: Vec<u8>,
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    ///
    /// In the system's words.
    pub async fn connect(host: &str, port: u16) -> Result<Self, String> {
        let connecting = timeout(ANSWER_WITHIN, TcpStream::connect((host, port)));
        let stream = connecting
            .await
            .map_err(|_| "no connection in time".to_owned())?
            .map_err(|error| error.to_string())?;
        // Small requests wait for nobody.
        let _ = stream.set_nodelay(true);
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends bytes and reads the answer to them. With `finish`, nothing more will be sent.
    pub async fn ask(&mut self, bytes: &[u8], is_head: bool, finish: bool) -> Answer {
        let Self { stream, buffer } = self;
        let (mut reader, mut writer) = stream.split();
        let sending = async {
            // Whoever answers before it has read everything may close; then the answer counts.
            let _ = writer.write_all(bytes).await;
            if finish {
                let _ = writer.shutdown().await;
            }
            std::future::pending::<()>().await;
        };
        let reading = async {
            loop {
                if let Some(answer) = take(buffer, is_head, false) {
                    return answer;
                }
                let mut chunk = [0; 16 * 1024];
                match reader.read(&mut chunk).await {
                    Ok(read @ 1..) if buffer.len() < LONGEST => {
                        buffer.extend_from_slice(&chunk[..read]);
                    }
                    _ => {
                        let rest = take(buffer, is_head, true);
                        return rest.unwrap_or_else(|| Answer::ended(How::Closed(None)));
                    }
                }
            }
        };
        tokio::select! {
            answer = timeout(ANSWER_WITHIN, reading) => {
                answer.unwrap_or_else(|_| Answer::ended(How::Silent))
            }
            () = sending => Answer::ended(How::Silent),
        }
    }
}

impl Wire {
    /// Sends bytes, and reads messages until `take`, which moves them from the buffer into the answer, says that it is
    /// over, or until nothing more comes.
    pub async fn talk(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&mut Vec<u8>, &mut Answer) -> bool,
    ) -> Answer {
        let Self { stream, buffer } = self;
        let (mut reader, mut writer) = stream.split();
        let deadline = Instant::now() + ANSWER_WITHIN;
        let mut answer = Answer::default();
        let sending = async {
            let _ = writer.write_all(bytes).await;
            std::future::pending::<()>().await;
        };
        let reading = async {
            while !take(buffer, &mut answer) {
                let mut chunk = [0; 16 * 1024];
                match timeout_at(deadline, reader.read(&mut chunk)).await {
                    Ok(Ok(read @ 1..)) => buffer.extend_from_slice(&chunk[..read]),
                    Ok(_) => {
                        answer.end = How::Closed(None);
                        return;
                    }
                    Err(_) => {
                        answer.end = How::Silent;
                        return;
                    }
                }
            }
        };
        tokio::select! {
            () = reading => {}
            () = sending => {}
        }
        answer
    }
}

/// Takes a whole answer off the buffer. With `is_end`, an answer without a length is whole.
fn take(buffer: &mut Vec<u8>, is_head: bool, is_end: bool) -> Option<Answer> {
    let (used, status, headers) = head(buffer)?;
    if (100..200).contains(&status) && status != 101 {
        buffer.drain(..used);
        return take(buffer, is_head, is_end);
    }
    let mut answer = Answer {
        status,
        headers,
        ..Answer::default()
    };
    if header(&answer.headers, "connection")
        .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    {
        answer.end = How::Closed(None);
    }
    if is_head || answer.is_stream() || matches!(status, 101 | 204 | 304) {
        buffer.drain(..used);
        return Some(answer);
    }
    let rest = buffer.get(used..).unwrap_or_default();
    let is_chunked = header(&answer.headers, "transfer-encoding").is_some();
    let (body, length) = if is_chunked {
        unchunked(rest)?
    } else {
        let length = header(&answer.headers, "content-length").and_then(|text| text.parse().ok());
        match length {
            Some(length) => (rest.get(..length)?.to_vec(), length),
            None if is_end => (rest.to_vec(), rest.len()),
            None => return None,
        }
    };
    answer.body = body;
    buffer.drain(..used + length);
    Some(answer)
}

type Head = (usize, u16, Vec<(String, String)>);

fn head(bytes: &[u8]) -> Option<Head> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(used) = response.parse(bytes).ok()? else {
        return None;
    };
    let header = |header: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(header.value).into_owned();
        (header.name.to_owned(), value)
    };
    let headers = response.headers.iter().map(header).collect();
    Some((used, response.code?, headers))
}

/// The body of chunks and the bytes that they take; `None` until the last has come.
fn unchunked(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = bytes.get(at..)?;
        let httparse::Status::Complete((head, size)) = httparse::parse_chunk_size(rest).ok()?
        else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        let chunk = rest.get(head..head + size)?;
        at += head + size + 2;
        bytes.get(..at)?;
        if size == 0 {
            return Some((body, at));
        }
        body.extend_from_slice(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_when_it_is_whole() {
        let mut buffer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{".to_vec();
        assert_eq!(take(&mut buffer, false, false), None);
        buffer.extend(b"}HTTP");
        let answer = take(&mut buffer, false, false).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (400, &b"{}"[..]));
        assert_eq!(buffer, b"HTTP");
    }

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(unchunked(b"2\r\nab\r\n0\r\n"), None);
        let whole = b"2\r\nab\r\n0\r\n\r\n";
        assert_eq!(unchunked(whole), Some((b"ab".to_vec(), whole.len())));
    }
}
