//! Where secrets stand: headers, query parameters and JSON members of certain names, and keys that can be told by
//! their form.
//!
//! One table for everything that records, keeps or shows traffic. What takes the place of a secret is for the
//! caller to say: here are only the places.
//!
//! - `headers`: values of headers, WebSocket subprotocols among them;
//! - `members`: members of JSON objects, also of objects that stand in strings of others;
//! - `pairs`: queries and forms, wherever they stand;
//! - [`spellings`]: the other ways in which the same value may be written.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;

mod headers;
mod members;
mod pairs;
mod spellings;

pub use headers::{is_header, of_header};
pub use spellings::spellings;

/// A secret, by its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Secret {
    /// Where its bytes are.
    pub range: Range<usize>,
    /// What it was found by, such as `header authorization`.
    pub place: String,
}

impl Secret {
    fn new(range: Range<usize>, place: String) -> Option<Self> {
        (!range.is_empty()).then_some(Self { range, place })
    }
}

/// Query parameters whose value is secret: in small letters, without `-` and `_`. Gemini's `key` is told apart.
const PARAMETERS: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "authtoken",
    "authorization",
    "clientassertion",
    "clientsecret",
    "idtoken",
    "operatortoken",
    "ownertoken",
    "password",
    "refreshtoken",
    "secret",
    "sessiontoken",
    "token",
    "xamzcredential",
    "xamzsecuritytoken",
    "xamzsignature",
    "xapikey",
    "xgoogapikey",
];
/// What keys begin with that can be told by their form, wherever they stand.
const KEYS: &[(&str, &str)] = &[
    ("sk-", "API key (sk-...)"),
    ("AIza", "API key (AIza...)"),
    ("gsk_", "API key (gsk_...)"),
    ("xai-", "API key (xai-...)"),
    ("pplx-", "API key (pplx-...)"),
    ("r8_", "API key (r8_...)"),
    ("hf_", "token (hf_...)"),
    ("ya29.", "token (ya29...)"),
    ("ghp_", "token (ghp_...)"),
    ("github_pat_", "token (github_pat_...)"),
    ("xoxb-", "token (xoxb-...)"),
    ("xoxp-", "token (xoxp-...)"),
    (WEB_TOKEN, "JSON Web Token"),
];
/// What a JSON Web Token begins with; it has two dots or more, and other text in Base64 has none.
const WEB_TOKEN: &str = "eyJ";
/// Shortest key that is told by its form, in bytes.
const KEY_LENGTH: usize = 20;

/// Whether a query parameter of this name holds a secret, whatever the case of its letters and however it is
/// escaped. `key` is none of them: Gemini takes its API key so, and elsewhere a `key` is no secret.
pub fn is_parameter(name: &str) -> bool {
    let name: String = unescaped(name)
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    PARAMETERS.contains(&name.as_str())
}

/// Whether a query parameter is called `key`, whatever the case of its letters and however it is escaped.
pub fn is_key_parameter(name: &str) -> bool {
    unescaped(name).eq_ignore_ascii_case("key")
}

/// A name of a query without its percent signs.
fn unescaped(name: &str) -> String {
    let plain = spellings::percent_decoded(name.as_bytes(), false);
    String::from_utf8_lossy(&plain).into_owned()
}

/// The secrets of a request target, or of any text with a query.
pub fn of_target(target: &str) -> Vec<Secret> {
    let mut found = pairs::of(target.as_bytes());
    if target.contains("/v1beta/")
        && let Some(query) = target.find('?')
    {
        let keys = values(target, query + 1, &['&']).filter(|(name, _)| is_key_parameter(name));
        found.extend(keys.filter_map(|(name, range)| Secret::new(range, format!("query {name}"))));
    }
    found.extend(of_keys(target.as_bytes()));
    found.sort_by_key(|secret| secret.range.start);
    found
}

/// The secrets of the query of a model service, without its `?`; there a `key` is one.
pub fn of_service_query(query: &str) -> Vec<Secret> {
    let mut found: Vec<Secret> = values(query, 0, &['&'])
        .filter(|(name, _)| is_parameter(name) || is_key_parameter(name))
        .filter_map(|(name, range)| Secret::new(range, format!("query {}", unescaped(name))))
        .collect();
    let in_values: Vec<Secret> = of_keys(query.as_bytes())
        .into_iter()
        .filter(|key| {
            !found
                .iter()
                .any(|known| known.range.end > key.range.start && known.range.start < key.range.end)
        })
        .collect();
    found.extend(in_values);
    found.sort_by_key(|secret| secret.range.start);
    found
}

/// The text with each of these places, which are in order, replaced; of places that overlap the first counts.
pub fn replaced(text: &str, secrets: &[Secret], by: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for Secret { range, .. } in secrets {
        if range.start >= from
            && let Some(before) = text.get(from..range.start)
        {
            clean.push_str(before);
            clean.push_str(by);
            from = range.end;
        }
    }
    clean.push_str(text.get(from..).unwrap_or_default());
    clean
}

