//! Turnwire's harness: checks servers and clients of chat and agent streaming protocols.
//!
//! ```text
//! scenario (stimulus) ---> transcript (facts) ---> checks (pure) ---> verdicts ---> report
//! ```
//!
//! - [`transcript`]: everything that happened, losslessly, its text form and its views;
//! - [`verdict`]: findings, evidence, verdicts;
//! - [`checks`]: pure functions bound to requirements; [`scenarios`]: what stimulates a target;
//! - [`saboteurs`]: proxies with one small fault each, which prove that the checks can fail;
//! - [`cases`]: what adapters of LLM wires are put through, and what is true then;
//! - [`schema`]: the JSON Schemas of both, compiled once;
//! - [`drivers`]: the sockets and processes; [`stage`]: what a scenario acts through; [`profile`]: the target;
//! - [`run`], [`prove`] and [`matrix`]: the orders of events; [`suites`]: what belongs together;
//! - [`clients`]: reference clients; [`observations`]: what a target says that nobody has named;
//! - [`replay`]: transcripts played to a client or a server;
//! - [`recording`]: a proxy and a wrapper that record what passes;
//! - [`offline`]: checks over files, without a target;
//! - [`report`] and [`cli`]: for people and machines.
//!
//! Two paths never turn back. One byte: socket, driver, transcript, view, check, verdict, report. One
//! stimulus: scenario, stage, driver, socket.

pub mod cases;
pub mod checks;
pub mod cli;
pub mod clients;
pub mod drivers;
pub mod fuzz;
#[doc(hidden)]
pub mod fuzzing;
pub mod matrix;
pub mod observations;
pub mod offline;
pub mod profile;
pub mod prove;
pub mod recording;
pub mod replay;
pub mod report;
pub mod run;
pub mod saboteurs;
pub mod scenarios;
pub mod schema;
pub mod stage;
pub mod suites;
pub mod transcript;
pub mod verdict;
