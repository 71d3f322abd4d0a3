//! Images: what they are, and who gets them.
//!
//! Nothing is downloaded here, and no media store is read: an image is encoded as it comes.
//!
//! Source: seed 000, lines 520-546.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::message::{ChatMessage, Content, ContentPart};

/// The type of what no header tells.
const DEFAULT_TYPE: &str = "image/png";
/// What stands for a message that held nothing but images.
const PLACEHOLDER: &str = "[image]";

/// An image as a wire encodes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Picture<'a> {
    /// Its bytes as base64.
    Inline {
        mime: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    /// Where it is.
    Url(&'a str),
}

/// Reads the `image` of a part: a URL, a `data:` URL, or plain base64.
pub(super) fn read<'a>(image: &'a str, media_type: Option<&'a str>) -> Picture<'a> {
    if let Some(rest) = without_scheme(image, "data:") {
        return data_url(rest, media_type);
    }
    // No base64 has a colon.
    if image.contains("://") {
        return Picture::Url(image);
    }
    Picture::Inline {
        mime: Cow::Borrowed(media_type.unwrap_or_else(|| detect(image))),
        data: Cow::Borrowed(image),
    }
}

impl Picture<'_> {
    /// The URL form: the URL itself, or a `data:` URL.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Inline { mime, data } => format!("data:{mime};base64,{data}"),
            Self::Url(url) => (*url).to_owned(),
        }
    }
}

fn without_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let start = text.get(..scheme.len())?;
    start
        .eq_ignore_ascii_case(scheme)
        .then(|| &text[scheme.len()..])
}

fn data_url<'a>(rest: &'a str, media_type: Option<&'a str>) -> Picture<'a> {
    let (head, data) = rest.split_once(',').unwrap_or(("", rest));
    let mut parts = head.split(';');
    let named = parts.next().filter(|mime| !mime.is_empty());
    let encoded = parts.any(|part| part.trim().eq_ignore_ascii_case("base64"));
    let data = if encoded {
        Cow::Borrowed(data)
    } else {
        Cow::Owned(STANDARD.encode(unescaped(data)))
    };
    let mime = match named.or(media_type) {
        Some(mime) => Cow::Borrowed(mime),
        None => Cow::Borrowed(detect(&data)),
    };
    Picture::Inline { mime, data }
}

/// The bytes of a percent-encoded text.
fn unescaped(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escape = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                out.push(escaped);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

/// The type by the header of a file, of its base64.
fn detect(base64: &str) -> &'static str {
    let start: Vec<u8> = base64
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take(16)
        .collect();
    let whole = start.len() / 4 * 4;
    let Ok(header) = STANDARD.decode(&start[..whole]) else {
        return DEFAULT_TYPE;
    };
    match header.as_slice() {
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
        // PNG, and what is none of these.
        _ => DEFAULT_TYPE,
    }
}

/// The conversation without its images; a message that held nothing else becomes a placeholder.
pub(super) fn stripped(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        match message {
            ChatMessage::System { content }
            | ChatMessage::User { content }
            | ChatMessage::Assistant { content, .. }
            | ChatMessage::Tool { content, .. } => strip(content),
        }
    }
    messages
}

fn strip(content: &mut Content) {
    let Content::Parts(parts) = content else {
        return;
    };
    let before = parts.len();
    parts.retain(|part| matches!(part, ContentPart::Text { .. }));
    if parts.is_empty() && before > 0 {
        *content = PLACEHOLDER.into();
    }
}

/// How many images a conversation has.
pub(super) fn count(messages: &[ChatMessage]) -> usize {
    messages
        .iter()
        .map(|message| message.content().images())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline<'a>(mime: &'a str, data: &'a str) -> Picture<'a> {
        Picture::Inline {
            mime: mime.into(),
            data: data.into(),
        }
    }

    #[test]
    fn the_type_is_found_in_the_header_unless_it_is_said() {
        for (data, mime) in [
            ("iVBORw0KGgoAAAANSUhEUg==", "image/png"),
            ("/9j/4AAQSkZJRgABAQ==", "image/jpeg"),
            ("R0lGODlhAQABAIAAAAAAAA==", "image/gif"),
            ("UklGRiQAAABXRUJQVlA4IA==", "image/webp"),
            ("UklGRiQAAABXQVZFZm10IA==", "image/png"),
            ("AAECAwABAgMAAQID", "image/png"),
            ("", "image/png"),
            ("!!", "image/png"),
        ] {
            assert_eq!(read(data, None), inline(mime, data), "{data}");
        }
        assert_eq!(
            read("iVBORw0KGgo=", Some("image/webp")),
            inline("image/webp", "iVBORw0KGgo=")
        );
    }

    #[test]
    fn data_urls_are_taken_apart() {
        assert_eq!(
            read("data:image/gif;base64,R0lG", None),
            inline("image/gif", "R0lG")
        );
        assert_eq!(
            read("data:image/gif;base64,R0lG", Some("image/png")),
            inline("image/gif", "R0lG")
        );
        assert_eq!(
            read("DATA:;base64,/9j/4AAQ", None),
            inline("image/jpeg", "/9j/4AAQ")
        );
        assert_eq!(
            read("data:image/svg+xml,%3Csvg/%3E", None),
            inline("image/svg+xml", "PHN2Zy8+")
        );
    }

    #[test]
    fn urls_stay_as_they_are() {
        for url in [
            "http://img.test/a.png",
            "https://img.test/a%20b.png?x=1&y=2",
            "gs://b/o",
        ] {
            assert_eq!(read(url, Some("image/png")), Picture::Url(url));
            assert_eq!(read(url, None).url(), url);
        }
    }

    #[test]
    fn a_message_that_held_only_images_becomes_a_placeholder() {
        let image = || ContentPart::Image {
            image: "AAAA".into(),
            media_type: None,
        };
        let text = ContentPart::Text {
            text: "look".into(),
        };
        let user = |parts: Vec<ContentPart>| ChatMessage::User {
            content: Content::Parts(parts),
        };
        let messages = [
            user(vec![image(), image()]),
            user(vec![text.clone(), image()]),
        ];

        assert_eq!(count(&messages), 3);
        let stripped = stripped(&messages);
        assert_eq!(count(&stripped), 0);
        assert_eq!(stripped[0].content(), &Content::from("[image]"));
        assert_eq!(stripped[1].content(), &Content::Parts(vec![text]));
    }
}
