//! The fuzzer against the reference server, with small numbers.

use super::{
    Face,
    case::{Case, bases},
    fuzz,
    plant::PLANTS,
    prove,
    run::EnvelopePlan,
    saved,
};
use crate::{fuzz::random::Random, profile::Profile, transcript::text};

fn plan(face: Face, cases: u64) -> EnvelopePlan {
    let mut plan = EnvelopePlan::new(face, Profile::reference(), 1, cases);
    plan.cases.jobs = 2;
    plan
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_refuses_in_documented_ways_on_every_face() {
    for face in Face::ALL {
        let report = fuzz(&plan(face, 300)).await.unwrap();
        assert!(report.holds(), "{}", report.render());
        assert_eq!(report.played, 300);
        let refused: u64 = report.refused.values().sum();
        assert!(
            refused > 100 && report.changes.len() > 8,
            "{}",
            report.render()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_faults_are_found_on_every_face_and_saved() {
    for face in Face::ALL {
        for name in ["wrong-shape", "stores-garbage", "takes-duplicate"] {
            let proof = prove(&plan(face, 2_000), Some(name)).await.unwrap();
            assert!(proof.holds(), "{}", proof.render());
            let (_, failure) = proof.details.first().unwrap();
            assert!(failure.case.changes.len() <= 2);
            let written = text::write(&saved::transcript(face, 1, failure));
            let read = text::parse(&written).unwrap();
            assert_eq!(saved::case_of(&read).as_ref(), Some(&failure.case));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_cases_and_all_bases_come_up() {
    for face in Face::ALL {
        let draw = |number| Case::random(face, &mut Random::new(3, number));
        assert_eq!(draw(7), draw(7));
        let drawn: std::collections::BTreeSet<_> = (0..4_000).map(|n| draw(n).base).collect();
        assert_eq!(drawn.len(), bases(face).len());
    }
    assert!(PLANTS.len() >= 12);
}
