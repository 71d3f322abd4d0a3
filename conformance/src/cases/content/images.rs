//! How images are encoded: base64, `data:` URLs and URLs, with and without a type, on each wire.

use serde_json::json;
use turnwire_spec::llm::Wire;

use super::{
    BYTES, GIF, JPEG, PNG, Piece, ROOT, WEBP, image, on, on_each, shown, text, typed, user,
};
use crate::cases::Truth;

/// What holds on each wire, and what Chat Completions has of its own.
pub(super) fn chat() -> Vec<Piece> {
    let both = [user(json!([text("look"), image(JPEG), image(PNG)]))];
    let fetched = [user(json!([
        text("look"),
        image(&format!("{ROOT}/img/a.png"))
    ]))];
    let with_urls = [
        Wire::OpenaiChat,
        Wire::OpenaiResponses,
        Wire::AnthropicMessages,
    ];
    let chat = |hazard: &str, part| Piece::new(Wire::OpenaiChat, hazard, shown(part));
    let mut pieces = vec![
        chat("content-url-http", image("http://img.test/a.png")),
        chat("content-url-https", image("https://img.test/a.png")),
        chat("content-chat-inline", typed(JPEG, "image/jpeg")),
        chat(
            "content-chat-url",
            image("https://img.test/a%20b.png?x=1&y=2"),
        ),
        chat("content-traced", typed(&"A".repeat(10_000), "image/png")),
    ];
    let each = [
        ("content-base64", typed(PNG, "image/png")),
        (
            "content-data-url",
            image(&format!("data:image/png;base64,{PNG}")),
        ),
        ("content-told-type", typed(PNG, "image/webp")),
        ("content-jpeg", image(JPEG)),
        ("content-gif", image(GIF)),
        ("content-webp", image(WEBP)),
        ("content-bytes", image(BYTES)),
    ];
    pieces.extend(
        each.into_iter()
            .flat_map(|(hazard, part)| on_each(hazard, &shown(part))),
    );
    pieces.extend(on_each("content-png", &both));
    pieces.extend(on(&with_urls, "content-fetched", &fetched));
    pieces
}

/// Of Responses.
pub(super) fn responses() -> Vec<Piece> {
    let piece = |hazard: &str, part| Piece::new(Wire::OpenaiResponses, hazard, shown(part));
    vec![
        piece("content-responses-inline", typed(PNG, "image/png")),
        piece("content-responses-url", image("https://img.test/a.png?x=1")),
    ]
}

/// Of Anthropic Messages.
pub(super) fn anthropic() -> Vec<Piece> {
    let piece = |id: &str, part| Piece::new(Wire::AnthropicMessages, id, shown(part));
    vec![
        piece("content-anthropic-inline/base64", typed(GIF, "image/gif")),
        piece(
            "content-anthropic-inline/data-url",
            image(&format!("data:image/gif;base64,{GIF}")),
        ),
        piece("content-anthropic-url", image("https://img.test/a.png")),
    ]
}

/// A file that was uploaded to Google.
const FILE: &str = "https://generativelanguage.googleapis.com/v1beta/files/abc123";

/// Of Gemini, native and compatible. What must not be sent comes after a call that may be.
pub(super) fn gemini() -> Vec<Piece> {
    let piece = |id: &str, part| Piece::new(Wire::Gemini, id, shown(part));
    let plain = |id: &str| Piece::new(Wire::Gemini, id, vec![user(json!("look"))]);
    let compatible = |id: &str, part| Piece::new(Wire::GeminiOpenai, id, shown(part));
    let refused = || Truth::error(&["config"]);
    vec![
        piece("content-gemini-inline/base64", typed(PNG, "image/png")),
        piece(
            "content-gemini-inline/data-url",
            image(&format!("data:image/png;base64,{PNG}")),
        ),
        piece("content-gemini-file", typed(FILE, "image/png")),
        plain("content-gemini-untyped/before"),
        piece("content-gemini-untyped/file", image(FILE)).truth(refused()),
        piece(
            "content-gemini-refused",
            typed("https://img.test/a.png", "image/png"),
        )
        .truth(refused()),
        plain("content-gemini-unsent/before"),
        piece(
            "content-gemini-unsent/url",
            typed("https://img.test/b.png", "image/png"),
        )
        .truth(refused()),
        compatible("content-compatible-inline", typed(PNG, "image/png")),
        compatible("content-compatible-url", image("https://img.test/a.png")),
    ]
}
