//! The fields that have a meaning, and where their values start.

/// The field names that have a meaning.
#[derive(Clone, Copy)]
pub(super) enum Name {
    Data,
    Event,
    Id,
    Retry,
    /// Unknown, or a comment.
    Other,
}

/// The name of a line, and where its value starts: behind the colon and at most one space.
#[inline]
pub(super) fn split(line: &[u8]) -> (Name, usize) {
    let (name, len) = match line {
        [b'd', b'a', b't', b'a', ..] => (Name::Data, 4),
        [b'e', b'v', b'e', b'n', b't', ..] => (Name::Event, 5),
        [b'i', b'd', ..] => (Name::Id, 2),
        [b'r', b'e', b't', b'r', b'y', ..] => (Name::Retry, 5),
        _ => return (Name::Other, 0),
    };
    match line[len..] {
        [] => (name, len),
        [b':', b' ', ..] => (name, len + 2),
        [b':', ..] => (name, len + 1),
        _ => (Name::Other, 0),
    }
}
