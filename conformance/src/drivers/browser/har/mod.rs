//! What went over the network of pages, as a HAR file.
//!
//! [`HarLog`] takes the events of the `Network` domain and the bodies that it asked for; `draft` is one exchange as
//! it grows, `entry` its form in the file. The members are those of Chromium's own export, with two differences:
//!
//! - an event stream has its bytes in `content` even while it is open, and whoever read it;
//! - `_eventSourceMessages`, with the time of each event, is there for streams that were read by `fetch`, too. In
//!   Chromium's own files only streams of an `EventSource` have it.
//!
//! An exchange that is over before its bytes were asked for, as on a busy machine, and that its script then breaks off,
//! has no body.
//!
//! As in Chromium's own files, cookies and `authorization` are left out. Reading HAR files is in
//! [`transcript::har`](crate::transcript::har).
//!
//! Source: <http://www.softwareishard.com/blog/har-12-spec/>;
//! <https://chromedevtools.github.io/devtools-protocol/tot/Network/>

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

mod draft;
mod entry;

use draft::{Body, Draft};

/// Bytes of bodies that are kept at most, over all pages; what comes later is left out.
const MAX_BYTES: usize = 256 << 20;
/// Exchanges that are kept at most, over all pages.
const MAX_ENTRIES: usize = 50_000;
/// Bytes that Chromium keeps of bodies, for each page and for each body.
const BUFFERS: (u32, u32) = (64 << 20, 16 << 20);

/// A page of a [`HarLog`].
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PageId(usize);

/// What a page is asked for, so that its exchanges have bodies.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ask {
    /// The bytes of a stream, from now on with its events.
    Stream(String),
    /// The body of a finished exchange.
    Body(String),
}

impl Ask {
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Stream(_) => "Network.streamResourceContent",
            Self::Body(_) => "Network.getResponseBody",
        }
    }

    pub(super) fn params(&self) -> Value {
        let (Self::Stream(id) | Self::Body(id)) = self;
        json!({ "requestId": id })
    }
}

/// The exchanges of some pages.
#[derive(Debug, Default)]
pub struct HarLog {
    pages: Vec<PageDraft>,
    /// In the order of their requests.
    drafts: Vec<Draft>,
    /// The exchanges of a request, by its page and id: several when it was redirected.
    places: BTreeMap<(PageId, String), Vec<usize>>,
    /// Raw headers, which may come before the exchange that they belong to.
    raw: BTreeMap<(PageId, String), Raw>,
    bytes: usize,
    /// Exchanges that did not fit.
    left_out: usize,
}

#[derive(Debug)]
struct PageDraft {
    title: String,
    /// Unix seconds of its first request.
    started: Option<f64>,
    /// Exchanges of an ended page take no more.
    ended: bool,
}

/// Headers as they were on the wire, one for each exchange of a request.
#[derive(Debug, Default)]
struct Raw {
    requests: Vec<Value>,
    responses: Vec<Value>,
}

