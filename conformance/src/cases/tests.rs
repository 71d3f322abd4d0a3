//! Whether the cases and the catalogue fit together.

use std::collections::BTreeSet;

use turnwire_spec::catalogue::{Rule, rewrite::Rewrite};

use super::*;
use crate::suites;

const WIRES: [Wire; 5] = Wire::ALL;

/// The hazards that entries of a suite name in their rules, and in their rewrites. Other areas than that of the
/// streams have cases of their own.
fn named(wire: Wire) -> (BTreeSet<String>, BTreeSet<String>) {
    let suite = suites::find(wire.as_str()).unwrap();
    let (mut rules, mut rewrites) = (BTreeSet::new(), BTreeSet::new());
    let entries = suite.entries(None);
    for entry in entries.filter(|entry| entry.id.starts_with("LLM-STREAM-")) {
        if let Some(Rule::Outcome(rule)) = &entry.rule {
            rules.insert(rule.hazard.clone());
        }
        if let Some(Rewrite::Report(rewrite)) = &entry.rewrite {
            rewrites.insert(rewrite.hazard.clone());
        }
    }
    (rules, rewrites)
}

#[test]
fn ids_are_unique_on_their_wire() {
    for wire in WIRES {
        let mut ids = BTreeSet::new();
        for case in of(wire) {
            assert!(ids.insert(&case.id), "{wire}: {} is there twice", case.id);
        }
    }
}

#[test]
fn every_hazard_has_an_entry_and_every_entry_has_a_case() {
    for wire in WIRES {
        let hazards: BTreeSet<String> = of(wire)
            .iter()
            .map(|case| case.hazard().to_owned())
            .filter(|hazard| !hazard.is_empty())
            .collect();
        let (rules, rewrites) = named(wire);
        assert_eq!(rules, hazards, "{wire}");
        assert_eq!(rewrites, hazards, "{wire}");
    }
}

#[test]
fn no_id_of_a_case_is_a_hazard_of_others() {
    // A case without a form stands alone, so that its id selects what it says.
    for wire in WIRES {
        for case in of(wire).iter().filter(|case| !case.id.contains('/')) {
            let mut others = of(wire)
                .iter()
                .filter(|other| other.hazard() == case.id && other.id != case.id);
            assert!(
                others.all(|other| other.group == case.group),
                "{wire}: {}",
                case.id
            );
        }
    }
}

#[test]
fn every_case_says_what_is_right() {
    for wire in WIRES {
        for case in of(wire) {
            assert!(!case.truths.is_empty(), "{wire}: {}", case.id);
            assert!(!case.replies.is_empty(), "{wire}: {}", case.id);
        }
    }
}

#[test]
fn a_hazard_is_no_beginning_of_a_word() {
    assert!(is_of("line-ends/cr", "line-ends"));
    assert!(is_of("line-ends", "line-ends"));
    assert!(!is_of("line-ends-mixed", "line-ends"));
    assert!(!is_of("line", "line-ends"));
}
