//! Who gets what: topics.

use turnwire_spec::covel::{Topic, events::event};

use crate::{
    checks::Check,
    transcript::{
        Transcript,
        views::{
            covel::{self, Subscription},
            http::exchanges,
            stream::StreamFrame,
        },
    },
    verdict::Findings,
};

/// The checks of this file.
pub const CHECKS: &[Check] = &[
    check!("COV-OVW-020", only_the_topics_asked_for),
    check!("COV-SUB-049", unlisted_topic_selects_nothing),
    check!("COV-SUB-175", only_the_topics_asked_for),
];

/// COV-OVW-020, COV-SUB-175: a subscription that names topics gets events of these topics only.
///
/// The topic of an event is its member `topic`, or else what the event table allows for its type.
fn only_the_topics_asked_for(transcript: &Transcript) -> Findings {
    let mut findings = Findings::none();
    for subscription in covel::subscriptions(transcript) {
        let known = subscription
            .topics
            .iter()
            .any(|topic| topic.parse::<Topic>().is_ok());
        if subscription.topics.is_empty() || !known {
            continue;
        }
        for (_, frame) in subscription.events() {
            let fits = fits(&subscription, frame);
            findings.judge((!fits).then(|| {
                let expected = format!("an event of {}", subscription.topics.join(" or "));
                subscription.stream.evidence(frame, expected, frame.text())
            }));
        }
    }
    findings
}

fn fits(subscription: &Subscription<'_>, frame: &StreamFrame) -> bool {
    if let Some(topic) = frame.member("topic").and_then(|topic| topic.as_str()) {
        return subscription.topics.iter().any(|asked| asked == topic);
    }
    let asked = subscription
        .topics
        .iter()
        .filter_map(|topic| topic.parse::<Topic>().ok());
    event(frame.event_type())
        .is_none_or(|meta| asked.into_iter().any(|topic| meta.topic.accepts(topic)))
}

/// COV-SUB-049: a topic outside the ten is refused with a 4xx, or it selects nothing.
///
/// Judges the subscriptions that ask for unknown topics only.
fn unlisted_topic_selects_nothing(transcript: &Transcript) -> Findings {
    let refused = exchanges(transcript).into_iter().filter(|exchange| {
        let asked = exchange.query("topics").unwrap_or_default();
        let unknown = asked
            .split(',')
            .all(|topic| !topic.is_empty() && topic.parse::<Topic>().is_err());
        exchange.is("GET", "/api/events/stream")
            && unknown
            && exchange.status().is_some_and(|status| status != 200)
    });
    let mut findings = Findings::each(refused, |exchange| {
        let status = exchange.status().unwrap_or_default();
        (!(400..500).contains(&status)).then(|| exchange.evidence("200 or 4xx", status.to_string()))
    });
    for subscription in covel::subscriptions(transcript) {
        let unknown = subscription
            .topics
            .iter()
            .all(|topic| topic.parse::<Topic>().is_err());
        if subscription.topics.is_empty() || !unknown {
            continue;
        }
        let stray = subscription
            .stream
            .events()
            .find(|frame| !frame.event_type().starts_with("system."));
        findings.judge(stray.map(|frame| {
            subscription
                .stream
                .evidence(frame, "control frames only", frame.text())
        }));
    }
    findings
}
