//! Bytes as readers see them: UTF-8, with U+FFFD for what is none.

/// Bytes that the UTF-8 validator takes at a time.
const VALIDATOR_BLOCK: usize = 64;

/// The bytes as text: themselves, or a copy with replacement characters in `replaced`.
pub(super) fn decode<'a>(bytes: &'a [u8], replaced: &'a mut String) -> &'a str {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => {
            replace_invalid(bytes, replaced);
            replaced
        }
    }
}

/// The same for the bytes of a buffer from `start` on.
///
/// Pads the buffer to whole blocks of the validator, whose slow path is an incomplete last block.
/// On events of some hundred bytes that is a tenth of all time.
pub(super) fn decode_buffer<'a>(
    buffer: &'a mut Vec<u8>,
    start: usize,
    replaced: &'a mut String,
) -> &'a str {
    let len = buffer.len();
    buffer.resize(len.next_multiple_of(VALIDATOR_BLOCK), b' ');
    match simdutf8::basic::from_utf8(buffer) {
        Ok(text) => text.get(start..len).unwrap_or_default(),
        Err(_) => decode(&buffer[start..len], replaced),
    }
}

/// As much of the bytes as is UTF-8.
pub(super) fn valid_prefix(bytes: &[u8]) -> &str {
    match simdutf8::compat::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// Sets `text` to the bytes, with U+FFFD for each maximal part that is no UTF-8.
pub(super) fn replace_invalid(bytes: &[u8], text: &mut String) {
    text.clear();
    if let Ok(valid) = str::from_utf8(bytes) {
        text.push_str(valid);
        return;
    }
    for part in bytes.utf8_chunks() {
        text.push_str(part.valid());
        if !part.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
