//! WebSocket frames as bytes: reading, writing, and putting fragments together.
//!
//! Nothing is answered here and nothing refused: a ping gets no pong, a close no close. Whoever reads sees every
//! frame, and decides. Headers are read and written by `tungstenite`.
//!
//! Source: RFC 6455, section 5.

use std::io::Cursor;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_tungstenite::tungstenite::protocol::frame::{
    Frame, FrameHeader,
    coding::{Control, Data, OpCode},
};

use crate::transcript::WsFrame;

/// Longest message that the harness takes, in bytes, over all its fragments.
pub const MAX_MESSAGE: usize = 64 << 20;

/// One frame as it stood on the wire, unmasked.
#[derive(Clone, Debug, PartialEq)]
pub struct RawFrame {
    /// Whether it is the last one of its message.
    pub last: bool,
    /// What it is.
    pub opcode: OpCode,
    /// Whether it came masked.
    pub masked: bool,
    /// Its bytes.
    pub payload: Bytes,
}

/// Why frames cannot be read any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The connection broke.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are no frames.
    #[error("no WebSocket frame: {0}")]
    NoFrame(String),
    /// A frame or a message is longer than [`MAX_MESSAGE`].
    #[error("a message of more than {MAX_MESSAGE} bytes")]
    TooLong,
    /// The connection ended in the middle of a frame.
    #[error("the connection ended in the middle of a frame")]
    CutOff,
}

/// Reads frames from a connection.
#[derive(Debug)]
pub struct FrameReader<R> {
    from: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from the place where the handshake ended.
    pub fn new(from: R) -> Self {
        Self {
            from,
            buffer: BytesMut::new(),
        }
    }

