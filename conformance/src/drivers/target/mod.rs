//! The target under test, as something that runs.
//!
//! - [`instance`]: one running target with its own home folder, what may stand in front of it, and restarts;
//! - [`command`]: a program that the harness starts, watches and kills;
//! - [`url`]: a server that somebody else runs;
//! - [`reference`]: the reference server, in process;
//! - [`mock`]: the mock providers, in process;
//! - [`no_server`]: a target that is no server at all.
//!
//! How a target is started is behind [`Launch`], so that an instance does not know what it runs.

use std::{fmt::Debug, future::Future, path::PathBuf, pin::Pin};

use super::{DriveError, http::BaseUrl};

pub mod command;
pub mod instance;
pub mod mock;
pub mod no_server;
pub mod reference;
pub mod url;

pub use instance::Instance;

/// A boxed future, for traits that are used as objects.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a start needs to know.
#[derive(Clone, Debug)]
pub struct Start {
    /// Variant of the profile; `default` when none was asked for.
    pub variant: String,
    /// Folder that outlives restarts of one instance, for the target's database.
    pub home: PathBuf,
    /// Base URL of the mock model provider, when there is one.
    pub model_url: Option<String>,
}

/// The name of the variant when a scenario asks for none.
pub const DEFAULT_VARIANT: &str = "default";

/// A way to start a target.
pub trait Launch: Debug + Send + Sync {
    /// Starts it and waits until it is ready.
    fn start<'a>(&'a self, start: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>>;

    /// Whether it can be started as this variant; the text of `Err` says what the profile lacks.
    ///
    /// # Errors
    ///
    /// When the profile does not describe the variant.
    fn offers(&self, variant: &str) -> Result<(), String>;

    /// Whether an instance can be stopped, killed and started again, and several can run side by side; the text
    /// of `Err` says what the profile lacks.
    ///
    /// # Errors
    ///
    /// When the harness does not start the target itself.
    fn restarts(&self) -> Result<(), String>;
}

/// A target that runs. Dropping it kills it.
pub trait Running: Debug + Send + Sync {
    /// Where it listens.
    fn base_url(&self) -> BaseUrl;

    /// The last lines of its output, oldest first; empty when there is none to see.
    fn output(&self) -> Vec<String>;

    /// Asks it to stop, and waits until it has.
    fn stop(self: Box<Self>) -> Pending<'static, Result<(), DriveError>>;

    /// Kills it without warning, and waits until it is gone.
    fn kill(self: Box<Self>) -> Pending<'static, Result<(), DriveError>>;
}

/// Something that is put between the harness and every instance of the target, such as a saboteur.
pub trait Intercept: Debug + Send + Sync {
    /// Starts a proxy in front of the target at `upstream`.
    fn before<'a>(
        &'a self,
        upstream: &'a BaseUrl,
    ) -> Pending<'a, Result<Box<dyn Front>, DriveError>>;

    /// Changes what a testee reports; null takes the report away.
    fn report(&self, report: &mut serde_json::Value) {
        let _ = report;
    }
}

/// A proxy that runs. Dropping it stops it.
pub trait Front: Debug + Send + Sync {
    /// Where it listens.
    fn base_url(&self) -> BaseUrl;
}
