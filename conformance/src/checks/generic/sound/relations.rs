//! Soundness of the rules that compare two places of a conversation.

use turnwire_spec::catalogue::relation::{PairRule, Picked, RelateRule, Sighted};

use super::{bad_paths, bad_pointers, bad_sources, idle, schemas, unknown_types};

pub(super) fn relate_faults(rule: &RelateRule) -> Vec<String> {
    let mut faults = picked_faults(&rule.these);
    faults.extend(picked_faults(&rule.those));
    faults.extend(idle("relate", "compares", rule.these == rule.those));
    faults
}

fn picked_faults(picked: &Picked) -> Vec<String> {
    let mut faults = unknown_types(picked.types.iter());
    faults.extend(bad_paths(&picked.path));
    faults.extend(bad_sources(std::iter::once(&picked.at)));
    faults.extend(bad_pointers(picked.value.iter()));
    faults.extend(schemas([
        ("where", &picked.where_data),
        ("item", &picked.item),
    ]));
    let of_frames = !picked.stream.is_empty() || !picked.types.is_empty();
    if of_frames && !(picked.method.is_empty() && picked.path.is_empty()) {
        faults.push("relate: one side names frames and responses".to_owned());
    }
    faults
}

pub(super) fn pair_faults(rule: &PairRule) -> Vec<String> {
    let mut faults = sighted_faults(&rule.each);
    faults.extend(sighted_faults(&rule.with));
    let everything = rule.count.min == 0 && rule.count.max.is_none();
    faults.extend(idle("pairs", "demands", everything));
    let sources = rule.by.iter().flat_map(|(mine, its)| [mine, its]);
    faults.extend(bad_sources(sources));
    faults
}

fn sighted_faults(sighted: &Sighted) -> Vec<String> {
    let mut faults = unknown_types(sighted.types.iter().chain(&sighted.not_type));
    faults.extend(schemas([("where", &sighted.where_data)]));
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rule_faults;

    #[test]
    fn a_comparison_that_cannot_judge_is_told() {
        let picked = |at: &str| json!({"label": "a", "at": at});
        for faulty in [
            json!({"relate": {"these": picked("/a"), "those": picked("/a"), "holds": "equal"}}),
            json!({"relate": {"these": picked("a"), "those": picked("/b"), "holds": "equal"}}),
            json!({"relate": {"these": {"at": "/a", "type": ["none"]}, "those": picked("/b"), "holds": "within"}}),
            json!({"relate": {"these": {"at": "/a", "type": ["runtime.*"], "path": ["/x"]}, "those": picked("/b"), "holds": "within"}}),
            json!({"pairs": {"each": {"type": ["runtime.*"]}, "with": {"type": ["none"]}, "count": 1}}),
            json!({"pairs": {"each": {}, "with": {}, "count": ">=0"}}),
        ] {
            let rule = serde_json::from_value(faulty.clone()).unwrap();
            assert_eq!(rule_faults(&rule).len(), 1, "{faulty}");
        }
        let sound = json!({"relate": {"these": picked("/a"), "those": picked("/b/*"), "holds": {"grows_by": 1}}});
        assert!(rule_faults(&serde_json::from_value(sound).unwrap()).is_empty());
    }
}