    /// The next frame; `None` when the connection ended between two. Cancel safe.
    ///
    /// # Errors
    ///
    /// See [`FrameError`]; nothing can be read after one.
    pub async fn next(&mut self) -> Result<Option<RawFrame>, FrameError> {
        loop {
            if let Some(frame) = take_frame(&mut self.buffer)? {
                return Ok(Some(frame));
            }
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(FrameError::CutOff)
                };
            }
        }
    }
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Waits until so many bytes of the next frame are there, or all of it, or the connection has ended.
    ///
    /// # Errors
    ///
    /// [`FrameError::Io`] when the connection broke.
    pub async fn begin(&mut self, bytes: usize) -> Result<(), FrameError> {
        while self.buffer.len() < bytes && !has_frame(&self.buffer) {
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Whether all of a frame is there.
fn has_frame(buffer: &[u8]) -> bool {
    let mut cursor = Cursor::new(buffer);
    match FrameHeader::parse(&mut cursor) {
        Ok(Some((_, length))) => cursor.position().saturating_add(length) <= buffer.len() as u64,
        Ok(None) | Err(_) => false,
    }
}

/// Takes a frame from the front of the buffer, when all of it is there.
pub(crate) fn take_frame(buffer: &mut BytesMut) -> Result<Option<RawFrame>, FrameError> {
    let mut cursor = Cursor::new(&buffer[..]);
    let parsed =
        FrameHeader::parse(&mut cursor).map_err(|error| FrameError::NoFrame(error.to_string()))?;
    let Some((header, length)) = parsed else {
        return Ok(None);
    };
    let start = usize::try_from(cursor.position()).map_err(|_| FrameError::TooLong)?;
    let length = usize::try_from(length).map_err(|_| FrameError::TooLong)?;
    if length > MAX_MESSAGE {
        return Err(FrameError::TooLong);
    }
    if buffer.len() - start < length {
        buffer.reserve(start + length - buffer.len());
        return Ok(None);
    }
    buffer.advance(start);
    let mut payload = buffer.split_to(length);
    if let Some(mask) = header.mask {
        let key = mask.iter().cycle();
        payload
            .iter_mut()
            .zip(key)
            .for_each(|(byte, key)| *byte ^= key);
    }
    Ok(Some(RawFrame {
        last: header.is_final,
        opcode: header.opcode,
        masked: header.mask.is_some(),
        payload: payload.freeze(),
    }))
}

/// Writes one frame, masked as a client's or bare as a server's.
pub fn frame_bytes(last: bool, opcode: OpCode, payload: Bytes, masked: bool) -> Vec<u8> {
    let header = FrameHeader {
        is_final: last,
        opcode,
        mask: masked.then_some(MASK),
        ..FrameHeader::default()
    };
    let mut bytes = Vec::with_capacity(payload.len() + 14);
    // Writing into a vector cannot fail.
    let _ = Frame::from_payload(header, payload).format(&mut bytes);
    bytes
}

/// The key of all frames of the harness: it hides nothing from anybody here, and makes runs repeatable.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Writes a message or control frame in one frame.
pub fn message_bytes(message: &WsFrame, masked: bool) -> Vec<u8> {
    let (opcode, payload) = match message {
        WsFrame::Text(text) => (
            OpCode::Data(Data::Text),
            Bytes::copy_from_slice(text.as_bytes()),
        ),
        WsFrame::Binary(bytes) => (OpCode::Data(Data::Binary), bytes.clone()),
        WsFrame::Ping(bytes) => (OpCode::Control(Control::Ping), bytes.clone()),
        WsFrame::Pong(bytes) => (OpCode::Control(Control::Pong), bytes.clone()),
        WsFrame::Close(None) => (OpCode::Control(Control::Close), Bytes::new()),
        WsFrame::Close(Some((code, reason))) => {
            let mut payload = code.to_be_bytes().to_vec();
            payload.extend_from_slice(reason.as_bytes());
            (OpCode::Control(Control::Close), payload.into())
        }
    };
    frame_bytes(true, opcode, payload, masked)
}

/// Puts the fragments of messages together.
#[derive(Debug, Default)]
pub struct Assembler {
    begun: Option<Data>,
    parts: BytesMut,
    fragments: usize,
}

/// A whole message or a control frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// What it is. A text that is no UTF-8 is binary here.
    pub message: WsFrame,
    /// In how many frames it came.
    pub fragments: usize,
    /// Whether it was a text that is no UTF-8.
    pub not_utf8: bool,
}

impl Assembler {
    /// Takes a frame; gives what is whole with it.
    ///
    /// # Errors
    ///
    /// [`FrameError::NoFrame`] for a fragment that continues nothing, or a message begun within another;
    /// [`FrameError::TooLong`] for a message longer than [`MAX_MESSAGE`].
    pub fn push(&mut self, frame: RawFrame) -> Result<Option<Whole>, FrameError> {
        let kind = match frame.opcode {
            OpCode::Control(control) => return Ok(Some(control_frame(control, frame.payload))),
            OpCode::Data(kind) => kind,
        };
        match (kind, self.begun) {
            (Data::Continue, None) => {
                return Err(FrameError::NoFrame("it continues nothing".to_owned()));
            }
            (Data::Continue, Some(_)) => {}
            (_, Some(_)) => {
                return Err(FrameError::NoFrame(
                    "a message begins within another".to_owned(),
                ));
            }
            (kind, None) => self.begun = Some(kind),
        }
        if self.parts.len() + frame.payload.len() > MAX_MESSAGE {
            return Err(FrameError::TooLong);
        }
        self.parts.extend_from_slice(&frame.payload);
        self.fragments += 1;
        if !frame.last {
            return Ok(None);
        }
        let bytes = self.parts.split().freeze();
        let fragments = std::mem::take(&mut self.fragments);
        let is_text = self.begun.take() == Some(Data::Text);
        let text = is_text.then(|| std::str::from_utf8(&bytes).ok()).flatten();
        let message = match text {
            Some(text) => WsFrame::Text(text.to_owned()),
            None => WsFrame::Binary(bytes.clone()),
        };
        Ok(Some(Whole {
            not_utf8: is_text && text.is_none(),
            message,
            fragments,
        }))
    }
}

fn control_frame(control: Control, payload: Bytes) -> Whole {
    let message = match control {
        Control::Ping => WsFrame::Ping(payload),
        Control::Pong => WsFrame::Pong(payload),
        _ => WsFrame::Close(payload.split_first_chunk::<2>().map(|(code, reason)| {
            let reason = String::from_utf8_lossy(reason).into_owned();
            (u16::from_be_bytes(*code), reason)
        })),
    };
    Whole {
        message,
        fragments: 1,
        not_utf8: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Vec<Whole> {
        let (mut reader, mut assembler) = (FrameReader::new(bytes), Assembler::default());
        let mut whole = Vec::new();
        while let Some(frame) = reader.next().await.unwrap() {
            whole.extend(assembler.push(frame).unwrap());
        }
        whole
    }

    #[tokio::test]
    async fn what_is_written_is_read_masked_or_not() {
        let long = "x".repeat(70_000);
        let messages = [
            WsFrame::Text("hé".to_owned()),
            WsFrame::Text(long),
            WsFrame::Binary(Bytes::from_static(b"\x00\xff")),
            WsFrame::Ping(Bytes::from_static(b"p")),
            WsFrame::Pong(Bytes::new()),
            WsFrame::Close(None),
            WsFrame::Close(Some((1001, "bye".to_owned()))),
        ];
        for masked in [true, false] {
            let bytes: Vec<u8> = messages
                .iter()
                .flat_map(|message| message_bytes(message, masked))
                .collect();
            let found: Vec<_> = read(&bytes)
                .await
                .into_iter()
                .map(|it| it.message)
                .collect();
            assert_eq!(found, messages);
        }
    }

    #[tokio::test]
    async fn fragments_are_put_together_around_control_frames() {
        let text = OpCode::Data(Data::Text);
        let more = OpCode::Data(Data::Continue);
        let mut bytes = frame_bytes(false, text, Bytes::from_static(b"\xc3"), true);
        bytes.extend(message_bytes(&WsFrame::Ping(Bytes::new()), true));
        bytes.extend(frame_bytes(true, more, Bytes::from_static(b"\xa9"), true));
        let found = read(&bytes).await;
        assert_eq!(found[0].message, WsFrame::Ping(Bytes::new()));
        assert_eq!(found[1].message, WsFrame::Text("é".to_owned()));
        assert_eq!(found[1].fragments, 2);
    }

    #[tokio::test]
    async fn a_text_that_is_no_utf8_is_told_and_kept() {
        let bytes = frame_bytes(
            true,
            OpCode::Data(Data::Text),
            Bytes::from_static(b"\xff"),
            false,
        );
        let found = read(&bytes).await;
        assert!(found[0].not_utf8);
        assert_eq!(
            found[0].message,
            WsFrame::Binary(Bytes::from_static(b"\xff"))
        );
    }

    #[tokio::test]
    async fn a_frame_that_is_cut_off_is_told() {
        let bytes = message_bytes(&WsFrame::Text("hello".to_owned()), true);
        let mut reader = FrameReader::new(&bytes[..bytes.len() - 1]);
        assert!(matches!(reader.next().await, Err(FrameError::CutOff)));
    }
}
