//! The matrix with adapters that are made for the test.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::drivers::{
    target::Pending,
    testee::{About, Said, Testee, gateway::GatewayTestee},
};

fn plan(launch: Arc<dyn LaunchTestee>, only: &str, splits: usize) -> MatrixPlan {
    MatrixPlan {
        wire: Wire::OpenaiChat,
        launch,
        only: vec![only.to_owned()],
        splits,
        jobs: 2,
        within: Duration::from_secs(10),
        events: None,
    }
}

/// An adapter that calls nobody and says the same whatever it is asked.
#[derive(Debug)]
struct Parrot(&'static str);

impl LaunchTestee for Parrot {
    fn start(&self) -> Pending<'_, Result<Testee, DriveError>> {
        let text = self.0;
        let serve = move |mut lines: mpsc::Receiver<Bytes>, say: mpsc::Sender<Said>| async move {
            while let Some(line) = lines.recv().await {
                let case: Value = serde_json::from_slice(&line).unwrap();
                let report = json!({ "case": case["case"], "outcome": { "text": text, "finishReason": "stop" } });
                let _ = say.send(Said::Line(report.to_string().into())).await;
            }
        };
        Box::pin(async move { Ok(Testee::in_process(About::default(), serve)) })
    }
}

#[tokio::test]
async fn our_gateway_reads_a_stream_that_is_split_anywhere() {
    let report = run(plan(Arc::new(GatewayTestee), "clean", 40))
        .await
        .unwrap();
    assert!(
        report.holds(),
        "{}",
        report.render("turnwire adapter {case}")
    );
    assert_eq!((report.cases.len(), report.runs), (1, 41));
}

#[tokio::test]
async fn an_adapter_that_is_wrong_is_named_with_the_command_that_shows_it() {
    let report = run(plan(Arc::new(Parrot("Hi")), "clean", 40))
        .await
        .unwrap();
    assert_eq!((report.wrong, report.runs), (1, 1));
    let shown = report.render("turnwire adapter {case} -- parrot");
    assert!(
        shown.contains("rerun     turnwire adapter --case clean -- parrot"),
        "{shown}"
    );
}
