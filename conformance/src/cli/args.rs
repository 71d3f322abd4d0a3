//! What can be typed. Nothing here looks at a file, the network or the environment.
//!
//! Names of suites, requirements and scenarios stay texts: [`select`](super::select) resolves them.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use turnwire_spec::llm::Wire;

use crate::replay::Timing;

const EXIT_CODES: &str = "\
Exit codes:
  0  conformant
  1  a requirement failed
  2  wrong usage or configuration
  3  the target could not be reached, or the harness itself failed
  4  nothing in the run shows any requirement";

const DIFF_EXIT_CODES: &str = "\
Exit codes:
  0  both say the same
  1  they differ
  2  wrong usage, or a file that cannot be read";

const REPLAY_EXIT_CODES: &str = "\
Exit codes:
  0  the client asked for everything and nothing else, or the server answered as recorded
  1  it did not
  2  wrong usage, or a file that cannot be read
  3  the harness itself failed";

const CHECK_EXIT_CODES: &str = "\
Exit codes:
  0  something was judged, and no requirement failed
  1  a requirement failed
  2  wrong usage, or a file that cannot be read
  4  nothing in the files shows any requirement";

/// Checks servers and clients of chat and agent streaming protocols.
#[derive(Clone, Debug, Parser)]
#[command(name = "turnwire", version, max_term_width = 100, after_help = EXIT_CODES)]
#[command(disable_help_subcommand = true, propagate_version = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Start the reference server and check it; needs no set-up.
    Demo(DemoArgs),
    /// Check a server: by URL, by a profile, or by a command that starts it.
    Server(ServerArgs),
    /// Check an adapter: code that calls LLM providers. Without a command, the gateway of this project.
    Adapter(AdapterArgs),
    /// Check a server that claims to speak the wire of an LLM provider.
    Provider(ProviderArgs),
    /// Check a client, by a command that starts it, or by hand.
    Client(ClientArgs),
    /// Chat with a Covel server in the terminal, on the reference client.
    Chat(ChatArgs),
    /// Run every check against a conformant peer and against its saboteur: can each one fail?
    Prove(ProveArgs),
    /// Check recorded traffic offline: transcripts, and HAR files as browsers export them.
    Check(CheckArgs),
    /// Compare two transcripts in what they mean, whatever their ids and times.
    Diff(DiffArgs),
    /// Play random conversations against a target and shrink those that fail.
    Fuzz(FuzzArgs),
    /// Record what goes between a client and a server: a reverse proxy, or a wrapper around a program.
    Record(RecordArgs),
    /// Play a transcript to a client or to a server.
    Replay(ReplayArgs),
    /// List requirements, scenarios, areas or suites.
    List(ListArgs),
    /// Explain one requirement: its source, how it is checked, what breaks it, its last verdict.
    Explain(ExplainArgs),
    /// Count what is checked and what is proven.
    Coverage(CoverageArgs),
    /// Serve the reference server, with a mock model provider inside.
    Serve(ServeArgs),
    /// Serve the mock model providers.
    Mock(MockArgs),
    /// Print completions for a shell.
    Completions(CompletionsArgs),
}

