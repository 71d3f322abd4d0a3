//! The base URL of a target: scheme, host, port, and what every request gets: a path in front of its own, and for
//! model services a query behind it.

use std::fmt;

use http::uri::{Scheme, Uri};
use turnwire_spec::secrets;

/// `http://HOST[:PORT][/PREFIX][?QUERY]`, the same with `https`, or `tcp://HOST:PORT` for a server of lines. A WebSocket is
/// reached by HTTP, so `ws` and `wss` are other names of `http` and `https`; a `/ws` at the end of such a URL is the socket
/// itself, and no part of the base.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BaseUrl {
    /// Whether connections use TLS.
    pub tls: bool,
    /// Whether it speaks lines over a socket, and no HTTP.
    pub lines: bool,
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// Port, the scheme's own when the text has none.
    pub port: u16,
    /// Path in front of every request's, without a slash at its end; often empty.
    pub prefix: String,
    /// Query that is joined to every request's, without `?`; mostly empty.
    pub query: String,
    authority: String,
}

/// The scheme of a server of lines.
const LINES: &str = "tcp";

/// The path of the socket of chats.
const SOCKET: &str = "/ws";

/// Why a text is no base URL.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text:?} is no base URL: {why}")]
pub struct BaseUrlError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl BaseUrl {
    /// Reads a base URL.
    ///
    /// # Errors
    ///
    /// When the text is no absolute URL, its scheme is neither `http` nor `https`, or it has a query or a user.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let url = Self::of_service(text)?;
        if url.query.is_empty() {
            return Ok(url);
        }
        Err(BaseUrlError {
            text: url.to_string(),
            why: "it has a query".to_owned(),
        })
    }

    /// Reads a base URL of a model service, which may have a query: `https://HOST/PATH?api-version=2024-10-21`.
    ///
    /// # Errors
    ///
    /// When the text is no absolute URL, its scheme is neither `http` nor `https`, or it has a user.
    pub fn of_service(text: &str) -> Result<Self, BaseUrlError> {
        let wrong = |why: &str| BaseUrlError {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        if text.contains('#') {
            return Err(wrong("it has a fragment"));
        }
        let uri: Uri = text
            .trim()
            .parse()
            .map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
        let tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if [LINES, "ws"].contains(&scheme.as_str()) => false,
            Some(scheme) if scheme.as_str() == "wss" => true,
            Some(_) => return Err(wrong("the scheme is neither http nor https")),
            None => return Err(wrong("it does not begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if let Some((_, host)) = authority.as_str().rsplit_once('@') {
            // A password is not said again.
            return Err(BaseUrlError {
                text: format!("{}://…@{host}", uri.scheme_str().unwrap_or_default()),
                why: "it has a user name; a key has an option of its own, or stands in the profile"
                    .to_owned(),
            });
        }
        let lines = uri.scheme_str() == Some(LINES);
        let socket = matches!(uri.scheme_str(), Some("ws" | "wss"));
        let path = uri.path().trim_end_matches('/');
        let prefix = path.strip_suffix(SOCKET).filter(|_| socket);
        if lines && (authority.port_u16().is_none() || uri.path().len() > 1) {
            return Err(wrong("tcp:// takes a host and a port, and no path"));
        }
        Ok(Self {
            tls,
            lines,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            prefix: prefix.unwrap_or(path).to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            authority: authority.as_str().to_owned(),
        })
    }

    /// The target of a request, itself a path with or without a query, as it is sent: behind the prefix, with the
    /// query of this URL joined.
    pub fn target(&self, target: &str) -> String {
        let prefix = &self.prefix;
        let joint = if target.contains('?') { '&' } else { '?' };
        match self.query.as_str() {
            "" => format!("{prefix}{target}"),
            query => format!("{prefix}{target}{joint}{query}"),
        }
    }

    /// The value of the `host` header.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

/// Keys in the query are not shown.
impl fmt::Display for BaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.lines, self.tls) {
            (true, _) => LINES,
            (false, true) => "https",
            (false, false) => "http",
        };
        write!(out, "{scheme}://{}{}", self.authority, self.prefix)?;
        if self.query.is_empty() {
            return Ok(());
        }
        let keys = secrets::of_service_query(&self.query);
        write!(out, "?{}", secrets::replaced(&self.query, &keys, "…"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_loses_its_last_slash_and_the_port_is_the_schemes_own() {
        let url = BaseUrl::parse("https://example.test/covel/").unwrap();
        assert_eq!(
            (url.host.as_str(), url.port, url.prefix.as_str()),
            ("example.test", 443, "/covel")
        );
        assert_eq!(url.to_string(), "https://example.test/covel");
    }

    #[test]
    fn a_websocket_is_reached_by_http() {
        let read = |text: &str| BaseUrl::parse(text).map(|url| (url.to_string(), url.port));
        let plain = ("http://127.0.0.1/chat".to_owned(), 80);
        assert_eq!(read("ws://127.0.0.1/chat"), Ok(plain));
        let secret = ("https://example.test:8443".to_owned(), 8443);
        assert_eq!(read("wss://example.test:8443/"), Ok(secret));
        for socket in ["ws://127.0.0.1:80/app/ws", "ws://127.0.0.1:80/app/ws/"] {
            let base = ("http://127.0.0.1:80/app".to_owned(), 80);
            assert_eq!(
                read(socket),
                Ok(base),
                "the socket itself is no part of the base"
            );
        }
        let http = ("http://127.0.0.1:80/ws".to_owned(), 80);
        assert_eq!(read("http://127.0.0.1:80/ws"), Ok(http));
    }

    #[test]
    fn a_server_of_lines_has_a_host_and_a_port() {
        let url = BaseUrl::parse("tcp://127.0.0.1:4711").unwrap();
        assert_eq!((url.lines, url.port), (true, 4711));
        assert_eq!(url.to_string(), "tcp://127.0.0.1:4711");
        assert!(BaseUrl::parse("tcp://127.0.0.1").is_err());
        assert!(BaseUrl::parse("tcp://127.0.0.1:1/x").is_err());
    }

    #[test]
    fn an_ipv6_address_is_connected_to_without_brackets_and_named_with_them() {
        let url = BaseUrl::parse("http://[::1]:8080").unwrap();
        assert_eq!((url.host.as_str(), url.authority()), ("::1", "[::1]:8080"));
    }

    #[test]
    fn the_query_of_a_service_is_joined_to_every_target() {
        let url = BaseUrl::of_service("https://x.test/openai/?api-version=2024-10-21&a=b").unwrap();
        assert_eq!(
            url.target("/chat/completions"),
            "/openai/chat/completions?api-version=2024-10-21&a=b"
        );
        assert_eq!(
            url.target("/m:stream?alt=sse"),
            "/openai/m:stream?alt=sse&api-version=2024-10-21&a=b"
        );
        let none = BaseUrl::of_service("https://x.test?").unwrap();
        assert_eq!(none.target("/a?b=c"), "/a?b=c");
    }

    #[test]
    fn a_key_in_the_query_is_not_shown() {
        let url = BaseUrl::of_service("http://x/v1?api-version=1&key=hidden&code=hidden").unwrap();
        let shown = url.to_string();
        assert!(
            shown.starts_with("http://x/v1?api-version=1&key=…"),
            "{shown}"
        );
        let refused = BaseUrl::parse("http://x/v1?key=hidden").unwrap_err();
        assert!(!refused.to_string().contains("hidden"), "{refused}");
    }

    #[test]
    fn what_is_no_base_url_is_refused_with_the_reason() {
        for (text, why) in [
            ("127.0.0.1:80", "it does not begin with http:// or https://"),
            ("ftp://x", "the scheme is neither http nor https"),
            (
                "http://a:b@x",
                "it has a user name; a key has an option of its own, or stands in the profile",
            ),
            ("http://x/?a=1", "it has a query"),
            ("http://x?a=1", "it has a query"),
            ("http://x/#a", "it has a fragment"),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap_err().why, why, "{text}");
        }
    }
}
