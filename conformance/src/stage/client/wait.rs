//! How long a client is waited for: time in which the machine kept it from running does not count.
//!
//! A program that is started on a busy machine may stand in line for longer than the whole wait. That is no fault of the
//! program, so a wait goes on by as much as the program stood in line meanwhile, up to [`MOST_KEPT`].

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::ClientStage;
use crate::drivers::testee::Rests;

/// A wait goes on by no more than this.
pub(super) const MOST_KEPT: Duration = Duration::from_secs(60);

/// A wait that has begun.
#[derive(Debug)]
pub(crate) struct Wait {
    begun: Instant,
    within: Duration,
    client: Option<Arc<dyn Rests>>,
    /// How long the client had been kept waiting before.
    before: Duration,
}

impl Wait {
    /// What is left of it; nothing when it is over.
    pub(crate) fn left(&self) -> Option<Duration> {
        let kept = kept_waiting(self.client.as_ref()).saturating_sub(self.before);
        let whole = self.within.saturating_add(kept.min(MOST_KEPT));
        let left = whole.saturating_sub(self.begun.elapsed());
        (!left.is_zero()).then_some(left)
    }
}

fn kept_waiting(client: Option<&Arc<dyn Rests>>) -> Duration {
    client.map_or(Duration::ZERO, |client| client.kept_waiting())
}

impl ClientStage {
    /// Begins to wait for so long.
    pub(crate) async fn wait(&self, within: Duration) -> Wait {
        let client = {
            let running = self.running.lock().await;
            running.as_ref().and_then(|live| live.rests.clone())
        };
        Wait {
            begun: Instant::now(),
            within,
            before: kept_waiting(client.as_ref()),
            client,
        }
    }

    /// What comes of this; nothing when it takes longer.
    pub(super) async fn within<T>(
        &self,
        within: Duration,
        what: impl Future<Output = T>,
    ) -> Option<T> {
        let wait = self.wait(within).await;
        let mut what = pin!(what);
        let mut left = within;
        loop {
            if let Ok(done) = timeout(left, &mut what).await {
                return Some(done);
            }
            left = wait.left()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;
    use crate::{
        drivers::{
            DriveError,
            target::Pending,
            testee::{
                About, Said, Testee,
                client::{ClientStart, LaunchClient},
            },
        },
        profile::Profile,
        stage::{Cases, client::ClientSetting},
        transcript::{Header, record::Recorder},
    };

    /// A program that reports this much later than anybody waits, and what it was kept waiting for meanwhile.
    #[derive(Clone, Copy, Debug)]
    struct Late {
        by: Duration,
        in_line: bool,
    }

    /// A program that has been in line since it was started, or never.
    #[derive(Debug)]
    struct InLine(Option<Instant>);

    impl Rests for InLine {
        fn rest(&self) -> Pending<'_, ()> {
            Box::pin(std::future::ready(()))
        }

        fn kept_waiting(&self) -> Duration {
            self.0.map_or(Duration::ZERO, |since| since.elapsed())
        }
    }

    impl LaunchClient for Late {
        fn start<'a>(&'a self, _: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>> {
            let Self { by, in_line } = *self;
            let testee = Testee::in_process(About::default(), move |_lines, said| async move {
                sleep(Profile::reference().limits.patience + by).await;
                let report = json!({ "state": "open" }).to_string();
                let _ = said.send(Said::Line(report.into())).await;
                std::future::pending().await
            });
            let in_line = InLine(in_line.then(Instant::now));
            Box::pin(async move { Ok(testee.resting(Arc::new(in_line))) })
        }
    }

    /// Whether the report of this program is waited for.
    async fn is_waited_for(launch: Late) -> bool {
        let setting = ClientSetting {
            scenario: "wait".to_owned(),
            recorder: Recorder::new(Header::default()),
            launch: Arc::new(launch),
            intercept: None,
            profile: Arc::new(Profile::reference()),
            cases: Cases::default(),
        };
        let stage = ClientStage::new(setting).await.unwrap();
        stage.begin("wait").await.unwrap();
        stage.reported(|report| report["state"] == "open").await
    }

    #[tokio::test(start_paused = true)]
    async fn who_stands_in_line_for_a_processor_is_waited_for_longer() {
        let by = Duration::from_secs(1);
        assert!(is_waited_for(Late { by, in_line: true }).await);
        assert!(!is_waited_for(Late { by, in_line: false }).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stands_in_line_is_not_waited_for_for_ever() {
        let by = MOST_KEPT * 2;
        assert!(!is_waited_for(Late { by, in_line: true }).await);
    }
}
