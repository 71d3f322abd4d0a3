//! The mock model provider that answers the target's model calls, as a scenario controls it.
//!
//! A plan belongs to a token: it answers calls whose last user message contains the token. A stage makes fresh
//! tokens and puts them into what the player says, so scenarios that run side by side do not meet. What no
//! plan takes, such as an opening turn, is answered with [`UNPLANNED`].
//!
//! What a model can say is the mock's own [`Reply`]; the short forms here are the usual ones.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::timeout;
use turnwire_mock::{
    Call, Mock, MockConfig, MockError, MockServer, Position, Reply, Rule, Script, ScriptId,
    ServeOptions, Unmatched, When, script::CutHow, serve,
};

/// What the model says when nothing else is planned.
pub const UNPLANNED: &str = "The rain has stopped. Somebody knocks at the door.";

/// The mock provider of one run; scenarios get a [`Model`] of it.
#[derive(Debug)]
pub struct ModelServer {
    server: MockServer,
}

impl ModelServer {
    /// Starts it on a free port of the loopback device.
    ///
    /// # Errors
    ///
    /// When there is no free port.
    pub async fn start() -> Result<Self, MockError> {
        Self::listen((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Starts it at this address, for a target that is already running and calls models there.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on.
    pub async fn listen(listen: SocketAddr) -> Result<Self, MockError> {
        let config = MockConfig {
            unmatched: Unmatched::text(UNPLANNED),
            ..MockConfig::default()
        };
        Ok(Self {
            server: serve(ServeOptions { listen, config }).await?,
        })
    }

    /// The base URL of the OpenAI wires, such as `http://127.0.0.1:4711/v1`.
    pub fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// The control of one scenario.
    pub fn model(&self) -> Model {
        Model::new(self.server.mock().clone())
    }

    /// Ends it, once running replies had a few seconds.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

/// What the model says, for one scenario. Clones share the plans; they end with the last clone.
#[derive(Clone, Debug)]
pub struct Model {
    plans: Arc<Plans>,
}

#[derive(Debug)]
struct Plans {
    mock: Mock,
    loaded: Mutex<Vec<ScriptId>>,
}

impl Drop for Plans {
    fn drop(&mut self) {
        for id in self
            .loaded
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            self.mock.unload(id);
        }
    }
}

impl Model {
    /// A control of this mock.
    pub fn new(mock: Mock) -> Self {
        Self {
            plans: Arc::new(Plans {
                mock,
                loaded: Mutex::default(),
            }),
        }
    }

    /// Answers what contains `token` with this text, streamed word by word.
    pub fn says(&self, token: &str, text: &str) {
        self.answers(token, Reply::text(text));
    }

    /// Answers what contains `token` with these pieces, one event each, so far apart.
    pub fn says_in_pieces(&self, token: &str, pieces: &[&str], between: Duration) {
        self.answers(
            token,
            Reply::new()
                .pieces(pieces.iter().copied())
                .per_token(between),
        );
    }

    /// Says `before`, then keeps silent until [`Model::go_on`] with the same token, then says `after`.
    pub fn says_and_waits(&self, token: &str, before: &str, after: &str) {
        // The same token may have been let go on before, when a case is played again.
        self.plans.mock.close(token);
        self.answers(token, Reply::text(before).gate(token).say(after));
    }

    /// Says these pieces, one event each, then keeps silent until [`Model::go_on`], then says `after`.
    pub fn says_pieces_and_waits(&self, token: &str, pieces: Vec<String>, after: &str) {
        self.plans.mock.close(token);
        self.answers(token, Reply::new().pieces(pieces).gate(token).say(after));
    }

    /// Ends the silence of [`Model::says_and_waits`].
    pub fn go_on(&self, token: &str) {
        self.plans.mock.open(token);
    }

    /// Calls these tools (name and arguments) side by side, and says the text when their results are in.
    pub fn calls_then_says(&self, token: &str, calls: &[(&str, Value)], then: &str) {
        let calls = calls
            .iter()
            .map(|(name, arguments)| Call::new(*name, arguments.clone()));
        let asked = |step| When::new().last_user(token).step(step);
        let script = Script::new(token)
            .rule(
                Rule::new("calls")
                    .when(asked(0))
                    .reply(Reply::new().calls(calls)),
            )
            .rule(
                Rule::new("says")
                    .when(When::new().last_user(token))
                    .reply(Reply::text(then)),
            );
        self.load(script);
    }

    /// Answers what contains `token` with this error status, every time.
    pub fn fails(&self, token: &str, status: u16) {
        self.answers(token, Reply::error(status));
    }

    /// Says so many words of the text, then closes the connection.
    pub fn breaks_off(&self, token: &str, text: &str, after_words: usize) {
        self.answers(
            token,
            Reply::text(text).cut(Position::Tokens(after_words), CutHow::Close),
        );
    }

    /// Answers what contains `token` with this reply, every time.
    pub fn answers(&self, token: &str, reply: Reply) {
        self.answers_in_turn(token, [reply]);
    }

    /// Answers what contains `token` with these replies, one after the other; the last one then repeats.
    pub fn answers_in_turn(&self, token: &str, replies: impl IntoIterator<Item = Reply>) {
        let rule = replies.into_iter().fold(Rule::on(token), Rule::reply);
        self.load(rule.into());
    }

    /// Adds rules of any kind.
    pub fn load(&self, script: Script) {
        let id = self.plans.mock.load(script);
        self.plans
            .loaded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(id);
    }

    /// How many calls with `token` in them the target has made.
    pub fn asked(&self, token: &str) -> usize {
        count(&self.plans.mock.journal(), token)
    }

    /// Waits until the target has made `times` calls with `token` in them; whether it has.
    pub async fn wait_asked(&self, token: &str, times: usize, within: Duration) -> bool {
        let asked = self
            .plans
            .mock
            .wait_for(|journal| count(journal, token) >= times);
        timeout(within, asked).await.is_ok() && self.asked(token) >= times
    }
}

fn count(journal: &[turnwire_mock::JournalEntry], token: &str) -> usize {
    journal
        .iter()
        .filter(|entry| holds(&entry.body, token))
        .count()
}

/// Whether a string anywhere in the value contains `token`.
fn holds(value: &Value, token: &str) -> bool {
    match value {
        Value::String(text) => text.contains(token),
        Value::Array(items) => items.iter().any(|item| holds(item, token)),
        Value::Object(members) => members.values().any(|member| holds(member, token)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        drivers::http::{BaseUrl, Call as Request, HttpClient, HttpLimits, Reply as Answer},
        transcript::{Header, record::Recorder},
    };

    async fn ask(server: &ModelServer, text: &str) -> Answer {
        let base = BaseUrl::parse(&server.base_url()).unwrap();
        let client = HttpClient::new(
            base,
            Recorder::new(Header::default()),
            HttpLimits::default(),
        );
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
        client
            .send(
                Request::post("/chat/completions")
                    .header("authorization", "Bearer k")
                    .json(&body),
            )
            .await
            .unwrap()
    }

    fn said(answer: &Answer) -> Option<String> {
        answer.string("/choices/0/message/content")
    }

    #[tokio::test]
    async fn a_plan_answers_its_token_and_nobody_else() {
        let server = ModelServer::start().await.unwrap();
        let model = server.model();
        model.says("tw-1", "It is done.");
        assert_eq!(
            said(&ask(&server, "please tw-1").await).as_deref(),
            Some("It is done.")
        );
        assert_eq!(
            said(&ask(&server, "please").await).as_deref(),
            Some(UNPLANNED)
        );
        assert_eq!(model.asked("tw-1"), 1);
        assert!(model.wait_asked("tw-1", 1, Duration::from_secs(1)).await);
    }

    #[tokio::test]
    async fn plans_end_with_their_scenario() {
        let server = ModelServer::start().await.unwrap();
        let model = server.model();
        model.fails("tw-2", 429);
        assert_eq!(ask(&server, "tw-2").await.status, 429);
        drop(model);
        assert_eq!(
            said(&ask(&server, "tw-2").await).as_deref(),
            Some(UNPLANNED)
        );
    }
}
