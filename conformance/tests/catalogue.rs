//! The executable halves of the catalogue can be executed: rules judge something, rewrites break something, and
//! what they name exists.

use std::collections::BTreeSet;

use turnwire::{
    checks::generic::sound::{rewrite_faults, rule_faults},
    saboteurs::SABOTEURS,
};
use turnwire_spec::catalogue::{Catalogue, Entry};

fn entries() -> impl Iterator<Item = &'static Entry> {
    Catalogue::embedded().entries()
}

#[test]
fn every_rule_can_judge() {
    let faults: Vec<_> = entries()
        .flat_map(|entry| {
            entry
                .rule
                .iter()
                .flat_map(rule_faults)
                .map(|fault| format!("{}: {fault}", entry.id))
        })
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_rewrite_can_break() {
    let faults: Vec<_> = entries()
        .flat_map(|entry| {
            entry
                .rewrite
                .iter()
                .flat_map(rewrite_faults)
                .map(|fault| format!("{}: {fault}", entry.id))
        })
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn neighbours_that_turn_red_exist_and_are_others() {
    let ids: BTreeSet<_> = entries().map(|entry| entry.id.as_str()).collect();
    for entry in entries() {
        for also in &entry.also {
            assert!(
                ids.contains(also.as_str()),
                "{} names {also}, which is no requirement",
                entry.id
            );
            assert_ne!(*also, entry.id, "{} names itself", entry.id);
        }
    }
}

#[test]
fn coded_saboteurs_break_requirements_each_once() {
    let ids: BTreeSet<_> = entries().map(|entry| entry.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    for sabotage in SABOTEURS.iter().copied().flatten().copied().flatten() {
        assert!(
            ids.contains(sabotage.id),
            "{} is no requirement",
            sabotage.id
        );
        assert!(
            seen.insert(sabotage.id),
            "{} has two saboteurs",
            sabotage.id
        );
    }
}

#[test]
fn a_requirement_has_one_saboteur() {
    for sabotage in SABOTEURS.iter().copied().flatten().copied().flatten() {
        let entry = entries().find(|entry| entry.id == sabotage.id);
        let written = entry.is_some_and(|entry| entry.rewrite.is_some());
        assert!(
            !written,
            "{} has a coded saboteur and a rewrite",
            sabotage.id
        );
    }
}
