//! What was really sent to providers, as traces record it.
//!
//! Keys, headers and addresses are not part of it. Long inline images are replaced by a sentence, and URLs of
//! images lose what may be secret; then the record says that it is not complete. The request itself is not
//! touched.
//!
//! Source: seed 000, lines 546 and 1283-1304.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use turnwire_spec::llm::Wire;

use super::request::Target;

/// Characters of inline data that are recorded as they are.
const INLINE_CHARS: usize = 4_096;

/// One request that was sent to a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    /// Who was asked.
    pub target: Target,
    /// The wire.
    pub wire: Wire,
    /// The JSON that was sent, whole.
    pub body: Arc<Value>,
    /// The number of the attempt at this target, from 0.
    pub transport_attempt: u32,
    /// When it began.
    pub begun: Instant,
    /// How long it took until the head of the answer came, or until it failed; none while it is under way.
    pub took: Option<Duration>,
    /// The HTTP status, when one came.
    pub status: Option<u16>,
}

impl SentRequest {
    pub(super) fn new(
        target: Target,
        wire: Wire,
        body: Arc<Value>,
        transport_attempt: u32,
    ) -> Self {
        Self {
            target,
            wire,
            body,
            transport_attempt,
            begun: Instant::now(),
            took: None,
            status: None,
        }
    }

    pub(super) fn settle(&mut self, begun: Instant, status: Option<u16>) {
        self.took = Some(begun.elapsed());
        self.status = status;
    }

    /// Whether it got no success status.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.took.is_some()
            && !self
                .status
                .is_some_and(|status| (200..300).contains(&status))
    }

    /// The body as a trace records it, and whether that is all of it.
    #[must_use]
    pub fn recorded(&self) -> (Value, bool) {
        let mut body = (*self.body).clone();
        let complete = trim(&mut body, false);
        (body, complete)
    }
}

/// Members that hold an image, or in which one is described.
const IMAGES: [&str; 4] = ["image_url", "source", "inlineData", "fileData"];

/// Replaces what is not recorded; true when nothing was. `image` says that this is part of an image.
fn trim(value: &mut Value, image: bool) -> bool {
    let mut complete = true;
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                complete &= trim(member, image || IMAGES.contains(&name.as_str()));
            }
        }
        Value::Array(items) => {
            for item in items {
                complete &= trim(item, image);
            }
        }
        Value::String(text) if image => {
            if let Some(other) = shortened(text) {
                *text = other;
                complete = false;
            }
        }
        _ => {}
    }
    complete
}

fn shortened(text: &str) -> Option<String> {
    if text.contains("://") {
        return without_secrets(text);
    }
    let data = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(',').map_or(rest, |(_, data)| data),
        None => text,
    };
    let length = data.chars().count();
    (length > INLINE_CHARS)
        .then(|| format!("Inline image data of {length} characters is not recorded."))
}

/// A URL without credentials, query and fragment, when it has some.
fn without_secrets(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let plain = &rest[..end];
    let host_end = plain.find('/').unwrap_or(plain.len());
    let (host, path) = plain.split_at(host_end);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let kept = format!("{scheme}://{host}{path}");
    (kept != url).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recorded(body: Value) -> (Value, bool) {
        SentRequest::new(Target::default(), Wire::OpenaiChat, Arc::new(body), 0).recorded()
    }

    fn shapes(data: &str) -> [Value; 4] {
        let url = format!("data:image/png;base64,{data}");
        [
            json!({ "type": "image_url", "image_url": { "url": url } }),
            json!({ "type": "input_image", "image_url": url }),
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } }),
            json!({ "inlineData": { "mimeType": "image/png", "data": data } }),
        ]
    }

    #[test]
    fn long_inline_images_are_replaced_in_recorded_bodies() {
        for part in shapes(&"A".repeat(10_000)) {
            let (body, complete) = recorded(json!({ "messages": [part] }));
            let text = body.to_string();
            assert!(!complete);
            assert!(
                text.contains("10000 characters") && text.len() < 500,
                "{text}"
            );
        }
    }

    #[test]
    fn inline_images_up_to_4096_characters_are_recorded_as_sent() {
        for part in shapes(&"A".repeat(4_096)) {
            assert_eq!(recorded(part.clone()), (part, true));
        }
        for part in shapes(&"A".repeat(4_097)) {
            assert!(!recorded(part).1);
        }
    }

    #[test]
    fn long_texts_are_no_images() {
        let body = json!({ "messages": [{ "content": "A".repeat(10_000) }] });
        assert_eq!(recorded(body.clone()), (body, true));
    }

    #[test]
    fn urls_of_images_are_recorded_without_what_may_be_secret() {
        let part = |url: &str| json!({ "image_url": { "url": url } });
        assert_eq!(
            recorded(part("https://u:p@img.test/a.png?sig=1#x")),
            (part("https://img.test/a.png"), false)
        );
        assert_eq!(
            recorded(part("https://img.test/a.png")),
            (part("https://img.test/a.png"), true)
        );
    }
}
