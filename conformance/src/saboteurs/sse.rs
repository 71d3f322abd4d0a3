//! Faults of readers of event streams, and of producers.
//!
//! A reader in which something is wrong cannot be told from a right one that was sent something else. So most of
//! these change the stream on its way to the reader into what the faulty reader would have made of it; some change
//! its requests or its reports. Each touches the case that shows its requirement, and no other.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::{
    Answer, RequestInfo, Sabotage, Saboteur, Treatment,
    saboteur::{drop_header, set_header},
};
use crate::{
    scenarios::sse::SEPARATOR,
    transcript::{Request, ResponseHead},
};

/// Any number of a case's requests.
const ANY: usize = usize::MAX;

/// Binds a saboteur that changes the body of one of the case's streams, counted from 0.
macro_rules! body {
    ($id:literal, $case:literal, $which:expr, $change:expr) => {
        Sabotage::new($id, || {
            Arc::new(Fault {
                body: Some($change),
                ..Fault::of($case, $which)
            })
        })
    };
}

/// Binds a saboteur that changes one of the case's requests.
macro_rules! request {
    ($id:literal, $case:literal, $which:expr, $change:expr) => {
        Sabotage::new($id, || {
            Arc::new(Fault {
                request: Some($change),
                ..Fault::of($case, $which)
            })
        })
    };
}

/// Binds a saboteur that changes the head of one of the case's answers.
macro_rules! head {
    ($id:literal, $case:literal, $which:expr, $change:expr) => {
        Sabotage::new($id, || {
            Arc::new(Fault {
                head: Some($change),
                ..Fault::of($case, $which)
            })
        })
    };
}

/// Binds a saboteur that answers from this request of the case on with 204, so that the harness sees it no more.
macro_rules! gives_up {
    ($id:literal, $case:literal, $which:expr) => {
        Sabotage::new($id, || {
            Arc::new(Fault {
                gives_up: true,
                ..Fault::of($case, $which)
            })
        })
    };
}

/// Binds a saboteur that changes what is reported in the case.
macro_rules! report {
    ($id:literal, $case:literal, $change:expr) => {
        Sabotage::new($id, || {
            Arc::new(Fault {
                report: Some($change),
                ..Fault::of($case, ANY)
            })
        })
    };
}

/// The saboteurs of this file.
pub const SABOTEURS: &[&[Sabotage]] = &[READERS, CONNECTORS, PRODUCERS];

