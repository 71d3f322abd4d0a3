//! The look that the harness has at a target before it plays anything.

use super::*;

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-type: application/json\r\n\
                         content-length: 2\r\n\r\n{}";

#[tokio::test]
async fn a_server_that_has_none_of_the_paths_is_not_the_api_and_is_accused_of_nothing() {
    let error = run(plan_at(answering(NOT_FOUND).await, &["good"]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, RunError::NotTheApi { status: 404, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_lacks_the_first_path_alone_is_looked_at_again() {
    let url = waits::answering_in_turn(&[NOT_FOUND, JSON]).await;
    let report = run(plan_at(url, &["good"])).await.unwrap();
    assert_eq!(report.verdict("T-1"), Some(&Verdict::Pass { judged: 1 }));
}
