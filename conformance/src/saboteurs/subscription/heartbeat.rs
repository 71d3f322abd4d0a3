//! Faults of keepalives.

use std::sync::Arc;

use turnwire_spec::{catalogue::rule::StreamKind::Relay, sse::Frame};

use crate::saboteurs::{Out, Sabotage, adapters::OnFrames};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("COV-SUB-011", || {
        Arc::new(OnFrames::new(Relay, |_| comment_every_60_seconds()))
    }),
    Sabotage::new("COV-SUB-012", || {
        Arc::new(OnFrames::new(Relay, |_| keepalive_is_an_event))
    }),
];

/// COV-SUB-011: three of four comments are missing.
fn comment_every_60_seconds() -> impl FnMut(&Frame, &mut Out) + Send {
    let mut seen = 0;
    move |frame, out| {
        seen += u32::from(frame.is_comment_only());
        if !frame.is_comment_only() || seen % 4 == 0 {
            out.pass(frame);
        }
    }
}

/// COV-SUB-012: the keepalive is `data: ping`.
fn keepalive_is_an_event(frame: &Frame, out: &mut Out) {
    if frame.is_comment_only() {
        out.send(&b"data: ping\n\n"[..]);
    } else {
        out.pass(frame);
    }
}