const READERS: &[Sabotage] = &[
    body!("SSE-001", "lf", 0, |bytes| swap(bytes, b"\n", b"?")),
    body!("SSE-002", "cr", 0, |bytes| swap(bytes, b"\r", b"?")),
    body!("SSE-003", "crlf", 0, |bytes| swap(bytes, b"\r\n", b"\n\n")),
    body!("SSE-004", "mixed", 0, |bytes| swap(bytes, b"\r", b"?")),
    body!("SSE-005", "crlf-cut", 0, |bytes| swap(
        bytes, b"\r\n", b"\n\n"
    )),
    body!("SSE-006", "separators", 0, |bytes| swap(
        bytes,
        "\u{2028}".as_bytes(),
        b"\n"
    )),
    body!("SSE-007", "blank-lines", 0, |bytes| swap(
        bytes,
        b"\n\n\n",
        b"\n\ndata\n\n"
    )),
    body!("SSE-008", "unfinished-line", 0, |bytes| append(
        bytes, b"\n\n"
    )),
    body!("SSE-009", "unfinished-event", 0, |bytes| append(
        bytes, b"\n"
    )),
    body!("SSE-010", "utf8", 0, latin1),
    body!("SSE-011", "utf8-cut", 0, |bytes| swap(
        bytes,
        b"\xf0\x9f\x9a\x80",
        b"\xff\xff\xff\xff"
    )),
    body!("SSE-012", "invalid-utf8", 0, |bytes| swap(
        &swap(bytes, b"\xff", b""),
        b"\xc3",
        b""
    )),
    body!("SSE-013", "bom", 0, |bytes| [BOM, bytes].concat()),
    body!("SSE-014", "bom-twice", 0, |bytes| swap(bytes, BOM, b"")),
    body!("SSE-015", "bom-inside", 0, |bytes| swap(bytes, BOM, b"")),
    body!("SSE-016", "comment", 0, |bytes| swap(
        bytes, b": data", b"data"
    )),
    body!("SSE-017", "comment-inside", 0, |bytes| swap(
        bytes, b"\n:", b"\n\n:"
    )),
    body!("SSE-018", "first-colon", 0, |bytes| swap(
        bytes, b": a:b:", b":"
    )),
    body!("SSE-019", "one-space", 0, |bytes| swap(
        bytes, b": ", b":  "
    )),
    body!("SSE-020", "only-one-space", 0, |bytes| swap(
        bytes, b":  ", b":"
    )),
    body!("SSE-021", "white-space", 0, |bytes| swap(
        bytes, b" \t", b""
    )),
    body!("SSE-022", "no-colon", 0, |bytes| swap(bytes, b"data", b"")),
    body!("SSE-023", "name-case", 0, |bytes| bytes
        .to_ascii_lowercase()),
    body!("SSE-024", "name-space", 0, |bytes| swap(
        bytes, b"data :", b"data:"
    )),
    body!("SSE-025", "unknown-field", 0, |bytes| swap(
        bytes, b"\nbar\n", b"\n\n"
    )),
    body!("SSE-026", "data-lines", 0, |bytes| swap(
        bytes,
        b"data: a\ndata: b\ndata:\n",
        b""
    )),
    body!("SSE-027", "last-line-feed", 0, |bytes| swap(
        bytes, b"data:\n", b""
    )),
    body!("SSE-028", "type", 0, |bytes| swap(
        bytes,
        b"event: add\n",
        b""
    )),
    body!("SSE-029", "default-type", 0, |bytes| [
        b"event: data\n",
        bytes
    ]
    .concat()),
    body!("SSE-030", "last-type", 0, |bytes| swap(
        bytes,
        b"event: two\n",
        b""
    )),
    body!("SSE-031", "empty-type", 0, |bytes| swap(
        bytes,
        b"event:\n",
        b"event: event\n"
    )),
    body!("SSE-032", "type-passes", 0, |bytes| swap(
        bytes,
        b"\n\ndata",
        b"\n\nevent: add\ndata"
    )),
    body!("SSE-033", "dataless", 0, |bytes| swap(
        bytes,
        b"lost\n\n",
        b"lost\ndata\n\n"
    )),
    body!("SSE-034", "dataless-type", 0, |bytes| swap(
        bytes,
        b"lost\n\n",
        b"lost\n"
    )),
    body!("SSE-035", "id", 0, |bytes| swap(bytes, b"id: 1\n", b"")),
    body!("SSE-036", "id-stays", 0, |bytes| swap(
        bytes,
        b"\n\ndata",
        b"\n\nid\ndata"
    )),
    body!("SSE-037", "id-nul", 0, |bytes| swap(bytes, b"\0", b"-")),
    body!("SSE-038", "id-empty", 0, |bytes| swap(bytes, b"id:\n", b"")),
    body!("SSE-039", "id-dataless", 0, |bytes| swap(
        bytes,
        b"id: 7\n\n",
        b""
    )),
    body!("SSE-040", "id-verbatim", 0, |bytes| swap(
        bytes, b"id:  ", b"id: "
    )),
    body!("SSE-041", "nul", 0, |bytes| swap(bytes, b"\0b", b"")),
    body!("SSE-042", "order", 0, |bytes| swap(
        bytes,
        b"data: 3\n\ndata: 4\n\n",
        b"data: 4\n\ndata: 3\n\n"
    )),
    body!("SSE-043", "long-line", 0, |bytes| [
        &bytes[..bytes.len().min(65_536)],
        b"\n\n"
    ]
    .concat()),
    body!("SSE-044", "many-lines", 0, |bytes| first_lines(bytes, 1000)),
    Sabotage::new("SSE-045", || {
        Arc::new(Fault {
            buffers: true,
            ..Fault::of("at-blank-line", 0)
        })
    }),
    Sabotage::new("SSE-046", || Arc::new(LosesAtCut::default())),
    head!("SSE-073", "type-parameters", 0, |head| set_header(
        &mut head.headers,
        "content-type",
        "text/plain"
    )),
    head!("SSE-074", "type-case", 0, |head| set_header(
        &mut head.headers,
        "content-type",
        "text/plain"
    )),
    body!("SSE-075", "type-charset", 0, latin1),
    head!("SSE-076", "redirect-301", 0, |head| head.status = 400),
    head!("SSE-077", "redirect-302", 0, |head| head.status = 400),
    head!("SSE-078", "redirect-303", 0, |head| head.status = 400),
    head!("SSE-079", "redirect-307", 0, |head| head.status = 400),
    head!("SSE-080", "redirect-308", 0, |head| head.status = 400),
];

