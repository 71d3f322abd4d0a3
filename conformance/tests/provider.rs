//! The provider suites against our own mock, which is the conformant peer of every wire.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

use turnwire::{
    drivers::http::BaseUrl,
    profile::{Profile, ProviderAccess},
    prove::{self, Proof, ProvePlan},
    run::{self, Outcome, RunPlan},
    suites,
    verdict::Verdict,
};
use turnwire_mock::{MockConfig, MockServer, Reply, Rule};
use turnwire_spec::llm::Wire;

const WIRES: [Wire; 4] = [
    Wire::OpenaiChat,
    Wire::OpenaiResponses,
    Wire::AnthropicMessages,
    Wire::Gemini,
];

fn plan(wire: Wire, profile: Profile) -> RunPlan {
    let suite = suites::find(wire.as_str()).unwrap();
    let launch = profile.launcher();
    let mut plan = RunPlan::new(suite, profile, launch);
    plan.requirements = suite.select(&["llm-provider".to_owned()], None).unwrap();
    plan
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mock_passes_as_a_provider_of_every_wire_and_shows_every_requirement() {
    for wire in WIRES {
        let mut plan = plan(wire, Profile::mock(wire));
        plan.require_all = true;
        let report = run::run(plan).await.unwrap();
        assert_eq!(
            report.outcome(),
            Outcome::Conformant,
            "{wire}: {:?}",
            report.red
        );
        assert!(report.problems.is_empty(), "{wire}: {:?}", report.problems);
    }
}

/// A server that knows nothing of the harness: no key is asked for, every model is there, and it says one thing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_anything_is_not_blamed_at_any_base_url() {
    let config = MockConfig {
        unmatched: turnwire_mock::Unmatched::text("I am only a model."),
        ..MockConfig::default()
    };
    let server = MockServer::start(config).await.unwrap();
    // Who takes a schema keeps to it; everything else may be ignored.
    server.load(Rule::on("[turnwire-json]").reply(Reply::text(r#"{"city":"Ur","days":1}"#)));
    for (wire, version) in [
        (Wire::OpenaiChat, "/v1"),
        (Wire::OpenaiChat, ""),
        (Wire::OpenaiResponses, "/v1"),
        (Wire::AnthropicMessages, "/v1"),
        (Wire::Gemini, "/v1"),
        (Wire::Gemini, "/v1beta"),
    ] {
        let url = BaseUrl::parse(&format!("http://{}{version}", server.addr())).unwrap();
        let profile = Profile {
            provider: ProviderAccess {
                // By its header a server knows which wire is meant at `/v1/models`.
                key: Some("any".to_owned()),
                model: Some("gpt-5.2".to_owned()),
            },
            ..Profile::for_url(url)
        };
        let report = run::run(plan(wire, profile)).await.unwrap();
        assert_eq!(
            report.outcome(),
            Outcome::Conformant,
            "{wire}{version}: {:?}",
            report.red
        );
        let passed = report
            .verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Pass { .. }));
        assert!(
            passed.count() > 15,
            "{wire}{version}: {:?}",
            report.verdicts
        );
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_requirement_of_a_provider_is_proven() {
    for wire in WIRES {
        let report = prove::prove(ProvePlan::new(plan(wire, Profile::mock(wire))))
            .await
            .unwrap();
        let open: Vec<_> = report
            .requirements
            .iter()
            .filter(|verified| !matches!(verified.proof, Proof::Proven { .. }))
            .map(|verified| format!("{}: {}", verified.id, verified.proof))
            .collect();
        assert!(open.is_empty(), "{wire}: {open:#?}");
        let unneeded: Vec<_> = report
            .requirements
            .iter()
            .filter_map(|verified| match &verified.proof {
                Proof::Proven { unneeded, .. } if !unneeded.is_empty() => {
                    Some(format!("{}: {unneeded:?}", verified.id))
                }
                _ => None,
            })
            .collect();
        assert!(unneeded.is_empty(), "{wire}: {unneeded:#?}");
    }
}
