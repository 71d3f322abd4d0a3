//! Faults that the fuzzer has to find: between a conformant server and the harness, an answer becomes another, or
//! something happens that must not.

use serde_json::json;

use super::{
    Face,
    draft::Sent,
    wire::{Answer, How},
};

/// Bytes that a leak loses with each request.
const LEAK: usize = 8 << 20;

/// What happens besides the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deed {
    /// Nothing.
    Nothing,
    /// Something is stored.
    Stores,
    /// The next request is not answered as it must be.
    Breaks,
    /// So many bytes are never given back.
    Leaks(usize),
}

/// A fault.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// Name.
    pub name: &'static str,
    /// What is wrong, in one line.
    pub about: &'static str,
    /// The change that a request must have for it to happen.
    pub on: &'static str,
    /// What happens besides.
    pub deed: Deed,
    /// What becomes of the answer.
    pub answer: fn(Face, Answer) -> Answer,
}

impl Plant {
    /// Whether it happens to this request, which was answered so.
    pub fn happens(&self, sent: &Sent, answer: &Answer) -> bool {
        let is_refusal = answer.status >= 400 || answer.status == 0 && answer.end == How::Complete;
        !sent.is_loose && is_refusal && sent.changes.contains(&self.on)
    }
}

const fn plant(
    name: &'static str,
    on: &'static str,
    about: &'static str,
    answer: fn(Face, Answer) -> Answer,
) -> Plant {
    Plant {
        name,
        about,
        on,
        deed: Deed::Nothing,
        answer,
    }
}

const fn deed(name: &'static str, on: &'static str, about: &'static str, deed: Deed) -> Plant {
    Plant {
        name,
        about,
        on,
        deed,
        answer: |_, answer| answer,
    }
}

/// All of them.
pub const PLANTS: &[Plant] = &[
    plant(
        "internal-error",
        "truncate",
        "a body that breaks off is an internal error",
        |face, answer| match face {
            Face::Covel => http(answer, 500, json!({ "error": "unexpected end" })),
            face => message(
                face,
                answer,
                json!({ "type": "Internal", "message": "end" }),
            ),
        },
    ),
    plant(
        "panic-page",
        "byte",
        "a wrong byte is answered with the page of a panic",
        |_, mut answer| {
            let page = b"<h1>thread 'main' panicked at src/main.rs:1:1</h1>".to_vec();
            if answer.status > 0 {
                answer.status = 400;
                answer.headers = vec![("content-type".to_owned(), "text/html".to_owned())];
                answer.body = page;
            } else {
                answer.messages = vec![page];
            }
            answer
        },
    ),
    plant(
        "wrong-shape",
        "retype",
        "a refusal has a text where its shape has another",
        |face, answer| match face {
            Face::Covel => {
                let status = answer.status;
                http(answer, status, json!({ "message": "no" }))
            }
            face => message(face, answer, json!("no")),
        },
    ),
    plant(
        "wrong-status",
        "drop",
        "a refusal is not what its code or type says",
        |face, answer| match face {
            Face::Covel => {
                let body = json!({ "error": "no", "code": "session_not_found" });
                http(answer, 422, body)
            }
            face => message(face, answer, json!({ "type": "Oops", "message": 1 })),
        },
    ),
    plant(
        "takes-mistyped",
        "retype",
        "a member of another type is taken for valid",
        taken,
    ),
    plant(
        "takes-duplicate",
        "duplicate",
        "of a member that stands twice the first one counts",
        taken,
    ),
    plant(
        "takes-truncated",
        "truncate",
        "a body that breaks off is taken",
        taken,
    ),
    plant("hangs", "deep", "deep nesting is never answered", |_, _| {
        Answer {
            end: How::Silent,
            ..Answer::default()
        }
    }),
    plant(
        "hangs-up",
        "encode",
        "another encoding closes the connection without a word",
        |_, _| Answer {
            end: How::Closed(None),
            ..Answer::default()
        },
    ),
    deed(
        "stores-garbage",
        "drop",
        "something is stored though the request was refused",
        Deed::Stores,
    ),
    deed(
        "breaks-the-next",
        "grow",
        "after a long text the next valid request fails",
        Deed::Breaks,
    ),
    deed(
        "leaks",
        "retype",
        "each refusal leaves eight mebibytes behind",
        Deed::Leaks(LEAK),
    ),
];

fn http(mut answer: Answer, status: u16, body: serde_json::Value) -> Answer {
    answer.status = status;
    answer.headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    answer.body = body.to_string().into_bytes();
    answer
}

/// An answer of messages, with this in place of the error. The last message stays: it answers the harness's ping.
fn message(face: Face, mut answer: Answer, error: serde_json::Value) -> Answer {
    let last = answer.messages.pop();
    let wrong = match face {
        Face::ChatWs => json!({ "type": "chat:error", "payload": error["type"] }),
        _ => json!({ "kind": "response", "request_id": "case", "error": error }),
    };
    answer.messages = [wrong.to_string().into_bytes()]
        .into_iter()
        .chain(last)
        .collect();
    answer
}

/// A success in place of a refusal.
fn taken(face: Face, answer: Answer) -> Answer {
    match face {
        Face::Covel => http(answer, 200, json!({ "ok": true })),
        Face::SessionUpdate => {
            let mut answer = message(face, answer, json!(null));
            let ok = json!({ "kind": "response", "request_id": "case", "result": { "ok": true } });
            if let Some(first) = answer.messages.first_mut() {
                *first = ok.to_string().into_bytes();
            }
            answer
        }
        Face::ChatWs => {
            let mut answer = answer;
            let is_refusal = |text: &Vec<u8>| String::from_utf8_lossy(text).contains("chat:error");
            answer.messages.retain(|text| !is_refusal(text));
            answer
        }
    }
}
