//! A saboteur in front of every instance of a run.

use std::{fmt, sync::Arc};

use crate::{
    drivers::{
        DriveError,
        http::BaseUrl,
        target::{Front, Intercept, Pending},
    },
    saboteurs::{Proxy, Saboteur, bridge::LineProxy},
};

/// One saboteur for all instances of one run, so that it remembers what it saw before a restart.
pub(crate) struct Sabotaging {
    pub(crate) saboteur: Arc<dyn Saboteur>,
    pub(crate) time_scale: f64,
}

impl fmt::Debug for Sabotaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sabotaging").finish_non_exhaustive()
    }
}

impl Intercept for Sabotaging {
    fn before<'a>(
        &'a self,
        upstream: &'a BaseUrl,
    ) -> Pending<'a, Result<Box<dyn Front>, DriveError>> {
        Box::pin(async move {
            let harness = |error: &dyn fmt::Display| DriveError::Harness(error.to_string());
            if upstream.lines {
                let (saboteur, scale) = (self.saboteur.clone(), self.time_scale);
                let proxy = LineProxy::start(upstream.authority(), saboteur, scale)
                    .await
                    .map_err(|error| harness(&error))?;
                let url = format!("tcp://{}", proxy.address());
                let url = BaseUrl::parse(&url).map_err(|error| harness(&error))?;
                return Ok(Box::new(SabotagedLines { _proxy: proxy, url }) as Box<dyn Front>);
            }
            // The proxy stands in front of the whole host; the prefix stays with the harness.
            let host = format!("http://{}", upstream.authority());
            let proxy = Proxy::start(&host, self.saboteur.clone(), self.time_scale)
                .await
                .map_err(|error| harness(&error))?;
            let mut url = BaseUrl::parse(&format!("{}{}", proxy.base_url(), upstream.prefix))
                .map_err(|error| harness(&error))?;
            url.query.clone_from(&upstream.query);
            Ok(Box::new(Sabotaged { _proxy: proxy, url }) as Box<dyn Front>)
        })
    }

    fn report(&self, report: &mut serde_json::Value) {
        self.saboteur.report(report);
    }
}

#[derive(Debug)]
struct Sabotaged {
    /// Stops when it is dropped.
    _proxy: Proxy,
    url: BaseUrl,
}

#[derive(Debug)]
struct SabotagedLines {
    /// Stops when it is dropped.
    _proxy: LineProxy,
    url: BaseUrl,
}

impl Front for SabotagedLines {
    fn base_url(&self) -> BaseUrl {
        self.url.clone()
    }
}

impl Front for Sabotaged {
    fn base_url(&self) -> BaseUrl {
        self.url.clone()
    }
}