/// Locks a log that several pages share.
pub fn lock(log: &Mutex<HarLog>) -> MutexGuard<'_, HarLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HarLog {
    /// The parameters of `Network.enable`, where bodies are kept and where they are not.
    pub(super) fn buffers(keeps: bool) -> Value {
        let (total, one) = if keeps { BUFFERS } else { (0, 0) };
        json!({
            "maxTotalBufferSize": total, "maxResourceBufferSize": one, "maxPostDataSize": one,
        })
    }

    /// A page whose events follow.
    pub fn begin_page(&mut self, title: &str) -> PageId {
        self.pages.push(PageDraft {
            title: title.to_owned(),
            started: None,
            ended: false,
        });
        PageId(self.pages.len() - 1)
    }

    /// The page is closed: what was under way was broken off by it.
    pub fn end_page(&mut self, page: PageId) {
        self.pages[page.0].ended = true;
    }

    /// Takes an event of the `Network` domain; gives what to ask the page for.
    pub(super) fn take(&mut self, page: PageId, method: &str, params: &Value) -> Vec<Ask> {
        let Some(id) = params["requestId"].as_str() else {
            return Vec::new();
        };
        let key = (page, id.to_owned());
        match method {
            "Network.requestWillBeSent" => return self.request(key, params),
            "Network.webSocketCreated" => self.begin(key, Draft::socket(page, params)),
            "Network.requestWillBeSentExtraInfo" => {
                self.raw
                    .entry(key)
                    .or_default()
                    .requests
                    .push(params.clone());
            }
            "Network.responseReceivedExtraInfo" => {
                self.raw
                    .entry(key)
                    .or_default()
                    .responses
                    .push(params.clone());
            }
            "Network.responseReceived" => {
                if let Some(draft) = self.draft(&key) {
                    draft.response(&params["response"]);
                }
            }
            "Network.loadingFinished" => return self.finished(key, params),
            _ => {
                let bytes = self
                    .draft(&key)
                    .map_or(0, |draft| draft.take(method, params));
                self.count(&key, bytes);
            }
        }
        Vec::new()
    }

    /// Takes the answer to what was asked for; nothing when there was none.
    pub(super) fn answered(&mut self, page: PageId, ask: &Ask, answer: Option<&Value>) {
        let (Ask::Stream(id) | Ask::Body(id)) = ask;
        let key = (page, id.clone());
        let Some(draft) = self.draft(&key) else {
            return;
        };
        let bytes = match (ask, answer) {
            (Ask::Stream(_), Some(answer)) => {
                let text = answer["bufferedData"].as_str().unwrap_or_default();
                draft.buffered(STANDARD.decode(text).unwrap_or_default())
            }
            (Ask::Body(_), Some(answer)) => draft.whole(body(answer)),
            (_, None) => 0,
        };
        self.count(&key, bytes);
    }

    /// The file.
    pub fn to_har(&self, creator: &str) -> Value {
        let entries: Vec<Value> = self.drafts.iter().map(|draft| self.entry(draft)).collect();
        let pages: Vec<Value> = self.pages.iter().enumerate().filter_map(page_of).collect();
        let mut log = json!({
            "version": "1.2",
            "creator": { "name": creator, "version": env!("CARGO_PKG_VERSION") },
            "pages": pages,
            "entries": entries,
        });
        if self.left_out > 0 {
            log["comment"] = format!("{} more exchanges did not fit", self.left_out).into();
        }
        json!({ "log": log })
    }

    fn entry(&self, draft: &Draft) -> Value {
        let key = (draft.page, draft.id.clone());
        let raw = self.raw.get(&key);
        let nth = |list: &[Value]| list.get(draft.hop).cloned().unwrap_or_default();
        let request = raw.map(|raw| nth(&raw.requests)).unwrap_or_default();
        let response = raw.map(|raw| nth(&raw.responses)).unwrap_or_default();
        let ended = self.pages[draft.page.0].ended;
        entry::render(draft, &request, &response, ended)
    }

    /// The newest exchange of a request.
    fn draft(&mut self, key: &(PageId, String)) -> Option<&mut Draft> {
        let place = *self.places.get(key)?.last()?;
        self.drafts.get_mut(place)
    }

    fn begin(&mut self, key: (PageId, String), mut draft: Draft) {
        if self.drafts.len() == MAX_ENTRIES {
            self.left_out += 1;
            return;
        }
        let started = &mut self.pages[key.0.0].started;
        *started = started.or(draft.started_unix());
        let places = self.places.entry(key).or_default();
        draft.hop = places.len();
        places.push(self.drafts.len());
        self.drafts.push(draft);
    }

    /// Begins an exchange. What a script asked for may be broken off before it is over, so its bytes are asked for
    /// as they come.
    fn request(&mut self, key: (PageId, String), params: &Value) -> Vec<Ask> {
        let url = params["request"]["url"].as_str().unwrap_or_default();
        if !url.starts_with("http") {
            return Vec::new();
        }
        let redirect = &params["redirectResponse"];
        if let Some(before) = self.draft(&key).filter(|_| !redirect.is_null()) {
            before.response(redirect);
            before.finish(&params["timestamp"]);
        }
        let draft = Draft::request(key.0, params);
        let asks = if draft.is_of_a_script() {
            vec![Ask::Stream(key.1.clone())]
        } else {
            Vec::new()
        };
        self.begin(key, draft);
        asks
    }

    /// Ends an exchange; its body is asked for, unless its bytes came as a stream.
    fn finished(&mut self, key: (PageId, String), params: &Value) -> Vec<Ask> {
        let full = self.bytes >= MAX_BYTES;
        let Some(draft) = self.draft(&key) else {
            return Vec::new();
        };
        draft.finish(&params["timestamp"]);
        if full || draft.is_known() {
            Vec::new()
        } else {
            vec![Ask::Body(key.1)]
        }
    }

    /// Counts bytes that were kept; beyond the bound, the body is given up.
    fn count(&mut self, key: &(PageId, String), bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES && bytes > 0 {
            let freed = self.draft(key).map_or(0, Draft::give_up);
            self.bytes -= freed.min(self.bytes);
        }
    }
}

/// The body of an answer of `Network.getResponseBody`.
fn body(answer: &Value) -> Body {
    let text = answer["body"].as_str().unwrap_or_default();
    if answer["base64Encoded"] == true {
        Body::Bytes(STANDARD.decode(text).unwrap_or_default())
    } else {
        Body::Bytes(text.as_bytes().to_vec())
    }
}

fn page_of((index, page): (usize, &PageDraft)) -> Option<Value> {
    Some(json!({
        "startedDateTime": entry::date(page.started?),
        "id": format!("page_{}", index + 1),
        "title": page.title,
        "pageTimings": { "onContentLoad": null, "onLoad": null },
    }))
}
