//! `turnwire serve`: the reference server, until it is told to stop.
//!
//! What the environment says (see [`Config::from_env`]) counts where no flag says otherwise. Without a model
//! provider of its own it gets a mock inside, which answers every message.

use turnwire_mock::{MockConfig, MockServer, Script, Unmatched};
use turnwire_reference::{Config, Server, StartError, StoreChoice, Tier};

use super::mock::script;
use crate::{
    cli::{
        args::{ServeArgs, Store, TierArg},
        console::{self, Console, Signals},
        exit::{CONFORMANT, CliError},
    },
    profile::FIXTURE_PLUGIN,
};

/// What the mock says when no script says anything else.
const REPLY: &str =
    "This is the mock model of turnwire serve. It answers every message with these words.";
/// The key for the mock, which takes any.
const MOCK_KEY: &str = "turnwire";
/// Variable that names the model provider.
const BASE_URL: &str = "TURNWIRE_LLM_BASE_URL";

pub(in crate::cli) fn run(args: ServeArgs, console: &Console) -> Result<u8, CliError> {
    let scripts: Vec<Script> = args
        .scripts
        .iter()
        .map(|path| script(path))
        .collect::<Result<_, _>>()?;
    let config = config(&args)?;
    console::log();
    let own_model = args.llm_base_url.is_some()
        || std::env::var_os(BASE_URL).is_some_and(|url| !url.is_empty());
    let stdio = args.stdio.is_some();
    let runtime = console::runtime()?;
    let ended = runtime.block_on(serve(
        config,
        (!own_model).then_some(scripts),
        stdio,
        console,
    ));
    // A read of standard input may still be under way.
    runtime.shutdown_background();
    ended
}

/// Serves until a signal comes; with a mock provider when there are scripts for one.
async fn serve(
    mut config: Config,
    scripts: Option<Vec<Script>>,
    stdio: bool,
    console: &Console,
) -> Result<u8, CliError> {
    let mut signals = Signals::listen()?;
    let mock = match scripts {
        Some(scripts) => Some(mock(scripts).await?),
        None => None,
    };
    if let Some(mock) = &mock {
        config.llm.base_url = mock.base_url_of(config.llm.wire);
        config
            .llm
            .api_key
            .get_or_insert_with(|| MOCK_KEY.to_owned());
    }
    let about = about(&config, mock.is_some());
    let (scale, fixtures) = (config.time_scale, config.fixtures);
    let server = Server::start(config).await.map_err(|error| match error {
        StartError::TimeScale(_) => CliError::Usage(error.to_string()),
        _ => CliError::Harness(error.to_string()),
    })?;
    if stdio {
        let client = server.serve_session_update(tokio::io::stdin(), tokio::io::stdout());
        tokio::select! {
            () = client => {}
            heard = signals.next() => heard?,
        }
        server.shutdown().await;
        // Reading standard input cannot be called off, and nobody needs what would still come.
        return Ok(CONFORMANT);
    }
    console.print(&server.url())?;
    console.note(&about);
    if let Some(address) = server.session_update_addr() {
        console.note(&format!("session-update at tcp://{address}"));
    }
    let check = check(&server.url(), scale, fixtures);
    console.note(&format!("to check it: {check}"));
    signals.next().await?;
    console.note("stopping; once more stops at once");
    tokio::select! {
        () = server.shutdown() => {}
        heard = signals.next() => heard?,
    }
    if let Some(mock) = mock {
        mock.shutdown().await;
    }
    Ok(CONFORMANT)
}

async fn mock(scripts: Vec<Script>) -> Result<MockServer, CliError> {
    let config = MockConfig {
        unmatched: Unmatched::text(REPLY),
        ..MockConfig::default()
    };
    let mock = MockServer::start(config)
        .await
        .map_err(|error| CliError::Harness(error.to_string()))?;
    for script in scripts {
        mock.load(script);
    }
    Ok(mock)
}

fn config(args: &ServeArgs) -> Result<Config, CliError> {
    let mut config = Config::from_env().map_err(|error| CliError::Usage(error.to_string()))?;
    config.bind = (args.listen.host, args.listen.port).into();
    config.fixtures = !args.no_fixtures;
    config.session_update = args
        .session_update_port
        .map(|port| (std::net::Ipv4Addr::LOCALHOST, port).into());
    if let Some(store) = &args.store {
        config.store = match store {
            Store::Memory => StoreChoice::Memory,
            Store::Sqlite(file) => StoreChoice::Sqlite(file.clone()),
        };
    }
    if let Some(tier) = args.tier {
        config.tier = match tier {
            TierArg::SelfHosted => Tier::SelfHosted,
            TierArg::Demo => Tier::Demo,
            TierArg::Commercial => Tier::Commercial,
        };
    }
    config.rate_limits &= !args.no_rate_limits;
    config.origins.extend(args.origins.iter().cloned());
    if args.production {
        (config.production, config.debug_emit) = (true, false);
    }
    if !args.projects.is_empty() {
        config.chat.projects.clone_from(&args.projects);
    }
    config.chat.token = args.chat_token.clone().or(config.chat.token);
    let frames = args
        .chat_frames
        .and_then(|frames| usize::try_from(frames).ok());
    config.chat.kept_frames = frames.unwrap_or(config.chat.kept_frames);
    config.time_scale = args.time_scale.unwrap_or(config.time_scale);
    config.llm.base_url = args.llm_base_url.clone().unwrap_or(config.llm.base_url);
    config.llm.model = args.llm_model.clone().unwrap_or(config.llm.model);
    config.llm.wire = args.llm_wire.unwrap_or(config.llm.wire);
    Ok(config)
}

/// The command line that checks this server.
fn check(url: &str, scale: f64, fixtures: bool) -> String {
    let mut line = format!("turnwire server --suite covel-sse --url {url}");
    if fixtures {
        line.push_str(&format!(" --plugin story --plugin {FIXTURE_PLUGIN}"));
    }
    if (scale - 1.0).abs() > f64::EPSILON {
        line.push_str(&format!(" --time-scale {scale}"));
    }
    line
}

fn about(config: &Config, mock: bool) -> String {
    let store = match &config.store {
        StoreChoice::Memory => "sessions in memory".to_owned(),
        StoreChoice::Sqlite(file) => format!("sessions in {}", file.display()),
    };
    let model = if mock {
        "a mock model".to_owned()
    } else {
        format!("models at {}", config.llm.base_url)
    };
    format!("reference server, {store}, {model}; Ctrl-C stops it")
}
