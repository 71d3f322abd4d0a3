//! Cases are repeated by their seed, and made smaller; the reference clients stand them, and planted faults are found.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{
    case::{Case, Frame, Kind, Step},
    plant::PLANTS,
    run::{self, ClientFuzz, Launcher},
    saved,
};
use crate::{
    drivers::testee::client::{OwnClient, Wires},
    fuzz::{hunt, random::Random},
    profile::Profile,
};

fn plan(kind: Kind, count: u64) -> ClientFuzz {
    let own = run::reference(kind).unwrap();
    ClientFuzz {
        kind,
        profile: Arc::new(Profile::for_own_testee(own.name).with_time_scale(0.01)),
        launch: own.launch,
        cases: hunt::Cases {
            seed: 1,
            first: 0,
            count,
            jobs: 4,
            progress: None,
        },
    }
}

fn case(kind: Kind, number: u64) -> Case {
    Case::random(kind, &mut Random::new(1, number))
}

#[test]
fn the_same_seed_makes_the_same_cases_and_every_kind_of_change() {
    for kind in Kind::ALL {
        assert_eq!(case(kind, 7), case(kind, 7));
        let names: BTreeSet<_> = (0..2_000)
            .flat_map(|number| case(kind, number).names())
            .collect();
        for plant in PLANTS.iter().filter(|plant| plant.kind == kind) {
            assert!(
                names.contains(plant.trigger),
                "{} in {names:?}",
                plant.trigger
            );
        }
    }
}

#[test]
fn a_smaller_case_is_smaller_and_making_smaller_ends() {
    for number in 0..100 {
        let kind = Kind::ALL[usize::try_from(number % 4).unwrap()];
        let mut left = case(kind, number);
        let mut count = 0;
        // As when every candidate fails the same.
        while let Some(smaller) = left.smaller().into_iter().next() {
            left = smaller;
            count += 1;
            assert!(count < 200, "{left:?}");
        }
        assert_eq!(left.steps.len(), 1);
    }
}

#[test]
fn a_saved_case_is_read_again() {
    let case = case(Kind::Covel, 3);
    let mut transcript = crate::transcript::Transcript::default();
    saved::mark(&mut transcript, 1, 3, &case, "it ended: why");
    assert_eq!(saved::case_of(&transcript), Some((3, case)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_clients_stand_what_servers_do() {
    for kind in Kind::ALL {
        let cases = 40;
        let report = run::fuzz(&plan(kind, cases)).await.unwrap();
        assert!(report.holds(), "{}", report.render());
        assert_eq!(report.played, cases);
    }
}

/// Asks for this path, and reads the answer up to a line that begins so, or to its end.
async fn ask(wires: &Wires, method: &str, path: &str, until: &str) {
    let url = wires.start.url.trim_start_matches("http://");
    let host = url.split('/').next().unwrap_or_default();
    let mut socket = TcpStream::connect(host).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(socket).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.starts_with(until) {
            return;
        }
    }
}

/// A client whose action comes when everybody has stopped waiting for it: at the end of its subscription.
async fn acts_late(wires: Wires) {
    let (stream, view) = ("/api/events/stream", "/api/sessions/fuzzed/view");
    ask(&wires, "GET", stream, "never").await;
    ask(&wires, "POST", "/api/actions", "never").await;
    ask(&wires, "GET", stream, "event: system.reset").await;
    ask(&wires, "GET", view, "never").await;
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_to_act_is_not_blamed_for_having_no_subscription_meanwhile() {
    let late = OwnClient {
        name: "late",
        live: |wires| Box::pin(acts_late(wires)),
    };
    let plan = ClientFuzz {
        launch: Launcher::Connects(Arc::new(late)),
        ..plan(Kind::Covel, 1)
    };
    let case = Case {
        steps: vec![Step::Frame(Frame::default())],
    };
    let report = run::again(&plan, 0, &case).await.unwrap();
    assert!(report.holds(), "{}", report.render());
}

/// A reader that ends while it waits to connect again.
async fn ends_after_its_stream(wires: Wires) {
    let url = wires.start.url.trim_start_matches("http://");
    let path = url.find('/').map_or("/", |place| &url[place..]);
    ask(&wires, "GET", path, "data: last").await;
    let event =
        serde_json::json!({ "event": { "type": "two", "data": "last", "lastEventId": "" } });
    wires.reporter().report(&event).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_ends_before_it_connects_again_is_said_to_have_ended() {
    let ends = OwnClient {
        name: "ends",
        live: |wires| Box::pin(ends_after_its_stream(wires)),
    };
    let plan = ClientFuzz {
        launch: Launcher::Connects(Arc::new(ends)),
        ..plan(Kind::Stream, 1)
    };
    let case = Case {
        steps: vec![Step::Line {
            line: 21, // a time that is none
            end: 0,
            pieces: 0,
        }],
    };
    let report = run::again(&plan, 0, &case).await.unwrap();
    assert!(report.render().contains("it ended"), "{}", report.render());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_fault_is_found_and_made_small() {
    // Each waits for what does not come, so they wait side by side.
    let found = [
        (Kind::Covel, "dies-of-nesting"),
        (Kind::Covel, "doubles-what-came-twice"),
        (Kind::Stream, "reader-loses-the-last"),
        (Kind::Chat, "dies-of-masks"),
        (Kind::Chat, "freezes-at-binary-messages"),
        (Kind::Updates, "dies-of-bytes"),
        (Kind::Updates, "garbles-carriage-returns"),
    ]
    .map(|(kind, fault)| async move {
        let proof = run::prove(&plan(kind, 200), Some(fault)).await.unwrap();
        assert!(proof.holds(), "{}", proof.render());
        let (_, failure) = &proof.details[0];
        let trigger = PLANTS
            .iter()
            .find(|plant| plant.kind == kind && plant.name == fault)
            .map(|plant| plant.trigger);
        assert!(trigger.is_some_and(|trigger| failure.case.names().contains(&trigger)));
    });
    join_all(found).await;
}
