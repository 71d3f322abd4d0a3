//! What readers of event streams do, and what producers write.
//!
//! A reader is judged by the label of its case: what it must report is computed from the bytes that were sent,
//! with the codec of `turnwire_spec`. One that reports nothing is judged by its requests alone, and a case that did not
//! get as far as a check is about shows nothing. Producers are judged in `produced`.

use std::{ops::Deref, time::Duration};

use super::Check;
use crate::{
    scenarios::sse::{SEPARATOR, STAYS_AWAY, cases},
    transcript::{
        Transcript,
        views::{
            client::{Act, ReadEvent, acts},
            http::Exchange,
        },
    },
    verdict::{Evidence, Findings},
};

mod produced;
#[cfg(test)]
mod tests;

/// Binds entries to the case, which is a label, whose events must be read.
macro_rules! reads {
    ($($id:literal $case:literal),* $(,)?) => {
        &[$(Check::new($id, concat!("reads ", $case), |transcript| reads(transcript, $case))),*]
    };
}

/// Binds entries to a label and the function that judges it.
macro_rules! on {
    ($($id:literal $case:literal $judge:ident),* $(,)?) => {
        &[$(Check::new($id, stringify!($judge), |transcript| on(transcript, $case, $judge))),*]
    };
}

/// The checks, list by list.
pub const CHECKS: &[&[Check]] = &[READS, CONNECTS, produced::CHECKS];

const READS: &[Check] = reads!(
    "SSE-001" "lf", "SSE-002" "cr", "SSE-003" "crlf", "SSE-004" "mixed", "SSE-005" "crlf-cut",
    "SSE-006" "separators", "SSE-007" "blank-lines", "SSE-008" "unfinished-line",
    "SSE-009" "unfinished-event", "SSE-010" "utf8", "SSE-011" "utf8-cut", "SSE-012" "invalid-utf8",
    "SSE-013" "bom", "SSE-014" "bom-twice", "SSE-015" "bom-inside", "SSE-016" "comment",
    "SSE-017" "comment-inside", "SSE-018" "first-colon", "SSE-019" "one-space",
    "SSE-020" "only-one-space", "SSE-021" "white-space", "SSE-022" "no-colon", "SSE-023" "name-case",
    "SSE-024" "name-space", "SSE-025" "unknown-field", "SSE-026" "data-lines",
    "SSE-027" "last-line-feed", "SSE-028" "type", "SSE-029" "default-type", "SSE-030" "last-type",
    "SSE-031" "empty-type", "SSE-032" "type-passes", "SSE-033" "dataless", "SSE-034" "dataless-type",
    "SSE-035" "id", "SSE-036" "id-stays", "SSE-037" "id-nul", "SSE-038" "id-empty",
    "SSE-039" "id-dataless", "SSE-040" "id-verbatim", "SSE-041" "nul", "SSE-042" "order",
    "SSE-043" "long-line", "SSE-044" "many-lines", "SSE-073" "type-parameters",
    "SSE-074" "type-case", "SSE-075" "type-charset", "SSE-076" "redirect-301",
    "SSE-077" "redirect-302", "SSE-078" "redirect-303", "SSE-079" "redirect-307",
    "SSE-080" "redirect-308",
);

const CONNECTS: &[Check] = on!(
    "SSE-045" "at-blank-line" dispatches_at_the_blank_line,
    "SSE-046" "every-cut" reads_every_cut,
    "SSE-047" "request" asks_with_get,
    "SSE-048" "request" accepts_event_streams,
    "SSE-049" "request" forbids_caches,
    "SSE-050" "request" first_request_has_no_id,
    "SSE-051" "states" is_open_before_any_event,
    "SSE-052" "ended" connects_again,
    "SSE-053" "ended" says_connecting,
    "SSE-054" "broken" connects_again,
    "SSE-055" "broken" drops_what_was_cut,
    "SSE-056" "last-event-id" sends_an_id,
    "SSE-057" "last-event-id" sends_the_id_in_utf8,
    "SSE-058" "last-event-id" keeps_the_id_over_an_empty_stream,
    "SSE-059" "last-event-id" sends_no_id_after_a_reset,
    "SSE-060" "dropped-id" sends_the_id_before,
    "SSE-061" "retry" waits_the_time,
    "SSE-062" "retry-dataless" waits_the_time,
    "SSE-063" "retry-bad" waits_the_time_later,
    "SSE-064" "retry-stays" waits_the_time_later,
    "SSE-065" "retry-in-time" comes_in_time,
    "SSE-066" "no-content" stays_away,
    "SSE-067" "no-content" says_closed,
    "SSE-068" "not-found" fails,
    "SSE-069" "server-error" fails,
    "SSE-070" "created" fails,
    "SSE-071" "wrong-type" fails,
    "SSE-072" "no-type" fails,
    "SSE-081" "no-answer" comes_a_third_time,
);

