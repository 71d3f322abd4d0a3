//! Proofs against the reference server, over real sockets.

use std::sync::Arc;

use turnwire_spec::catalogue::Catalogue;

use super::{Proof, ProvePlan, prove};
use crate::{
    drivers::target::reference::ReferenceTarget,
    profile::Profile,
    prove::intercept::Sabotaging,
    run::{RunPlan, judge::is_timed, run},
    saboteurs::Conformant,
    suites,
    verdict::Verdict,
};

fn plan(requirements: &[&str], scenarios: &[&str]) -> RunPlan {
    let suite = suites::find("covel-sse").unwrap();
    let profile = Profile::reference();
    let launch = Arc::new(ReferenceTarget {
        lines: false,
        time_scale: profile.time_scale,
    });
    let texts: Vec<_> = requirements.iter().map(|id| (*id).to_owned()).collect();
    let chosen: Vec<_> = scenarios
        .iter()
        .map(|name| suite.scenario(name).unwrap())
        .collect();
    RunPlan {
        requirements: suite.select(&texts, None).unwrap(),
        scenarios: (!chosen.is_empty()).then_some(chosen),
        ..RunPlan::new(suite, profile, launch)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saboteur_that_does_nothing_turns_nothing_red() {
    let scenarios = [
        "turn-on-both-streams",
        "commands",
        "resume",
        "quota",
        "resume-after-restart",
    ];
    let plain = run(plan(&[], &scenarios)).await.unwrap();
    let saboteur = Arc::new(Conformant);
    let proxied = RunPlan {
        intercept: Some(Arc::new(Sabotaging {
            saboteur,
            time_scale: 0.01,
        })),
        ..plan(&[], &scenarios)
    };
    let proxied = run(proxied).await.unwrap();
    let suite = suites::find("covel-sse").unwrap();
    let shown = |verdict: &Verdict| !matches!(verdict, Verdict::NotExercised { .. });
    for (id, verdict) in &proxied.verdicts {
        let before = plain.verdict(id).unwrap();
        let red =
            matches!(verdict, Verdict::Fail { .. }) && !matches!(before, Verdict::Fail { .. });
        assert!(!red, "{id} turned red behind the proxy: {verdict:#?}");
        // What shows itself after a while only, such as a heartbeat, shows itself to whoever is slow.
        if !is_timed(suite, Catalogue::embedded().get(id).unwrap()) {
            assert_eq!(shown(verdict), shown(before), "{id}: {verdict:?}");
        }
    }
    assert_eq!(proxied.problems, plain.problems);
}

#[tokio::test(flavor = "multi_thread")]
async fn rewrites_and_coded_saboteurs_prove_requirements_of_the_reference_server() {
    // A rule on bytes, a status, and a check with a saboteur that remember earlier connections.
    let ids = ["COV-SUB-102", "COV-SUB-071", "COV-SUB-031"];
    let report = prove(ProvePlan::new(plan(&ids, &[]))).await.unwrap();
    assert_eq!(report.requirements.len(), ids.len());
    for verified in &report.requirements {
        assert!(
            matches!(verified.proof, Proof::Proven { .. }),
            "{} {}",
            verified.id,
            verified.proof
        );
    }
}
