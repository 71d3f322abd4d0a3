//! A target that somebody else runs. The harness can neither stop it nor start it as a variant, unless the
//! profile names the URL of a server that runs as that variant.

use std::collections::BTreeMap;

use super::{DEFAULT_VARIANT, Launch, Pending, Running, Start};
use crate::drivers::{DriveError, http::BaseUrl};

/// URLs by variant.
#[derive(Clone, Debug)]
pub struct UrlTarget {
    /// The default one.
    pub url: BaseUrl,
    /// Servers that run as a variant of the profile.
    pub variants: BTreeMap<String, BaseUrl>,
}

#[derive(Debug)]
struct Elsewhere(BaseUrl);

impl Launch for UrlTarget {
    fn start<'a>(&'a self, start: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>> {
        let url = self
            .variants
            .get(&start.variant)
            .unwrap_or(&self.url)
            .clone();
        Box::pin(async move { Ok(Box::new(Elsewhere(url)) as Box<dyn Running>) })
    }

    fn offers(&self, variant: &str) -> Result<(), String> {
        if variant == DEFAULT_VARIANT || self.variants.contains_key(variant) {
            return Ok(());
        }
        Err(format!(
            "the target is a URL; name a server that runs so under [variants.{variant}] url"
        ))
    }

    fn restarts(&self) -> Result<(), String> {
        Err(
            "the target is a URL; a profile with [target] command lets the harness start it"
                .to_owned(),
        )
    }
}

impl Running for Elsewhere {
    fn base_url(&self) -> BaseUrl {
        self.0.clone()
    }

    fn output(&self) -> Vec<String> {
        Vec::new()
    }

    fn stop(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async { Ok(()) })
    }

    fn kill(self: Box<Self>) -> Pending<'static, Result<(), DriveError>> {
        Box::pin(async { Ok(()) })
    }
}