/// One case: what a reader did in it, and what readers of its kind tell.
struct Case<'a> {
    act: Act<'a>,
    tells: Tells,
}

impl<'a> Deref for Case<'a> {
    type Target = Act<'a>;

    fn deref(&self) -> &Act<'a> {
        &self.act
    }
}

/// What a reader reports. One that reports nothing is judged by its requests alone.
#[derive(Clone, Copy)]
struct Tells {
    /// It has reported anything in the run, so it would report events.
    events: bool,
    /// It has reported a state of its connection in the run.
    states: bool,
}

impl Tells {
    fn of(acts: &[Act<'_>]) -> Self {
        let states = acts.iter().any(|act| !act.states().is_empty());
        Self {
            events: states || acts.iter().any(|act| !act.events().is_empty()),
            states,
        }
    }
}

/// A request for what no case stands for. It was never answered, and shows nothing of the reader.
pub(crate) fn is_stray(exchange: &Exchange<'_>) -> bool {
    let of_the_case = format!("/{}", exchange.label);
    exchange.head.is_none()
        && !exchange.label.is_empty()
        && !exchange.path().starts_with(&of_the_case)
}

/// Every case of this name to which the reader came.
fn cases_of<'a>(transcript: &'a Transcript, name: &str) -> Vec<Case<'a>> {
    let mut acts = acts(transcript);
    let tells = Tells::of(&acts);
    for act in &mut acts {
        act.exchanges.retain(|exchange| !is_stray(exchange));
    }
    acts.into_iter()
        .filter(|act| act.name == name && !act.exchanges.is_empty())
        .map(|act| Case { act, tells })
        .collect()
}

/// What a case shows: nothing where it did not get so far, else the fault, if there is one.
type Judged = Option<Option<Evidence>>;

/// Every case of this name that gets as far as this is about.
fn on(transcript: &Transcript, name: &str, judge: fn(&Case<'_>) -> Judged) -> Findings {
    let mut findings = Findings::none();
    for fault in cases_of(transcript, name).iter().filter_map(judge) {
        findings.judge(fault);
    }
    findings
}

/// The reader reported the events of the streams that it was sent, and nothing else. Where a redirect led nowhere
/// no stream was sent, which the label tells.
fn reads(transcript: &Transcript, name: &str) -> Findings {
    on(transcript, name, |act| {
        let sent = act.sent_events();
        if sent.is_empty() {
            let expected = "a request for the place that Location names";
            return Some(Some(evidence(act, 0, expected, "none came")));
        }
        reads_what_was_sent(act, 0)
    })
}

/// The events of the streams that it was sent, as it reported them, with the request of this number as evidence.
fn reads_what_was_sent(act: &Case<'_>, request: usize) -> Judged {
    act.tells.events.then(|| {
        let read: Vec<_> = act.events().into_iter().map(|(_, event)| event).collect();
        differs(&act.sent_events(), &read)
            .map(|(expected, got)| evidence(act, request, &expected, &got))
    })
}

/// The first difference between the events that were sent and those that were reported.
fn differs(sent: &[ReadEvent], read: &[ReadEvent]) -> Option<(String, String)> {
    let longest = sent.len().max(read.len());
    let place = (0..longest).find(|&place| sent.get(place) != read.get(place))?;
    let text = |event: Option<&ReadEvent>| match event {
        None => format!("no event {}", place + 1),
        Some(event) => format!("event {}: {}", place + 1, shown(event)),
    };
    Some((text(sent.get(place)), text(read.get(place))))
}

fn shown(event: &ReadEvent) -> String {
    let data: String = event.data.chars().take(80).collect();
    let more = event.data.chars().count().saturating_sub(80);
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} characters more")
    };
    format!(
        "type {:?}, data {data:?}{more}, last event id {:?}",
        event.kind, event.id
    )
}

/// Evidence at the request of this number, if there is one.
fn evidence(act: &Act<'_>, request: usize, expected: &str, got: &str) -> Evidence {
    match act.exchanges.get(request) {
        Some(exchange) => exchange.evidence(expected, got),
        None => Evidence::new(expected, got),
    }
}

/// A fault unless this holds.
fn unless(holds: bool, act: &Act<'_>, request: usize, expected: &str, got: String) -> Judged {
    Some((!holds).then(|| evidence(act, request, expected, &got)))
}

fn dispatches_at_the_blank_line(act: &Case<'_>) -> Judged {
    act.tells.events.then_some(())?;
    let chunks = &act.exchanges.first()?.chunks;
    let (next, _) = chunks.get(1)?;
    let first = act.events().first().map(|(at, _)| *at);
    let before = first.is_some_and(|at| at < *next);
    let got = first.map_or("no event at all".to_owned(), |at| {
        format!("it came {:?} after it", at.saturating_sub(*next))
    });
    unless(
        before,
        act,
        0,
        "the first event before the second one is sent",
        got,
    )
}