const CONNECTORS: &[Sabotage] = &[
    request!("SSE-047", "request", 0, |request| request.method =
        "POST".to_owned()),
    request!("SSE-048", "request", 0, |request| drop_header(
        &mut request.headers,
        "accept"
    )),
    request!("SSE-049", "request", 0, |request| drop_header(
        &mut request.headers,
        "cache-control"
    )),
    request!("SSE-050", "request", 0, |request| set_header(
        &mut request.headers,
        "last-event-id",
        "0"
    )),
    report!("SSE-051", "states", |report| rename_state(
        report,
        "open",
        "connecting"
    )),
    gives_up!("SSE-052", "ended", 1),
    report!("SSE-053", "ended", |report| rename_state(
        report,
        "connecting",
        "open"
    )),
    gives_up!("SSE-054", "broken", 1),
    body!("SSE-055", "broken", 1, |bytes| [b"data: lost", bytes]
        .concat()),
    request!("SSE-056", "last-event-id", 1, |request| drop_header(
        &mut request.headers,
        "last-event-id"
    )),
    request!("SSE-057", "last-event-id", 1, |request| set_header(
        &mut request.headers,
        "last-event-id",
        "?1"
    )),
    request!("SSE-058", "last-event-id", 2, |request| drop_header(
        &mut request.headers,
        "last-event-id"
    )),
    request!("SSE-059", "last-event-id", 3, |request| set_header(
        &mut request.headers,
        "last-event-id",
        "1"
    )),
    request!("SSE-060", "dropped-id", 1, |request| set_header(
        &mut request.headers,
        "last-event-id",
        "2"
    )),
    body!("SSE-061", "retry", 0, |bytes| swap(bytes, b"400", b"1")),
    body!("SSE-062", "retry-dataless", 0, |bytes| swap(
        bytes, b"400", b"1"
    )),
    body!("SSE-063", "retry-bad", 1, |bytes| swap(bytes, b"1x", b"1")),
    body!("SSE-064", "retry-stays", 1, |bytes| [b"retry: 1\n", bytes]
        .concat()),
    body!("SSE-065", "retry-in-time", 0, |bytes| swap(
        bytes, b"30", b"9000"
    )),
    head!("SSE-066", "no-content", 1, |head| {
        head.status = 200;
        set_header(&mut head.headers, "content-type", "text/event-stream");
    }),
    report!("SSE-067", "no-content", |report| rename_state(
        report,
        "closed",
        "connecting"
    )),
    head!("SSE-068", "not-found", 1, |head| head.status = 200),
    head!("SSE-069", "server-error", 1, |head| head.status = 200),
    head!("SSE-070", "created", 1, |head| head.status = 200),
    head!("SSE-071", "wrong-type", 1, |head| set_header(
        &mut head.headers,
        "content-type",
        "text/event-stream"
    )),
    head!("SSE-072", "no-type", 1, |head| set_header(
        &mut head.headers,
        "content-type",
        "text/event-stream"
    )),
    gives_up!("SSE-081", "no-answer", 2),
];

const PRODUCERS: &[Sabotage] = &[
    Sabotage::new("SSE-083", || {
        Arc::new(Produces(|bytes| [b": \xff\n\n", bytes].concat()))
    }),
    Sabotage::new("SSE-084", || {
        Arc::new(Produces(|bytes| [b"retry: soon\n\n", bytes].concat()))
    }),
    Sabotage::new("SSE-085", || {
        Arc::new(Produces(|bytes| [b"id: a\0b\n\n", bytes].concat()))
    }),
    Sabotage::new("SSE-086", || {
        Arc::new(Produces(|bytes| [b":\n\n", BOM, bytes].concat()))
    }),
    Sabotage::new("SSE-087", || {
        Arc::new(Produces(|bytes| {
            bytes[..bytes.len().saturating_sub(1)].to_vec()
        }))
    }),
];

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What becomes of the bytes of a body.
type NewBody = fn(&[u8]) -> Vec<u8>;

