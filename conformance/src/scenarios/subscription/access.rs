//! Who may subscribe: owner tokens, deployment tiers, stores.
//!
//! Each scenario starts the target as one variant of the profile and tries the same doors, under labels such as
//! `demo-tier/no-token`.

use std::time::Duration;

use crate::{
    drivers::DriveError,
    scenarios::{Act, Isolation, Scenario},
    stage::{Session, Stage, Subscribe, covel::TokenPlace},
};

/// A scenario that tries the doors of one variant.
macro_rules! doors {
    ($name:literal, $about:literal, $variant:literal) => {
        Scenario {
            name: $name,
            about: $about,
            needs: &[],
            variant: Some($variant),
            isolation: Isolation::Shared,
            run: Act::Server(|stage| Box::pin(doors(stage, $variant))),
        }
    };
}

/// The scenarios of this file.
pub const SCENARIOS: &[Scenario] = &[
    doors!("access-no-tier", "tier not set", "no-tier"),
    doors!("access-self", "tier self, named", "self-tier"),
    doors!("access-demo", "tier demo", "demo-tier"),
    doors!("access-commercial", "tier commercial", "commercial-tier"),
    doors!(
        "access-demo-persistent",
        "tier demo on a persistent store",
        "demo-tier-persistent"
    ),
    doors!(
        "access-commercial-persistent",
        "tier commercial on a persistent store",
        "commercial-tier-persistent"
    ),
    doors!(
        "access-production-memory",
        "tier self in production on a memory store",
        "production-memory"
    ),
    doors!(
        "access-production-persistent",
        "tier self in production on a persistent store",
        "production-persistent"
    ),
    doors!(
        "access-injected-memory",
        "production, a memory store injected, another named in the environment",
        "injected-memory"
    ),
    doors!(
        "access-injected-persistent",
        "production, a persistent store injected, memory named in the environment",
        "injected-persistent"
    ),
];

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);

async fn doors(stage: &Stage, variant: &str) -> Result<(), DriveError> {
    let session = stage.session().await?;
    let other = stage.session().await?;
    let stranger = other
        .owner_token
        .clone()
        .unwrap_or_else(|| "no-such-token".to_owned());
    try_door(
        stage,
        variant,
        "no-token",
        &session.without_token(),
        TokenPlace::SessionHeader,
    )
    .await?;
    try_door(
        stage,
        variant,
        "random-token",
        &session.with_token("no-such-token"),
        TokenPlace::SessionHeader,
    )
    .await?;
    try_door(
        stage,
        variant,
        "random-token",
        &session.with_token("no-such-token"),
        TokenPlace::Query,
    )
    .await?;
    try_door(
        stage,
        variant,
        "strangers-token",
        &session.with_token(&stranger),
        TokenPlace::SessionHeader,
    )
    .await?;
    try_door(
        stage,
        variant,
        "token-in-header",
        &session,
        TokenPlace::SessionHeader,
    )
    .await?;
    try_door(
        stage,
        variant,
        "token-in-query",
        &session,
        TokenPlace::Query,
    )
    .await?;
    Ok(())
}

/// The label names the variant and what was tried.
async fn try_door(
    stage: &Stage,
    variant: &str,
    door: &str,
    session: &Session,
    place: TokenPlace,
) -> Result<(), DriveError> {
    stage.label(&format!("{variant}/{door}"));
    let mut stream = stage
        .subscribe(&Subscribe::to(session).token_in(place))
        .await?;
    stream
        .read_until("system.connected", stage.patience(SOON))
        .await;
    stream.close();
    Ok(())
}
