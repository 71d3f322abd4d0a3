//! Under which names a server is asked, and by whose pages.
//!
//! A page may make a browser ask any server, and a name that a stranger owns may lead to this machine: then the
//! stranger's page and this server have one origin, and no rule of browsers is between them (DNS rebinding). A server
//! that listens on a loopback address is meant for this machine alone, so it answers under loopback names only,
//! besides those that its deployment lists.
//!
//! Source: ours; the seeds name neither `Host` nor `Origin`.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// What a deployment lets in.
#[derive(Clone, Debug, Default)]
pub struct Doors {
    /// Whether names have to be loopback names, or listed.
    is_loopback: bool,
    /// Names besides.
    hosts: Vec<String>,
    /// Origins besides the server's own.
    origins: Vec<String>,
}

impl Doors {
    /// Those of a server that listens there. `hosts` are names without a port, `origins` are `https://host[:port]`.
    #[must_use]
    pub fn new(listens: SocketAddr, hosts: Vec<String>, origins: Vec<String>) -> Self {
        Self {
            is_loopback: is_loopback(listens.ip()),
            hosts,
            origins,
        }
    }

    /// Whether a request names a server that this one may be. A program may leave the name out; no browser does.
    #[must_use]
    pub fn is_host(&self, headers: &HeaderMap) -> bool {
        let Some(host) = headers.get(HOST) else {
            return true;
        };
        if !self.is_loopback {
            return true;
        }
        let Some(name) = host.to_str().ok().and_then(name_of) else {
            return false;
        };
        is_loopback_name(name)
            || self
                .hosts
                .iter()
                .any(|host| host.eq_ignore_ascii_case(name))
    }

    /// Whether a page may ask. A request without `Origin` comes from no page, or only reads; one with it has to come
    /// from the server's own page or from an origin that the deployment lists.
    #[must_use]
    pub fn is_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else {
            return true;
        };
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let is_own = origin.split_once("://").is_some_and(|(scheme, authority)| {
            matches!(scheme, "http" | "https") && host.is_some_and(|host| host == authority)
        });
        is_own || self.origins.iter().any(|other| other == origin)
    }
}

/// The name in an authority, without the port and the brackets of an IPv6 address.
fn name_of(authority: &str) -> Option<&str> {
    match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (port.is_empty() || port.starts_with(':')).then_some(address)
        }
        None => Some(
            authority
                .split_once(':')
                .map_or(authority, |(name, _)| name),
        ),
    }
}

/// Browsers never ask a name server for `localhost` and what is below it.
fn is_loopback_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(is_loopback)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(host: Option<&str>, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().unwrap());
            }
        }
        headers
    }

    fn doors(listens: &str) -> Doors {
        let listed = |text: &str| vec![text.to_owned()];
        Doors::new(
            listens.parse().unwrap(),
            listed("app.test"),
            listed("https://app.test"),
        )
    }

    #[test]
    fn a_foreign_page_may_not_ask_and_a_program_may() {
        let may = |origin| doors("127.0.0.1:7000").is_origin(&asks(Some("127.0.0.1:7000"), origin));

        assert!(may(None));
        assert!(may(Some("http://127.0.0.1:7000")));
        assert!(may(Some("https://app.test")));
        assert!(!may(Some("https://app.test.evil.test")));
        assert!(!may(Some("http://127.0.0.1:7001")));
        assert!(!may(Some("null")));
    }

    #[test]
    fn a_server_on_the_loopback_device_answers_under_loopback_names_and_listed_ones() {
        for listens in ["127.0.0.1:7000", "[::1]:7000"] {
            let may = |host| doors(listens).is_host(&asks(host, None));
            for host in [
                "localhost",
                "LOCALHOST:7000",
                "localhost.:7000",
                "app.localhost",
                "127.0.0.1:7000",
                "127.8.8.8",
                "[::1]:7000",
                "[::ffff:127.0.0.1]",
                "app.test:7000",
            ] {
                assert!(may(Some(host)), "{host}");
            }
            for host in [
                "evil.test:7000",
                "127.0.0.1.evil.test",
                "localhost.evil.test",
                "evil.test.app.test",
                "192.168.0.1:7000",
                "[::1].evil.test",
                "[::1",
                "",
            ] {
                assert!(!may(Some(host)), "{host}");
            }
            assert!(may(None));
        }
    }

    #[test]
    fn a_server_for_others_is_asked_under_any_name() {
        assert!(doors("0.0.0.0:7000").is_host(&asks(Some("chat.test"), None)));
    }
}
