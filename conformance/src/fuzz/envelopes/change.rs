//! What is done to a valid request. Every change is small plain data, so that a case is saved and made smaller.

use serde::{Deserialize, Serialize};

use super::Face;
use crate::fuzz::random::Random;

/// One change. A number `at` names a member of the body, counted over all levels and taken modulo their number.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A member goes.
    Drop {
        /// Which.
        at: u8,
    },
    /// A member has another value.
    Retype {
        /// Which.
        at: u8,
        /// Which value of [`OTHERS`](super::body::OTHERS).
        to: u8,
    },
    /// A member stands twice: as it was, then with another value.
    Duplicate {
        /// Which.
        at: u8,
        /// Which value of [`OTHERS`](super::body::OTHERS).
        to: u8,
    },
    /// A member's value is an array in an array in an array.
    Deep {
        /// Which.
        at: u8,
        /// How many arrays.
        levels: u32,
    },
    /// A member's value is a long text.
    Grow {
        /// Which.
        at: u8,
        /// Characters.
        chars: u32,
    },
    /// A member that nobody knows.
    Unknown,
    /// The body is something else.
    Replace {
        /// Which of [`TEXTS`](super::body::TEXTS).
        with: u8,
    },
    /// The body breaks off.
    Truncate {
        /// How much of it is left.
        percent: u8,
    },
    /// One byte of the body is another.
    Byte {
        /// Where.
        percent: u8,
        /// Which byte.
        byte: u8,
    },
    /// The body is in another encoding.
    Encode {
        /// Which.
        to: Encoding,
    },
    /// The body is longer than any server takes.
    Oversize,
    /// Another method.
    Method {
        /// Which of [`METHODS`](super::draft::METHODS).
        to: u8,
    },
    /// Another path.
    Path {
        /// Which of [`SEGMENTS`](super::draft::SEGMENTS).
        to: u8,
    },
    /// A parameter of the query.
    Query {
        /// Which name.
        name: u8,
        /// Which of [`VALUES`](super::draft::VALUES).
        value: u8,
        /// Twice.
        twice: bool,
    },
    /// A header.
    Header {
        /// Which of [`HEADERS`](super::draft::HEADERS).
        which: u8,
    },
    /// A WebSocket frame as it must not be.
    Frame {
        /// Which of [`FAULTS`](super::frames::FAULTS).
        how: u8,
    },
}

/// Encodings that are not UTF-8, or are UTF-8 with something in front.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// UTF-16, little endian, with its mark.
    Utf16,
    /// Latin 1: a byte above 127.
    Latin1,
    /// UTF-8 with a byte order mark.
    Bom,
}

/// The kinds of change that any body can have, with their weights; that of another type is told.
const fn of_bodies(retype: u32) -> [(u32, u8); 11] {
    [
        (4, 0),
        (retype, 1),
        (4, 2),
        (3, 3),
        (3, 4),
        (1, 5),
        (3, 6),
        (3, 7),
        (3, 8),
        (2, 9),
        (1, 10),
    ]
}

impl Change {
    /// A random change that such a request can have.
    pub fn random(is_http: bool, face: Face, random: &mut Random) -> Self {
        let kinds: Vec<(u32, u8)> = match (is_http, face) {
            (true, Face::ChatWs) => vec![(2, 11), (4, 12), (2, 13), (8, 14)],
            (true, _) => [&of_bodies(5)[..], &[(3, 11), (4, 12), (4, 13), (6, 14)]].concat(),
            (false, Face::ChatWs) => [&of_bodies(6)[..], &[(3, 15)]].concat(),
            (false, _) => of_bodies(6).to_vec(),
        };
        let kind = random.weighted(&kinds).unwrap_or_default();
        let mut byte = || u8::try_from(random.below(256)).unwrap_or_default();
        let (one, other) = (byte(), byte());
        let percent = one % 100;
        match kind {
            0 => Self::Drop { at: one },
            1 => Self::Retype { at: one, to: other },
            2 => Self::Duplicate { at: one, to: other },
            3 => Self::Deep {
                at: one,
                levels: [100, 127, 128, 129, 5_000, 200_000][usize::from(other % 6)],
            },
            4 => Self::Grow {
                at: one,
                chars: [129, 1_000, 4_001, 40_000, 200_000][usize::from(other % 5)],
            },
            5 => Self::Unknown,
            6 => Self::Replace { with: one },
            7 => Self::Truncate { percent },
            8 => Self::Byte {
                percent,
                byte: other,
            },
            9 => Self::Encode {
                to: [Encoding::Utf16, Encoding::Latin1, Encoding::Bom][usize::from(one % 3)],
            },
            10 => Self::Oversize,
            11 => Self::Method { to: one },
            12 => Self::Path { to: one },
            13 => Self::Query {
                name: one,
                value: other,
                twice: one % 7 == 0,
            },
            14 => Self::Header { which: one },
            _ => Self::Frame { how: one },
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Drop { .. } => "drop",
            Self::Retype { .. } => "retype",
            Self::Duplicate { .. } => "duplicate",
            Self::Deep { .. } => "deep",
            Self::Grow { .. } => "grow",
            Self::Unknown => "unknown",
            Self::Replace { .. } => "replace",
            Self::Truncate { .. } => "truncate",
            Self::Byte { .. } => "byte",
            Self::Encode { .. } => "encode",
            Self::Oversize => "oversize",
            Self::Method { .. } => "method",
            Self::Path { .. } => "path",
            Self::Query { .. } => "query",
            Self::Header { .. } => "header",
            Self::Frame { .. } => "frame",
        }
    }

    /// The same change, smaller; `None` when it is as small as it gets.
    pub fn smaller(&self) -> Option<Self> {
        match *self {
            Self::Deep { at, levels } if levels > 1 => Some(Self::Deep {
                at,
                levels: levels / 2,
            }),
            Self::Grow { at, chars } if chars > 1 => Some(Self::Grow {
                at,
                chars: chars / 2,
            }),
            _ => None,
        }
    }
}
