//! The provider suites against our own mock, which is the conformant peer of every wire.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use turnwire::{
    drivers::http::BaseUrl,
    profile::{Profile, ProviderAccess},
    prove::{self, Proof, ProvePlan},
    run::{self, Outcome, RunPlan},
    suites,
    verdict::Verdict,
};
use turnwire_mock::{JournalEntry, MockConfig, MockServer, Reply, Rule};
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
                ..ProviderAccess::default()
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

/// As services want it that name their version there.
#[tokio::test(flavor = "multi_thread")]
async fn the_query_of_a_base_url_goes_with_every_request() {
    let server = MockServer::start(MockConfig::default()).await.unwrap();
    server.load(Rule::new("all").reply(Reply::text("Fine.")));
    for (wire, version) in [(Wire::OpenaiChat, "/v1"), (Wire::Gemini, "/v1beta")] {
        server.clear_journal();
        let url = format!("http://{}{version}?api-version=2024-10-21", server.addr());
        let profile = Profile {
            provider: ProviderAccess {
                key: Some("any".to_owned()),
                model: Some("gpt-5.2".to_owned()),
                ..ProviderAccess::default()
            },
            ..Profile::for_url(BaseUrl::of_service(&url).unwrap())
        };
        run::run(plan(wire, profile)).await.unwrap();
        let queries: Vec<_> = server
            .journal()
            .into_iter()
            .map(|entry| entry.query.unwrap_or_default())
            .collect();
        assert!(queries.len() > 10, "{wire}: {queries:?}");
        for query in queries {
            let last = query.rsplit('&').next();
            assert_eq!(last, Some("api-version=2024-10-21"), "{wire}: {query}");
        }
        // The key is where such a service looks for it.
        let expected = if wire == Wire::OpenaiChat {
            "api-key"
        } else {
            "x-goog-api-key"
        };
        let entries = server.journal();
        let headers = |entry: &JournalEntry| entry.headers.clone();
        let all = entries.iter().flat_map(headers).map(|(name, _)| name);
        let keys: BTreeSet<String> = all
            .filter(|name| name.contains("key") || name == "authorization")
            .collect();
        assert_eq!(keys, BTreeSet::from([expected.to_owned()]), "{wire}");
    }
    server.shutdown().await;
}

/// A server whose answers of a model never end; how often it was asked for one.
async fn flood() -> (BaseUrl, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut some = [0; 4096];
                let read = socket.read(&mut some).await.unwrap_or_default();
                if !some[..read].starts_with(b"POST") {
                    let list =
                        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                    let _ = socket.write_all(list).await;
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                let _ = socket.write_all(head.as_bytes()).await;
                let events = b"data: {\"choices\":[]}\n\n".repeat(1_000);
                while socket.write_all(&events).await.is_ok() {}
            });
        }
    });
    (base, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_floods_is_not_asked_again() {
    let (url, asked) = flood().await;
    let mut profile = Profile {
        provider: ProviderAccess {
            key: None,
            model: Some("m".to_owned()),
            ..ProviderAccess::default()
        },
        ..Profile::for_url(url)
    };
    profile.limits.http.max_body = 64 << 10;
    let mut plan = plan(Wire::OpenaiChat, profile);
    plan.jobs = 1;
    let report = run::run(plan).await.unwrap();
    assert_ne!(report.outcome(), Outcome::Conformant);
    let problems: Vec<_> = report.problems.iter().map(|it| format!("{it:?}")).collect();
    assert!(
        problems
            .iter()
            .any(|it| it.contains("an answer of at most 65536 bytes")),
        "{problems:?}"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
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