/// One fault in one case.
struct Fault {
    case: &'static str,
    /// Which request of the case it is about, from 0; [`ANY`] for each.
    which: usize,
    body: Option<NewBody>,
    request: Option<fn(&mut Request)>,
    head: Option<fn(&mut ResponseHead)>,
    report: Option<fn(&mut Value)>,
    gives_up: bool,
    buffers: bool,
    /// Requests of the case so far.
    seen: AtomicUsize,
    /// The case that the newest request was about.
    now: Mutex<String>,
}

impl Fault {
    fn of(case: &'static str, which: usize) -> Self {
        Self {
            case,
            which,
            body: None,
            request: None,
            head: None,
            report: None,
            gives_up: false,
            buffers: false,
            seen: AtomicUsize::new(0),
            now: Mutex::default(),
        }
    }

    fn is_case(&self, path: &str) -> bool {
        path.strip_prefix('/') == Some(self.case)
    }

    /// Whether the newest request of the case is the one that this is about.
    fn is_due(&self, path: &str) -> bool {
        self.is_case(path)
            && (self.which == ANY || self.seen.load(Ordering::Relaxed) == self.which + 1)
    }
}

impl Saboteur for Fault {
    fn answer(&self, info: &RequestInfo) -> Option<Answer> {
        info.path()
            .trim_start_matches('/')
            .clone_into(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.is_case(info.path()) {
            return None;
        }
        let before = self.seen.fetch_add(1, Ordering::Relaxed);
        (self.gives_up && before >= self.which).then(|| Answer::new(204, ""))
    }

    fn request(&self, info: &RequestInfo, request: &mut Request) {
        if let Some(change) = self.request.filter(|_| self.is_due(info.path())) {
            change(request);
        }
    }

    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        if !self.is_due(info.path()) {
            return Treatment::pass();
        }
        if let Some(change) = self.head {
            change(head);
        }
        match self.body {
            Some(change) => Treatment::whole(move |bytes| change(&bytes)),
            None => Treatment {
                buffer: self.buffers,
                ..Treatment::pass()
            },
        }
    }

    fn report(&self, report: &mut Value) {
        let is_now = *self.now.lock().unwrap_or_else(PoisonError::into_inner) == self.case;
        if let Some(change) = self.report.filter(|_| is_now) {
            change(report);
        }
    }
}

/// SSE-046: of the streams that are cut, one is read with its data cut off.
#[derive(Default)]
struct LosesAtCut {
    separators: AtomicUsize,
}

impl Saboteur for LosesAtCut {
    fn report(&self, report: &mut Value) {
        if report["event"]["type"] == SEPARATOR {
            self.separators.fetch_add(1, Ordering::Relaxed);
        } else if self.separators.load(Ordering::Relaxed) == 7 && report["event"].is_object() {
            report["event"]["data"] = json!("");
        }
    }
}

/// Changes the streams of actions, which a server ends.
struct Produces(fn(&[u8]) -> Vec<u8>);

impl Saboteur for Produces {
    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        let change = self.0;
        if info.is("POST", "/api/actions") && head.status == 200 {
            Treatment::whole(move |bytes| change(&bytes))
        } else {
            Treatment::pass()
        }
    }
}

fn swap(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut changed = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        match rest.strip_prefix(from) {
            Some(after) => {
                changed.extend_from_slice(to);
                rest = after;
            }
            None => {
                changed.push(rest[0]);
                rest = &rest[1..];
            }
        }
    }
    changed
}

fn append(bytes: &[u8], more: &[u8]) -> Vec<u8> {
    [bytes, more].concat()
}

/// The bytes read as Latin-1, written as UTF-8.
fn latin1(bytes: &[u8]) -> Vec<u8> {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    text.into_bytes()
}

/// The first lines, and a blank one.
fn first_lines(bytes: &[u8], count: usize) -> Vec<u8> {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').take(count);
    [&lines.collect::<Vec<_>>().concat()[..], b"\n"].concat()
}

fn rename_state(report: &mut Value, from: &str, to: &str) {
    if report["state"] == from {
        report["state"] = json!(to);
    }
}
