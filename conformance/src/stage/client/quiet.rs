//! When a client has done what it had to do: nothing has come of it for a while.
//!
//! A client says nowhere that it is done, so its silence has to tell. On a busy machine silence may mean that it has
//! not had its turn, or that we have not: time in which the machine kept us waiting does not count, and what piled up
//! meanwhile is given the whole quiet again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::ClientStage;

/// A client in this process is quiet when nothing came of it for so long.
const QUIET: Duration = Duration::from_millis(50);

/// A program is.
const QUIET_PROGRAM: Duration = Duration::from_millis(300);

/// One that took long to come is, at most, after this time.
const QUIET_SLOW: Duration = Duration::from_millis(1500);

/// Looks at a client in that time.
const LOOKS: u32 = 10;

/// After so many times its quiet, a client counts as one that never rests.
const RESTLESS: u32 = 20;

/// A look that comes so much too late has been kept waiting.
const LATE: Duration = Duration::from_millis(10);

/// So many late looks begin the quiet anew. A machine that is always late would let nobody be quiet.
const MOST_LATE: u32 = 20;

impl ClientStage {
    /// Waits until the client is quiet: no report and no request for a while, in which we were not late ourselves; who
    /// was slow to come is given longer.
    pub async fn settle(&self) {
        let quiet = self.quiet().await;
        let (mut before, mut looks, mut late_looks) = (None, 0, 0);
        // A client that never rests is not waited for.
        for _ in 0..LOOKS * RESTLESS {
            let now = Some(self.came().await);
            looks = if now == before { looks + 1 } else { 0 };
            if looks == LOOKS {
                // Where the way there and back takes so long, more may be on it.
                if self.rest().await < quiet && Some(self.came().await) == now {
                    return;
                }
                looks = 0;
            }
            before = now;
            let due = Instant::now() + quiet / LOOKS;
            sleep(quiet / LOOKS).await;
            if due.elapsed() >= LATE && late_looks < MOST_LATE {
                late_looks += 1;
                before = None;
            }
        }
    }

    /// How long nothing may come of this client before it counts as quiet.
    async fn quiet(&self) -> Duration {
        if self.setting.launch.waits().is_none() {
            return QUIET;
        }
        let running = self.running.lock().await;
        let took = running.as_ref().and_then(|live| live.took);
        let half = took.unwrap_or_default() / 2;
        half.clamp(QUIET_PROGRAM, QUIET_SLOW)
    }

    /// How many reports and requests have come so far.
    async fn came(&self) -> (usize, usize) {
        let running = self.running.lock().await;
        let reports = running.as_ref();
        let reports = reports.map_or(0, |live| live.heard.borrow().reports.len());
        (reports, self.server.arrivals())
    }

    /// Asks the client whether it is at rest, where that is possible; how long it took.
    async fn rest(&self) -> Duration {
        let rests = {
            let running = self.running.lock().await;
            running.as_ref().and_then(|live| live.rests.clone())
        };
        let begun = Instant::now();
        if let Some(rests) = rests {
            rests.rest().await;
        }
        begun.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tokio::time::advance;

    use super::*;
    use crate::{
        drivers::testee::client::{Living, OwnClient, Wires},
        profile::Profile,
        stage::{Cases, client::ClientSetting},
        transcript::{Header, record::Recorder},
    };

    /// A stage with this client, which has just begun.
    async fn stage(live: fn(Wires) -> Living) -> ClientStage {
        let setting = ClientSetting {
            scenario: "quiet".to_owned(),
            recorder: Recorder::new(Header::default()),
            launch: Arc::new(OwnClient { name: "own", live }),
            intercept: None,
            profile: Arc::new(Profile::reference()),
            cases: Cases::default(),
        };
        let stage = ClientStage::new(setting).await.unwrap();
        stage.begin("quiet").await.unwrap();
        stage
    }

    /// The machine stops everybody for so long in the middle of the last look; then the client reports after this time.
    async fn reports_after_a_stop(wires: Wires, stop: Duration, then: Duration) {
        sleep(QUIET - QUIET / LOOKS / 2).await;
        advance(stop).await;
        sleep(then).await;
        let report = json!({ "state": "open" });
        wires.reporter().report(&report).await;
        std::future::pending().await
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_the_machine_stood_still_is_waited_for() {
        let stage = stage(|wires| {
            let reports = reports_after_a_stop(wires, QUIET * 6, QUIET * 4 / 5);
            Box::pin(reports)
        })
        .await;
        stage.settle().await;
        assert_eq!(stage.came().await, (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_is_always_late_is_not_waited_for_for_ever() {
        let stage = stage(|_| {
            Box::pin(async {
                loop {
                    sleep(QUIET / LOOKS / 2).await;
                    advance(QUIET).await;
                }
            })
        })
        .await;
        let begun = Instant::now();
        stage.settle().await;
        let took = begun.elapsed();
        assert!(took < QUIET * 4 * (MOST_LATE + LOOKS), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_silent_on_a_machine_that_is_not_busy_is_quiet_after_its_quiet() {
        let stage = stage(|_| Box::pin(std::future::pending())).await;
        let begun = Instant::now();
        stage.settle().await;
        let took = begun.elapsed();
        assert!(took >= QUIET && took < QUIET * 2, "{took:?}");
    }
}
