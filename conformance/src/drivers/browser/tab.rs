//! One page in a context of its own: no cookie, cache or store is shared with another.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    Browser, BrowserError, Page,
    cdp::{Cdp, Event},
    har::{HarLog, PageId, lock},
};

/// The script that runs before those of the page.
const PRELUDE: &str = include_str!("prelude.js");
/// Longest wait for a page to take a line; one whose script never rests takes none.
const TAKES_WITHIN: Duration = Duration::from_secs(5);
/// Looks whether a page is loaded again, and the time between two.
const LOOKS: u32 = 500;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest remark of a page that is passed on, in bytes.
const MAX_REMARK: usize = 2000;

/// What a page is opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The page.
    pub page: Page,
    /// The server that it talks to.
    pub server: String,
    /// What the page finds in `window.turnwireStart`.
    pub start: BTreeMap<String, String>,
    /// Takes what goes over the network.
    pub har: Option<Arc<Mutex<HarLog>>>,
}

/// An open page. Dropping it closes the page and its context.
#[derive(Debug)]
pub struct Tab {
    cdp: Cdp,
    context: String,
    target: String,
    session: String,
    opening: Opening,
    har_page: Option<PageId>,
}

/// What comes of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A report, as it was given to `turnwireReport`.
    Report(String),
    /// An error in the page, or on its console.
    Remark(String),
}

