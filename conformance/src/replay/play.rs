//! A transcript as what is played: exchanges, each with its pieces and what has to happen before them.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;

use crate::transcript::{End, ExchangeId, Fact, Request, ResponseHead, Transcript};

/// An exchange of the transcript.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its number.
    pub id: ExchangeId,
    /// The request.
    pub request: Request,
    /// When it was sent.
    pub opened: Duration,
    /// The response head; `None` when there was none.
    pub head: Option<Piece<ResponseHead>>,
    /// The pieces of the body.
    pub body: Vec<Piece<Bytes>>,
    /// How it ended; `None` when it was open at the end of the transcript.
    pub end: Option<Piece<End>>,
}

/// Something that came from the server.
#[derive(Clone, Debug)]
pub struct Piece<T> {
    /// Time since the request.
    pub after: Duration,
    /// How many exchanges were opened before it came: it may be their effect.
    pub opened_before: usize,
    /// What came.
    pub what: T,
}

/// The exchanges with an HTTP request, in the order in which they were opened.
pub fn exchanges(transcript: &Transcript) -> Vec<Played> {
    let mut played: Vec<Played> = Vec::new();
    let mut places: BTreeMap<ExchangeId, usize> = BTreeMap::new();
    for entry in &transcript.entries {
        let opened_before = played.len();
        if let Fact::Request { exchange, request } = &entry.fact {
            places.insert(*exchange, played.len());
            played.push(Played {
                id: *exchange,
                request: request.clone(),
                opened: entry.at,
                head: None,
                body: Vec::new(),
                end: None,
            });
            continue;
        }
        let (Fact::Response { exchange, .. }
        | Fact::Chunk { exchange, .. }
        | Fact::End { exchange, .. }) = &entry.fact
        else {
            continue;
        };
        let Some(found) = places
            .get(exchange)
            .and_then(|place| played.get_mut(*place))
        else {
            continue;
        };
        let after = entry.at.saturating_sub(found.opened);
        match &entry.fact {
            Fact::Response { head, .. } => {
                found.head = Some(Piece {
                    after,
                    opened_before,
                    what: head.clone(),
                });
            }
            Fact::Chunk { bytes, .. } => found.body.push(Piece {
                after,
                opened_before,
                what: bytes.clone(),
            }),
            Fact::End { how, .. } => {
                found.end = Some(Piece {
                    after,
                    opened_before,
                    what: how.clone(),
                });
            }
            _ => {}
        }
    }
    played
}
