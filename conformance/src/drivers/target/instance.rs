//! One running target with its own home folder.
//!
//! ```text
//! start ──> up ──stop──> down ──start_again──> up
//!            └────kill──> down
//! ```

use std::{path::Path, sync::Arc};

use tempfile::TempDir;
use tokio::sync::Mutex;

use super::{Front, Intercept, Launch, Running, Start};
use crate::drivers::{DriveError, http::BaseUrl};

/// A target that a scenario, or several, act upon.
#[derive(Debug)]
pub struct Instance {
    launch: Arc<dyn Launch>,
    intercept: Option<Arc<dyn Intercept>>,
    start: Start,
    /// Removed when the instance is dropped.
    home: TempDir,
    up: Mutex<Option<Up>>,
}

/// The target and what stands in front of it.
#[derive(Debug)]
struct Up {
    // Dropped first: nobody reaches a target that is being killed.
    front: Option<Box<dyn Front>>,
    running: Box<dyn Running>,
}

impl Up {
    fn url(&self) -> BaseUrl {
        self.front
            .as_ref()
            .map_or_else(|| self.running.base_url(), |front| front.base_url())
    }
}

impl Instance {
    /// Starts the target as `variant`, with `intercept` in front of it.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] when there is no such variant, [`DriveError::NotStarted`] when it does not get
    /// ready, [`DriveError::Harness`] when there is no folder for it.
    pub async fn start(
        launch: Arc<dyn Launch>,
        variant: &str,
        model_url: Option<String>,
        intercept: Option<Arc<dyn Intercept>>,
    ) -> Result<Self, DriveError> {
        launch
            .offers(variant)
            .map_err(|why| DriveError::NotPossible {
                what: format!("variant {variant}"),
                why,
            })?;
        let home = tempfile::Builder::new()
            .prefix("turnwire-")
            .tempdir()
            .map_err(|error| DriveError::Harness(format!("no temporary folder: {error}")))?;
        let start = Start {
            variant: variant.to_owned(),
            home: home.path().to_owned(),
            model_url,
        };
        let instance = Self {
            launch,
            intercept,
            start,
            home,
            up: Mutex::new(None),
        };
        instance.start_again().await?;
        Ok(instance)
    }

    /// Variant that it was started as.
    pub fn variant(&self) -> &str {
        &self.start.variant
    }

    /// The folder that outlives its restarts.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where it is reached now; `None` while it is down.
    pub async fn url(&self) -> Option<BaseUrl> {
        self.up.lock().await.as_ref().map(Up::url)
    }

    /// The last lines of its output, oldest first.
    pub async fn output(&self) -> Vec<String> {
        self.up
            .lock()
            .await
            .as_ref()
            .map(|up| up.running.output())
            .unwrap_or_default()
    }

    /// Asks it to stop and waits until it has. Nothing happens when it is down.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotPossible`] for a target that the harness did not start; what goes wrong while stopping.
    pub async fn stop(&self) -> Result<(), DriveError> {
        self.may("stop")?;
        match self.up.lock().await.take() {
            Some(Up { front, running }) => {
                let stopped = running.stop().await;
                drop(front);
                stopped
            }
            None => Ok(()),
        }
    }

    /// Kills it without warning. Nothing happens when it is down.
    ///
    /// # Errors
    ///
    /// As [`Instance::stop`].
    pub async fn kill(&self) -> Result<(), DriveError> {
        self.may("kill")?;
        match self.up.lock().await.take() {
            Some(Up { front, running }) => {
                let killed = running.kill().await;
                drop(front);
                killed
            }
            None => Ok(()),
        }
    }

    /// Starts it again on the same home folder, and says where it is now reached. Nothing happens when it is up.
    ///
    /// # Errors
    ///
    /// [`DriveError::NotStarted`] when it does not get ready.
    pub async fn start_again(&self) -> Result<BaseUrl, DriveError> {
        let mut up = self.up.lock().await;
        if let Some(up) = up.as_ref() {
            return Ok(up.url());
        }
        let running = self.launch.start(&self.start).await?;
        let front = match &self.intercept {
            Some(intercept) => Some(intercept.before(&running.base_url()).await?),
            None => None,
        };
        Ok(up.insert(Up { front, running }).url())
    }

    fn may(&self, what: &str) -> Result<(), DriveError> {
        self.launch
            .restarts()
            .map_err(|why| DriveError::NotPossible {
                what: what.to_owned(),
                why,
            })
    }
}
