//! The course of a turn: text, tools, boundaries, the end, and what it cost.

use std::time::Duration;

use serde_json::Value;

use super::view::{Part, begins_late, first_seen, job, parts, seq, session, sockets};
use crate::{
    checks::Check,
    transcript::{
        Side, Transcript,
        views::{
            http::exchanges,
            messages::{Channel, Message, label_fits},
        },
    },
    verdict::Findings,
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("CWS-017", a_known_session_stays),
    check!("CWS-040", every_new_chat_has_its_own_id),
    check!("CWS-065", a_turn_is_announced_before_its_end),
    check!("CWS-071", chunks_join_to_the_text),
    check!("CWS-074", a_tool_starts_before_it_runs),
    check!("CWS-078", a_result_pairs_with_its_start),
    check!("CWS-081", one_boundary_between_two_messages),
    check!("CWS-084", one_end_and_nothing_after_it),
    check!("CWS-111", a_limit_tells_its_reset),
    check!("CWS-116", a_notice_stays_with_its_session),
    check!("CWS-119", context_is_the_sum_of_all_input),
    check!("CWS-120", context_leaves_the_output_out),
    check!("CWS-121", the_limit_is_that_of_the_model),
    check!("CWS-122", no_end_is_corrected),
];

/// The parts that began live, socket by socket.
fn live<'c, 't>(channel: &'c Channel<'t>) -> Vec<Part<'c, 't>> {
    let mut found = parts(channel);
    found.retain(|part| part.replay.is_none());
    found
}

/// CWS-017: once a frame of a job has a session, every later one of that job has the same.
pub fn a_known_session_stays(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        let mut known: Vec<(&str, &str)> = Vec::new();
        for message in channel
            .from(Side::Server)
            .filter(|it| super::view::is_numbered(it))
        {
            let Some(job) = job(message) else { continue };
            match known.iter().find(|(other, _)| *other == job) {
                None => known.extend(
                    session(message)
                        .filter(|it| !it.is_empty())
                        .map(|it| (job, it)),
                ),
                Some((_, of)) => findings.judge((session(message) != Some(of)).then(|| {
                    channel.evidence_at(message, format!("sessionId {of:?}"), message.show())
                })),
            }
        }
    }
    findings
}

/// CWS-040: turns that began without a session each have one of their own.
pub fn every_new_chat_has_its_own_id(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        let mut seen: Vec<String> = Vec::new();
        for sent in channel.of_kind(Side::Client, "chat:send") {
            let next = channel
                .of_kind(Side::Client, "chat:send")
                .find(|other| other.index > sent.index)
                .map_or(usize::MAX, |other| other.index);
            let answer = channel
                .of_kind(Side::Server, "chat:complete")
                .find(|it| it.index > sent.index && it.index < next);
            let Some(id) = answer.and_then(|answer| session(answer)) else {
                continue;
            };
            let is_new = sent
                .pointer("/payload/sessionId")
                .is_none_or(Value::is_null);
            if is_new {
                let again = seen.iter().any(|other| other == id);
                findings.judge(again.then(|| {
                    channel.evidence_at(sent, "a session of its own", format!("{id} again"))
                }));
            }
            seen.push(id.to_owned());
        }
    }
    findings
}

/// CWS-065: `chat:active` with `running: true` came before the end of a turn that a socket heard from its start.
pub fn a_turn_is_announced_before_its_end(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for part in live(&channel).iter().filter(|part| part.complete) {
            let (Some(first), Some(end)) = (part.frames.first(), part.frames.last()) else {
                continue;
            };
            if seq(first).is_none_or(|seq| seq > 1) {
                continue;
            }
            let told = channel.of_kind(Side::Server, "chat:active").any(|active| {
                active.index < end.index
                    && session(active) == part.session
                    && active.pointer("/payload/running") == Some(&true.into())
                    && (job(active) == part.job || job(active).is_none())
            });
            findings.judge(
                (!told).then(|| channel.evidence_at(end, "chat:active running before it", "none")),
            );
        }
    }
    findings
}

/// The texts of a part, one for each assistant message.
fn texts(part: &Part<'_, '_>) -> Vec<String> {
    let mut found = vec![String::new()];
    for frame in &part.frames {
        match frame.kind() {
            "chat:response" => {
                if let Some(last) = found.last_mut() {
                    last.push_str(frame.text_at("/payload/chunk").unwrap_or_default());
                }
            }
            "chat:message_boundary" | "chat:tool_call" => found.push(String::new()),
            _ => {}
        }
    }
    found.retain(|text| !text.is_empty());
    found
}

