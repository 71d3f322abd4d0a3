//! The target profile, `turnwire.toml`: what the harness has to know about a target.
//!
//! ```toml
//! name = "my-server"
//! time_scale = 0.05                  # the target's protocol periods, times this
//! requires = ["COV-SUB"]             # ids and areas that must be exercised, not only not failed
//!
//! [target]                           # a command, or url = "https://…" alone
//! command = ["node", "server.js"]    # {port} {home} {model_url} {time_scale} {variant} are filled in
//! cwd = "server"                     # below the folder of this file
//! url = "http://127.0.0.1:{port}"
//! ready = { path = "/api/health", within = "30s" }
//! env = { PORT = "{port}", LLM_BASE_URL = "{model_url}", DATA = "{home}" }
//!
//! [model]
//! listen = "127.0.0.1:4010"          # only for a target that somebody else started
//!
//! [session]
//! plugins = ["story"]
//! fixture_plugin = "turnwire-fixtures"
//!
//! [chat]                             # for chat-ws
//! project = "garden"
//! transcript = "/api/chats/{session}/messages"
//! rest = "/api/chats"               # a route behind the same hook as the socket
//! openapi = "/api/openapi.json"
//! token = "secret"                  # what the variant chat-guarded asks for
//! buffer = 4000                     # numbered frames that the target keeps of a turn
//! linger_ms = 60000                 # how long it keeps a turn that is over
//! ping_ms = 30000                   # how often it sends a protocol ping
//! models = { mock = 200000 }        # context limits of models that it knows
//!
//! [tokens]
//! operator = "secret"
//!
//! [capabilities]                     # true: must be shown; false: not applicable; not mentioned: unknown
//! jobs = false
//!
//! [variants.demo-tier]               # how the target is started (or reached) for scenarios about it
//! env = { DEPLOYMENT_TIER = "demo" }
//!
//! [limits]
//! scenario = "60s"
//!
//! [[expected_failures]]              # turn red once they pass
//! id = "COV-SUB-102"
//! reason = "issue 12"
//! ```
//!
//! Reading is strict: a key that means nothing is an error, with its place and the nearest name. [`parse`] does
//! it on [`read`], which walks TOML with places.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use turnwire_spec::llm::Wire;

use turnwire_spec::catalogue::Suite;

use crate::drivers::{
    http::{BaseUrl, HttpLimits},
    lines::stdio::StdioTarget,
    target::{
        Launch,
        command::{CommandTarget, CommandVariant},
        mock::{self, MockTarget},
        no_server::NoServer,
        reference::ReferenceTarget,
        url::UrlTarget,
    },
};

mod error;
mod parse;
mod read;
#[cfg(test)]
mod tests;

pub use error::{Problem, ProfileError};

/// Name of the profile that is looked for in the present folder.
pub const FILE_NAME: &str = "turnwire.toml";
/// Plugin that answers the fixture actions, unless the profile names another.
pub const FIXTURE_PLUGIN: &str = "turnwire-fixtures";

/// Capabilities of the reference server.
const REFERENCE_HAS: [&str; 14] = [
    "connections",
    "fail-commit",
    "fail-publish",
    "fixture-cast",
    "fixture-commands",
    "fixture-concealed",
    "fixture-notes",
    "fixture-segments",
    "fixture-tools",
    "hooks",
    "killed-tasks",
    "relay",
    "snapshots",
    "steering",
];

/// Frames that the reference server keeps of a turn where the harness starts it: fewer than it would otherwise,
/// so that a turn outgrows them in moments.
pub(crate) const CHAT_FRAMES: usize = 400;
/// Numbered frames that its variants for the fuzzer keep of a turn.
pub(crate) const FUZZ_CHAT_FRAMES: usize = 24;
/// Those variants, the second one with data that outlives a restart.
pub(crate) const FUZZ_CHAT: [&str; 2] = ["chat-fuzz", "chat-fuzz-persistent"];