/// `turnwire demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// Which requirements and scenarios.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Factor for the protocol's periods of the reference server; 0.01 by default.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Scenarios that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `turnwire server`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct ServerArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// The target, described in a file such as `turnwire.toml`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "start"])]
    pub profile: Option<PathBuf>,
    /// The target, by its base URL.
    #[arg(long, value_name = "URL", conflicts_with = "start")]
    pub url: Option<String>,
    /// The target, by the command that starts it, after `--`; it listens on the port that `PORT` tells it.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Factor that the target multiplies the protocol's periods with, such as 0.01.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Longest wait for an answer of the target, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Scenarios that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `turnwire adapter`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct AdapterArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Only this case, or the cases of this hazard; may be repeated.
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Split the bytes of every answer here; may be repeated.
    #[arg(long = "split", value_name = "OFFSET")]
    pub splits: Vec<usize>,
    /// The torture matrix: every case, with the bytes of its answer split at every place that can matter.
    #[arg(long, conflicts_with_all = ["splits", "scenarios", "require", "junit", "transcripts"])]
    pub matrix: bool,
    /// Splits a case in the matrix, at most; of a longer answer the places that matter most and an even sample.
    #[arg(long, value_name = "N", default_value_t = 1024, requires = "matrix")]
    pub most: usize,
    /// The adapter, by the command that starts it, after `--`; it speaks JSON lines on its standard input and output.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Longest wait for the report of a case, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Scenarios that run at the same time, each with an adapter of its own.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `turnwire provider`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct ProviderArgs {
    /// Base URL as clients of the wire are given it, such as `http://127.0.0.1:11434/v1`.
    #[arg(long, value_name = "BASE", required_unless_present = "schema")]
    pub url: Option<String>,
    /// The wire: `openai-chat`, `openai-responses`, `anthropic-messages` or `gemini`.
    #[arg(long, value_name = "NAME", default_value = "openai-chat")]
    pub wire: String,
    /// The key of the service; the variable is read without the option.
    #[arg(
        long,
        value_name = "KEY",
        env = "TURNWIRE_PROVIDER_KEY",
        hide_env_values = true
    )]
    pub key: Option<String>,
    /// The model that is asked; the first one that the server lists without one.
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Take the URL as it is: no version is put behind a URL that has none.
    #[arg(long)]
    pub as_given: bool,
    /// Only this requirement, or the requirements of an area; may be repeated.
    #[arg(long = "requirement", value_name = "ID")]
    pub requirements: Vec<String>,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Longest wait for an answer, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Scenarios that run at the same time; one after the other without it, for the sake of rate limits.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `turnwire client`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct ClientArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// The command that starts the client, after `--`; it connects to `TURNWIRE_URL`. Without one, the reference
    /// client is checked.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Listen here, one scenario after the other, for a client that is started by hand.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "start")]
    pub listen: Option<SocketAddr>,
    /// The client is a web page, opened in headless Chromium: a file, a folder with an `index.html`, or a URL.
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["start", "listen"])]
    pub browser: Option<String>,
    /// Chromium's executable; without it, the usual names are looked for.
    #[arg(long, value_name = "PATH", env = "CHROMIUM")]
    pub chromium: Option<PathBuf>,
    /// Keep what went over the network of the pages, as a HAR file.
    #[arg(long, value_name = "FILE", requires = "browser")]
    pub har: Option<PathBuf>,
    /// Factor that the client multiplies the protocol's periods with, as `TURNWIRE_TIME_SCALE` tells it.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Longest wait for a report of the client, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Scenarios that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `turnwire chat`.
#[derive(Clone, Debug, clap::Args)]
pub struct ChatArgs {
    /// Base URL of the server.
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// The session to open; without one, a new one is created.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The owner's token of the session, or the operator's for a new one.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TURNWIRE_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Factor that the server multiplies the protocol's periods with.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
}

