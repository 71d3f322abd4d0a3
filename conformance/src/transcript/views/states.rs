//! What a client under test reported of itself, with the label under which it did.

use std::time::Duration;

use serde_json::Value;

use crate::transcript::{Fact, Transcript};

/// One report.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// When it came.
    pub at: Duration,
    /// Newest label at that time.
    pub label: &'a str,
    /// What was reported.
    pub state: &'a Value,
    /// Whether no later report stands under the same label.
    pub last: bool,
}

/// All reports, in order.
pub fn states(transcript: &Transcript) -> Vec<State<'_>> {
    let (mut found, mut label): (Vec<State<'_>>, _) = (Vec::new(), "");
    // The last report under the present label, until the label changes.
    let mut open: Option<usize> = None;
    for entry in &transcript.entries {
        match &entry.fact {
            Fact::Label(text) => (label, open) = (text, None),
            Fact::State(state) => {
                if let Some(before) = open.and_then(|index| found.get_mut(index)) {
                    before.last = false;
                }
                open = Some(found.len());
                found.push(State {
                    at: entry.at,
                    label,
                    state,
                    last: true,
                });
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript::testing::Script;

    #[test]
    fn the_last_report_under_each_label_is_told() {
        let transcript = Script::new()
            .label("a")
            .reports(json!(1))
            .reports(json!(2))
            .label("b")
            .reports(json!(3))
            .transcript();
        let told: Vec<_> = states(&transcript)
            .iter()
            .map(|it| (it.label, it.state.as_i64(), it.last))
            .collect();
        assert_eq!(
            told,
            [
                ("a", Some(1), false),
                ("a", Some(2), true),
                ("b", Some(3), true)
            ]
        );
    }
}
