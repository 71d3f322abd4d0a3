//! Where secrets stand: headers, query parameters and JSON members of certain names, and keys that can be told by
//! their form.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;

/// A secret, by its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Secret {
    /// Where its bytes are.
    pub(super) range: Range<usize>,
    /// What it was found by, such as `header authorization`.
    pub(super) place: String,
}

impl Secret {
    fn new(range: Range<usize>, place: String) -> Option<Self> {
        (!range.is_empty()).then_some(Self { range, place })
    }
}

/// Headers whose whole value is secret.
const HEADERS: &[&str] = &[
    "x-session-token",
    "x-operator-token",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-auth-token",
    "x-csrf-token",
    "x-xsrf-token",
    "x-amz-security-token",
];
/// Headers whose value is a scheme and a secret.
const SCHEME_HEADERS: &[&str] = &["authorization", "proxy-authorization"];
/// Headers that hold `name=value` pairs whose values are secret.
const COOKIE_HEADERS: &[&str] = &["cookie", "set-cookie"];
/// Query parameters whose value is secret.
const PARAMETERS: &[&str] = &[
    "session_token",
    "access_token",
    "refresh_token",
    "id_token",
    "api_key",
    "apikey",
    "api-key",
    "ownerToken",
    "token",
    "client_secret",
    "password",
];
/// Members of JSON objects whose string value is secret.
const MEMBERS: &[&str] = &[
    "ownerToken",
    "owner_token",
    "sessionToken",
    "session_token",
    "operatorToken",
    "accessToken",
    "access_token",
    "refreshToken",
    "refresh_token",
    "idToken",
    "id_token",
    "apiKey",
    "api_key",
    "clientSecret",
    "client_secret",
    "password",
];
/// What keys begin with that can be told by their form, wherever they stand.
const KEYS: &[(&str, &str)] = &[
    ("sk-", "API key (sk-...)"),
    ("AIza", "API key (AIza...)"),
    ("ghp_", "token (ghp_...)"),
    ("github_pat_", "token (github_pat_...)"),
    ("xoxb-", "token (xoxb-...)"),
    ("xoxp-", "token (xoxp-...)"),
    ("eyJ", "JSON Web Token"),
];
/// Shortest key that is told by its form, in bytes.
const KEY_LENGTH: usize = 24;

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The secrets of a header's value.
pub(super) fn of_header(name: &str, value: &str) -> Vec<Secret> {
    let place = format!("header {}", name.to_ascii_lowercase());
    let secret = |range| Secret::new(range, place.clone());
    if is_one_of(name, HEADERS) {
        return secret(0..value.len()).into_iter().collect();
    }
    if is_one_of(name, SCHEME_HEADERS) {
        let from = value.find(' ').map_or(0, |space| space + 1);
        return secret(from..value.len()).into_iter().collect();
    }
    if is_one_of(name, COOKIE_HEADERS) {
        // What follows the first pair of `set-cookie` is no secret.
        let pairs = if name.eq_ignore_ascii_case("set-cookie") {
            1
        } else {
            usize::MAX
        };
        return values(value, 0, &[';'])
            .take(pairs)
            .filter_map(|(_, range)| secret(range))
            .collect();
    }
    of_keys(value.as_bytes())
}

/// The secrets of a request target, or of any text with a query.
pub(super) fn of_target(target: &str) -> Vec<Secret> {
    let mut found = of_keys(target.as_bytes());
    if let Some(query) = target.find('?') {
        // Gemini takes its API key as `key`; elsewhere a `key` is no secret.
        let gemini = target.contains("/v1beta/");
        let secrets = values(target, query + 1, &['&'])
            .filter(|(name, _)| is_one_of(name, PARAMETERS) || (gemini && *name == "key"))
            .filter_map(|(name, range)| Secret::new(range, format!("query {name}")));
        found.splice(0..0, secrets);
    }
    found
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

/// The secrets of a body, a message or any other text: values of members, wherever JSON stands in it, and keys.
/// One pass for all names, however many there are.
pub(super) fn of_text(bytes: &[u8]) -> Vec<Secret> {
    static MEMBER_FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let quoted = MEMBERS.iter().map(|member| format!("\"{member}\""));
        AhoCorasick::new(quoted).ok()
    });
    let mut found: Vec<Secret> = MEMBER_FINDER
        .iter()
        .flat_map(|finder| finder.find_iter(bytes))
        .filter_map(|member| {
            let name = MEMBERS.get(member.pattern().as_usize())?;
            Secret::new(
                string_value(bytes, member.end())?,
                format!("JSON member {name}"),
            )
        })
        .collect();
    found.extend(of_keys(bytes));
    found.sort_by_key(|secret| secret.range.start);
    found
}

/// Keys that can be told by their form.
fn of_keys(bytes: &[u8]) -> Vec<Secret> {
    static KEY_FINDER: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::new(KEYS.iter().map(|(prefix, _)| prefix)).ok());
    KEY_FINDER
        .iter()
        .flat_map(|finder| finder.find_iter(bytes))
        .filter_map(|prefix| {
            let (_, place) = KEYS.get(prefix.pattern().as_usize())?;
            let word = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            let before = bytes.get(..prefix.start())?.last();
            if before.as_ref().is_some_and(word) {
                return None;
            }
            let length = bytes.get(prefix.start()..)?.iter().take_while(word).count();
            let range = prefix.start()..prefix.start() + length;
            let text = bytes.get(range.clone())?;
            let digits = text.iter().any(u8::is_ascii_digit);
            (length >= KEY_LENGTH && digits)
                .then(|| Secret::new(range, (*place).to_owned()))
                .flatten()
        })
        .collect()
}

/// Range of the string after the colon at `at`, without its quotes.
fn string_value(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let skip_space = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    };
    let colon = skip_space(at);
    let quote = skip_space((bytes.get(colon) == Some(&b':')).then_some(colon + 1)?);
    let start = (bytes.get(quote) == Some(&b'"')).then_some(quote + 1)?;
    let mut end = start;
    loop {
        match bytes.get(end)? {
            b'"' => return Some(start..end),
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
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
}
