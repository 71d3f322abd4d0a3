//! What a transcript of a case says happened: the facts that the rules of the model judge by.
//!
//! Everything is taken from what the harness did and from what the server told several times over: which values it
//! stored (each has a number that occurs once in the case), which of its processes answered, where a connection began,
//! and the events of each session as all its subscribers together saw them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;
use turnwire_spec::{
    covel::limits::REPLAY_EVENTS,
    cursor::{Cursor, CursorBuf, CursorError},
};

use crate::{
    fuzz::is_case,
    transcript::{
        End, Fact, TargetFact, Transcript,
        views::{
            covel::{self, Log, Subscription},
            http::{Exchange, exchanges},
        },
    },
    verdict::Findings,
};

/// The facts of one case.
#[derive(Debug)]
pub struct History<'t> {
    /// All exchanges.
    pub exchanges: Vec<Exchange<'t>>,
    /// All subscriptions that were opened.
    pub subscriptions: Vec<Subscription<'t>>,
    /// Events by session.
    pub logs: BTreeMap<String, Log>,
    /// When a process of the target began.
    starts: Vec<Duration>,
    /// Values that were stored outside of turns, in order of time.
    pub stored: Vec<Stored>,
    /// Sessions, and when a publish of theirs was told to fail.
    lost: Vec<(String, Duration)>,
    /// Sessions in which turns were played or bursts made, whose events cannot be counted.
    pub uncounted: BTreeSet<String>,
}

/// A value that was stored outside of a turn.
#[derive(Clone, Debug)]
pub struct Stored {
    /// In which session.
    pub session: String,
    /// Its number.
    pub number: u64,
    /// When the request was sent.
    pub sent: Duration,
    /// When the answer said that it is stored.
    pub done: Duration,
}

const VALUE: &str = "/api/sessions/:id/plugin-data/:plugin/:ns/:key";
const RPC: &str = "/api/sessions/:id/plugin-rpc";

impl<'t> History<'t> {
    /// The facts of a case; `None` for any other transcript.
    pub fn of(transcript: &'t Transcript) -> Option<Self> {
        if !is_case(transcript) {
            return None;
        }
        let exchanges = exchanges(transcript);
        let subscriptions = covel::subscriptions(transcript);
        let logs = covel::logs(&subscriptions);
        let starts = transcript.entries.iter().filter_map(|entry| {
            matches!(entry.fact, Fact::Target(TargetFact::Started { .. })).then_some(entry.at)
        });
        Some(Self {
            starts: starts.collect(),
            stored: exchanges.iter().filter_map(stored).collect(),
            lost: exchanges.iter().filter_map(lost).collect(),
            uncounted: exchanges.iter().filter_map(uncounted).collect(),
            exchanges,
            subscriptions,
            logs,
        })
    }