/// `turnwire prove`.
#[derive(Clone, Debug, clap::Args)]
pub struct ProveArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// Factor for the protocol's periods of the reference server; 0.01 by default.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Sabotages that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `turnwire check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = CHECK_EXIT_CODES)]
pub struct CheckArgs {
    /// Transcripts (`.twire`) and HAR files.
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Which requirements; without a suite, that of the files' traffic.
    #[command(flatten)]
    pub select: SelectArgs,
    /// What is known about whoever was recorded, a file such as `turnwire.toml`.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Factor that the server multiplied the protocol's periods with, where a file does not say.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Fail when this requirement or area is not exercised; may be repeated.
    #[arg(long, value_name = "ID")]
    pub require: Vec<String>,
    /// What is reported where.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `turnwire diff`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = DIFF_EXIT_CODES)]
pub struct DiffArgs {
    /// A transcript (`.twire`) or a HAR file; it may have placeholders.
    #[arg(required_unless_present = "schema")]
    pub a: Option<PathBuf>,
    /// The transcript that is compared with it.
    #[arg(required_unless_present = "schema")]
    pub b: Option<PathBuf>,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// `turnwire fuzz`.
#[derive(Clone, Debug, clap::Args)]
pub struct FuzzArgs {
    /// What is fuzzed.
    #[command(subcommand)]
    pub side: FuzzSide,
}

/// What is fuzzed.
#[derive(Clone, Debug, Subcommand)]
pub enum FuzzSide {
    /// A server: the reference server, unless a target is named.
    Server(FuzzServerArgs),
    /// A client: the reference client, unless a command is given.
    Client(FuzzClientArgs),
}

/// `turnwire fuzz client`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct FuzzClientArgs {
    /// The protocol: `covel-sse` or `sse`.
    #[arg(long, value_name = "NAME", default_value = "covel-sse")]
    pub suite: String,
    /// The same seed plays the same cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many cases are played; with `--prove`, at most for each fault.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub cases: u64,
    /// Number of the first case.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// The command that starts the client, after `--`; it connects to `TURNWIRE_URL`.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Factor that the client multiplies the protocol's periods with, as `TURNWIRE_TIME_SCALE` tells it.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Longest wait for what the client ought to do by itself, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Clients that run at the same time.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Save each case that fails as a transcript, after it was made smaller.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Play only the case of this saved transcript, once more.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prove", "cases"])]
    pub replay: Option<PathBuf>,
    /// Plant faults in front of the reference client: is each one found and made small?
    #[arg(long, conflicts_with = "start")]
    pub prove: bool,
    /// With `--prove`: only faults whose name holds this text.
    #[arg(long, value_name = "TEXT", requires = "prove")]
    pub fault: Option<String>,
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArgs,
    /// No progress on standard error.
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub quiet: bool,
}

/// `turnwire fuzz server`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct FuzzServerArgs {
    /// The protocol, such as `covel-sse`.
    #[arg(long, value_name = "NAME", default_value = "covel-sse")]
    pub suite: String,
    /// Clients that lose their connections and come back with any cursor.
    #[arg(long, required_unless_present = "envelopes")]
    pub reconnect: bool,
    /// Requests that are wrong in form, on every endpoint and for every kind of frame.
    #[arg(long, conflicts_with = "reconnect")]
    pub envelopes: bool,
    /// The same seed plays the same cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many cases are played; with `--prove`, at most for each fault.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub cases: u64,
    /// Number of the first case.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// The target, described in a file such as `turnwire.toml`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "start"])]
    pub profile: Option<PathBuf>,
    /// The target, by its base URL.
    #[arg(long, value_name = "URL", conflicts_with = "start")]
    pub url: Option<String>,
    /// The target, by the command that starts it, after `--`; it listens on the port that `PORT` tells it.
    #[arg(last = true, value_name = "COMMAND")]
    pub start: Vec<String>,
    /// Factor that the target multiplies the protocol's periods with, such as 0.01.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Cases that are played at the same time, at most 64.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Save each case that fails as a transcript, after it was made smaller.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Play only the case of this saved transcript, once more.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prove", "cases"])]
    pub replay: Option<PathBuf>,
    /// Plant faults in front of the reference server: is each one found and made small?
    #[arg(long, conflicts_with_all = ["url", "profile", "start"])]
    pub prove: bool,
    /// With `--prove`: only faults whose name holds this text.
    #[arg(long, value_name = "TEXT", requires = "prove")]
    pub fault: Option<String>,
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArgs,
    /// No progress on standard error.
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub quiet: bool,
}

/// `turnwire record`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordArgs {
    /// The server, by its base URL; clients then use the URL that is printed.
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "stdio",
        conflicts_with = "stdio"
    )]
    pub upstream: Option<String>,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Run a command and record the lines of its standard input and output.
    #[arg(long, requires = "command")]
    pub stdio: bool,
    /// The command that is wrapped, after `--`.
    #[arg(last = true, value_name = "COMMAND", requires = "stdio")]
    pub command: Vec<String>,
    /// Where the recording is written at the end, secrets replaced.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Suite that the header names; without it, that of the traffic.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Factor that the server multiplies the protocol's periods with.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Memory for the recording, in MiB; what comes later is passed on and not kept.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub limit: usize,
    /// The value of this environment variable is a secret, wherever it stands; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub redact_env: Vec<String>,
}

