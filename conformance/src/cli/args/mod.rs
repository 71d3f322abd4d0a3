//! What can be typed. Nothing here looks at a file, the network or the environment.
//!
//! Each command has a file; [`groups`] are options that several of them share, [`values`] is what their texts become.
//! Names of suites, requirements and scenarios stay texts: [`select`](super::select) resolves them.

use clap::{Parser, Subcommand};

mod adapter;
mod chat;
mod check;
mod client;
mod completions;
mod coverage;
mod demo;
mod diff;
mod explain;
mod fuzz;
mod groups;
mod list;
mod mock;
mod prove;
mod provider;
mod record;
mod replay;
mod serve;
mod server;
mod values;

pub use adapter::AdapterArgs;
pub use chat::ChatArgs;
pub use check::CheckArgs;
pub use client::ClientArgs;
pub use completions::CompletionsArgs;
pub use coverage::CoverageArgs;
pub use demo::DemoArgs;
pub use diff::DiffArgs;
pub use explain::ExplainArgs;
pub use fuzz::{FuzzArgs, FuzzClientArgs, FuzzServerArgs, FuzzSide};
pub use groups::{Format, ListenArgs, PrintArgs, ReportArgs, SelectArgs, TargetArgs};
pub use list::{ListArgs, Listed};
pub use mock::{MockArgs, MockCommand, MockRecordArgs, VerifyArg};
pub use prove::ProveArgs;
pub use provider::ProviderArgs;
pub use record::RecordArgs;
pub use replay::ReplayArgs;
pub use serve::{DEFAULT_STORE, ServeArgs, Store, TierArg};
pub use server::ServerArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  conformant
  1  a requirement failed
  2  wrong usage or configuration
  3  the target could not be reached, the harness itself failed, or the run was interrupted
  4  nothing in the run shows any requirement";

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
