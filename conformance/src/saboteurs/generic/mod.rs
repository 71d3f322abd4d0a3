//! Executes the `rewrite` of a catalogue entry.
//!
//! What the fields mean stands in [`turnwire_spec::catalogue::rewrite`]. [`requests`] changes requests,
//! [`responses`] heads and whole bodies, [`frames`] event streams, [`messages`] the messages of a channel,
//! [`reports`] what a testee reports. Several rewrites (`all`) work together; on one frame, one after the other.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value;
use turnwire_spec::catalogue::{
    messages::MessageRewrite,
    rewrite::{
        ExtraRewrite, FrameRewrite, ReportRewrite, RequestRewrite, ResponseRewrite, Rewrite,
    },
};

use super::{
    channel::{ChannelInfo, MessageRewriter},
    saboteur::{Answer, Edit, More, RequestInfo, Saboteur, Treatment},
};
use crate::{
    schema,
    transcript::{
        Request, ResponseHead, header,
        views::http::{path_matches, query_has},
    },
};

mod counter;
mod frames;
mod messages;
mod reports;
mod requests;
mod responses;

/// The saboteur that a rewrite describes.
#[derive(Debug, Default)]
pub struct Generic {
    requests: Vec<(RequestRewrite, Turn)>,
    responses: Vec<(ResponseRewrite, Turn)>,
    frames: Vec<Arc<FrameRewrite>>,
    reports: Vec<ReportRewrite>,
    extras: Vec<(ExtraRewrite, Turn)>,
    messages: Vec<Arc<MessageRewrite>>,
}

impl Generic {
    /// Reads a rewrite; its counters start anew.
    pub fn new(rewrite: &Rewrite) -> Self {
        let mut saboteur = Self::default();
        saboteur.add(rewrite);
        saboteur
    }

    fn add(&mut self, rewrite: &Rewrite) {
        match rewrite {
            Rewrite::Request(rewrite) => self.requests.push((rewrite.clone(), Turn::default())),
            Rewrite::Response(rewrite) => self.responses.push((rewrite.clone(), Turn::default())),
            Rewrite::Frames(rewrite) => self.frames.push(Arc::new(rewrite.clone())),
            Rewrite::Report(rewrite) => self.reports.push(rewrite.clone()),
            Rewrite::Messages(rewrite) => self.messages.push(Arc::new(rewrite.clone())),
            Rewrite::Extra(rewrite) => self.extras.push((rewrite.clone(), Turn::default())),
            Rewrite::All(rewrites) => rewrites.iter().for_each(|rewrite| self.add(rewrite)),
        }
    }
}

impl Saboteur for Generic {
    fn request(&self, info: &RequestInfo, request: &mut Request) {
        for (rewrite, turn) in &self.requests {
            if requests::selects(rewrite, info) && turn.taken(rewrite.skip, rewrite.limit) {
                requests::apply(rewrite, info, request);
            }
        }
    }

    fn more(&self, info: &RequestInfo) -> Vec<More> {
        let due = self.extras.iter().filter(|(rewrite, turn)| {
            request_matches(&rewrite.method, &rewrite.path, &rewrite.when_query, info)
                && body_matches(rewrite.where_request.as_ref(), info)
                && turn.taken(rewrite.skip, rewrite.limit)
        });
        due.map(|(rewrite, _)| requests::more(rewrite, info))
            .collect()
    }

    fn answer(&self, info: &RequestInfo) -> Option<Answer> {
        let (rewrite, _) = self.responses.iter().find(|(rewrite, turn)| {
            rewrite.instead
                && responses::selects(rewrite, info)
                && turn.taken(rewrite.skip, rewrite.limit)
        })?;
        Some(responses::answer(rewrite, info))
    }

    fn response(&self, info: &RequestInfo, head: &mut ResponseHead) -> Treatment {
        let status = head.status;
        let mut treatment = Treatment::pass();
        for (rewrite, turn) in self
            .responses
            .iter()
            .filter(|(rewrite, _)| !rewrite.instead)
        {
            let wanted = rewrite.when_status.is_empty() || rewrite.when_status.contains(&status);
            if wanted
                && responses::selects(rewrite, info)
                && turn.taken(rewrite.skip, rewrite.limit)
            {
                treatment = responses::apply(rewrite, info, head, treatment);
            }
        }
        let is_stream = header(&head.headers, "content-type")
            .is_some_and(|text| text.starts_with("text/event-stream"));
        let mine: Vec<_> = self
            .frames
            .iter()
            .filter(|rewrite| frames::selects(rewrite, info))
            .cloned()
            .collect();
        if is_stream && !mine.is_empty() && matches!(treatment.edit, Edit::Pass) {
            treatment.edit = Edit::Frames(Box::new(frames::Frames::new(mine, info.clone())));
        }
        treatment
    }

    fn channel(&self, info: &ChannelInfo) -> Option<Box<dyn MessageRewriter>> {
        let rewriter = || Box::new(messages::Messages::new(&self.messages, info)) as Box<_>;
        (!self.messages.is_empty()).then(rewriter)
    }

    fn report(&self, report: &mut Value) {
        for rewrite in &self.reports {
            reports::apply(rewrite, report);
        }
    }
}

/// A request as a rewrite of the catalogue would change it; `None` when it is about others. The counters of the
/// rewrite do not count.
pub fn changed(rewrite: &RequestRewrite, request: &Request) -> Option<Request> {
    let info = RequestInfo {
        request: request.clone(),
        number: 0,
    };
    requests::selects(rewrite, &info).then(|| {
        let mut changed = request.clone();
        requests::apply(rewrite, &info, &mut changed);
        changed
    })
}

/// Counts what matches: which ones are touched after `skip`, and at most `limit` of them.
#[derive(Debug, Default)]
struct Turn(AtomicU64);

impl Turn {
    fn taken(&self, skip: u64, limit: u64) -> bool {
        let position = self.0.fetch_add(1, Ordering::Relaxed);
        position >= skip && (limit == 0 || position - skip < limit)
    }
}

/// The part of the selection that all rewrites share.
fn request_matches(
    method: &[String],
    path: &[String],
    when_query: &[String],
    info: &RequestInfo,
) -> bool {
    (method.is_empty() || method.contains(&info.request.method))
        && (path.is_empty()
            || path
                .iter()
                .any(|template| path_matches(template, info.path())))
        && when_query
            .iter()
            .all(|name| query_has(&info.request.target, name))
}

fn body_matches(wanted: Option<&serde_json::Value>, info: &RequestInfo) -> bool {
    wanted.is_none_or(|wanted| {
        info.json()
            .is_some_and(|body| schema::satisfied(wanted, &body))
    })
}

#[cfg(test)]
mod tests;
