//! Changes of response heads and of whole bodies.

use std::time::Duration;

use turnwire_spec::catalogue::rewrite::ResponseRewrite;

use super::{body_matches, request_matches};
use crate::{
    saboteurs::{
        json,
        saboteur::{Answer, Edit, RequestInfo, Treatment, drop_header, set_header},
        template::Context,
    },
    transcript::ResponseHead,
};

pub(super) fn selects(rewrite: &ResponseRewrite, info: &RequestInfo) -> bool {
    request_matches(&rewrite.method, &rewrite.path, &rewrite.when_query, info)
        && body_matches(rewrite.where_request.as_ref(), info)
}

/// The answer in place of the target's.
pub(super) fn answer(rewrite: &ResponseRewrite, info: &RequestInfo) -> Answer {
    let context = Context {
        info,
        frame: None,
        json: None,
        index: 0,
    };
    let body = rewrite
        .body
        .as_deref()
        .map(|text| context.fill(text))
        .unwrap_or_default();
    let mut answer = Answer::new(rewrite.status.unwrap_or(200), body);
    set_headers(rewrite, context, &mut answer.head);
    answer.hold_open = rewrite.hold_open;
    answer
}

/// Changes the head, and adds to how the body is treated.
pub(super) fn apply(
    rewrite: &ResponseRewrite,
    info: &RequestInfo,
    head: &mut ResponseHead,
    treatment: Treatment,
) -> Treatment {
    if let Some(status) = rewrite.status {
        head.status = status;
    }
    set_headers(
        rewrite,
        Context {
            info,
            frame: None,
            json: None,
            index: 0,
        },
        head,
    );
    let edit = match (&rewrite.body, rewrite.json.is_empty()) {
        (None, true) => treatment.edit,
        _ => {
            let (rewrite, info, before) = (rewrite.clone(), info.clone(), treatment.edit);
            Edit::Whole(Box::new(move |body| {
                let body = if let Edit::Whole(change) = before {
                    change(body)
                } else {
                    body
                };
                change_body(&rewrite, &info, body)
            }))
        }
    };
    Treatment {
        edit,
        delay: treatment.delay + Duration::from_millis(rewrite.delay_ms),
        buffer: treatment.buffer || rewrite.buffer,
        hold_open: treatment.hold_open || rewrite.hold_open,
        cut_after: rewrite.cut_after.or(treatment.cut_after),
    }
}

fn set_headers(rewrite: &ResponseRewrite, context: Context<'_>, head: &mut ResponseHead) {
    for name in &rewrite.drop_header {
        drop_header(&mut head.headers, name);
    }
    for (name, value) in &rewrite.set_header {
        set_header(&mut head.headers, name, &context.fill(value));
    }
}

fn change_body(rewrite: &ResponseRewrite, info: &RequestInfo, body: Vec<u8>) -> Vec<u8> {
    let mut document = serde_json::from_slice(&body).ok();
    let context = Context {
        info,
        frame: None,
        json: None,
        index: 0,
    };
    if let Some(text) = &rewrite.body {
        return Context {
            json: document.as_ref(),
            ..context
        }
        .fill(text)
        .into_bytes();
    }
    match &mut document {
        None => body,
        Some(document) => {
            json::apply(&rewrite.json, document, context);
            document.to_string().into_bytes()
        }
    }
}
