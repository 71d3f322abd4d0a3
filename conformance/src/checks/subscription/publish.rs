//! Publishes that failed after a commit.

use crate::{
    checks::Check,
    transcript::{Transcript, views::covel},
    verdict::Findings,
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[check!("COV-SUB-160", failed_publish_renews_the_epoch)];

/// COV-SUB-160: the reset after a failed publish names another epoch than the connection had, and a later
/// connection with a cursor of the old epoch gets a reset.
fn failed_publish_renews_the_epoch(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    let mut gone = Vec::new();
    for subscription in covel::subscriptions(transcript) {
        let Some(connected) = subscription.connected_cursor() else {
            continue;
        };
        for reset in subscription.resets() {
            if reset.member("reason").and_then(|reason| reason.as_str()) != Some("publish-failed") {
                continue;
            }
            let epoch = reset
                .member("epoch")
                .and_then(|epoch| epoch.as_str())
                .unwrap_or_default();
            let same = epoch == connected.epoch;
            findings.judge(same.then(|| {
                subscription
                    .stream
                    .evidence(reset, "a new epoch", reset.text())
            }));
            gone.push((subscription.session.clone(), connected.epoch.clone()));
        }
        let old = subscription
            .cursor()
            .map(|cursor| (subscription.session.clone(), cursor.epoch));
        if old.is_some_and(|old| gone.contains(&old)) {
            let missing = subscription.resets().is_empty();
            let exchange = &subscription.stream.exchange;
            findings.judge(
                missing.then(|| {
                    exchange.evidence("system.reset for a cursor of the old epoch", "none")
                }),
            );
        }
    }
    findings
}