    /// Judges what a rule says about the case; nothing for any other transcript.
    pub fn judge(
        transcript: &Transcript,
        rule: impl FnOnce(&History<'_>, &mut Findings),
    ) -> Findings {
        let mut findings = Findings::none();
        if let Some(history) = History::of(transcript) {
            rule(&history, &mut findings);
        }
        findings
    }

    /// When the process began that ran at this time.
    pub fn life(&self, at: Duration) -> Duration {
        let before = self.starts.iter().filter(|start| **start <= at);
        before.max().copied().unwrap_or_default()
    }

    /// Whether a publish of the session may have failed in this span.
    pub fn may_have_lost(&self, session: &str, from: Duration, to: Duration) -> bool {
        self.lost
            .iter()
            .any(|(whose, at)| whose == session && *at >= from && *at <= to)
    }

    /// The turns whose publish was told to fail, and that were played to their end: session, when the failure was told,
    /// and when the turn was over.
    pub fn lost_turns(&self) -> Vec<(String, Duration, Duration)> {
        let accepted = |exchange: &&Exchange<'_>| exchange.status() == Some(200);
        let orders = self.exchanges.iter().filter(accepted).filter_map(lost);
        orders
            .filter_map(|(session, told)| {
                let turn = self.exchanges.iter().find(|exchange| {
                    exchange.opened > told
                        && exchange.is("POST", "/api/actions")
                        && uncounted(exchange).as_ref() == Some(&session)
                })?;
                let over = turn.end.filter(|(_, how)| **how == End::Complete);
                over.map(|(over, _)| (session, told, over))
            })
            .collect()
    }

    /// When the newest epoch of a session can have begun at the latest, seen from this time: at the start of the
    /// process, or when a publish was lost.
    pub fn epoch_began(&self, session: &str, at: Duration) -> Duration {
        let lost = self
            .lost
            .iter()
            .filter(|(whose, lost)| whose == session && *lost <= at);
        let newest = lost.map(|(_, lost)| *lost).max().unwrap_or_default();
        newest.max(self.life(at))
    }

    /// Values of a session that were certainly stored in this span.
    pub fn stored_between<'h>(
        &'h self,
        session: &'h str,
        from: Duration,
        to: Duration,
    ) -> impl Iterator<Item = &'h Stored> {
        self.stored
            .iter()
            .filter(move |value| value.session == session && value.sent >= from && value.done <= to)
    }

    /// What a connection's cursor is owed.
    pub fn due(&self, subscription: &Subscription<'_>) -> Due {
        let Some(now) = subscription.connected_cursor() else {
            return Due::Open;
        };
        if subscription.is_ambiguous() {
            return Due::Open;
        }
        let Some(text) = subscription.cursor_text() else {
            return Due::Nothing;
        };
        match Cursor::parse(text) {
            Err(CursorError::SeqTooLarge(_)) => Due::AnyReset,
            Err(_) => Due::Reset("epoch-change", UNREADABLE),
            Ok(cursor) if cursor.epoch != now.epoch => Due::Reset("epoch-change", OTHER_EPOCH),
            Ok(cursor) if cursor.seq > now.seq => Due::Reset("gap", AHEAD),
            Ok(cursor) => self.due_within(subscription, &cursor.to_owned(), &now),
        }
    }

    /// What a cursor of the present epoch is owed that is not ahead of it.
    fn due_within(
        &self,
        subscription: &Subscription<'_>,
        cursor: &CursorBuf,
        now: &CursorBuf,
    ) -> Due {
        let log = self.logs.get(&subscription.session);
        let known = log.map_or(0, |log| covel::due_after(log, cursor, now.seq).len());
        if known > REPLAY_EVENTS {
            Due::Reset("gap", OVERTAKEN)
        } else if now.seq <= REPLAY_EVENTS as u64 {
            Due::Replay(cursor.seq)
        } else {
            // How many of the events that nobody saw are diagnostics, which take no room, is not known.
            Due::Open
        }
    }
}

/// What a connection's cursor is owed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Due {
    /// There is no cursor: live events.
    Nothing,
    /// The events after this seq, and no reset.
    Replay(u64),
    /// A reset with this reason, and the requirement that says so.
    Reset(&'static str, &'static str),
    /// A reset, whatever its reason.
    AnyReset,
    /// More than one answer is right.
    Open,
}

/// COV-SUB-117: a cursor of another epoch.
pub const OTHER_EPOCH: &str = "COV-SUB-117";
/// COV-SUB-120: a cursor that cannot be read.
pub const UNREADABLE: &str = "COV-SUB-120";
/// COV-SUB-121: a cursor that the buffer has moved past.
pub const OVERTAKEN: &str = "COV-SUB-121";
/// COV-SUB-122: a cursor ahead of the newest event.
pub const AHEAD: &str = "COV-SUB-122";

/// The number of the value that an event announces.
pub fn number_of(event: &Value) -> Option<u64> {
    event.pointer("/payload/changes/0/value/w")?.as_u64()
}

/// When the answer was complete.
pub fn answered(exchange: &Exchange<'_>) -> Option<Duration> {
    exchange.end.map(|(at, _)| at)
}

fn stored(exchange: &Exchange<'_>) -> Option<Stored> {
    if !exchange.is("PUT", VALUE) || exchange.status() != Some(200) {
        return None;
    }
    Some(Stored {
        session: exchange.segment(VALUE, "id")?,
        number: exchange.request_json()?.pointer("/value/w")?.as_u64()?,
        sent: exchange.opened,
        done: answered(exchange)?,
    })
}

fn lost(exchange: &Exchange<'_>) -> Option<(String, Duration)> {
    let order = exchange
        .request_json()
        .filter(|_| exchange.is("POST", RPC))?;
    let fails = order.get("action")?.as_str()? == "fail-publish";
    fails.then_some((exchange.segment(RPC, "id")?, exchange.opened))
}

fn uncounted(exchange: &Exchange<'_>) -> Option<String> {
    if exchange.is("POST", RPC) {
        return exchange.segment(RPC, "id");
    }
    let action = exchange.is("POST", "/api/actions");
    let body = exchange.request_json().filter(|_| action)?;
    Some(body.get("sessionId")?.as_str()?.to_owned())
}
