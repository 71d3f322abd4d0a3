//! A web page as a client under test: opened anew in Chromium for each conversation.
//!
//! It is told what the person does by `window.turnwire`, and reports by `turnwireReport`. What only a browser can
//! do, happens to the page and is not told: it is hidden and shown, the network goes and comes, it is loaded
//! again. `docs/src/browser.md` has the contract.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc};

use super::{ClientStart, LaunchClient, PROBE, Waits};
use crate::drivers::{
    DriveError,
    browser::{
        Browser, BrowserError, Page, Tab,
        har::HarLog,
        tab::{Events, Heard, Opening},
    },
    target::Pending,
    testee::{About, Rests, Said, Testee},
};

/// A page that is opened in one Chromium, in a context of its own for each conversation.
#[derive(Debug)]
pub struct PageClient {
    page: Page,
    chromium: PathBuf,
    har: Option<Arc<Mutex<HarLog>>>,
    browser: AsyncMutex<Option<Arc<Browser>>>,
    at_a_time: Arc<Semaphore>,
}

impl PageClient {
    /// This page in this Chromium, which is started for the first conversation; so many may be open at a time.
    pub fn new(page: Page, chromium: PathBuf, at_a_time: usize) -> Self {
        Self {
            page,
            chromium,
            har: None,
            browser: AsyncMutex::default(),
            at_a_time: Arc::new(Semaphore::new(at_a_time)),
        }
    }

    /// Keeps what goes over the network.
    #[must_use]
    pub fn keeping(mut self, har: Arc<Mutex<HarLog>>) -> Self {
        self.har = Some(har);
        self
    }

    async fn browser(&self) -> Result<Arc<Browser>, BrowserError> {
        let mut browser = self.browser.lock().await;
        match &*browser {
            Some(running) if !running.is_gone() => Ok(Arc::clone(running)),
            _ => {
                // A page that somebody else serves has another origin than the server of the harness.
                let any_origin = matches!(self.page, Page::Url(_));
                let started = Arc::new(Browser::start(&self.chromium, any_origin).await?);
                *browser = Some(Arc::clone(&started));
                Ok(started)
            }
        }
    }
}

impl LaunchClient for PageClient {
    fn start<'a>(&'a self, start: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>> {
        Box::pin(async move {
            let browser = self.browser().await?;
            let about = About {
                name: self.page.to_string(),
                version: browser.version().await?,
                ..About::default()
            };
            let opening = Opening {
                page: self.page.clone(),
                server: start.url.clone(),
                start: start.environment(),
                har: self.har.clone().filter(|_| start.scenario != PROBE),
            };
            let (tab, events) = Tab::open(&browser, opening).await?;
            let tab = Arc::new(tab);
            let lives = Arc::clone(&tab);
            let testee = Testee::in_process(about, move |lines, say| async move {
                // The browser lives as long as one of its pages.
                let _browser = browser;
                live(&lives, events, lines, say).await;
            });
            Ok(testee.resting(tab))
        })
    }

    fn waits(&self) -> Option<Waits> {
        Some(Waits::PAGE)
    }

    fn reloads(&self) -> bool {
        true
    }

    fn at_a_time(&self) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&self.at_a_time))
    }
}

impl Rests for Tab {
    fn rest(&self) -> Pending<'_, ()> {
        Box::pin(self.turn_around())
    }
}

/// Carries lines between the harness and the page until the page is gone.
async fn live(
    tab: &Tab,
    mut events: Events,
    mut lines: mpsc::Receiver<Bytes>,
    say: mpsc::Sender<Said>,
) {
    let acting = async {
        if let Err(error) = tab.navigate().await {
            return error.to_string();
        }
        while let Some(line) = lines.recv().await {
            match act(tab, &line).await {
                Ok(None) => {}
                Ok(Some(remark)) => say_line(&say, remark).await,
                Err(error) => return error.to_string(),
            }
        }
        // The harness closes the page; until then it goes on showing.
        std::future::pending().await
    };
    let hearing = async {
        while let Some(heard) = tab.hear(&mut events).await {
            match heard {
                Heard::Report(report) => say_line(&say, report).await,
                Heard::Remark(remark) => say_line(&say, format!("page: {remark}")).await,
            }
        }
        "the page is gone".to_owned()
    };
    let why = tokio::select! {
        why = acting => why,
        why = hearing => why,
    };
    // A harness that has gone needs no reason.
    let _ = say.send(Said::Ended(why)).await;
}

async fn say_line(say: &mpsc::Sender<Said>, line: String) {
    // A harness that has gone needs no lines.
    let _ = say.send(Said::Line(line.into())).await;
}

/// Does what a line says: to the page where only a browser can, else by telling the page.
async fn act(tab: &Tab, line: &[u8]) -> Result<Option<String>, BrowserError> {
    let does: Value = serde_json::from_slice(line).unwrap_or_default();
    match does["do"].as_str() {
        Some("hide") => tab.hide(true).await?,
        Some("show") => tab.hide(false).await?,
        Some("offline") => tab.offline(true).await?,
        Some("online") => tab.offline(false).await?,
        Some("reload") => tab.reload().await?,
        _ => return tab.take(&String::from_utf8_lossy(line)).await,
    }
    Ok(None)
}
