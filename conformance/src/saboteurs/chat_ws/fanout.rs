//! Frames that go to the wrong sockets.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Spoken, each, is_numbered, kind, text};
use crate::{
    saboteurs::{
        Sabotage,
        channel::{ChannelInfo, Outlet},
        saboteur::Saboteur,
    },
    transcript::Side,
};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("CWS-033", turns_only_to_who_sends),
    Sabotage::new("CWS-063", pong_to_all),
    Sabotage::new("CWS-067", status_only_to_who_asked),
    Sabotage::new("CWS-068", no_status_for_the_silent),
    Sabotage::new("CWS-069", no_status_for_subscribers),
    Sabotage::new("CWS-089", errors_to_all),
    Sabotage::new("CWS-102", killed_task_to_who_sends),
    Sabotage::new("CWS-116", notice_to_all),
];

/// CWS-033: the frames of turns go only to sockets that said something.
fn turns_only_to_who_sends() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut sends = false;
        move |from, frame: &Value| {
            sends |= from == Side::Client && kind(frame) == "chat:send";
            (is_numbered(from, frame) && !sends).then(Vec::new)
        }
    })
}

/// All channels of one saboteur.
#[derive(Clone, Default)]
struct All(Arc<Mutex<Vec<(u64, Outlet)>>>);

impl All {
    fn join(&self, info: &ChannelInfo) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, outlet)| !outlet.is_closed());
        all.push((info.number, info.outlet.clone()));
    }

    fn tell_others(&self, number: u64, frame: &Value) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = all.iter().filter(|(other, _)| *other != number);
        others.for_each(|(_, outlet)| outlet.to_client(frame));
    }
}

/// Frames of this kind go to all sockets.
fn to_all(which: &'static str) -> Arc<dyn Saboteur> {
    let all = All::default();
    each(move |info| {
        all.join(info);
        let (all, number) = (all.clone(), info.number);
        move |from, frame: &Value| {
            if from == Side::Server && kind(frame) == which {
                all.tell_others(number, frame);
            }
            None
        }
    })
}

/// CWS-063: `pong` goes to all sockets.
fn pong_to_all() -> Arc<dyn Saboteur> {
    to_all("pong")
}

/// CWS-089: `chat:error` goes to all sockets.
fn errors_to_all() -> Arc<dyn Saboteur> {
    to_all("chat:error")
}

/// CWS-116: `chat:notice` goes to all sockets.
fn notice_to_all() -> Arc<dyn Saboteur> {
    to_all("chat:notice")
}

/// CWS-067: changes of status go only to sockets that said or subscribed to something.
fn status_only_to_who_asked() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut spoke = false;
        move |from, frame: &Value| {
            spoke |= from == Side::Client && kind(frame) != "ping";
            (from == Side::Server && kind(frame) == "chat:active" && !spoke).then(Vec::new)
        }
    })
}

/// CWS-068: a socket is not told on its opening which sessions run.
fn no_status_for_the_silent() -> Arc<dyn Saboteur> {
    each(|info| {
        let (is_first, mut spoke) = (info.number == 0, false);
        move |from, frame: &Value| {
            spoke |= from == Side::Client;
            let running = frame.pointer("/payload/running") == Some(&json!(true));
            let snapshot = from == Side::Server && kind(frame) == "chat:active" && running;
            (snapshot && !spoke && !is_first).then(Vec::new)
        }
    })
}

/// CWS-069: a subscription is answered with frames only.
fn no_status_for_subscribers() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut asked = String::new();
        move |from, frame: &Value| {
            if from == Side::Client && kind(frame) == "chat:subscribe" {
                text(frame, "sessionId").clone_into(&mut asked);
            }
            let status = from == Side::Server && kind(frame) == "chat:active";
            let running = frame.pointer("/payload/running") == Some(&json!(true));
            let answers = status && running && text(frame, "sessionId") == asked;
            answers.then(Vec::new)
        }
    })
}

/// CWS-102: `chat:killed_task` goes only to sockets that said something.
fn killed_task_to_who_sends() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut spoken = Spoken::default();
        let mut sends = false;
        move |from, frame: &Value| {
            spoken.learn(from, frame);
            sends |= from == Side::Client && kind(frame) == "chat:send";
            let killed = from == Side::Server && kind(frame) == "chat:killed_task";
            (killed && !sends && !spoken.of(text(frame, "sessionId"))).then(Vec::new)
        }
    })
}