/// Whether the last thing that somebody asked for in the session before a part was a slash command, whose note is no
/// message.
fn is_of_a_command(all: &[Channel<'_>], part: &Part<'_, '_>) -> bool {
    const BEGIN: [&str; 4] = [
        "chat:send",
        "chat:command",
        "chat:continue",
        "chat:set_queue",
    ];
    let first = part.frames.first().and_then(|first| seq(first));
    let begun = first.and_then(|first| first_seen(all, part.session, part.job, first));
    let asked = all.iter().flat_map(|channel| channel.from(Side::Client));
    let asked = asked.filter(|it| BEGIN.contains(&it.kind()) && session(it) == part.session);
    let last = asked
        .filter(|it| Some(it.at) < begun)
        .max_by_key(|it| it.at);
    last.is_some_and(|last| last.kind() == "chat:command")
}

/// CWS-071: the chunks of the last message of each turn that a socket heard from its beginning join to a message of the
/// transcript, where one was read.
pub fn chunks_join_to_the_text(transcript: &Transcript) -> Findings {
    let (all, mut findings) = (sockets(transcript), Findings::none());
    let read: Vec<(String, Value)> = exchanges(transcript)
        .iter()
        .filter(|exchange| exchange.label == "transcript" && exchange.status() == Some(200))
        .filter_map(|exchange| Some((exchange.path().to_owned(), exchange.json()?)))
        .collect();
    for channel in all.iter().filter(|_| !read.is_empty()) {
        let mut whole = live(channel);
        whole.retain(|part| part.complete);
        whole.retain(|part| !begins_late(&all, part) && !is_of_a_command(&all, part));
        for part in &whole {
            let Some(end) = part.frames.last() else {
                continue;
            };
            let of = part.session.unwrap_or_default();
            let ok = end.pointer("/payload/success") == Some(&true.into());
            let body = read
                .iter()
                .find(|(path, _)| !of.is_empty() && path.contains(of));
            let (Some(text), Some((_, body)), true) = (texts(part).pop(), body, ok) else {
                continue;
            };
            findings.judge((!holds(body, &text)).then(|| {
                channel.evidence_at(
                    end,
                    format!("a message with the text {text:?}"),
                    body.to_string(),
                )
            }));
        }
    }
    findings
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(members) => members.values().any(|member| holds(member, text)),
        _ => false,
    }
}

/// CWS-074: a tool that works for 400 ms has its start well before its result.
pub fn a_tool_starts_before_it_runs(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        let ends = channel.of_kind(Side::Server, "chat:tool_call");
        for end in ends.filter(|end| label_fits(Some("ok-slow-tool"), end.label)) {
            let start = channel
                .of_kind(Side::Server, "chat:tool_start")
                .filter(|start| start.index < end.index)
                .find(|start| {
                    start.pointer("/payload/toolUseId") == end.pointer("/payload/toolUseId")
                });
            let gap = start.map(|start| end.at.saturating_sub(start.at));
            let early = gap.is_some_and(|gap| gap >= Duration::from_millis(200));
            findings.judge((!early).then(|| {
                let got = gap.map_or("no start".to_owned(), |gap| format!("{gap:?} before"));
                channel.evidence_at(end, "chat:tool_start at least 200 ms before", got)
            }));
        }
    }
    findings
}

/// CWS-078: each result has the id of exactly one start before it, and no id has two results.
pub fn a_result_pairs_with_its_start(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for part in live(&channel) {
            let of_kind =
                |kind: &'static str| part.frames.iter().filter(move |frame| frame.kind() == kind);
            for end in of_kind("chat:tool_call") {
                let Some(id) = end.text_at("/payload/toolUseId") else {
                    continue;
                };
                let same = |frame: &&&Message<'_>| frame.text_at("/payload/toolUseId") == Some(id);
                let starts = of_kind("chat:tool_start")
                    .filter(|start| start.index < end.index)
                    .filter(same)
                    .count();
                let ends = of_kind("chat:tool_call").filter(same).count();
                findings.judge(((starts, ends) != (1, 1)).then(|| {
                    let got = format!("{starts} start(s), {ends} result(s): {}", end.show());
                    channel.evidence_at(end, "one start before it, and one result", got)
                }));
            }
        }
    }
    findings
}

/// CWS-081: between the last chunk of a message and the first one of the next, which a tool use parts, there is
/// exactly one boundary.
pub fn one_boundary_between_two_messages(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for part in live(&channel) {
            let mut between: Option<(usize, bool)> = None;
            for frame in &part.frames {
                match (frame.kind(), &mut between) {
                    ("chat:response", state) => {
                        if let Some((boundaries, true)) = *state {
                            findings.judge((boundaries != 1).then(|| {
                                let got = format!("{boundaries} before {}", frame.show());
                                channel.evidence_at(frame, "one chat:message_boundary", got)
                            }));
                        }
                        *state = Some((0, false));
                    }
                    ("chat:message_boundary", Some((boundaries, _))) => *boundaries += 1,
                    ("chat:tool_start" | "chat:tool_call", Some((_, parted))) => *parted = true,
                    _ => {}
                }
            }
        }
    }
    findings
}

