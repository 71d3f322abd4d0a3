//! Conversations about the queries: what each answers, page by page, and where no WebSocket is.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_mock::Reply;

use super::Scenario;
use crate::{
    drivers::{DriveError, http::Call},
    scenarios::Act,
    stage::{CreateSession, Session, Stage},
};

/// How long a frame may take before the scenario goes on without it.
const SOON: Duration = Duration::from_secs(5);
/// How long an action may take to its end. Generous, because a stream that is left too early looks like one that hangs.
const TURN_WITHIN: Duration = Duration::from_secs(3000);
/// Turns of the session that is read page by page.
const TURNS: usize = 4;
/// Turns of the session whose view is only a window of its messages.
const MANY_TURNS: usize = 42;
/// Pages that are followed at most.
const PAGES: usize = 40;

/// The scenarios of this area.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::shared(
        "query-answers",
        "reads every query of a session with turns, rows, jobs and plugins",
        Act::Server(|stage| Box::pin(query_answers(stage))),
    ),
    Scenario::shared(
        "pages",
        "follows the cursors of messages and traces to their ends, while another turn is played",
        Act::Server(|stage| Box::pin(pages(stage))),
    ),
    Scenario::shared(
        "long-session",
        "a session with more messages than a view shows",
        Act::Server(|stage| Box::pin(long_session(stage))),
    ),
    Scenario::shared(
        "no-websocket",
        "asks for WebSockets where the event streams are",
        Act::Server(|stage| Box::pin(no_websocket(stage))),
    ),
];

async fn turns(stage: &Stage, session: &Session, count: usize) -> Result<(), DriveError> {
    let token = stage.token();
    stage.model()?.answers(&token, Reply::text("And so on."));
    for n in 0..count {
        stage
            .say(session, &format!("{token} {n}"))
            .await?
            .read_to_end(stage.patience(TURN_WITHIN))
            .await;
    }
    Ok(())
}

fn owned(session: &Session, path: &str) -> Call {
    Call::get(path).bearer(session.owner_token.as_deref())
}

async fn query_answers(stage: &Stage) -> Result<(), DriveError> {
    let (here, there) = (format!("w{}", stage.token()), format!("x{}", stage.token()));
    let create = async |world: &str| {
        let wish = CreateSession {
            world_id: Some(world.to_owned()),
            plugins: Some(vec!["story".to_owned(), stage.data_plugin().to_owned()]),
            ..CreateSession::default()
        };
        stage.create_session(wish).await
    };
    stage.label("created-here");
    let session = create(&here).await?;
    stage.label("created-there");
    create(&there).await?;
    stage.label("turns");
    turns(stage, &session, 2).await?;
    let plugin = stage.data_plugin().to_owned();
    stage.label("rows");
    for (namespace, key) in [("one", "a"), ("one", "b"), ("two", "c")] {
        stage
            .put_plugin_data(&session, &plugin, namespace, key, json!({ "key": key }))
            .await?;
    }
    stage.label("list-of-world");
    let list = Call::get(format!("/api/sessions?worldId={here}"));
    let operator = stage.profile().operator_token.clone();
    stage.send(list.bearer(operator.as_deref())).await?;
    for (label, rest) in [
        ("get-session", ""),
        ("get-view", "/view"),
        ("get-messages", "/messages"),
        ("get-page", "/messages/page"),
        ("get-characters", "/characters"),
        ("get-plugins", "/plugins"),
        ("get-state", "/state"),
        ("get-execution", "/execution"),
        ("get-jobs", "/runtime-jobs"),
    ] {
        stage.label(label);
        stage.query(&session, rest).await?;
    }
    for namespace in ["one", "two"] {
        stage.label(&format!("get-rows-{namespace}"));
        stage
            .query(&session, &format!("/plugin-data/{plugin}/{namespace}"))
            .await?;
    }
    stage.label("get-row");
    stage
        .query(&session, &format!("/plugin-data/{plugin}/one/a"))
        .await?;
    stage.label("get-worlds");
    stage.get("/api/worlds").await?;
    stage.label("get-health");
    stage.get("/api/health").await?;
    stage.label("get-trace");
    let trace = format!("/api/traces/{}", session.id);
    stage.send(owned(&session, &trace)).await?;
    stage.label("get-turns");
    let turns = format!("/api/traces/{}/turns/page", session.id);
    stage.send(owned(&session, &turns)).await?;
    Ok(())
}

/// Follows the cursors of a paged query, in pages of this size.
async fn follow(
    stage: &Stage,
    session: &Session,
    path: &str,
    cursor: &str,
    limit: usize,
) -> Result<(), DriveError> {
    let mut next: Option<String> = None;
    for page in 0..PAGES {
        let call = owned(session, path)
            .query("limit", &limit.to_string())
            .maybe_query("cursor", next.as_deref());
        let reply = stage.send(call).await?;
        next = reply
            .json()
            .and_then(|body| body.get(cursor)?.as_str().map(str::to_owned));
        if next.is_none() {
            break;
        }
        if page == 0 {
            stage.label(&format!("{}-more", stage_label(path)));
        }
    }
    Ok(())
}

fn stage_label(path: &str) -> &'static str {
    if path.contains("/traces/") {
        "turn-pages"
    } else {
        "message-pages"
    }
}

async fn pages(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("turns");
    turns(stage, &session, TURNS).await?;
    stage.label("all-messages");
    stage.messages(&session).await?;
    stage.label("whole-trace");
    let trace = format!("/api/traces/{}", session.id);
    stage.send(owned(&session, &trace)).await?;
    stage.label("message-pages");
    follow(
        stage,
        &session,
        &session.path("/messages/page"),
        "nextCursor",
        3,
    )
    .await?;
    stage.label("turn-pages");
    let turns = format!("/api/traces/{}/turns/page", session.id);
    follow(stage, &session, &turns, "nextCursor", 40).await?;
    Ok(())
}

async fn long_session(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("turns");
    turns(stage, &session, MANY_TURNS).await?;
    stage.label("all-messages");
    stage.messages(&session).await?;
    stage.label("window");
    let view = stage.view(&session).await?;
    let cursor = view.json();
    let cursor = cursor
        .as_ref()
        .and_then(|body: &Value| body.get("messagesCursor")?.as_str());
    stage.label("before-window");
    let page = owned(&session, &session.path("/messages/page")).maybe_query("cursor", cursor);
    stage.send(page).await?;
    Ok(())
}

async fn no_websocket(stage: &Stage) -> Result<(), DriveError> {
    let session = stage.session().await?;
    stage.label("upgrade");
    for path in [
        "/api/actions".to_owned(),
        format!("/api/events/stream?sessionId={}", session.id),
    ] {
        let call = owned(&session, &path)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .wrong_on_purpose("there is no WebSocket at this path");
        let mut stream = stage.open(call).await?;
        stream.next_frame(stage.patience(SOON)).await;
        stream.close();
    }
    Ok(())
}