/// Between two separators there are the events of one stream that was cut once.
fn reads_every_cut(act: &Case<'_>) -> Judged {
    act.tells.events.then_some(())?;
    let (mut sent, mut read) = (
        split(act.sent_events()),
        split(act.events().into_iter().map(|(_, event)| event).collect()),
    );
    let cuts =
        cases::movable().flat_map(|case| (1..case.bytes().len()).map(move |cut| (case.name, cut)));
    let longest = sent.len().max(read.len());
    sent.resize(longest, Vec::new());
    read.resize(longest, Vec::new());
    let mut both = sent.iter().zip(&read).enumerate();
    let first = both.find_map(|(number, (sent, read))| Some((number, differs(sent, read)?)));
    let Some((number, (expected, got))) = first else {
        return Some(None);
    };
    let place = cuts
        .into_iter()
        .nth(number)
        .map_or(String::new(), |(name, cut)| {
            format!("case {name}, cut after byte {cut}: ")
        });
    Some(Some(evidence(act, 0, &format!("{place}{expected}"), &got)))
}

fn split(events: Vec<ReadEvent>) -> Vec<Vec<ReadEvent>> {
    events
        .split_inclusive(|event| event.kind == SEPARATOR)
        .map(<[ReadEvent]>::to_vec)
        .collect()
}

fn asks_with_get(act: &Case<'_>) -> Judged {
    let method = &act.exchanges.first()?.request.method;
    unless(method == "GET", act, 0, "method GET", method.clone())
}

fn accepts_event_streams(act: &Case<'_>) -> Judged {
    let accept = act
        .exchanges
        .first()?
        .request_header("accept")
        .unwrap_or_default();
    let holds = accept.to_ascii_lowercase().contains("text/event-stream");
    unless(
        holds,
        act,
        0,
        "Accept: text/event-stream",
        format!("Accept: {accept}"),
    )
}

fn forbids_caches(act: &Case<'_>) -> Judged {
    let cache = act
        .exchanges
        .first()?
        .request_header("cache-control")
        .unwrap_or_default();
    let lower = cache.to_ascii_lowercase();
    let holds = lower.contains("no-store") || lower.contains("no-cache");
    unless(
        holds,
        act,
        0,
        "Cache-Control: no-store, or no-cache",
        format!("Cache-Control: {cache}"),
    )
}

fn first_request_has_no_id(act: &Case<'_>) -> Judged {
    let id = act.exchanges.first()?.request_header("last-event-id");
    unless(
        id.is_none(),
        act,
        0,
        "no Last-Event-ID",
        format!("Last-Event-ID: {}", id.unwrap_or_default()),
    )
}

fn is_open_before_any_event(act: &Case<'_>) -> Judged {
    act.tells.states.then_some(())?;
    let exchange = act.exchanges.first()?;
    let ((head, _), (event, _)) = (exchange.head?, exchange.chunks.first()?);
    let open = act
        .states()
        .into_iter()
        .find(|(_, state)| *state == "open")
        .map(|(at, _)| at);
    // What the harness sends is recorded before it is sent, so no reader can know of it any earlier.
    let got = match open {
        None => "never".to_owned(),
        Some(at) if at < head => format!("{:?} before the head", head.saturating_sub(at)),
        Some(at) => format!("{:?} after the event", at.saturating_sub(*event)),
    };
    unless(
        open.is_some_and(|at| head <= at && at < *event),
        act,
        0,
        "the state open after the head of the answer, and before the first event is sent",
        got,
    )
}

fn connects_again(act: &Case<'_>) -> Judged {
    came(act, 2)
}

fn comes_a_third_time(act: &Case<'_>) -> Judged {
    // Without a second request there was nothing that could stay without an answer.
    (act.exchanges.len() >= 2).then(|| came(act, 3)).flatten()
}

fn came(act: &Case<'_>, times: usize) -> Judged {
    let count = act.exchanges.len();
    unless(
        count >= times,
        act,
        count.saturating_sub(1),
        "another request",
        "none came".to_owned(),
    )
}

fn says_connecting(act: &Case<'_>) -> Judged {
    act.tells.states.then_some(())?;
    let (ended, _) = act.exchanges.first()?.end?;
    let states = act.states();
    // The report that it is open may still have been on its way.
    let holds = states
        .iter()
        .any(|(at, state)| *at >= ended && *state == "connecting");
    unless(
        holds,
        act,
        0,
        "the state connecting after the end",
        format!("states {:?}", names(&states)),
    )
}

