//! The steps of the `covel-sse` protocol: sessions, actions, subscriptions, queries, and the fixtures that
//! provoke what a player cannot.
//!
//! Queries give the answer whatever its status; only steps that a scenario stands on (a session, an accepted
//! fixture) insist on success. Every request carries the session's owner token when there is one: a target that
//! enforces nothing ignores it. [`Session::without_token`] is for scenarios about enforcement.

use serde_json::{Value, json};

use super::Stage;
use crate::{
    drivers::{
        DriveError,
        http::{Call, EventStream, Reply, call::encode},
    },
    transcript::cut::CutAt,
};

/// The plugin whose runtimes do what they are told.
pub const CAST: &str = "turnwire-cast";

/// A session of the target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// What its owner proves itself with.
    pub owner_token: Option<String>,
}

impl Session {
    /// The same session as somebody sees it who does not own it.
    #[must_use]
    pub fn without_token(&self) -> Self {
        Self {
            id: self.id.clone(),
            owner_token: None,
        }
    }

    /// The same session with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            id: self.id.clone(),
            owner_token: Some(token.to_owned()),
        }
    }

    /// Path below `/api/sessions/:id`; `rest` begins with a slash or is empty.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/sessions/{}{rest}", encode(&self.id))
    }
}

/// What a session is created with; the default is what the profile says.
#[derive(Clone, Debug, Default)]
pub struct CreateSession {
    /// Id asked for; the target makes one when `None`.
    pub id: Option<String>,
    /// World asked for.
    pub world_id: Option<String>,
    /// Language asked for.
    pub locale: Option<String>,
    /// Plugins; those of the profile when `None`.
    pub plugins: Option<Vec<String>>,
}

/// How a subscription is opened.
#[derive(Clone, Debug, Default)]
pub struct Subscribe {
    /// Session asked for; left out of the request when `None`, which is wrong on purpose.
    pub session: Option<Session>,
    /// Topics asked for; empty leaves the parameter out, which means all.
    pub topics: Vec<String>,
    /// Cursor in the query, `lastEventId`.
    pub query_cursor: Option<String>,
    /// Cursor in the header, `Last-Event-ID`.
    pub header_cursor: Option<String>,
    /// Where the owner token goes.
    pub token: TokenPlace,
    /// Size of the connection's receive buffer in bytes, for a reader that will not read.
    pub receive_buffer: Option<u32>,
    /// Where the harness cuts the stream off.
    pub cut: Option<CutAt>,
    /// Why the request breaks the protocol on purpose.
    pub wrong_on_purpose: Option<String>,
}

/// Where the owner token of a request stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TokenPlace {
    /// `Authorization: Bearer`.
    #[default]
    Bearer,
    /// `X-Session-Token`.
    SessionHeader,
    /// `?session_token=`.
    Query,
}

impl Subscribe {
    /// All topics of a session, from now on.
    pub fn to(session: &Session) -> Self {
        Self {
            session: Some(session.clone()),
            ..Self::default()
        }
    }

    /// Only these topics.
    #[must_use]
    pub fn topics(mut self, topics: &[&str]) -> Self {
        self.topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        self
    }

    /// From behind this cursor, sent in the query.
    #[must_use]
    pub fn after(mut self, cursor: &str) -> Self {
        self.query_cursor = Some(cursor.to_owned());
        self
    }

    /// From behind this cursor, sent in the header.
    #[must_use]
    pub fn header_after(mut self, cursor: &str) -> Self {
        self.header_cursor = Some(cursor.to_owned());
        self
    }

    /// With the owner token at this place.
    #[must_use]
    pub fn token_in(mut self, place: TokenPlace) -> Self {
        self.token = place;
        self
    }

    /// With a small receive buffer, for a reader that will not read.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.receive_buffer = Some(2048);
        self
    }

    /// Says that the request breaks the protocol on purpose, and how.
    #[must_use]
    pub fn wrong_on_purpose(mut self, why: &str) -> Self {
        self.wrong_on_purpose = Some(why.to_owned());
        self
    }

    /// The request.
    pub fn call(&self) -> Call {
        let session = self.session.as_ref();
        let topics = (!self.topics.is_empty()).then(|| self.topics.join(","));
        let mut call = Call::get("/api/events/stream")
            .maybe_query("sessionId", session.map(|session| session.id.as_str()))
            .maybe_query("topics", topics.as_deref())
            .maybe_query("lastEventId", self.query_cursor.as_deref())
            .header("accept", "text/event-stream");
        if let Some(cursor) = &self.header_cursor {
            call = call.header("last-event-id", cursor);
        }
        if let Some(token) = session.and_then(|session| session.owner_token.as_deref()) {
            call = match self.token {
                TokenPlace::Bearer => call.bearer(Some(token)),
                TokenPlace::SessionHeader => call.header("x-session-token", token),
                TokenPlace::Query => call.query("session_token", token),
            };
        }
        if let Some(bytes) = self.receive_buffer {
            call = call.receive_buffer(bytes);
        }
        call = call.cut(self.cut);
        match &self.wrong_on_purpose {
            Some(why) => call.wrong_on_purpose(why),
            None => call,
        }
    }
}

