//! Connections: the request, states, ends and breaks, ids, times, answers that fail, redirects.

use super::{SOON, STAYS_AWAY, client};
use crate::{
    drivers::{
        DriveError,
        scripted::{Conversation, Reply, head},
    },
    scenarios::Scenario,
    stage::ClientStage,
};

pub(super) const SCENARIOS: &[Scenario] = &[
    client(
        "connect",
        "the first request, and the state open",
        |stage| Box::pin(connect(stage)),
    ),
    client(
        "reconnect",
        "streams that end or break, and answers that never come",
        |stage| Box::pin(reconnect(stage)),
    ),
    client("retry", "reconnection times", |stage| {
        Box::pin(retry(stage))
    }),
    client("statuses", "answers that end everything", |stage| {
        Box::pin(statuses(stage))
    }),
    client("content-types", "content types right and wrong", |stage| {
        Box::pin(content_types(stage))
    }),
    client("redirects", "redirects of all kinds", |stage| {
        Box::pin(redirects(stage))
    }),
];

/// The next request, answered with this whole event stream. Whether one came.
async fn stream(stage: &ClientStage, bytes: impl AsRef<[u8]>) -> bool {
    let Some(mut asked) = stage.request().await else {
        return false;
    };
    asked.open_events().await;
    asked.send(bytes).await;
    asked.finish().await;
    true
}

/// A first stream with one event, after which the reader comes back soon.
async fn prelude(stage: &ClientStage) -> bool {
    stream(stage, format!("retry: {SOON}\ndata: first\n\n")).await
}

/// Ends the next connection for good.
async fn no_content(stage: &ClientStage) {
    if let Some(mut asked) = stage.request().await {
        asked.reply(Reply::empty(204)).await;
        stage.reported(|report| report["state"] == "closed").await;
    }
}

/// An answer that ends everything; then the reader has time to come back all the same.
async fn fails(
    stage: &ClientStage,
    name: &str,
    status: u16,
    content_type: &str,
) -> Result<(), DriveError> {
    stage.begin(name).await?;
    if prelude(stage).await
        && let Some(mut asked) = stage.request().await
    {
        asked.open(&head(status, content_type)).await;
        asked.send(format!("retry: {SOON}\ndata: lost\n\n")).await;
        asked.finish().await;
        stage.pause(STAYS_AWAY).await;
    }
    stage.end().await;
    Ok(())
}

async fn connect(stage: &ClientStage) -> Result<(), DriveError> {
    stage.begin("request").await?;
    if prelude(stage).await {
        no_content(stage).await;
    }
    stage.end().await;

    stage.begin("states").await?;
    if let Some(mut asked) = stage.request().await {
        asked.open_events().await;
        stage.reported(|report| report["state"] == "open").await;
        asked.send(b"data: a\n\n").await;
        asked.finish().await;
        stage.noticed_the_end().await;
    }
    stage.end().await;
    Ok(())
}

async fn reconnect(stage: &ClientStage) -> Result<(), DriveError> {
    stage.begin("ended").await?;
    if prelude(stage).await && stream(stage, b"data: second\n\n").await {
        no_content(stage).await;
    }
    stage.end().await;

    stage.begin("broken").await?;
    if let Some(mut asked) = stage.request().await {
        asked.open_events().await;
        asked
            .send(format!("retry: {SOON}\ndata: first\n\ndata: lost"))
            .await;
        stage
            .reported(|report| report["event"]["data"] == "first")
            .await;
        asked.cut().await;
        if stream(stage, b" rest\n\ndata: second\n\n").await {
            no_content(stage).await;
        }
    }
    stage.end().await;

    stage.begin("last-event-id").await?;
    let first = format!("retry: {SOON}\nid: \u{e9}1\ndata: first\n\n");
    if stream(stage, first).await
        && stream(stage, b": nothing\n\n").await
        && stream(stage, b"id\ndata: second\n\n").await
    {
        no_content(stage).await;
    }
    stage.end().await;

    stage.begin("dropped-id").await?;
    let first = format!("retry: {SOON}\nid: 1\ndata: first\n\nid: 2\ndata: lost\n");
    if stream(stage, first).await {
        no_content(stage).await;
    }
    stage.end().await;

    stage.begin("no-answer").await?;
    if prelude(stage).await
        && let Some(asked) = stage.request().await
    {
        asked.cut().await;
        no_content(stage).await;
    }
    stage.end().await;
    Ok(())
}

async fn retry(stage: &ClientStage) -> Result<(), DriveError> {
    let programs: &[(&str, &[&str])] = &[
        ("retry", &["retry: 400\ndata: first\n\n"]),
        ("retry-dataless", &["retry: 400\n\n"]),
        (
            "retry-bad",
            &[
                "retry: 400\ndata: first\n\n",
                "retry: 1x\nretry: -1\nretry: +1\nretry: 1.5\nretry:\nretry\ndata: second\n\n",
            ],
        ),
        (
            "retry-stays",
            &["retry: 400\ndata: first\n\n", "data: second\n\n"],
        ),
        ("retry-in-time", &["retry: 30\ndata: first\n\n"]),
    ];
    for (name, streams) in programs {
        stage.begin(name).await?;
        let mut came = true;
        for bytes in *streams {
            came = came && stream(stage, bytes).await;
        }
        if came {
            no_content(stage).await;
        }
        stage.end().await;
    }
    Ok(())
}

async fn statuses(stage: &ClientStage) -> Result<(), DriveError> {
    stage.begin("no-content").await?;
    if prelude(stage).await {
        no_content(stage).await;
        stage.pause(STAYS_AWAY).await;
    }
    stage.end().await;
    fails(stage, "not-found", 404, "text/event-stream").await?;
    fails(stage, "server-error", 500, "text/event-stream").await?;
    fails(stage, "created", 201, "text/event-stream").await
}

async fn content_types(stage: &ClientStage) -> Result<(), DriveError> {
    fails(stage, "wrong-type", 200, "text/plain").await?;
    fails(stage, "no-type", 200, "").await?;
    let accepted = [
        ("type-parameters", "text/event-stream;charset=utf-8"),
        ("type-case", "Text/Event-Stream"),
        ("type-charset", "text/event-stream; charset=iso-8859-1"),
    ];
    for (name, content_type) in accepted {
        stage.begin(name).await?;
        if let Some(mut asked) = stage.request().await {
            asked.open(&head(200, content_type)).await;
            one_event(stage, asked).await;
        }
        stage.end().await;
    }
    Ok(())
}

async fn one_event(stage: &ClientStage, mut asked: Conversation) {
    asked.send("data: gr\u{fc}n\n\n".as_bytes()).await;
    asked.finish().await;
    stage.noticed_the_end().await;
}

async fn redirects(stage: &ClientStage) -> Result<(), DriveError> {
    for status in [301, 302, 303, 307, 308] {
        let name = format!("redirect-{status}");
        stage.begin(&name).await?;
        if let Some(mut asked) = stage.request().await {
            let mut head = head(status, "");
            head.headers
                .push(("location".to_owned(), format!("/moved/{name}")));
            asked
                .reply(Reply {
                    head,
                    body: bytes::Bytes::new(),
                })
                .await;
            let there = stage.request_for(&format!("/moved/{name}")).await;
            if let Some(mut asked) = there {
                asked.open_events().await;
                one_event(stage, asked).await;
            }
        }
        stage.end().await;
    }
    Ok(())
}
