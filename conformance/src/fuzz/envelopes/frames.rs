//! Frames of WebSocket as bytes, right and wrong ones.
//!
//! Source: RFC 6455, section 5.

/// Ways in which a frame can be wrong: each closes the connection with a documented code, unless it says otherwise.
pub const FAULTS: &[&str] = &[
    "unmasked",
    "reserved-bit",
    "unknown-opcode",
    "unknown-control",
    "continuation-of-nothing",
    "text-within-text",
    "long-ping",
    "cut-ping",
    "no-utf8",
    "oversize",
    "endless",
    "close-of-one-byte",
    "close-with-no-code",
    "close-with-no-utf8",
];

/// A message longer than a server takes.
const OVERSIZE: usize = (1 << 20) + 1;
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Bytes of a masked frame: first byte (FIN, reserved bits, opcode) and payload.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    length(&mut bytes, 0x80, payload.len());
    bytes.extend(MASK);
    bytes.extend(
        payload
            .iter()
            .zip(MASK.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    bytes
}

/// A text as a frame.
pub fn text(payload: &[u8]) -> Vec<u8> {
    frame(0x81, payload)
}

/// The bytes of a fault. `payload` is a text that would be right.
pub fn fault(how: u8, payload: &[u8]) -> (&'static str, Vec<u8>) {
    let name = FAULTS[usize::from(how) % FAULTS.len()];
    let bytes = match name {
        "unmasked" => {
            let mut bytes = vec![0x81];
            length(&mut bytes, 0, payload.len());
            [bytes, payload.to_vec()].concat()
        }
        "reserved-bit" => frame(0xc1, payload),
        "unknown-opcode" => frame(0x83, payload),
        "unknown-control" => frame(0x8b, b""),
        "continuation-of-nothing" => frame(0x80, payload),
        "text-within-text" => [frame(0x01, b"{"), frame(0x81, payload)].concat(),
        "long-ping" => frame(0x89, &[b'p'; 126]),
        "cut-ping" => frame(0x09, b"p"),
        "no-utf8" => frame(0x81, b"\"\xff\xfe\""),
        "oversize" => frame(0x81, &vec![b' '; OVERSIZE]),
        "endless" => [&[0x81, 0xff][..], &u64::MAX.to_be_bytes(), &MASK].concat(),
        "close-of-one-byte" => frame(0x88, &[3]),
        "close-with-no-code" => frame(0x88, &[0, 1]),
        _ => frame(0x88, &[0x03, 0xe8, 0xff, 0xfe]),
    };
    (name, bytes)
}

fn length(bytes: &mut Vec<u8>, mask: u8, length: usize) {
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..=125), _) => bytes.push(mask | short),
        (_, Ok(middle)) => {
            bytes.push(mask | 126);
            bytes.extend(middle.to_be_bytes());
        }
        _ => {
            bytes.push(mask | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
}

/// A frame that a server sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Received {
    /// A text.
    Text(Vec<u8>),
    /// A close, with its code.
    Close(Option<u16>),
    /// Something else.
    Other,
}

/// Takes a whole frame off the buffer. A server sends no fragments here, and no masks.
pub fn take(buffer: &mut Vec<u8>) -> Option<Received> {
    let (first, second) = (*buffer.first()?, *buffer.get(1)? & 0x7f);
    let (length, from): (usize, usize) = match second {
        126 => {
            let bytes = buffer.get(2..4)?.try_into().ok()?;
            (usize::from(u16::from_be_bytes(bytes)), 4)
        }
        127 => {
            let bytes = buffer.get(2..10)?.try_into().ok()?;
            (usize::try_from(u64::from_be_bytes(bytes)).ok()?, 10)
        }
        short => (usize::from(short), 2),
    };
    let payload = buffer.get(from..from.checked_add(length)?)?.to_vec();
    buffer.drain(..from + length);
    Some(match first & 0x0f {
        1 => Received::Text(payload),
        8 => {
            let code = payload.get(..2).and_then(|bytes| bytes.try_into().ok());
            Received::Close(code.map(u16::from_be_bytes))
        }
        _ => Received::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_lengths_are_written_and_read() {
        for length in [0, 125, 126, 65_535, 65_536] {
            let payload = vec![b'x'; length];
            let (_, mut bytes) = fault(0, &payload);
            assert_eq!(take(&mut bytes), Some(Received::Text(payload)));
            assert!(bytes.is_empty());
        }
        let mut close = vec![0x88, 2, 0x03, 0xe8];
        assert_eq!(take(&mut close), Some(Received::Close(Some(1000))));
    }
}
