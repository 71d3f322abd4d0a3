//! A case that fails, as a transcript, and a case from one.

use bytes::Bytes;

use super::{Case, Face, SCENARIO, report::Failure, wire::How};
use crate::transcript::{
    End, Fact, Header, Request, ResponseHead, Side, Transcript, WsFrame, record::Recorder,
};

/// The note that carries the case begins so.
const ENVELOPE: &str = "envelope: ";

/// The transcript of a failure: its header names the case and what is wrong.
pub fn transcript(face: Face, seed: u64, failure: &Failure) -> Transcript {
    let recorder = Recorder::new(Header {
        suite: face.suite().to_owned(),
        scenario: SCENARIO.to_owned(),
        notes: vec![
            format!("seed {seed}, case {}", failure.number),
            format!("{ENVELOPE}{}", failure.case.to_json()),
            failure.what.replace(['\n', '\r'], " "),
        ],
        ..Header::default()
    });
    record(face, failure, &recorder);
    recorder.transcript()
}

/// The case that a transcript was saved for; `None` when its header carries none.
pub fn case_of(transcript: &Transcript) -> Option<Case> {
    let notes = transcript.header.notes.iter();
    let case = notes
        .filter_map(|note| note.trim().strip_prefix(ENVELOPE))
        .next()?;
    serde_json::from_str(case).ok()
}

/// Name of its file.
pub fn file_name(face: Face, seed: u64, failure: &Failure) -> String {
    format!(
        "{}-envelope-seed-{seed}-case-{}.{}",
        face.suite(),
        failure.number,
        crate::transcript::text::EXTENSION
    )
}

fn record(face: Face, failure: &Failure, recorder: &Recorder) {
    let Some((sent, answer)) = &failure.evidence else {
        return;
    };
    let exchange = recorder.next_exchange();
    let is_http = failure.case.route().is_some();
    let body = Bytes::from(sent.body.clone());
    if is_http {
        let request = Request {
            method: sent.method.clone(),
            target: sent.target.clone(),
            headers: sent.headers.clone(),
            body,
        };
        recorder.tell(Fact::Request { exchange, request });
    } else {
        recorder.tell(message(face, exchange, Side::Client, body));
    }
    if answer.status > 0 {
        let head = ResponseHead {
            status: answer.status,
            headers: answer.headers.clone(),
        };
        recorder.tell(Fact::Response { exchange, head });
        let bytes = Bytes::from(answer.body.clone());
        recorder.tell(Fact::Chunk { exchange, bytes });
    }
    for text in &answer.messages {
        recorder.tell(message(face, exchange, Side::Server, text.clone().into()));
    }
    let how = match answer.end {
        How::Complete => End::Complete,
        How::Silent => End::TimedOut,
        How::Closed(code) => End::Broken(format!("closed {code:?}")),
    };
    recorder.tell(Fact::End { exchange, how });
}

fn message(face: Face, exchange: crate::transcript::ExchangeId, from: Side, bytes: Bytes) -> Fact {
    if face == Face::SessionUpdate {
        return Fact::Line {
            exchange,
            from,
            bytes,
        };
    }
    let frame = match String::from_utf8(bytes.to_vec()) {
        Ok(text) => WsFrame::Text(text),
        Err(_) => WsFrame::Binary(bytes),
    };
    Fact::WebSocket {
        exchange,
        from,
        frame,
    }
}
