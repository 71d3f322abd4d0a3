//! Media of a session: where they are to be had, and warnings when they are not.
//!
//! COV-SUBAG-075 to 077: a warning names session, medium, and status or kind of error; no URL and no message, which
//! may hold what opens the medium to anybody.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    core::{Core, encoded},
    inputs::{Ask, Command},
    shown::MediaWarning,
};

/// The media that are being fetched, by the number of the question.
#[derive(Debug, Default)]
pub(super) struct Media {
    fetched: BTreeMap<u64, String>,
}

impl Core {
    /// A medium was finished: it is shown as soon as there is a URL for it.
    pub(super) fn asset_generated(&mut self, asset: &Value) {
        self.shown.assets.push(asset.clone());
        let id = asset["ref"].as_str().or(asset["ref"]["id"].as_str());
        if let Some(id) = id.map(str::to_owned) {
            let rest = format!("/media-token?id={}", encoded(&id));
            self.ask(Ask::Media(id), &rest);
        }
    }

    pub(super) fn media_found(&mut self, id: &str, answer: Option<(u16, Value)>) {
        match answer {
            Some((200, body)) if body["url"].is_string() => {
                let number = self.next_number();
                self.media.fetched.insert(number, id.to_owned());
                let url = body["url"].as_str().unwrap_or_default().to_owned();
                self.commands.push(Command::Fetch(number, url));
            }
            Some((status, _)) => self.media_failed(id, Ok(status)),
            None => self.media_failed(id, Err("NetworkError")),
        }
    }

    pub(super) fn fetched(&mut self, number: u64, answer: Result<u16, &'static str>) {
        match self.media.fetched.remove(&number) {
            Some(id) if answer != Ok(200) => self.media_failed(&id, answer),
            Some(_) => {}
            None => self.resource_answered(number, answer),
        }
    }

    fn media_failed(&mut self, id: &str, answer: Result<u16, &'static str>) {
        self.shown.media_warnings.push(MediaWarning {
            session: self.shown.session.clone(),
            media: id.to_owned(),
            status: answer.ok(),
            error: answer.err(),
        });
    }
}
