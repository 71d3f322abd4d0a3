//! Faults of topics.

use std::sync::Arc;

use turnwire_spec::catalogue::rule::StreamKind::Subscription;

use crate::{
    saboteurs::{RequestInfo, Sabotage, adapters::OnRequest},
    transcript::Request,
};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[Sabotage::new("COV-SUB-052", || {
    Arc::new(OnRequest(trace_for_everybody))
})];

/// COV-SUB-052: the topic trace belongs to every subscription that names several.
fn trace_for_everybody(info: &RequestInfo, request: &mut Request) {
    if info.stream() == Some(Subscription)
        && info
            .query("topics")
            .is_some_and(|topics| topics.contains(','))
    {
        request.target = request.target.replace("topics=", "topics=trace,");
    }
}
