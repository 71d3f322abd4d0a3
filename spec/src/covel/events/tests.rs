//! Tests of the event table.

use std::collections::BTreeSet;

use super::*;
use crate::covel::meta::{Source, TopicRule};
use crate::seeds;

#[test]
fn every_event_is_named_once_and_found_by_name() {
    let names: BTreeSet<_> = EVENTS.iter().map(|meta| meta.name).collect();
    assert_eq!(names.len(), EVENTS.len());
    for meta in EVENTS {
        assert_eq!(event(meta.name).unwrap().doc, meta.doc);
    }
    assert!(event("system.connected").is_none());
}

#[test]
fn every_source_names_its_event() {
    for meta in EVENTS {
        let Source::Seed(from, to) = meta.source else {
            continue;
        };
        let quote: String = seeds::lines("000", from, to)
            .map(|(_, line)| line)
            .collect();
        // The seed abbreviates some families: `recursive.calling/completed/failed`.
        let (family, last) = meta.name.rsplit_once('.').unwrap();
        assert!(
            quote.contains(&format!("{family}.")) && quote.contains(last),
            "{}",
            meta.name
        );
    }
}

#[test]
fn the_forwarded_set_is_the_one_that_the_seed_lists() {
    let set: BTreeSet<_> = forwarded().map(|meta| meta.name).collect();
    // Source: seed 000, lines 797-811.
    let listed = [
        "character.upserted",
        "tool.calling",
        "tool.completed",
        "tool.failed",
        "domain-event.previewed",
        "llm.calling",
        "llm.responded",
        "message.completed",
        "step.started",
        "step.completed",
        "block.emitted",
        "hook.fired",
        "hook.aborted",
        "gateway.calling",
        "gateway.responded",
        "gateway.failed",
        "ui.rendered",
        "asset.progress",
        "world.dimensions.changed",
        "plugin-data.changed",
        "character-schema.changed",
        "dimensions.changed",
        "dimensions.settlement.changed",
        "ui.slot.changed",
        "ui.slot.preview",
        "ui.slot.cleared",
        "turn.suspended",
        "turn.resumed",
        "job-status.updated",
        "plugin.fault.latched",
        "plugin.fault.cleared",
    ];
    assert_eq!(set, BTreeSet::from(listed));
}

#[test]
fn trace_only_events_reach_no_action_stream() {
    for meta in EVENTS.iter().filter(|meta| meta.trace_only) {
        assert_eq!(meta.action_stream, ActionStream::Never, "{}", meta.name);
        assert!(!meta.member || meta.is_diagnostic(), "{}", meta.name);
    }
}

#[test]
fn a_member_that_reaches_no_stream_does_not_exist() {
    for meta in members() {
        let streamed = meta.action_stream != ActionStream::Never || meta.on_subscription();
        assert!(streamed, "{}", meta.name);
    }
}

#[test]
fn a_row_of_stored_traces_reaches_no_stream() {
    for meta in EVENTS.iter().filter(|meta| !meta.member) {
        assert_eq!(meta.topic, TopicRule::Unstated, "{}", meta.name);
        assert!(!meta.on_subscription());
    }
}