/// CWS-084: a job has one `chat:complete`, and no frame with a greater number.
pub fn one_end_and_nothing_after_it(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        let subscribes = channel.of_kind(Side::Client, "chat:subscribe").count();
        for end in channel.of_kind(Side::Server, "chat:complete") {
            let Some(of) = job(end) else { continue };
            let others = channel.from(Side::Server).filter(|it| {
                super::view::is_numbered(it) && job(it) == Some(of) && it.index != end.index
            });
            // Who subscribes again may get the end again.
            let fault = others
                .filter(|it| it.kind() != "chat:complete" || subscribes == 0 || it.json != end.json)
                .find(|it| {
                    it.kind() == "chat:complete"
                        || seq(it) > seq(end)
                        || (it.index > end.index && subscribes == 0)
                });
            findings.judge(fault.map(|it| {
                channel.evidence_at(
                    it,
                    "nothing of the turn after its one chat:complete",
                    it.show(),
                )
            }));
        }
    }
    findings
}

/// CWS-111: the notice of a usage limit holds the time of its reset, as the model told it.
pub fn a_limit_tells_its_reset(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        let notices = channel.of_kind(Side::Server, "chat:notice");
        for notice in notices.filter(|notice| label_fits(Some("limit"), notice.label)) {
            let text = notice.pointer("/payload/notice").map(Value::to_string);
            let tells = text.as_ref().is_some_and(|text| text.contains("03:00"));
            findings.judge(
                (!tells).then(|| {
                    channel.evidence_at(notice, "a notice with 03:00 (UTC)", notice.show())
                }),
            );
        }
    }
    findings
}

/// CWS-116: a notice has a number, and comes only on sockets that subscribed to its session or said something.
pub fn a_notice_stays_with_its_session(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for notice in channel.of_kind(Side::Server, "chat:notice") {
            let of = session(notice);
            let concerned = channel.from(Side::Client).any(|it| {
                it.index < notice.index
                    && match it.kind() {
                        "chat:subscribe" | "chat:set_queue" | "chat:continue" => session(it) == of,
                        "chat:send" | "chat:command" => session(it).is_none() || session(it) == of,
                        _ => false,
                    }
            });
            let met = concerned && seq(notice).is_some();
            findings.judge((!met).then(|| {
                let expected = "a seq, and only sockets of the session";
                channel.evidence_at(notice, expected, notice.show())
            }));
        }
    }
    findings
}

fn usages<'c, 't>(channel: &'c Channel<'t>) -> impl Iterator<Item = (&'c Message<'t>, &'c Value)> {
    channel
        .of_kind(Side::Server, "chat:complete")
        .filter_map(|end| Some((end, end.pointer("/payload/usage")?)))
}

fn number(usage: &Value, name: &str) -> Option<i64> {
    usage.get(name)?.as_i64()
}

/// CWS-119: `contextTokens` is the sum of `inputTokens`, `cacheReadTokens` and `cacheCreationTokens`.
pub fn context_is_the_sum_of_all_input(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for (end, usage) in usages(&channel) {
            let parts = ["inputTokens", "cacheReadTokens", "cacheCreationTokens"];
            let sum: Option<i64> = parts.iter().map(|name| number(usage, name)).sum();
            let (Some(sum), Some(context)) = (sum, number(usage, "contextTokens")) else {
                continue;
            };
            findings.judge((sum != context).then(|| {
                channel.evidence_at(end, format!("contextTokens {sum}"), usage.to_string())
            }));
        }
    }
    findings
}

/// CWS-120: two turns with the same input and with short and long output have the same `contextTokens`.
pub fn context_leaves_the_output_out(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        let of = |label: &str| {
            usages(&channel)
                .find(|(end, _)| end.label == label)
                .and_then(|(end, usage)| Some((end, number(usage, "contextTokens")?)))
        };
        if let (Some((_, short)), Some((end, long))) = (of("usage-short"), of("usage-long")) {
            findings.judge(
                (short != long).then(|| {
                    channel.evidence_at(end, format!("contextTokens {short}"), end.show())
                }),
            );
        }
    }
    findings
}

/// CWS-121: `contextLimit` is the limit of the model, as the label tells it.
pub fn the_limit_is_that_of_the_model(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for (end, usage) in usages(&channel) {
            let Some(limit) = end.label.strip_prefix("limit-") else {
                continue;
            };
            let told = number(usage, "contextLimit").map(|limit| limit.to_string());
            findings.judge((told.as_deref() != Some(limit)).then(|| {
                channel.evidence_at(end, format!("contextLimit {limit}"), usage.to_string())
            }));
        }
    }
    findings
}

/// CWS-122: no later frame corrects the usage of a turn.
pub fn no_end_is_corrected(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for channel in sockets(transcript) {
        for (end, usage) in usages(&channel) {
            let later = channel
                .of_kind(Side::Server, "chat:complete")
                .find(|it| it.index > end.index && job(it).is_some() && job(it) == job(end));
            let corrected = later.filter(|it| it.pointer("/payload/usage") != Some(usage));
            findings.judge(
                corrected
                    .map(|it| channel.evidence_at(it, "no second usage of the turn", it.show())),
            );
        }
    }
    findings
}
