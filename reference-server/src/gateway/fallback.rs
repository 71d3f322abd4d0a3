//! Whom to ask next, and what of the request it gets.
//!
//! A target that is known to take no images gets none. One of which nothing is known gets them, except as
//! a fallback for a preferred model that is known to take them: then it gets text only. A fallback that
//! cannot hold the request is passed over.
//!
//! Source: seed 000, lines 540-545.

use std::borrow::Cow;

use super::images;
use super::message::ChatMessage;
use super::models::{takes_images, window};
use super::request::ModelRequest;
use super::settings::TargetConfig;

/// What an image counts for, whatever its size.
const IMAGE_TOKENS: u64 = 1_600;
/// Characters of text that count as one token.
const TOKEN_CHARS: u64 = 4;

/// The target at this place, and the model to ask for there.
pub(super) fn model<'a>(
    targets: &'a [TargetConfig],
    place: usize,
    request: &'a ModelRequest,
) -> &'a str {
    let asked = request.target.model.as_deref().filter(|_| place == 0);
    asked.unwrap_or(&targets[place].model)
}

/// The first fallback behind `place` that can hold the request.
pub(super) fn next(
    targets: &[TargetConfig],
    place: usize,
    request: &ModelRequest,
) -> Option<usize> {
    let fits = |at: &usize| {
        let messages = messages(targets, *at, request);
        let tokens = estimate(&messages, request);
        window(&targets[*at], &targets[*at].model).is_none_or(|window| tokens <= window)
    };
    (place + 1..targets.len()).find(fits)
}

/// The conversation that the target at this place gets.
pub(super) fn messages<'a>(
    targets: &[TargetConfig],
    place: usize,
    request: &'a ModelRequest,
) -> Cow<'a, [ChatMessage]> {
    let takes = |at: usize| takes_images(&targets[at], model(targets, at, request));
    let gets = match takes(place) {
        Some(takes) => takes,
        None => place == 0 || takes(0) != Some(true),
    };
    if gets || images::count(&request.messages) == 0 {
        Cow::Borrowed(&request.messages)
    } else {
        Cow::Owned(images::stripped(&request.messages))
    }
}

/// How many tokens a request has, about: a token for every four characters of text and of tools, and
/// 1,600 for each image.
pub(super) fn estimate(messages: &[ChatMessage], request: &ModelRequest) -> u64 {
    let calls = |message: &ChatMessage| match message {
        ChatMessage::Assistant { tool_calls, .. } => tool_calls
            .iter()
            .map(|call| call.name.len() + call.arguments.len())
            .sum(),
        _ => 0,
    };
    let texts = messages
        .iter()
        .map(|message| message.content().text().chars().count() + calls(message));
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.json_schema.to_string().len());
    let chars: usize = texts.chain(tools).sum();
    let images = images::count(messages) as u64;
    (chars as u64).div_ceil(TOKEN_CHARS) + images * IMAGE_TOKENS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::{Content, ContentPart};
    use turnwire_spec::llm::Wire;

    /// 40 characters of text, which count as 10 tokens, and these images.
    fn request(images: &[&str]) -> ModelRequest {
        let image = |image: &&str| ContentPart::Image {
            image: (*image).to_owned(),
            media_type: None,
        };
        let text = ContentPart::Text {
            text: "x".repeat(40),
        };
        let parts = std::iter::once(text).chain(images.iter().map(image));
        ModelRequest {
            messages: vec![ChatMessage::User {
                content: Content::Parts(parts.collect()),
            }],
            ..ModelRequest::default()
        }
    }

    fn targets(names: [&str; 2]) -> Vec<TargetConfig> {
        let target = |name| TargetConfig::new(Wire::OpenaiChat, "http://127.0.0.1:1", name);
        names.map(target).into()
    }

    fn fits(window: u64, images: &[&str]) -> bool {
        let mut targets = targets(["a", "b"]);
        targets[1].context_window = Some(window);
        next(&targets, 0, &request(images)).is_some()
    }

    #[test]
    fn an_image_counts_1600_tokens_in_the_fallback_fit_whatever_its_size() {
        let tiny = "A".repeat(136);
        assert!(!fits(10 + 1_500, &[&tiny]));
        assert!(fits(10 + 1_700, &[&tiny]));

        let big = "A".repeat(1_400_000);
        assert!(fits(10 + 2_000, &[&big]));
    }

    #[test]
    fn every_image_adds_its_own_1600_tokens_to_the_fallback_fit() {
        assert!(!fits(10 + 3_000, &["AAAA", "AAAA"]));
        assert!(fits(10 + 3_000, &["AAAA"]));
        assert!(fits(10 + 3_200, &["AAAA", "AAAA"]));
    }

    fn images_for(names: [&str; 2], place: usize) -> usize {
        let request = request(&["AAAA"]);
        images::count(&messages(&targets(names), place, &request))
    }

    #[test]
    fn who_gets_images_depends_on_what_is_known() {
        assert_eq!(
            images_for(["o3-mini", "b"], 0),
            0,
            "known to take text only"
        );
        assert_eq!(images_for(["made-up", "b"], 0), 1, "nothing is known");
        assert_eq!(
            images_for(["gpt-5", "made-up"], 1),
            0,
            "the preferred one is known"
        );
        assert_eq!(images_for(["gpt-5", "claude-x"], 1), 1, "both are known");
        assert_eq!(
            images_for(["made-up", "other"], 1),
            1,
            "nothing is known of either"
        );
        assert_eq!(
            images_for(["o3-mini", "other"], 1),
            1,
            "the preferred one takes none"
        );
    }
}
