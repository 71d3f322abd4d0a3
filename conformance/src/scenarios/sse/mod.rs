//! Scenarios for readers of event streams: what is read, and how connections are made and made again.
//!
//! Each case has a label of its own, a fresh reader, and a URL that ends in the label. A reader that reports
//! nothing, or never comes, holds nobody up for longer than the profile's patience.

use std::time::Duration;

use cases::Case;

use super::{Act, Isolation, Scenario};
use crate::{drivers::DriveError, stage::ClientStage};

pub mod cases;
mod connections;
mod producer;

/// The scenarios, in the order of the catalogue.
pub const SCENARIOS: &[&[Scenario]] = &[READING, connections::SCENARIOS, producer::SCENARIOS];

const READING: &[Scenario] = &[
    client(
        "read-lines",
        "streams about lines and their ends",
        |stage| Box::pin(read_all(stage, cases::LINES)),
    ),
    client("read-text", "streams about bytes and characters", |stage| {
        Box::pin(read_all(stage, cases::TEXT))
    }),
    client("read-fields", "streams about lines as fields", |stage| {
        Box::pin(read_all(stage, cases::FIELDS))
    }),
    client(
        "read-types-and-ids",
        "streams about types, ids and what is dispatched",
        |stage| Box::pin(read_all(stage, cases::EVENTS)),
    ),
    client(
        "read-large",
        "many events, long lines, many lines",
        |stage| Box::pin(read_large(stage)),
    ),
    client(
        "at-blank-line",
        "an event on a stream that stays open",
        |stage| Box::pin(read_at_blank_line(stage)),
    ),
    client(
        "every-cut",
        "every short stream, cut after each of its bytes",
        |stage| Box::pin(read_every_cut(stage)),
    ),
];

const fn client(
    name: &'static str,
    about: &'static str,
    run: for<'a> fn(&'a ClientStage) -> super::Running<'a>,
) -> Scenario {
    Scenario {
        name,
        about,
        needs: &[],
        variant: None,
        isolation: Isolation::Shared,
        run: Act::Client(run),
    }
}

/// The event between two copies of a stream in `every-cut`: an event that also takes the id back.
pub const SEPARATOR: &str = "turnwire-cut";

async fn read_all(stage: &ClientStage, cases: &'static [Case]) -> Result<(), DriveError> {
    for case in cases {
        read(stage, case.name, case.chunks).await?;
    }
    Ok(())
}

/// Gives a fresh reader a stream, and waits until it has noticed the end.
async fn read(stage: &ClientStage, name: &str, chunks: &[&[u8]]) -> Result<(), DriveError> {
    stage.begin(name).await?;
    if let Some(mut asked) = stage.request().await {
        asked.open_events().await;
        for chunk in chunks {
            asked.send(chunk).await;
        }
        asked.finish().await;
        stage.noticed_the_end().await;
    }
    stage.end().await;
    Ok(())
}

async fn read_large(stage: &ClientStage) -> Result<(), DriveError> {
    let many: String = (0..100).map(|n| format!("data: {n}\n\n")).collect();
    read(stage, "order", &[many.as_bytes()]).await?;
    let line = format!("data: {}\n\n", "x".repeat((1 << 20) - 6));
    read(stage, "long-line", &[line.as_bytes()]).await?;
    let lines: String = (0..10_000).map(|n| format!("data: {n}\n")).collect();
    read(stage, "many-lines", &[lines.as_bytes(), b"\n"]).await
}

async fn read_at_blank_line(stage: &ClientStage) -> Result<(), DriveError> {
    stage.begin("at-blank-line").await?;
    if let Some(mut asked) = stage.request().await {
        asked.open_events().await;
        asked.send(b"data: a\n\n").await;
        stage
            .reported(|report| report["event"]["data"] == "a")
            .await;
        asked.send(b"data: b\n\n").await;
        asked.finish().await;
        stage.noticed_the_end().await;
    }
    stage.end().await;
    Ok(())
}

async fn read_every_cut(stage: &ClientStage) -> Result<(), DriveError> {
    stage.begin("every-cut").await?;
    if let Some(mut asked) = stage.request().await {
        asked.open_events().await;
        let mut number = 0;
        for case in cases::movable() {
            let bytes = case.bytes();
            for cut in 1..bytes.len() {
                number += 1;
                let separator = format!("id:\nevent: {SEPARATOR}\ndata: {number}\n\n");
                asked.send(&bytes[..cut]).await;
                asked
                    .send([&bytes[cut..], separator.as_bytes()].concat())
                    .await;
            }
        }
        asked.finish().await;
        stage.noticed_the_end().await;
    }
    stage.end().await;
    Ok(())
}

/// So long nothing may come when a reader ought to stay away; its reconnection time is [`SOON`] then.
pub const STAYS_AWAY: Duration = Duration::from_secs(1);

/// A reconnection time that lets scenarios go on, in milliseconds.
pub const SOON: u64 = 30;