/// What the reference server's variant `chat-guarded` asks for.
pub(crate) const CHAT_TOKEN: &str = "tw-chat-token";

/// What the harness knows about a target.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Name for reports.
    pub name: String,
    /// How the target is started or reached.
    pub target: Target,
    /// Where the mock provider listens for a target that is already running; `None` takes a free port.
    pub model_listen: Option<SocketAddr>,
    /// Factor that the target multiplies the protocol's periods with; 1 is real time. Above 0.
    pub time_scale: f64,
    /// What the target can do: declared present, declared absent; what is not mentioned is unknown.
    pub capabilities: BTreeMap<String, bool>,
    /// Plugins that new sessions are created with.
    pub session_plugins: Vec<String>,
    /// Plugin that answers the fixture actions.
    pub fixture_plugin: String,
    /// What is known of its chats.
    pub chat: ChatProfile,
    /// Operator token, for targets that ask for one when a session is created.
    pub operator_token: Option<String>,
    /// How the models of a provider are asked, for the suites of LLM wires.
    pub provider: ProviderAccess,
    /// How long the harness waits and how much it takes.
    pub limits: Limits,
    /// Requirements that are known to fail, each with the reason; a stale one is red.
    pub expected_failures: BTreeMap<String, String>,
    /// Ids and areas whose requirements must be exercised.
    pub requires: Vec<String>,
}

/// How the models of a provider are asked.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProviderAccess {
    /// The key; none is sent without one.
    pub key: Option<String>,
    /// The model; the first one of the server's list without one.
    pub model: Option<String>,
    /// Whether an answer had no end, in any scenario of the run.
    pub flooded: Flooded,
}

/// Whether a provider was found to write without end; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Flooded(Arc<AtomicBool>);

impl Flooded {
    /// Says that it was.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happens in a run makes no other profile.
impl PartialEq for Flooded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Flooded {}

/// What the harness knows about the chats of a target that speaks `chat-ws`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChatProfile {
    /// Slug of a project that exists.
    pub project: String,
    /// Path of a chat's transcript; `{session}` stands for its id.
    pub transcript: String,
    /// Path of a REST route that is behind the same hook as the socket.
    pub rest: String,
    /// Path of the OpenAPI document, when there is one.
    pub openapi: Option<String>,
    /// What the variant `chat-guarded` asks for.
    pub token: Option<String>,
    /// Numbered frames that the target keeps of a turn; that of the public sources when absent.
    pub buffer: Option<u64>,
    /// How long the target keeps a finished turn for a replay, in milliseconds before time scaling; unknown when absent.
    pub linger_ms: Option<u64>,
    /// Time between two protocol pings of the target, in milliseconds before time scaling; unknown when absent.
    pub ping_ms: Option<u64>,
    /// Models that it knows, with their context limits; the last one is not its default.
    pub models: Vec<(String, u64)>,
}

impl Default for ChatProfile {
    fn default() -> Self {
        Self {
            project: turnwire_spec::chat_ws::SCRATCH.to_owned(),
            transcript: "/api/chats/{session}/messages".to_owned(),
            rest: "/api/chats".to_owned(),
            openapi: None,
            token: None,
            buffer: None,
            linger_ms: None,
            ping_ms: None,
            models: Vec::new(),
        }
    }
}

impl ChatProfile {
    /// That of the reference server.
    fn reference() -> Self {
        let limit = |(name, tokens): (&str, u64)| (name.to_owned(), tokens);
        Self {
            project: "garden".to_owned(),
            openapi: Some("/api/openapi.json".to_owned()),
            token: Some(CHAT_TOKEN.to_owned()),
            buffer: u64::try_from(CHAT_FRAMES).ok(),
            linger_ms: u64::try_from(turnwire_spec::chat_ws::limits::LINGER.as_millis()).ok(),
            ping_ms: u64::try_from(turnwire_spec::chat_ws::limits::SERVER_PING_EVERY.as_millis())
                .ok(),
            models: [("mock", 200_000), ("mock-small", 32_000)]
                .map(limit)
                .into(),
            ..Self::default()
        }
    }
}