/// `turnwire replay`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = REPLAY_EXIT_CODES)]
pub struct ReplayArgs {
    /// The transcript (`.twire`) or HAR file.
    #[arg(required_unless_present = "schema")]
    pub file: Option<PathBuf>,
    /// Serve its server side; a client then uses the URL that is printed: `http://` for requests and WebSockets,
    /// `tcp://` for channels of lines.
    #[arg(long, required_unless_present_any = ["to_server", "command", "schema"], conflicts_with_all = ["to_server", "command"])]
    pub to_client: bool,
    /// Speak the server side of a channel of lines on our own standard input and output, in place of the program
    /// that was recorded.
    #[arg(long, requires = "to_client")]
    pub stdio: bool,
    /// Send its client side to this server, and compare the answers; `tcp://HOST:PORT` for channels of lines.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub to_server: Option<String>,
    /// A program that speaks lines, after `--`: send the client side to its standard input, and compare what it
    /// says on its standard output. Each channel gets a process of its own.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// `original`, `none`, or a factor on the recorded times, such as 0.1.
    #[arg(long, value_name = "TIMING", default_value = "none", value_parser = timing)]
    pub timing: Timing,
    /// Method and path of a request are enough, and the kind of a message; without it, target, body and message are
    /// the recorded ones but for ids.
    #[arg(long, requires = "to_client")]
    pub lenient: bool,
    /// End when every exchange was asked for and is over.
    #[arg(long, requires = "to_client")]
    pub once: bool,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// What a placeholder of the file stands for, such as `secret-1=abc`; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "to_client")]
    pub set: Vec<String>,
    /// Longest wait for what the recorded server had said, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub patience: f64,
    /// Keep what happened as a transcript.
    #[arg(long, value_name = "FILE", conflicts_with = "to_client")]
    pub out: Option<PathBuf>,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// `turnwire list`.
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// What to list.
    #[arg(value_enum, default_value_t)]
    pub what: Listed,
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// What `turnwire list` lists.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Listed {
    /// Requirements of the catalogue.
    #[default]
    Requirements,
    /// Scenarios that stimulate a target.
    Scenarios,
    /// Areas of the catalogue.
    Areas,
    /// Suites: what a run is about.
    Suites,
}

/// `turnwire explain`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExplainArgs {
    /// The requirement, such as COV-SUB-102.
    #[arg(value_name = "ID")]
    pub id: String,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// `turnwire coverage`.
#[derive(Clone, Debug, clap::Args)]
pub struct CoverageArgs {
    /// Which requirements.
    #[command(flatten)]
    pub select: SelectArgs,
    /// How it is printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// `turnwire serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Where sessions are kept: `memory`, `sqlite`, or `sqlite:FILE`.
    #[arg(long, value_name = "STORE", value_parser = store)]
    pub store: Option<Store>,
    /// Deployment tier, which decides who needs which token.
    #[arg(long, value_enum)]
    pub tier: Option<TierArg>,
    /// Factor for the protocol's periods; 0.01 makes the 30 s heartbeat one of 300 ms.
    #[arg(long, value_name = "FACTOR", value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Model provider, such as `https://api.openai.com/v1`; without one, a mock answers.
    #[arg(long, value_name = "URL")]
    pub llm_base_url: Option<String>,
    /// Protocol that is spoken with the provider: openai-chat, openai-responses, anthropic-messages, gemini or
    /// gemini-openai.
    #[arg(long, value_name = "WIRE")]
    pub llm_wire: Option<Wire>,
    /// Name of the model that is asked.
    #[arg(long, value_name = "NAME")]
    pub llm_model: Option<String>,
    /// Script for the mock provider, YAML or JSON; may be repeated.
    #[arg(long = "script", value_name = "FILE", conflicts_with = "llm_base_url")]
    pub scripts: Vec<PathBuf>,
    /// Serve one client on standard input and output, by this protocol; only `session-update` is served so.
    #[arg(long, value_name = "PROTOCOL", value_parser = ["session-update"])]
    pub stdio: Option<String>,
    /// Also serve `session-update` on this port of the loopback device; 0 takes a free one.
    #[arg(long, value_name = "PORT", conflicts_with = "stdio")]
    pub session_update_port: Option<u16>,
    /// Leave the fixture plugin out, with which the harness provokes what the protocol cannot.
    #[arg(long)]
    pub no_fixtures: bool,
}