fn says_closed(act: &Case<'_>) -> Judged {
    act.tells.states.then_some(())?;
    let states = act.states();
    let answered = act.exchanges.get(1)?.head?.0;
    let holds = states
        .iter()
        .any(|(at, state)| *at >= answered && *state == "closed");
    unless(
        holds,
        act,
        1,
        "the state closed",
        format!("states {:?}", names(&states)),
    )
}

fn names<'a>(states: &[(Duration, &'a str)]) -> Vec<&'a str> {
    states.iter().map(|(_, state)| *state).collect()
}

fn drops_what_was_cut(act: &Case<'_>) -> Judged {
    act.exchanges.get(1)?;
    reads_what_was_sent(act, 1)
}

/// The id that the request of this number carries.
fn id_of<'a>(act: &'a Case<'_>, request: usize) -> Option<Option<&'a str>> {
    Some(act.exchanges.get(request)?.request_header("last-event-id"))
}

fn sends_an_id(act: &Case<'_>) -> Judged {
    let id = id_of(act, 1)?;
    unless(
        id.is_some_and(|id| !id.is_empty()),
        act,
        1,
        "a Last-Event-ID",
        "none".to_owned(),
    )
}

fn sends_the_id_in_utf8(act: &Case<'_>) -> Judged {
    let id = id_of(act, 1)??;
    unless(
        id == "\u{e9}1",
        act,
        1,
        "Last-Event-ID: \u{e9}1, in UTF-8",
        format!("Last-Event-ID: {id}"),
    )
}

fn keeps_the_id_over_an_empty_stream(act: &Case<'_>) -> Judged {
    // A reader that never sends one has nothing to keep; that is for another check.
    let _ = id_of(act, 1)??;
    let id = id_of(act, 2)?.unwrap_or_default();
    unless(
        !id.is_empty(),
        act,
        2,
        "the last event id from before the empty stream",
        "none".to_owned(),
    )
}

fn sends_no_id_after_a_reset(act: &Case<'_>) -> Judged {
    let id = id_of(act, 3)?;
    unless(
        id.is_none(),
        act,
        3,
        "no Last-Event-ID",
        format!("Last-Event-ID: {}", id.unwrap_or_default()),
    )
}

fn sends_the_id_before(act: &Case<'_>) -> Judged {
    let id = id_of(act, 1)?;
    unless(
        id == Some("1"),
        act,
        1,
        "Last-Event-ID: 1",
        format!("Last-Event-ID: {}", id.unwrap_or("none")),
    )
}

/// The time between the end of one stream and the next request.
fn pause_before(act: &Act<'_>, request: usize) -> Option<Duration> {
    let (ended, _) = act.exchanges.get(request.checked_sub(1)?)?.end?;
    Some(act.exchanges.get(request)?.opened.saturating_sub(ended))
}

/// Timers of readers and the harness's clock may disagree by so much.
const TIMER: Duration = Duration::from_millis(20);

fn waited(act: &Case<'_>, request: usize) -> Judged {
    let pause = pause_before(act, request)?;
    let holds = pause + TIMER >= Duration::from_millis(400);
    unless(
        holds,
        act,
        request,
        "no request within 400 ms of the end",
        format!("one after {pause:?}"),
    )
}

fn waits_the_time(act: &Case<'_>) -> Judged {
    waited(act, 1)
}

fn waits_the_time_later(act: &Case<'_>) -> Judged {
    waited(act, 2)
}

fn comes_in_time(act: &Case<'_>) -> Judged {
    let pause = pause_before(act, 1);
    let holds = pause.is_some_and(|pause| pause <= Duration::from_millis(1500));
    let got = pause.map_or("none came".to_owned(), |pause| {
        format!("one after {pause:?}")
    });
    unless(holds, act, 0, "a request within 1.5 s of the end", got)
}

fn stays_away(act: &Case<'_>) -> Judged {
    act.exchanges.get(1)?;
    unless(
        act.exchanges.len() == 2,
        act,
        2,
        "no further request",
        "one came".to_owned(),
    )
}

/// After the second answer: no request, no event, and closed.
fn fails(act: &Case<'_>) -> Judged {
    let (answered, _) = act.exchanges.get(1)?.head?;
    let event = act.events().into_iter().find(|(at, _)| *at >= answered);
    let states = act.states();
    let closed = states
        .iter()
        .any(|(at, state)| *at >= answered && *state == "closed");
    let fault = stays_away(act)?;
    let fault = fault.or_else(|| {
        event.map(|(_, event)| evidence(act, 1, "no event of this answer", &shown(&event)))
    });
    Some(fault.or_else(|| {
        let got = format!("states {:?} within {STAYS_AWAY:?}", names(&states));
        (act.tells.states && !closed).then(|| evidence(act, 1, "the state closed", &got))
    }))
}
