//! What a page relays of a local model's answer: which bytes, in which order, and when.
//!
//! The harness plays both the relay and the local model, so a transcript holds what the model said and what was
//! posted of it. Posts are those of one request: `/api/model-relay/requests/ID/chunk`; the model's answer is that of
//! `/local-model/ID`. When posts are sent is judged in real time, because the batching window is not scaled.

use std::time::Duration;

use turnwire_spec::covel::limits::RELAY_BATCH;

use super::Check;
use crate::{
    transcript::{
        Transcript,
        views::http::{Exchange, exchanges},
    },
    verdict::Findings,
};

/// The checks.
pub const CHECKS: &[Check] = &[
    check!("COV-FWD-006", posts_are_in_order),
    check!(timed "COV-FWD-007", posts_come_within_the_window),
    check!("COV-FWD-011", posts_do_not_overlap),
    check!("COV-FWD-120", posts_lose_and_repeat_nothing),
    check!(timed "COV-FWD-122", reads_share_posts),
];

/// COV-FWD-006: the posts of an answer, joined, are what the model said.
fn posts_are_in_order(transcript: &Transcript) -> Findings {
    same_bytes(transcript, "f-order")
}

/// COV-FWD-120: the same with pieces that end anywhere: nothing is lost or repeated where posts meet.
fn posts_lose_and_repeat_nothing(transcript: &Transcript) -> Findings {
    same_bytes(transcript, "f-bytes")
}

fn same_bytes(transcript: &Transcript, id: &str) -> Findings {
    let relayed = Relayed::find(transcript, id);
    Findings::each(relayed.iter().filter(|relayed| relayed.ended), |relayed| {
        let said = relayed.said.iter().flat_map(|(_, bytes)| bytes.iter());
        let posted = relayed
            .posts
            .iter()
            .flat_map(|post| post.request.body.iter());
        let place = said.clone().zip(posted.clone()).position(|(a, b)| a != b);
        let lengths = (said.count(), posted.count());
        let differs = place.is_some() || lengths.0 != lengths.1;
        differs.then(|| {
            let got = format!("{} bytes, the first other one at {place:?}", lengths.1);
            relayed.evidence(format!("the {} bytes of the model", lengths.0), got)
        })
    })
}

/// What the machine may add, in real time.
const BUSY: Duration = Duration::from_millis(200);

/// COV-FWD-007: bytes that came while no post was under way are posted when the window is over.
fn posts_come_within_the_window(transcript: &Transcript) -> Findings {
    let relayed = Relayed::find(transcript, "f-window");
    let first = relayed.and_then(|relayed| {
        let (said, _) = *relayed.said.first()?;
        Some((relayed, said))
    });
    Findings::each(first, |(relayed, said)| {
        let posted = relayed.posts.first().map(|post| post.opened);
        let waited = posted.map(|posted| posted.saturating_sub(said));
        let late = waited.is_none_or(|waited| waited > RELAY_BATCH + BUSY);
        late.then(|| {
            let got = waited.map_or("none".to_owned(), |waited| format!("after {waited:?}"));
            relayed.evidence(format!("a post within {RELAY_BATCH:?}"), got)
        })
    })
}

/// COV-FWD-011: a post of an answer begins when the one before it was answered.
fn posts_do_not_overlap(transcript: &Transcript) -> Findings {
    let relayed = Relayed::find(transcript, "f-one");
    let posts = relayed
        .iter()
        .flat_map(|relayed| relayed.posts.iter().zip(relayed.posts.iter().skip(1)));
    Findings::each(posts, |(before, next)| {
        let answered = before.head.is_some_and(|(at, _)| at <= next.opened);
        (!answered)
            .then(|| next.evidence("the post before it was answered", "it was still under way"))
    })
}

/// COV-FWD-122: pieces that come fast do not have a post each: no more than one a window, and one at either end.
fn reads_share_posts(transcript: &Transcript) -> Findings {
    let relayed = Relayed::find(transcript, "f-share");
    let spoken = relayed.and_then(|relayed| {
        let (first, _) = *relayed.said.first()?;
        let (last, _) = *relayed.said.last()?;
        Some((relayed, last.saturating_sub(first)))
    });
    Findings::each(spoken, |(relayed, span)| {
        let windows = span.as_millis() / RELAY_BATCH.as_millis().max(1);
        let most = usize::try_from(windows)
            .unwrap_or(usize::MAX)
            .saturating_add(2);
        let count = relayed.posts.len();
        (count > most || count == 0).then(|| {
            let what = format!("1 to {most} posts of {} pieces", relayed.said.len());
            relayed.evidence(what, format!("{count} posts"))
        })
    })
}

/// A local model's answer, and what was posted of it.
struct Relayed<'a> {
    answer: Exchange<'a>,
    /// What the model said, piece by piece, with the time.
    said: Vec<(Duration, &'a bytes::Bytes)>,
    posts: Vec<Exchange<'a>>,
    /// The end was posted too, so that everything was.
    ended: bool,
}

impl<'a> Relayed<'a> {
    fn find(transcript: &'a Transcript, id: &str) -> Option<Self> {
        let all = exchanges(transcript);
        let local = format!("/local-model/{id}");
        let answer = all
            .iter()
            .find(|exchange| exchange.path() == local)?
            .clone();
        let part = |part: &str| format!("/api/model-relay/requests/{id}/{part}");
        let (chunk, end) = (part("chunk"), part("end"));
        Some(Self {
            said: answer.chunks.clone(),
            posts: all
                .iter()
                .filter(|exchange| exchange.path() == chunk)
                .cloned()
                .collect(),
            ended: all.iter().any(|exchange| exchange.path() == end),
            answer,
        })
    }

    fn evidence(&self, expected: String, got: String) -> crate::verdict::Evidence {
        self.posts
            .first()
            .unwrap_or(&self.answer)
            .evidence(expected, got)
    }
}
