//! How many conversations a scenario with a client under test has, for people who play them by hand: they want to know how
//! much is still to come.

use super::{
    client::{self, script},
    sse::cases,
};

/// The conversations of a scenario, by its name; `None` when it has none with a client that somebody can point at a URL.
pub fn of(scenario: &str) -> Option<usize> {
    let acts = client::TEXTS.iter().find(|(name, _)| *name == scenario);
    if let Some((_, text)) = acts {
        return script::read(text).ok().map(|acts| acts.len());
    }
    Some(match scenario {
        "read-lines" => cases::LINES.len(),
        "read-text" => cases::TEXT.len(),
        "read-fields" => cases::FIELDS.len(),
        "read-types-and-ids" => cases::EVENTS.len(),
        "read-large" => 3,
        "at-blank-line" | "every-cut" => 1,
        "connect" => 2,
        "reconnect" | "retry" | "content-types" | "redirects" => 5,
        "statuses" => 4,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use turnwire_spec::catalogue::Suite;

    use super::*;
    use crate::{
        drivers::testee::client::{LaunchClient, own},
        profile::Profile,
        run::{RunPlan, run},
        scenarios::Act,
        suites::find,
        transcript::{Fact, Transcript},
    };

    #[test]
    fn every_scenario_with_a_client_says_how_many_there_are() {
        let suites = ["sse", "covel-sse"].map(|name| find(name).unwrap());
        let scenarios = suites.iter().flat_map(|suite| suite.scenarios());
        let clients = scenarios.filter(|scenario| matches!(scenario.run, Act::Client(_)));
        for scenario in clients {
            assert!(
                of(scenario.name).is_some_and(|count| count > 0),
                "{}",
                scenario.name
            );
        }
    }

    /// Each conversation with a reader of event streams has one label.
    #[tokio::test(flavor = "multi_thread")]
    async fn there_are_as_many_as_our_own_reader_has() {
        let suite = find("sse").unwrap();
        let profile = Profile::for_own_testee("own").with_time_scale(0.01);
        let launch = profile.launcher();
        let mut plan = RunPlan::new(suite, profile, launch);
        plan.client =
            own::client(Suite::Sse).map(|client| Arc::new(client) as Arc<dyn LaunchClient>);
        let report = run(plan).await.unwrap();
        assert_eq!(report.problems, []);
        let labels = |transcript: &Transcript| {
            let is_label = |entry: &&crate::transcript::Entry| matches!(entry.fact, Fact::Label(_));
            transcript.entries.iter().filter(is_label).count()
        };
        let had: BTreeMap<_, _> = report
            .transcripts
            .iter()
            .map(|transcript| {
                (
                    transcript.header.scenario.as_str(),
                    Some(labels(transcript)),
                )
            })
            .collect();
        let said: BTreeMap<_, _> = had.keys().map(|name| (*name, of(name))).collect();
        assert_eq!(said, had);
        assert!(had.len() > 10, "{had:?}");
    }
}
