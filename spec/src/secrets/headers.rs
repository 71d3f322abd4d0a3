//! Values of headers.

use super::{Secret, of_keys, pairs, values};

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
/// Header of the subprotocols that a client offers. A browser sends no other header of its own with a WebSocket, so
/// tokens travel in it.
const SUBPROTOCOLS: &str = "sec-websocket-protocol";
/// Words of a subprotocol behind which a secret follows, after a `.`, `-` or the like, or as the next subprotocol.
const SUBPROTOCOL_WORDS: &[&str] = &[
    "authorization",
    "auth",
    "bearer",
    "token",
    "key",
    "jwt",
    "secret",
    "password",
    "ticket",
];
/// A subprotocol as long as this, in bytes, that has a digit and no `/` or `:` is no name.
const SUBPROTOCOL_NAME: usize = 32;

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
    if name.eq_ignore_ascii_case(SUBPROTOCOLS) {
        return of_subprotocols(value)
            .into_iter()
            .filter_map(secret)
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
    // An address, such as that of `location` or `referer`.
    let mut found = pairs::of(value.as_bytes());
    found.extend(of_keys(value.as_bytes()));
    found
}

/// Ranges of what is no name among subprotocols: `bearer.SECRET`, `access_token, SECRET`, and what is as long as a
/// token.
fn of_subprotocols(value: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut expected = false;
    for part in value.split(',') {
        let offered = part.trim();
        let start = at + part.len() - part.trim_start().len();
        at += part.len() + 1;
        let end = start + offered.len();
        let announced = std::mem::take(&mut expected);
        match behind_the_word(offered) {
            Some(from) if from < offered.len() => found.push(start + from..end),
            Some(_) => expected = true,
            None if announced || is_no_name(offered) => found.push(start..end),
            None => {}
        }
    }
    found
}

/// Where a subprotocol goes on behind the first words that announce a secret: at its end when nothing follows. A word
/// counts as a whole: `monkey-1` has none.
fn behind_the_word(offered: &str) -> Option<usize> {
    let parting = |c: char| matches!(c, '.' | '-' | '_' | '=' | ':' | '|');
    let mut start = 0;
    let mut behind = None;
    for part in offered.split(parting) {
        let end = start + part.len();
        if is_one_of(part, SUBPROTOCOL_WORDS) {
            behind = Some((end + 1).min(offered.len()));
        } else if behind.is_some() {
            // The secret itself may have such a word in it.
            break;
        }
        start = end + 1;
    }
    let from = behind?;
    let rest = offered.get(from..)?;
    // `bearer.authorization.k8s.io.SECRET`: a domain whose last part is the secret.
    let domain = rest.find(".io.").map_or(0, |dot| dot + ".io.".len());
    Some(from + domain)
}

fn is_no_name(offered: &str) -> bool {
    offered.len() >= SUBPROTOCOL_NAME
        && offered.bytes().any(|byte| byte.is_ascii_digit())
        && !offered.contains(['/', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::replaced;

    fn hidden(name: &str, value: &str) -> String {
        replaced(value, &of_header(name, value), "-")
    }

    #[test]
    fn a_token_among_subprotocols_is_secret_and_names_are_not() {
        for (offered, shown) in [
            ("chat, superchat", "chat, superchat"),
            ("graphql-transport-ws", "graphql-transport-ws"),
            ("monkey-1, v12.stomp", "monkey-1, v12.stomp"),
            ("chat, bearer.abc-123", "chat, bearer.-"),
            ("bearer.my-secret-1", "bearer.-"),
            ("bearer_token, abc", "bearer_token, -"),
            ("access_token, abc, chat", "access_token, -, chat"),
            ("Authorization, Bearer, abc.def", "Authorization, Bearer, -"),
            (
                "base64url.bearer.authorization.k8s.io.abc-1, v4.channel.k8s.io",
                "base64url.bearer.authorization.k8s.io.-, v4.channel.k8s.io",
            ),
            (
                "realtime, openai-insecure-api-key.ek_123",
                "realtime, openai-insecure-api-key.-",
            ),
            ("json, 0123456789abcdef0123456789abcdef", "json, -"),
        ] {
            assert_eq!(hidden("Sec-WebSocket-Protocol", offered), shown);
        }
    }

    #[test]
    fn an_address_in_a_header_has_a_query_and_a_fragment() {
        for (name, value, shown) in [
            (
                "location",
                "/cb?access_token=abc&x=1#id_token=def",
                "/cb?access_token=-&x=1#id_token=-",
            ),
            (
                "Referer",
                "http://x/?session_token=abc",
                "http://x/?session_token=-",
            ),
            (
                "link",
                "<http://x/?token=abc>; rel=next",
                "<http://x/?token=->; rel=next",
            ),
            (
                "content-type",
                "text/plain; charset=utf-8",
                "text/plain; charset=utf-8",
            ),
        ] {
            assert_eq!(hidden(name, value), shown);
        }
    }
}
