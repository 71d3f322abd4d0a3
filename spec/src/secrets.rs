//! Where secrets stand: headers, query parameters and JSON members of certain names, and keys that can be told by
//! their form.
//!
//! One table for everything that records, keeps or shows traffic. What takes the place of a secret is for the
//! caller to say: here are only the places.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;

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

/// A header whose name holds one of these words holds a secret: `x-api-key`, `x-amz-security-token`,
/// `cf-access-client-secret`, `authorization2`.
const HEADER_WORDS: &[&str] = &[
    "authorization",
    "secret",
    "token",
    "key",
    "password",
    "credential",
];
/// Headers that hold such a word and no secret. Those of rate limits count tokens.
const OPEN_HEADERS: &[&str] = &[
    "sec-websocket-key",
    "idempotency-key",
    "x-idempotency-key",
    "surrogate-key",
    "access-control-allow-headers",
];
/// Words in the names of headers that count tokens.
const OPEN_HEADER_WORDS: &[&str] = &["ratelimit", "rate-limit", "tokens"];
/// Headers that hold `name=value` pairs whose values are secret.
const COOKIE_HEADERS: &[&str] = &["cookie", "set-cookie"];
/// Query parameters whose value is secret: in small letters, without `-` and `_`. Gemini's `key` is told apart.
const PARAMETERS: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "authtoken",
    "authorization",
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
    // What a Responses request hands on to a tool server.
    "authorization",
    "Authorization",
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

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a header of this name holds a secret, whatever the case of the letters.
pub fn is_header(name: &str) -> bool {
    if is_one_of(name, COOKIE_HEADERS) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(HEADER_WORDS) && !is_one_of(&name, OPEN_HEADERS) && !has(OPEN_HEADER_WORDS)
}

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

/// A name of a query without its percent signs; what is no escape stays as it is.
fn unescaped(name: &str) -> String {
    let bytes = name.as_bytes();
    let digit = |at: usize| {
        let byte = *bytes.get(at)?;
        char::from(byte).to_digit(16)
    };
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        plain.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The secrets of a header's value.
pub fn of_header(name: &str, value: &str) -> Vec<Secret> {
    let place = format!("header {}", name.to_ascii_lowercase());
    let secret = |range| Secret::new(range, place.clone());
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
    if is_header(name) {
        // A scheme before it is none: `Bearer`, `Basic`.
        let schemes = name.to_ascii_lowercase().contains("authorization");
        let from = value
            .find(' ')
            .filter(|_| schemes)
            .map_or(0, |space| space + 1);
        return secret(from..value.len()).into_iter().collect();
    }
    of_keys(value.as_bytes())
}

/// The secrets of a request target, or of any text with a query.
pub fn of_target(target: &str) -> Vec<Secret> {
    let mut found = of_keys(target.as_bytes());
    if let Some(query) = target.find('?') {
        let gemini = target.contains("/v1beta/");
        let secrets = values(target, query + 1, &['&'])
            .filter(|(name, _)| is_parameter(name) || (gemini && is_key_parameter(name)))
            .filter_map(|(name, range)| Secret::new(range, format!("query {name}")));
        found.splice(0..0, secrets);
    }
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

/// The secrets of a body, a message or any other text: values of members, wherever JSON stands in it, and keys.
/// One pass for all names, however many there are.
pub fn of_text(bytes: &[u8]) -> Vec<Secret> {
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
            if before.as_ref().is_some_and(word) {
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
