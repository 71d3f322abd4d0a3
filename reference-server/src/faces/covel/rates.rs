//! How often one client may ask for one thing, and how many subscriptions may be open.
//!
//! Source: seed 000, lines 681-682; covel.md of the fact collection, section 2.1.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::errors::ApiError;
use crate::engine::ids::SessionId;

/// Clients that are counted at a time; beyond that the windows that are over are forgotten first.
const MAX_WINDOWS: usize = 10_000;

/// Counts requests per client address and path in windows of fixed length.
pub struct Rates {
    is_on: bool,
    window: Duration,
    windows: Mutex<HashMap<(IpAddr, String), Window>>,
}

struct Window {
    until: Instant,
    count: u32,
}

impl Rates {
    /// Counts in windows of this length, unless it is off.
    #[must_use]
    pub fn new(is_on: bool, window: Duration) -> Self {
        Self {
            is_on,
            window,
            windows: Mutex::new(HashMap::new()),
        }
    }

    /// Counts one request for `path`, of which a window holds `max`.
    ///
    /// # Errors
    ///
    /// 429 `rate_limit_exceeded`, with the whole seconds until the window is over.
    pub fn count(&self, client: IpAddr, path: &str, max: u32) -> Result<(), ApiError> {
        if !self.is_on {
            return Ok(());
        }
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MAX_WINDOWS {
            windows.retain(|_, window| window.until > now);
            if windows.len() >= MAX_WINDOWS {
                windows.clear();
            }
        }
        let fresh = Window {
            until: now + self.window,
            count: 0,
        };
        let window = windows.entry((client, path.to_owned())).or_insert(fresh);
        if window.until <= now {
            *window = Window {
                until: now + self.window,
                count: 0,
            };
        }
        if window.count >= max {
            let left = window.until - now;
            let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
            return Err(rate_limit_exceeded(seconds));
        }
        window.count += 1;
        Ok(())
    }
}

fn rate_limit_exceeded(seconds: u64) -> ApiError {
    let error = format!("too many requests, try again in {seconds} s");
    let mut refusal = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", error);
    refusal.retry_after = Some(seconds);
    refusal
}

/// The places for subscriptions. Clones are handles to the same places.
#[derive(Clone)]
pub struct Places {
    shared: Arc<Shared>,
}

struct Shared {
    per_session: usize,
    in_all: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    by_session: HashMap<SessionId, usize>,
    in_all: usize,
}

impl Places {
    /// So many places for each session, and so many in all.
    #[must_use]
    pub fn new(per_session: usize, in_all: usize) -> Self {
        let taken = Mutex::new(Taken::default());
        Self {
            shared: Arc::new(Shared {
                per_session,
                in_all,
                taken,
            }),
        }
    }

    /// Takes a place until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// 429 `connection_limit_exceeded` when the session has no place left, 429
    /// `global_connection_limit_exceeded` when the process has none.
    pub fn take(&self, session: &SessionId) -> Result<Place, ApiError> {
        let mut taken = self.shared.taken();
        let of_session = taken.by_session.get(session).copied().unwrap_or_default();
        let full = if of_session >= self.shared.per_session {
            Some((
                "connection_limit_exceeded",
                self.shared.per_session,
                "this session",
            ))
        } else if taken.in_all >= self.shared.in_all {
            Some((
                "global_connection_limit_exceeded",
                self.shared.in_all,
                "this server",
            ))
        } else {
            None
        };
        if let Some((code, limit, of)) = full {
            let error = format!("{limit} subscriptions of {of} are open, which is all it takes");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, error));
        }
        taken.in_all += 1;
        taken.by_session.insert(session.clone(), of_session + 1);
        Ok(Place {
            shared: Arc::clone(&self.shared),
            session: session.clone(),
        })
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One place for a subscription; free again when this is dropped.
pub struct Place {
    shared: Arc<Shared>,
    session: SessionId,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.shared.taken();
        taken.in_all = taken.in_all.saturating_sub(1);
        if let Some(count) = taken.by_session.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                taken.by_session.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn session(number: usize) -> SessionId {
        SessionId::from(format!("s{number}"))
    }

    #[test]
    fn a_session_has_its_places_and_gets_them_back() {
        let places = Places::new(8, 512);
        let mut taken: Vec<_> = (0..8).map(|_| places.take(&session(1)).unwrap()).collect();

        let refusal = places.take(&session(1)).err().unwrap();
        assert_eq!(refusal.code, Some("connection_limit_exceeded"));
        assert!(places.take(&session(2)).is_ok());
        taken.pop();
        assert!(places.take(&session(1)).is_ok());
    }

    #[test]
    fn the_process_has_its_places_too() {
        let places = Places::new(8, 512);
        let taken: Vec<_> = (0..512)
            .map(|number| places.take(&session(number / 8)).unwrap())
            .collect();

        let refusal = places.take(&session(64)).err().unwrap();
        assert_eq!(refusal.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refusal.code, Some("global_connection_limit_exceeded"));
        drop(taken);
        assert!(places.take(&session(64)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_holds_so_many_requests_and_ends() {
        let rates = Rates::new(true, Duration::from_secs(60));
        for _ in 0..30 {
            rates.count(CLIENT, "/a", 30).unwrap();
        }
        tokio::time::advance(Duration::from_millis(500)).await;

        let refusal = rates.count(CLIENT, "/a", 30).unwrap_err();
        assert_eq!(
            (refusal.code, refusal.retry_after),
            (Some("rate_limit_exceeded"), Some(60))
        );
        assert_eq!(rates.count(CLIENT, "/b", 30), Ok(()));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(rates.count(CLIENT, "/a", 30), Ok(()));
    }

    #[test]
    fn rates_that_are_off_refuse_nothing() {
        let rates = Rates::new(false, Duration::from_secs(60));
        assert!((0..1000).all(|_| rates.count(CLIENT, "/a", 1).is_ok()));
    }
}
