//! The mock providers, in the harness's own process, as a server under test: the conformant peer of the suites
//! of LLM wires.
//!
//! It is scripted to answer what the scenarios of `scenarios::provider` ask, and knows one key.

use serde_json::json;
use turnwire_mock::{
    Call, ErrorReply, Finish, MockConfig, MockServer, Reply, Rule, Script, Usage, When,
};
use turnwire_spec::llm::Wire;

use super::{DEFAULT_VARIANT, Launch, Pending, Running, Start};
use crate::{
    drivers::{DriveError, http::BaseUrl},
    scenarios::provider::{MARKERS, NO_MODEL, TOOL},
};

/// The key that the mock takes.
pub const KEY: &str = "turnwire-key";
/// The model that it has.
pub const MODEL: &str = "mock-model";

/// A mock of one wire.
#[derive(Clone, Copy, Debug)]
pub struct MockTarget {
    /// The wire.
    pub wire: Wire,
}

/// What the mock says to the scenarios of a provider.
pub fn script() -> Script {
    let call = |city: &str| Call::new(TOOL, json!({ "city": city }));
    let asked = |word: &str| When::new().last_user(word);
    let unknown = ErrorReply::new(404)
        .code("model_not_found")
        .param("model")
        .message(format!("The model '{NO_MODEL}' does not exist"));
    let script = Script::new("provider")
        .rule(
            Rule::new("unknown model")
                .when(When::new().model(NO_MODEL))
                .priority(1)
                .reply(unknown),
        )
        .rule(Rule::on("[turnwire-text]").reply(Reply::text("Red, green and a deep blue.")))
        .rule(
            Rule::new("calls")
                .when(asked("[turnwire-tools]").step(0))
                .reply(Reply::new().calls([call("Paris"), call("Oslo")])),
        )
        .rule(
            Rule::new("results")
                .when(asked("[turnwire-tools]").step(1))
                .reply(Reply::text("Both cities have 21 degrees.")),
        )
        .rule(
            Rule::on("[turnwire-long]").reply(
                Reply::text("one two three four five six")
                    .finish(Finish::Length)
                    .usage(Usage {
                        input: 10,
                        output: 16,
                        ..Usage::default()
                    }),
            ),
        )
        .rule(
            Rule::on("[turnwire-stop]")
                .reply(Reply::text("1 2 3 4 ").finish(Finish::StopSequence("5".to_owned()))),
        )
        .rule(
            Rule::on("[turnwire-json]").reply(Reply::json(&json!({ "city": "Oslo", "days": 3 }))),
        );
    MARKERS.iter().fold(script, |script, marker| {
        script.rule(Rule::on(*marker).reply(Reply::text(format!("{marker} it is."))))
    })
}

impl Launch for MockTarget {
    fn start<'a>(&'a self, _: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>> {
        Box::pin(async move {
            let not_started = |why: String| DriveError::NotStarted {
                why,
                output: Vec::new(),
            };
            let config = MockConfig {
                keys: vec![KEY.to_owned()],
                models: vec![MODEL.to_owned(), "mock-model-mini".to_owned()],
                ..MockConfig::default()
            };
            let server = MockServer::start(config)
                .await
                .map_err(|error| not_started(error.to_string()))?;
            server.load(script());
            let url = match self.wire {
                // The version is part of every path of this wire.
                Wire::AnthropicMessages => format!("{}/v1", server.base_url_of(self.wire)),
                wire => server.base_url_of(wire),
            };
            let url = BaseUrl::parse(&url).map_err(|error| not_started(error.to_string()))?;
            Ok(Box::new(InProcess { server, url }) as Box<dyn Running>)
        })
    }

    fn offers(&self, variant: &str) -> Result<(), String> {
        if variant == DEFAULT_VARIANT {
            return Ok(());
        }
        Err(format!("the mock has no variant {variant:?}"))
    }

    fn restarts(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A running mock. Dropping it ends it.
#[derive(Debug)]
struct InProcess {
    server: MockServer,
    url: BaseUrl,
}

impl Running for InProcess {
    fn base_url(&self) -> BaseUrl {
        self.url.clone()
    }

    fn output(&self) -> Vec<String> {
        Vec::new()
    }

    fn stop(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            self.server.shutdown().await;
            Ok(())
        })
    }

    fn kill(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async move {
            drop(self.server);
            Ok(())
        })
    }
}