/// The events of a page.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Tab {
    /// A page in which nothing is open yet, and its events; see [`Tab::navigate`].
    ///
    /// # Errors
    ///
    /// When Chromium does not do it.
    pub async fn open(browser: &Browser, opening: Opening) -> Result<(Self, Events), BrowserError> {
        let cdp = browser.cdp().clone();
        let context = json!({ "disposeOnDetach": true });
        let context = cdp
            .call(None, "Target.createBrowserContext", context)
            .await?;
        let mut tab = Self {
            cdp,
            context: text(&context, "browserContextId"),
            target: String::new(),
            session: String::new(),
            har_page: None,
            opening,
        };
        let target =
            json!({ "url": "about:blank", "browserContextId": tab.context, "newWindow": true });
        let target = tab.cdp.call(None, "Target.createTarget", target).await?;
        tab.target = text(&target, "targetId");
        let attach = json!({ "targetId": tab.target, "flatten": true });
        let attached = tab.cdp.call(None, "Target.attachToTarget", attach).await?;
        tab.session = text(&attached, "sessionId");
        let events = Events(tab.cdp.listen(&tab.session));
        tab.prepare().await?;
        Ok((tab, events))
    }

    async fn prepare(&mut self) -> Result<(), BrowserError> {
        for domain in ["Runtime", "Page", "Inspector"] {
            self.call(&format!("{domain}.enable"), json!({})).await?;
        }
        if let Some(har) = &self.opening.har {
            self.har_page = Some(lock(har).begin_page(&self.opening.page.to_string()));
        }
        // Without it, no network can be taken away.
        let keeps = HarLog::buffers(self.har_page.is_some());
        self.call("Network.enable", keeps).await?;
        self.call("Runtime.addBinding", json!({ "name": "turnwireSay" }))
            .await?;
        let source = PRELUDE.replace("START", &json!(self.opening.start).to_string());
        let script = json!({ "source": source });
        self.call("Page.addScriptToEvaluateOnNewDocument", script)
            .await?;
        let patterns = self.opening.page.patterns(&self.opening.server);
        if !patterns.is_empty() {
            let patterns: Vec<_> = patterns
                .iter()
                .map(|pattern| json!({ "urlPattern": pattern }))
                .collect();
            self.call("Fetch.enable", json!({ "patterns": patterns }))
                .await?;
        }
        Ok(())
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, BrowserError> {
        self.cdp.call(Some(&self.session), method, params).await
    }

    /// Opens the page. Its files are asked for meanwhile: somebody has to [`hear`](Tab::hear).
    ///
    /// # Errors
    ///
    /// [`BrowserError::Page`] when it does not open.
    pub async fn navigate(&self) -> Result<(), BrowserError> {
        let url = self.opening.page.address(&self.opening.server);
        let opened = self.call("Page.navigate", json!({ "url": url })).await?;
        match opened["errorText"].as_str() {
            None | Some("") => Ok(()),
            Some(why) => Err(BrowserError::Page {
                page: url,
                why: why.to_owned(),
            }),
        }
    }

    /// Hides the page, as when its window is put away, or shows it again.
    ///
    /// # Errors
    ///
    /// When Chromium does not do it.
    pub async fn hide(&self, hidden: bool) -> Result<(), BrowserError> {
        let target = json!({ "targetId": self.target });
        let window = self
            .cdp
            .call(None, "Browser.getWindowForTarget", target)
            .await?;
        let state = if hidden { "minimized" } else { "normal" };
        let bounds = json!({ "windowId": window["windowId"], "bounds": { "windowState": state } });
        self.cdp
            .call(None, "Browser.setWindowBounds", bounds)
            .await?;
        Ok(())
    }

    /// Takes the network away or gives it back. Connections that are open stay open.
    ///
    /// # Errors
    ///
    /// When Chromium does not do it.
    pub async fn offline(&self, offline: bool) -> Result<(), BrowserError> {
        let network = json!({
            "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        self.call("Network.emulateNetworkConditions", network)
            .await?;
        Ok(())
    }

    /// Loads the page again and waits until the document is another one; stores and cookies stay.
    ///
    /// # Errors
    ///
    /// When Chromium does not do it.
    pub async fn reload(&self) -> Result<(), BrowserError> {
        self.evaluate("globalThis.turnwireLeft = true").await?;
        self.call("Page.reload", json!({})).await?;
        let is_left = || async { self.evaluate("globalThis.turnwireLeft === true").await };
        for _ in 0..LOOKS {
            // Between two documents there is nothing to evaluate in.
            match is_left().await {
                Ok(Value::Bool(false)) => return Ok(()),
                Err(BrowserError::Gone) => return Err(BrowserError::Gone),
                _ => sleep(LOOK_EVERY).await,
            }
        }
        Err(BrowserError::Silent {
            method: "Page.reload".to_owned(),
            waited: LOOK_EVERY * LOOKS,
        })
    }

    /// Gives the page a line, once it takes lines. What its own function throws is given back as a remark.
    ///
    /// # Errors
    ///
    /// When Chromium is gone. A page that takes no lines is no error.
    pub async fn take(&self, line: &str) -> Result<Option<String>, BrowserError> {
        let expression = format!("globalThis.turnwireTake?.({})", json!(line));
        let call = self.call("Runtime.evaluate", json!({ "expression": expression }));
        match timeout(TAKES_WITHIN, call).await {
            Ok(Ok(answer)) => Ok(thrown(&answer["exceptionDetails"])),
            Ok(Err(BrowserError::Gone)) => Err(BrowserError::Gone),
            // A page that is being loaded has no place for a line.
            Ok(Err(refused)) => Ok(Some(refused.to_string())),
            Err(_) => Ok(Some(format!(
                "the page took no line within {TAKES_WITHIN:?}"
            ))),
        }
    }

    /// Waits until something has gone from the page through Chromium and back, behind what was under way before; at
    /// most [`TAKES_WITHIN`].
    pub async fn turn_around(&self) {
        let there_and_back = self.evaluate("fetch('data:,').then(() => 0, () => 0)");
        // A page that is gone, or never rests, is as much at rest as it gets.
        let _ = timeout(TAKES_WITHIN, there_and_back).await;
    }

    /// What JavaScript says about itself, evaluated in the page.
    ///
    /// # Errors
    ///
    /// When it throws, or Chromium is gone.
    pub async fn evaluate(&self, expression: &str) -> Result<Value, BrowserError> {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", params).await?;
        match thrown(&answer["exceptionDetails"]) {
            None => Ok(answer["result"]["value"].take()),
            Some(why) => Err(BrowserError::Refused {
                method: "Runtime.evaluate".to_owned(),
                why,
            }),
        }
    }

    /// The next thing that comes of the page; files are served meanwhile and traffic is kept. `None` when the page
    /// is gone. Cancel safe.
    pub async fn hear(&self, events: &mut Events) -> Option<Heard> {
        loop {
            let event = events.0.recv().await?;
            match event.method.as_str() {
                "Runtime.bindingCalled" => {
                    return Some(Heard::Report(text(&event.params, "payload")));
                }
                "Runtime.exceptionThrown" => {
                    let why = thrown(&event.params["exceptionDetails"]).unwrap_or_default();
                    return Some(Heard::Remark(why));
                }
                "Runtime.consoleAPICalled" if event.params["type"] == "error" => {
                    return Some(Heard::Remark(console(&event.params)));
                }
                "Inspector.targetCrashed" | "Inspector.detached" => return None,
                "Fetch.requestPaused" => self.serve(&event.params),
                method if method.starts_with("Network.") => self.keep(method, &event.params),
                _ => {}
            }
        }
    }

    /// Answers a request for a file of the page.
    fn serve(&self, paused: &Value) {
        let request = &paused["requestId"];
        let url = paused["request"]["url"].as_str().unwrap_or_default();
        let (status, media_type, body) = match self.opening.page.serve(url) {
            Some(served) => (200, served.media_type, STANDARD.encode(served.bytes)),
            // The icon that a browser asks for unasked.
            None if url.ends_with("/favicon.ico") => (404, "text/plain", String::new()),
            None => {
                let go_on = json!({ "requestId": request });
                return self
                    .cdp
                    .tell(Some(&self.session), "Fetch.continueRequest", &go_on);
            }
        };
        let answer = json!({
            "requestId": request, "responseCode": status, "body": body,
            "responseHeaders": [
                { "name": "content-type", "value": media_type },
                { "name": "cache-control", "value": "no-store" },
            ],
        });
        self.cdp
            .tell(Some(&self.session), "Fetch.fulfillRequest", &answer);
    }

    /// Keeps what went over the network, and asks for the bodies.
    fn keep(&self, method: &str, params: &Value) {
        let (Some(har), Some(page)) = (&self.opening.har, self.har_page) else {
            return;
        };
        let asks = lock(har).take(page, method, params);
        for ask in asks {
            let (cdp, session, har) = (self.cdp.clone(), self.session.clone(), Arc::clone(har));
            tokio::spawn(async move {
                let answer = cdp.call(Some(&session), ask.method(), ask.params()).await;
                lock(&har).answered(page, &ask, answer.ok().as_ref());
            });
        }
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.cdp.leave(&self.session);
        if let (Some(har), Some(page)) = (&self.opening.har, self.har_page) {
            lock(har).end_page(page);
        }
        let context = json!({ "browserContextId": self.context });
        self.cdp
            .tell(None, "Target.disposeBrowserContext", &context);
    }
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

/// What was thrown, in words.
fn thrown(details: &Value) -> Option<String> {
    if details.is_null() {
        return None;
    }
    let words = details["exception"]["description"].as_str();
    let words = words.or_else(|| details["text"].as_str());
    Some(short(words.unwrap_or("an error without words")))
}

/// What a page wrote on its console.
fn console(params: &Value) -> String {
    let words = params["args"].as_array().into_iter().flatten().map(|arg| {
        match (&arg["value"], arg["description"].as_str()) {
            (Value::String(text), _) => text.clone(),
            (Value::Null, Some(description)) => description.to_owned(),
            (value, _) => value.to_string(),
        }
    });
    short(&words.collect::<Vec<_>>().join(" "))
}

fn short(words: &str) -> String {
    let end = words.floor_char_boundary(MAX_REMARK);
    words[..end].to_owned()
}