/// How the target is started or reached.
#[derive(Clone, Debug)]
pub enum Target {
    /// The reference server, in process.
    Reference,
    /// The mock providers, in process, on one wire.
    Mock(Wire),
    /// A program that the harness starts.
    Command(CommandTarget),
    /// A server that somebody else runs.
    Url(UrlTarget),
    /// A program that connects to the harness; how it is started is no part of the profile.
    Testee,
}

/// How long the harness waits and how much it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Of the HTTP client.
    pub http: HttpLimits,
    /// Shortest wait for something that ought to come, however short its scaled period is.
    pub patience: Duration,
    /// For one scenario, beside the periods of the protocol that it sits out and what the target asks it to wait.
    pub scenario: Duration,
    /// How long one scenario waits in all when the target refuses requests for their rate (429 with `Retry-After`).
    pub retry_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            http: HttpLimits::default(),
            patience: Duration::from_secs(2),
            scenario: Duration::from_secs(60),
            retry_after: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// For a target in the harness's own process: what has not come after seconds does not come.
    fn in_process() -> Self {
        let http = HttpLimits {
            head: Duration::from_secs(5),
            idle: Duration::from_secs(2),
            total: Duration::from_secs(10),
            ..HttpLimits::default()
        };
        Self {
            http,
            patience: Duration::from_secs(1),
            scenario: Duration::from_secs(30),
            ..Self::default()
        }
    }
}