/// A request about a session, with its owner token.
fn owned(call: Call, session: &Session) -> Call {
    call.bearer(session.owner_token.as_deref())
}

impl Stage {
    /// Creates a session.
    ///
    /// # Errors
    ///
    /// When the answer is no success with an `id`, or there is none.
    pub async fn create_session(&self, wish: CreateSession) -> Result<Session, DriveError> {
        let reply = self.try_create_session(&wish).await?;
        Ok(Session {
            id: reply.need_string("/id")?,
            owner_token: reply.string("/ownerToken"),
        })
    }

    /// A session as the profile makes it.
    ///
    /// # Errors
    ///
    /// As [`Stage::create_session`].
    pub async fn session(&self) -> Result<Session, DriveError> {
        self.create_session(CreateSession::default()).await
    }

    /// Asks for a session and gives the answer, whatever it is.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn try_create_session(&self, wish: &CreateSession) -> Result<Reply, DriveError> {
        let plugins = wish
            .plugins
            .as_ref()
            .unwrap_or(&self.profile().session_plugins);
        let mut body = json!({ "plugins": plugins });
        for (name, value) in [
            ("id", &wish.id),
            ("worldId", &wish.world_id),
            ("locale", &wish.locale),
        ] {
            if let Some(value) = value {
                body[name] = json!(value);
            }
        }
        let operator = self.profile().operator_token.as_deref();
        self.send(Call::post("/api/sessions").bearer(operator).json(&body))
            .await
    }

    /// Deletes a session.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn delete_session(&self, session: &Session) -> Result<Reply, DriveError> {
        self.send(owned(Call::delete(session.path("")), session))
            .await
    }

    /// `POST /api/actions` with this type and payload; `requestId` is a fresh token.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn action(
        &self,
        session: &Session,
        kind: &str,
        payload: Value,
    ) -> Result<EventStream, DriveError> {
        let body = json!({ "requestId": self.token(), "sessionId": session.id, "type": kind, "payload": payload });
        self.open(self.action_call(session, &body)).await
    }

    /// The request of an action with this body, for bodies that are out of the ordinary.
    pub fn action_call(&self, session: &Session, body: &Value) -> Call {
        owned(Call::post("/api/actions"), session)
            .header("accept", "text/event-stream")
            .json(body)
    }

    /// Starts the session: the opening turn.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn start_session(&self, session: &Session) -> Result<EventStream, DriveError> {
        self.action(session, "start_session", json!({})).await
    }

    /// The player says something; put the token of a model rule into the text.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn say(&self, session: &Session, text: &str) -> Result<EventStream, DriveError> {
        self.action(
            session,
            "submit_actions",
            json!({ "actions": [{ "type": "say", "text": text }] }),
        )
        .await
    }

    /// Lets the model answer `reply` to a fresh text of the player, and gives the action's stream.
    ///
    /// # Errors
    ///
    /// When there is no model, or no response head.
    pub async fn say_and_reply(
        &self,
        session: &Session,
        reply: &str,
    ) -> Result<EventStream, DriveError> {
        let token = self.token();
        self.model()?.says(&token, reply);
        self.say(session, &token).await
    }

    /// Opens a subscription.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn subscribe(&self, how: &Subscribe) -> Result<EventStream, DriveError> {
        self.open(how.call()).await
    }

    /// `GET /api/sessions/:id` and what is below it, such as `/view` (`rest` may have a query).
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn query(&self, session: &Session, rest: &str) -> Result<Reply, DriveError> {
        self.send(owned(Call::get(session.path(rest)), session))
            .await
    }

    /// The session's view.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn view(&self, session: &Session) -> Result<Reply, DriveError> {
        self.query(session, "/view").await
    }

    /// All messages.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn messages(&self, session: &Session) -> Result<Reply, DriveError> {
        self.query(session, "/messages").await
    }

    /// Execution status.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn execution(&self, session: &Session) -> Result<Reply, DriveError> {
        self.query(session, "/execution").await
    }

    /// `GET` of a path that belongs to no session, such as `/api/health`.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn get(&self, path: &str) -> Result<Reply, DriveError> {
        self.send(Call::get(path)).await
    }

    /// Stores a plugin's value, which publishes one `plugin-data.changed`.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn put_plugin_data(
        &self,
        session: &Session,
        plugin: &str,
        namespace: &str,
        key: &str,
        value: Value,
    ) -> Result<Reply, DriveError> {
        let path = session.path(&data_path(plugin, namespace, key));
        self.send(owned(Call::put(path), session).json(&json!({ "value": value })))
            .await
    }

    /// Stores a fresh value of a plugin of the session: the shortest way to one event.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn publish_one(&self, session: &Session) -> Result<Reply, DriveError> {
        let (plugin, key) = (self.data_plugin().to_owned(), self.token());
        self.put_plugin_data(session, &plugin, "harness", &key, json!({ "n": 1 }))
            .await
    }

    /// Removes a plugin's value, which publishes one `plugin-data.changed`.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn delete_plugin_data(
        &self,
        session: &Session,
        plugin: &str,
        namespace: &str,
        key: &str,
    ) -> Result<Reply, DriveError> {
        let path = session.path(&data_path(plugin, namespace, key));
        self.send(owned(Call::delete(path), session)).await
    }

    /// The plugin whose data the harness writes: the fixture plugin, or without one the first of the session.
    pub fn data_plugin(&self) -> &str {
        let profile = self.profile();
        let first = profile.session_plugins.first();
        first
            .filter(|_| !self.has_fixtures())
            .unwrap_or(&profile.fixture_plugin)
    }

    fn has_fixtures(&self) -> bool {
        self.profile()
            .session_plugins
            .contains(&self.profile().fixture_plugin)
    }

    /// Creates a session with these plugins besides those of the profile.
    ///
    /// # Errors
    ///
    /// As [`Stage::create_session`].
    pub async fn session_with(&self, plugins: &[&str]) -> Result<Session, DriveError> {
        let mut wanted = self.profile().session_plugins.clone();
        wanted.extend(plugins.iter().map(|plugin| (*plugin).to_owned()));
        let wish = CreateSession {
            plugins: Some(wanted),
            ..CreateSession::default()
        };
        self.create_session(wish).await
    }

    /// Tells a runtime of the plugin [`CAST`] what its next run does.
    ///
    /// # Errors
    ///
    /// When the answer is no success, or there is none.
    pub async fn order(
        &self,
        session: &Session,
        runtime: &str,
        does: Value,
    ) -> Result<Reply, DriveError> {
        let body = json!({
            "kind": "action", "pluginId": CAST, "action": "order",
            "payload": { "runtime": runtime, "does": does },
        });
        let call = owned(Call::post(session.path("/plugin-rpc")), session).json(&body);
        self.send(call).await?.success()
    }

    /// Calls an action of the fixture plugin.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when sessions have no fixture plugin or it has no such action (404); when the
    /// answer is another that is no success, or there is none.
    pub async fn fixture(
        &self,
        session: &Session,
        action: &str,
        payload: Value,
    ) -> Result<Reply, DriveError> {
        let plugin = &self.profile().fixture_plugin;
        let not_possible = |why: String| DriveError::NotPossible {
            what: format!("fixture {action}"),
            why,
        };
        if !self.has_fixtures() {
            return Err(not_possible(format!(
                "[session] plugins in the profile does not name {plugin}"
            )));
        }
        let body =
            json!({ "kind": "action", "pluginId": plugin, "action": action, "payload": payload });
        let call = owned(Call::post(session.path("/plugin-rpc")), session).json(&body);
        let reply = self.send(call).await?;
        if reply.status == 404 {
            return Err(not_possible(format!("{} answered 404", reply.request)));
        }
        reply.success()
    }

    /// Emits an event through the debug endpoint.
    ///
    /// # Errors
    ///
    /// When there is no response head.
    pub async fn emit(
        &self,
        session: &Session,
        topic: &str,
        payload: Value,
    ) -> Result<Reply, DriveError> {
        let body = json!({ "topic": topic, "sessionId": session.id, "payload": payload });
        self.send(owned(Call::post("/api/events/emit"), session).json(&body))
            .await
    }
}

fn data_path(plugin: &str, namespace: &str, key: &str) -> String {
    format!(
        "/plugin-data/{}/{}/{}",
        encode(plugin),
        encode(namespace),
        encode(key)
    )
}