/// Names, and ranges of the values, of the `name=value` pairs of a text from an offset on.
fn values<'a>(
    text: &'a str,
    from: usize,
    parted_by: &'a [char],
) -> impl Iterator<Item = (&'a str, Range<usize>)> {
    let rest = text.get(from..).unwrap_or_default();
    let mut start = from;
    rest.split(parted_by).filter_map(move |pair| {
        let at = start;
        start += pair.len() + 1;
        let equals = pair.find('=')?;
        Some((pair.get(..equals)?.trim(), at + equals + 1..at + pair.len()))
    })
}

/// The secrets of a body, a message or any other text: values of members, wherever JSON stands in it, of queries and
/// forms, and keys. In the order in which they begin.
pub fn of_text(bytes: &[u8]) -> Vec<Secret> {
    let mut found = members::of(bytes);
    found.extend(pairs::of(bytes));
    found.extend(pairs::of_parts(bytes));
    found.extend(of_keys(bytes));
    found.sort_by_key(|secret| secret.range.start);
    found
}

/// Keys that can be told by their form.
pub fn of_keys(bytes: &[u8]) -> Vec<Secret> {
    static KEY_FINDER: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::new(KEYS.iter().map(|(prefix, _)| prefix)).ok());
    KEY_FINDER
        .iter()
        .flat_map(|finder| finder.find_iter(bytes))
        .filter_map(|prefix| {
            let (begin, place) = KEYS.get(prefix.pattern().as_usize())?;
            let word = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            let before = bytes.get(..prefix.start())?.last();
            // Behind a dot a key may follow what it is for: `openai-insecure-api-key.sk-...`.
            if before.is_some_and(|byte| word(&byte) && *byte != b'.') {
                return None;
            }
            let length = bytes.get(prefix.start()..)?.iter().take_while(word).count();
            let range = prefix.start()..prefix.start() + length;
            let text = bytes.get(range.clone())?;
            let digits = text.iter().any(u8::is_ascii_digit);
            let dots = text.iter().filter(|byte| **byte == b'.').count();
            (length >= KEY_LENGTH && digits && (*begin != WEB_TOKEN || dots >= 2))
                .then(|| Secret::new(range, (*place).to_owned()))
                .flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, String)> {
        let shown = |secret: Secret| (&text[secret.range], secret.place);
        of_text(text.as_bytes()).into_iter().map(shown).collect()
    }

    #[test]
    fn members_and_keys_are_found_in_any_text() {
        let text = r#"data: {"apiKey" : "a\"b","n":1,"password":"","note":"use sk-proj-0123456789abcdefghij!"}"#;
        let expected = [
            (r#"a\"b"#, "JSON member apiKey".to_owned()),
            (
                "sk-proj-0123456789abcdefghij",
                "API key (sk-...)".to_owned(),
            ),
        ];
        assert_eq!(found(text), expected);
        assert_eq!(
            found("a task-oriented-approach-to-many-things 7, sk-short1"),
            []
        );
    }

    #[test]
    fn a_header_is_secret_by_a_word_in_its_name() {
        for name in [
            "Authorization",
            "authorization2",
            "x-api-key",
            "X-Amz-Security-Token",
            "cf-access-client-secret",
            "x-custom-secret",
            "Set-Cookie",
        ] {
            assert!(is_header(name), "{name}");
        }
        for name in [
            "sec-websocket-key",
            "idempotency-key",
            "x-ratelimit-remaining-tokens",
            "anthropic-ratelimit-tokens-limit",
            "content-type",
        ] {
            assert!(!is_header(name), "{name}");
        }
        let hidden = |name, value: &str| replaced(value, &of_header(name, value), "-");
        assert_eq!(hidden("authorization2", "Bearer abc"), "Bearer -");
        assert_eq!(hidden("x-custom-secret", "two words"), "-");
        assert_eq!(hidden("cookie", "a=1; b=2"), "a=-; b=-");
    }

    #[test]
    fn a_parameter_is_secret_however_its_name_is_written() {
        let hidden = |query| replaced(query, &of_service_query(query), "-");
        for (query, shown) in [
            ("token=abc&alt=sse", "token=-&alt=sse"),
            ("apikey=abc", "apikey=-"),
            ("Key=abc", "Key=-"),
            ("k%65y=abc&pageToken=p", "k%65y=-&pageToken=p"),
            ("API-Key=abc&x=sk-0123456789abcdefghij", "API-Key=-&x=-"),
            ("key=AIza0123456789abcdefghij", "key=-"),
            ("%zz=1&%4=2", "%zz=1&%4=2"),
        ] {
            assert_eq!(hidden(query), shown);
        }
        assert!(
            of_target("/api?key=abc").is_empty(),
            "a key is a secret of Gemini's only"
        );
    }

    #[test]
    fn base64_of_json_is_no_token_unless_it_has_the_form_of_one() {
        assert_eq!(found("eyJhIjoxfQ0123456789abcdefghij"), []);
        let token = "eyJhIjoxfQ.eyJiIjoyfQ.c2lnbmF0dXJl";
        assert_eq!(found(token), [(token, "JSON Web Token".to_owned())]);
    }
}
