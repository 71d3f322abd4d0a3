//! What producers of event streams write: judged on every stream of every transcript in which the harness is the client, so
//! these checks also judge recordings.

use turnwire_spec::sse::ViolationKind;

use crate::{
    checks::Check,
    transcript::{
        Fact, Side, Transcript,
        views::{
            http::{Exchange, exchanges},
            stream::{Stream, streams},
        },
    },
    verdict::Findings,
};

pub(super) const CHECKS: &[Check] = &[
    check!("SSE-082", streams_have_the_content_type),
    check!("SSE-083", streams_are_utf8),
    check!("SSE-084", retry_is_a_number),
    check!("SSE-085", ids_have_no_nul),
    check!("SSE-086", lines_begin_with_no_byte_order_mark),
    check!("SSE-087", streams_end_after_a_whole_event),
];

/// Whether the harness's own server sent the streams, whose faults are on purpose: then a testee spoke.
fn is_scripted(transcript: &Transcript) -> bool {
    transcript.entries.iter().any(|entry| match &entry.fact {
        Fact::State(_) => true,
        Fact::Line { from, .. } => *from == Side::Client,
        _ => false,
    })
}

/// The event streams of a server that is not the harness's own.
fn produced(transcript: &Transcript) -> Vec<Stream<'_>> {
    if is_scripted(transcript) {
        Vec::new()
    } else {
        streams(transcript)
    }
}

/// Judges every body that begins as event streams do.
fn streams_have_the_content_type(transcript: &Transcript) -> Findings {
    if is_scripted(transcript) {
        return Findings::none();
    }
    let begins = |exchange: &&Exchange<'_>| {
        let body = exchange
            .chunks
            .first()
            .map(|(_, bytes)| &bytes[..])
            .unwrap_or_default();
        let starts: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
        exchange.status() == Some(200) && starts.iter().any(|start| body.starts_with(start))
    };
    Findings::each(exchanges(transcript).iter().filter(begins), |exchange| {
        let media = exchange.media_type().unwrap_or_default();
        (media != "text/event-stream")
            .then(|| exchange.evidence("content type text/event-stream", media))
    })
}

/// Judges every frame of every stream: none has a fault of this kind.
fn without(transcript: &Transcript, kind: ViolationKind, expected: &str) -> Findings {
    let mut findings = Findings::none();
    for stream in produced(transcript) {
        for frame in stream.frames.iter() {
            let fault = frame
                .frame
                .violations
                .iter()
                .find(|fault| fault.kind == kind);
            findings
                .judge(fault.map(|fault| stream.exchange.evidence(expected, fault.to_string())));
        }
    }
    findings
}

fn streams_are_utf8(transcript: &Transcript) -> Findings {
    without(transcript, ViolationKind::InvalidUtf8, "UTF-8")
}

fn retry_is_a_number(transcript: &Transcript) -> Findings {
    without(
        transcript,
        ViolationKind::BadRetry,
        "retry with digits only",
    )
}

fn ids_have_no_nul(transcript: &Transcript) -> Findings {
    without(transcript, ViolationKind::NulInId, "an id without NUL")
}

fn lines_begin_with_no_byte_order_mark(transcript: &Transcript) -> Findings {
    without(
        transcript,
        ViolationKind::BomInside,
        "no byte order mark before a field",
    )
}

fn streams_end_after_a_whole_event(transcript: &Transcript) -> Findings {
    let ended = produced(transcript)
        .into_iter()
        .filter(|stream| stream.exchange.complete());
    Findings::each(ended, |stream| {
        let last = stream.frames.last()?;
        let whole = last.frame.terminated || last.frame.lines.is_empty();
        (!whole).then(|| {
            stream.exchange.evidence(
                "a blank line after the last event",
                "the stream ends inside an event",
            )
        })
    })
}