impl Profile {
    /// Reads a profile; relative folders in it count from the folder of the file.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Unreadable`] when there is no such file or it is no text; [`ProfileError::Wrong`] with the
    /// place when it says something that no profile says.
    pub fn load(path: &Path) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(path).map_err(|error| ProfileError::Unreadable {
            path: path.display().to_string(),
            why: error.to_string(),
        })?;
        Self::parse(&text, path)
    }

    /// Reads the text of the profile at `path`, which is only named in errors and taken for relative folders.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Wrong`] with the place.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ProfileError> {
        parse::profile(text, path)
    }

    /// The reference server as it comes: in process, a hundred times faster than real time.
    pub fn reference() -> Self {
        Self {
            time_scale: 0.01,
            capabilities: REFERENCE_HAS.map(|name| (name.to_owned(), true)).into(),
            session_plugins: vec!["story".to_owned(), FIXTURE_PLUGIN.to_owned()],
            chat: ChatProfile::reference(),
            limits: Limits::in_process(),
            ..Self::new("reference", Target::Reference)
        }
    }

    /// The mock provider of a wire as the conformant peer of the wire's suite.
    pub fn mock(wire: Wire) -> Self {
        Self {
            provider: ProviderAccess {
                key: Some(mock::KEY.to_owned()),
                model: Some(mock::MODEL.to_owned()),
                ..ProviderAccess::default()
            },
            limits: Limits::in_process(),
            ..Self::new(&format!("mock of {wire}"), Target::Mock(wire))
        }
    }

    /// A server that somebody else runs, without any further knowledge.
    pub fn for_url(url: BaseUrl) -> Self {
        let name = url.to_string();
        Self::new(
            &name,
            Target::Url(UrlTarget {
                url,
                variants: BTreeMap::new(),
            }),
        )
    }

    /// A program that listens on the port of the variable `PORT` and calls models at `OPENAI_BASE_URL`.
    pub fn for_command(command: Vec<String>) -> Self {
        let env = [
            ("PORT", "{port}"),
            ("OPENAI_BASE_URL", "{model_url}"),
            ("OPENAI_API_KEY", "turnwire"),
            ("TURNWIRE_LLM_BASE_URL", "{model_url}"),
            ("TURNWIRE_HOME", "{home}"),
            ("TURNWIRE_DB", "{home}/turnwire.db"),
            ("TURNWIRE_TIME_SCALE", "{time_scale}"),
        ];
        let name = command.join(" ");
        let target = CommandTarget {
            command,
            env: env
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..CommandTarget::default()
        };
        Self::new(&name, Target::Command(target))
    }

    /// A program that connects to the harness: an adapter, or a client.
    pub fn for_testee(name: &str) -> Self {
        let mut profile = Self::new(name, Target::Testee);
        profile.limits.http.total = Duration::from_secs(20);
        profile.limits.scenario = Duration::from_secs(600);
        profile
    }

    /// An adapter or client in the harness's own process.
    pub fn for_own_testee(name: &str) -> Self {
        Self {
            limits: Limits::in_process(),
            ..Self::for_testee(name)
        }
    }

    /// Sets the factor of the protocol's periods, here and for the command.
    #[must_use]
    pub fn with_time_scale(mut self, time_scale: f64) -> Self {
        self.time_scale = time_scale;
        if let Target::Command(command) = &mut self.target {
            command.time_scale = time_scale;
        }
        self
    }

    /// How the target is started.
    pub fn launcher(&self) -> Arc<dyn Launch> {
        match &self.target {
            Target::Reference => Arc::new(ReferenceTarget {
                time_scale: self.time_scale,
                lines: false,
            }),
            Target::Mock(wire) => Arc::new(MockTarget { wire: *wire }),
            Target::Command(command) => Arc::new(command.clone()),
            Target::Url(url) => Arc::new(url.clone()),
            Target::Testee => Arc::new(NoServer),
        }
    }

    /// How the target is started for this suite: `session-update` is spoken over a socket of lines, or, by a command
    /// whose URL is no `tcp://` one, over the standard input and output of a process.
    pub fn launcher_for(&self, suite: Suite) -> Arc<dyn Launch> {
        match &self.target {
            Target::Reference => Arc::new(ReferenceTarget {
                time_scale: self.time_scale,
                lines: suite == Suite::SessionUpdate,
            }),
            Target::Command(command) if self.is_stdio(suite) => {
                Arc::new(StdioTarget(command.clone()))
            }
            _ => self.launcher(),
        }
    }

    /// What is known about the target as a server of this suite: a process that speaks on its standard input and
    /// output takes no second connection.
    #[must_use]
    pub fn for_suite(mut self, suite: Suite) -> Self {
        if self.is_stdio(suite) {
            let connections = self.capabilities.entry("connections".to_owned());
            connections.or_insert(false);
        }
        self
    }

    /// Whether the target is a command that speaks this suite on its standard input and output. Its processes share
    /// one home, so that scenarios are played one after the other.
    pub fn is_stdio(&self, suite: Suite) -> bool {
        suite == Suite::SessionUpdate
            && matches!(&self.target, Target::Command(command) if !command.url.starts_with("tcp://"))
    }

    /// Whether the target can be told where the mock provider is.
    pub fn reaches_model(&self) -> bool {
        match &self.target {
            Target::Reference => true,
            Target::Testee => false,
            // It is a model provider itself.
            Target::Mock(_) => false,
            Target::Url(_) => self.model_listen.is_some(),
            Target::Command(command) => {
                let variants = command.variants.values();
                let more = variants
                    .flat_map(|CommandVariant { args, env }| args.iter().chain(env.values()));
                let mut texts = command
                    .command
                    .iter()
                    .chain(command.env.values())
                    .chain(more);
                self.model_listen.is_some() || texts.any(|text| text.contains("{model_url}"))
            }
        }
    }

    fn new(name: &str, target: Target) -> Self {
        Self {
            name: name.to_owned(),
            target,
            model_listen: None,
            time_scale: 1.0,
            capabilities: BTreeMap::new(),
            session_plugins: vec!["story".to_owned()],
            fixture_plugin: FIXTURE_PLUGIN.to_owned(),
            chat: ChatProfile::default(),
            operator_token: None,
            provider: ProviderAccess::default(),
            limits: Limits::default(),
            expected_failures: BTreeMap::new(),
            requires: Vec::new(),
        }
    }
}