/// `turnwire mock`.
#[derive(Clone, Debug, clap::Args)]
pub struct MockArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// What to answer, YAML or JSON; may be repeated.
    #[arg(long = "script", value_name = "FILE")]
    pub scripts: Vec<PathBuf>,
    /// Answer requests that no rule takes with this text; else they get a 400 that says why.
    #[arg(long, value_name = "TEXT")]
    pub reply: Option<String>,
    /// Seed of made ids and of jitter.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// `turnwire completions`.
#[derive(Clone, Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Which requirements.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SelectArgs {
    /// Only this suite, such as `covel-sse`.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Only this requirement, or the requirements of an area: `COV-SUB-102`, `COV-SUB`; may be repeated.
    #[arg(long = "requirement", value_name = "ID")]
    pub requirements: Vec<String>,
    /// Only the requirements of this frozen set, such as `2026-11`; see `turnwire list suites`.
    #[arg(long, value_name = "NAME")]
    pub revision: Option<String>,
    /// Only requirements that bind this side: `server`, `client`, `host` or `adapter`.
    #[arg(long, value_name = "SIDE")]
    pub binds: Option<String>,
}

/// What a run reports where.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ReportArgs {
    /// How the result is printed.
    #[command(flatten)]
    pub print: PrintArgs,
    /// Also write the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also write the result as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Keep what went over the wire, one file a scenario.
    #[arg(long, value_name = "DIR")]
    pub transcripts: Option<PathBuf>,
    /// Call what the target says beyond the protocol's tables warnings, in place of observations.
    #[arg(long, action = ArgAction::SetTrue)]
    pub strict: bool,
    /// No progress on standard error.
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub quiet: bool,
}

/// How something is printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct PrintArgs {
    /// For people or for machines.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print the JSON Schema of what `--format json` prints, and do nothing else.
    #[arg(long)]
    pub schema: bool,
}

/// For people or for machines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON object.
    Json,
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ListenArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}

/// Where sessions are kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Store {
    /// In memory, until the process ends.
    Memory,
    /// In a SQLite file.
    Sqlite(PathBuf),
}

/// File of `--store sqlite`.
pub const DEFAULT_STORE: &str = "turnwire.db";

/// Deployment tier.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TierArg {
    /// Run by its only user.
    SelfHosted,
    /// A public demonstration.
    Demo,
    /// A service with accounts.
    Commercial,
}

fn store(text: &str) -> Result<Store, String> {
    match text.split_once(':') {
        None if text == "memory" => Ok(Store::Memory),
        None if text == "sqlite" => Ok(Store::Sqlite(DEFAULT_STORE.into())),
        Some(("sqlite", file)) if !file.is_empty() => Ok(Store::Sqlite(file.into())),
        _ => Err("expected `memory`, `sqlite` or `sqlite:FILE`".to_owned()),
    }
}

fn time_scale(text: &str) -> Result<f64, String> {
    positive(text).ok_or_else(|| "expected a number above 0, such as 0.01".to_owned())
}

fn timing(text: &str) -> Result<Timing, String> {
    match text {
        "original" => Ok(Timing::Scaled(1.0)),
        "none" => Ok(Timing::None),
        factor => positive(factor)
            .map(Timing::Scaled)
            .ok_or_else(|| "expected `original`, `none` or a number above 0".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    /// More than a day is no wait that anybody means.
    const MOST: f64 = 86_400.0;
    let seconds = positive(text).filter(|seconds| *seconds <= MOST);
    seconds.ok_or_else(|| "expected seconds above 0, at most 86400".to_owned())
}

fn positive(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
}

fn jobs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|jobs| (1..=256).contains(jobs));
    number.ok_or_else(|| "expected a number from 1 to 256".to_owned())
}
