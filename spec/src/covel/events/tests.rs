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

/// COV-FWD-023.
#[test]
fn forwarded_types_are_generated_from_the_metadata() {
    let set: BTreeSet<_> = forwarded().map(|meta| meta.name).collect();
    for meta in EVENTS {
        let flagged = meta.action_stream == ActionStream::Forwarded;
        assert_eq!(set.contains(meta.name), flagged, "{}", meta.name);
    }
}

/// COV-FWD-024.
#[test]
fn forwarded_types_are_members_of_the_union() {
    let members: BTreeSet<_> = members().map(|meta| meta.name).collect();
    for meta in EVENTS
        .iter()
        .filter(|meta| meta.action_stream == ActionStream::Forwarded)
    {
        assert!(members.contains(meta.name), "{}", meta.name);
    }
}

/// COV-FWD-056.
#[test]
fn runtime_skipped_is_written_by_the_request_and_not_forwarded() {
    assert_eq!(
        event("runtime.skipped").unwrap().action_stream,
        ActionStream::Direct
    );
}

/// COV-FWD-069.
#[test]
fn turn_resumed_is_flagged_for_the_action_stream() {
    assert_eq!(
        event("turn.resumed").unwrap().action_stream,
        ActionStream::Forwarded
    );
}

/// COV-SUSP-080.
#[test]
fn context_compacted_is_outside_the_union() {
    assert!(members().all(|meta| meta.name != "context.compacted"));
}

/// COV-SUSP-081.
#[test]
fn recursive_and_subagent_events_are_members_that_are_not_forwarded() {
    let of_them = |name: &str| name.starts_with("recursive.") || name.starts_with("subagent.");
    let found: Vec<_> = members().filter(|meta| of_them(meta.name)).collect();
    assert_eq!(found.len(), 7);
    for meta in found {
        assert_eq!(meta.action_stream, ActionStream::Never, "{}", meta.name);
    }
}
